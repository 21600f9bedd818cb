//! Schema and size of a database, read from its file.

use rusqlite::{Connection, Row};
use serde::Serialize;
use utoipa::ToSchema;

use super::catalog::{query_rows, quote_identifier};
use super::warnings::{SchemaWarning, find_warnings};

/// The tables, indexes and views of a database.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Schema {
    /// In the order in which they were made; the service's own, `svc_files` and `svc_payments`, are the last.
    pub tables: Vec<Table>,
    /// Those that were made by name.
    pub indexes: Vec<Index>,
    /// In the order in which they were made.
    pub views: Vec<View>,
}

impl Schema {
    /// Returns the approximate size of the schema as JSON, in bytes.
    pub(super) fn text_bytes(&self) -> usize {
        let column = |column: &Column| {
            let default = column.default.as_deref().map_or(0, str::len);
            96 + column.name.len() + column.declared.len() + default
        };
        let tables = self.tables.iter().map(|table| {
            let columns: usize = table.columns.iter().map(column).sum();
            32 + table.name.len() + columns
        });
        let indexes = self.indexes.iter().map(|index| {
            let columns = index.columns.iter().flatten().map(|name| 8 + name.len());
            64 + index.name.len() + index.table.len() + columns.sum::<usize>()
        });
        let views = self.views.iter().map(|view| 16 + view.name.len());
        tables.chain(indexes).chain(views).sum()
    }
}

/// A table.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Table {
    /// Name of the table, as it was written.
    pub name: String,
    /// In their order.
    pub columns: Vec<Column>,
}

/// A column.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Column {
    /// Name of the column, as it was written.
    pub name: String,
    /// Declared type; empty if there is none.
    #[serde(rename = "type")]
    pub declared: String,
    /// Whether it refuses NULL.
    pub not_null: bool,
    /// The expression of its default, as it was written.
    pub default: Option<String>,
    /// Whether it is of the primary key.
    pub primary_key: bool,
}

/// An index.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Index {
    /// Name of the index, as it was written.
    pub name: String,
    /// Table that the index is on.
    pub table: String,
    /// Columns of the index in their order; null for an expression.
    pub columns: Vec<Option<String>>,
    /// Whether it refuses equal rows.
    pub unique: bool,
}

/// A view.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct View {
    /// Name of the table, as it was written.
    pub name: String,
}

/// How many rows a table has.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TableRows {
    /// The table.
    pub name: String,
    /// Number of rows.
    pub rows: u64,
}

/// Content of a database besides its rows.
#[derive(Clone, Debug)]
pub struct DatabaseInventory {
    /// Schema of the database.
    pub schema: Schema,
    /// Number of rows of each table.
    pub tables: Vec<TableRows>,
    /// Size in bytes.
    pub bytes: u64,
    /// Migrations that the file has, whatever the ledger says: version and checksum.
    pub markers: Vec<MigrationMarker>,
    /// Parts of the schema that SQLite reads in another way than they look.
    pub warnings: Vec<SchemaWarning>,
}

/// Mark that a migration leaves in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrationMarker {
    /// Version that the migration led to.
    pub version: u32,
    /// SHA-256 of its script, in hexadecimal.
    pub checksum: String,
}

/// Condition for the names that the platform shows: the tenant's own, `svc_files` and `svc_payments`.
const VISIBLE_NAMES_SQL: &str = "name NOT LIKE 'sqlite\\_%' ESCAPE '\\' \
    AND (name NOT LIKE 'svc\\_%' ESCAPE '\\' OR name COLLATE NOCASE IN ('svc_files', 'svc_payments'))";

/// Reads the schema.
pub(super) fn read_schema(c: &Connection) -> rusqlite::Result<Schema> {
    let mut tables = Vec::new();
    for name in read_names(c, "table")? {
        tables.push(Table {
            columns: read_columns(c, &name)?,
            name,
        });
    }
    let views = read_names(c, "view")?.into_iter().map(|name| View { name });
    Ok(Schema {
        tables,
        indexes: read_indexes(c)?,
        views: views.collect(),
    })
}

