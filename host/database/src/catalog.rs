//! Queries of SQLite's schema tables.

use rusqlite::{Connection, Row};

/// Condition for the names of the tenant's own tables, views and indexes.
pub(super) const INTERNAL_NAMES_SQL: &str =
    "name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT LIKE 'svc\\_%' ESCAPE '\\'";

/// Quotes a name for use in SQL.
pub(super) fn quote_identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Runs a query and reads all its rows.
pub(super) fn query_rows<T>(
    c: &Connection,
    sql: &str,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    c.prepare(sql)?.query_map([], read)?.collect()
}
