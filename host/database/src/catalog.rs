//! Reads of SQLite's own tables: the names that a tenant's parts of a schema have.

use rusqlite::{Connection, Row};

/// The names of what is a tenant's own.
pub(super) const OWN_NAMES_SQL: &str =
    "name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT LIKE 'svc\\_%' ESCAPE '\\'";

/// A name as SQL has it.
pub(super) fn quote_identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// All rows of a statement.
pub(super) fn query_rows<T>(
    c: &Connection,
    sql: &str,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    c.prepare(sql)?.query_map([], read)?.collect()
}