/// Reads the inventory.
pub(super) fn read_inventory(c: &Connection) -> rusqlite::Result<DatabaseInventory> {
    let schema = read_schema(c)?;
    let mut tables = Vec::with_capacity(schema.tables.len());
    for table in &schema.tables {
        let sql = format!("SELECT count(*) FROM {}", quote_identifier(&table.name));
        tables.push(TableRows {
            name: table.name.clone(),
            rows: c.query_row(&sql, [], read_count)?,
        });
    }
    let sql = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
    Ok(DatabaseInventory {
        schema,
        tables,
        bytes: c.query_row(sql, [], read_count)?,
        markers: read_markers(c)?,
        warnings: find_warnings(c)?,
    })
}

/// Reads the SQL of the views.
pub(super) fn read_view_sql(c: &Connection) -> rusqlite::Result<Vec<String>> {
    c.prepare("SELECT sql FROM sqlite_schema WHERE type = 'view'")?
        .query_map([], |row| row.get(0))?
        .collect()
}

/// A view with its SQL.
#[derive(Clone, Debug)]
pub(super) struct NamedView {
    /// Name in lower case.
    pub(super) name: String,
    /// Statement that made it.
    pub(super) sql: String,
}

/// Reads the views.
pub(super) fn read_named_views(c: &Connection) -> rusqlite::Result<Vec<NamedView>> {
    let sql = "SELECT lower(name), sql FROM sqlite_schema WHERE type = 'view'";
    query_rows(c, sql, |row| {
        Ok(NamedView {
            name: row.get(0)?,
            sql: row.get(1)?,
        })
    })
}

/// Reads the markers of migrations, oldest first.
pub(super) fn read_markers(c: &Connection) -> rusqlite::Result<Vec<MigrationMarker>> {
    let sql = "SELECT version, checksum FROM svc_migrations ORDER BY version";
    query_rows(c, sql, |row| {
        Ok(MigrationMarker {
            version: row.get(0)?,
            checksum: row.get(1)?,
        })
    })
}

fn read_count(row: &Row<'_>) -> rusqlite::Result<u64> {
    row.get::<_, i64>(0).map(i64::unsigned_abs)
}

fn read_names(c: &Connection, kind: &str) -> rusqlite::Result<Vec<String>> {
    c.prepare(&format!(
        "SELECT name FROM sqlite_schema WHERE type = ?1 AND {VISIBLE_NAMES_SQL}
         ORDER BY CASE lower(name) WHEN 'svc_files' THEN 1 WHEN 'svc_payments' THEN 2 ELSE 0 END, rowid"
    ))?
    .query_map([kind], |row| row.get(0))?
    .collect()
}

fn read_columns(c: &Connection, table: &str) -> rusqlite::Result<Vec<Column>> {
    // Generated columns are hidden, too; 1 marks hidden columns of virtual tables.
    c.prepare(
        "SELECT name, type, \"notnull\", dflt_value, pk FROM pragma_table_xinfo(?1) WHERE hidden <> 1",
    )?
    .query_map([table], |row| {
        Ok(Column {
            name: row.get(0)?,
            declared: row.get(1)?,
            not_null: row.get(2)?,
            default: row.get(3)?,
            primary_key: row.get::<_, u32>(4)? > 0,
        })
    })?
    .collect()
}

fn read_indexes(c: &Connection) -> rusqlite::Result<Vec<Index>> {
    let found: Vec<(String, String)> = c
        .prepare(&format!(
            "SELECT name, tbl_name FROM sqlite_schema WHERE type = 'index' AND {VISIBLE_NAMES_SQL} ORDER BY rowid"
        ))?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    found
        .into_iter()
        .map(|(name, table)| {
            let columns = c
                .prepare("SELECT name FROM pragma_index_info(?1) ORDER BY seqno")?
                .query_map([&name], |row| row.get(0))?
                .collect::<rusqlite::Result<_>>()?;
            let unique = c.query_row(
                "SELECT \"unique\" FROM pragma_index_list(?1) WHERE name = ?2",
                [&table, &name],
                |row| row.get(0),
            )?;
            Ok(Index {
                name,
                table,
                columns,
                unique,
            })
        })
        .collect()
}

/// Whether a foreign key may be checked at the commit. A false positive, by the word in a comment, only costs speed.
pub(super) fn has_deferred_keys(c: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE sql LIKE '%deferred%')";
    c.query_row(sql, [], |row| row.get(0))
}
