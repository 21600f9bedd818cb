//! Warnings about a schema that SQLite may read in another way than its author. Nothing is refused for them.

use std::path::PathBuf;

use rusqlite::{Connection, Row};

use super::catalog::{INTERNAL_NAMES_SQL, query_rows, quote_identifier};
use super::connection::{DatabaseOpenSettings, TenantConnection};

/// Part of a schema that is probably not what its author meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaWarning {
    /// Code of the warning, by which programs tell it apart.
    pub code: &'static str,
    /// Explanation, and what to write instead.
    pub detail: String,
}

/// Words in column types that count up in other databases.
const COUNTER_TYPES: &[&str] = &[
    "AUTOINCREMENT",
    "AUTO_INCREMENT",
    "BIGSERIAL",
    "IDENTITY",
    "SERIAL",
    "SERIAL2",
    "SERIAL4",
    "SERIAL8",
    "SMALLSERIAL",
];

/// Functions whose result differs at each call.
const NONDETERMINISTIC_FUNCTIONS: &[&str] = &[
    "current_date",
    "current_time",
    "current_timestamp",
    "random",
    "randomblob",
    "uuid",
];

/// Size limit of the scratch database for tables with CHECKs, in bytes.
const SCRATCH_DATABASE_BYTES: u64 = 16 << 20;

/// A column that an author may expect to count up.
struct ExpectedAutoincrementColumn {
    table: String,
    name: String,
    declared: String,
    not_null: bool,
    /// Whether the column is the only column of the primary key.
    is_key: bool,
}

/// Lists the warnings about a schema.
pub(super) fn find_warnings(c: &Connection) -> rusqlite::Result<Vec<SchemaWarning>> {
    let mut found: Vec<SchemaWarning> = key_columns(c)?.iter().filter_map(key_warning).collect();
    let checked = format!(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%check%' AND {INTERNAL_NAMES_SQL} ORDER BY rowid"
    );
    let tables = query_rows(c, &checked, |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
    })?;
    if tables.is_empty() {
        return Ok(found);
    }
    // A read-only connection does not compile CHECKs, so the tables are created once more, empty, in memory.
    let settings = DatabaseOpenSettings::standalone(PathBuf::new(), SCRATCH_DATABASE_BYTES);
    let Ok(scratch) = TenantConnection::in_memory(&settings, |_| Ok(())) else {
        return Ok(found);
    };
    for (table, sql) in tables {
        // A table that SQLite no longer accepts is older than the checks of scripts.
        if scratch.execute_as_platform(&sql).is_ok() {
            found.extend(check_warning(&scratch.connection, &table)?);
        }
    }
    Ok(found)
}

/// Lists columns that an author may expect to count up: without a default, and no alias of the row id.
fn key_columns(c: &Connection) -> rusqlite::Result<Vec<ExpectedAutoincrementColumn>> {
    let sql = format!(
        "SELECT t.name, x.name, x.type, x.\"notnull\", x.pk > 0 AND
            (SELECT count(*) FROM pragma_table_xinfo(t.name) AS y WHERE y.pk > 0) = 1,
            (SELECT count(*) FROM pragma_index_list(t.name) AS i WHERE i.origin = 'pk')
        FROM (SELECT name FROM sqlite_schema WHERE type = 'table' AND {INTERNAL_NAMES_SQL} ORDER BY rowid) AS t
            JOIN pragma_table_xinfo(t.name) AS x
        WHERE x.dflt_value IS NULL AND x.hidden = 0 AND (x.pk > 0 OR length(x.type) > 5)"
    );
    let read = |row: &Row<'_>| {
        let column = ExpectedAutoincrementColumn {
            table: row.get(0)?,
            name: row.get(1)?,
            declared: row.get(2)?,
            not_null: row.get(3)?,
            is_key: row.get(4)?,
        };
        // A key with an index of its own is no alias of the row id.
        let indexed = row.get::<_, u32>(5)? > 0;
        Ok((column, indexed))
    };
    let all = query_rows(c, &sql, read)?.into_iter();
    Ok(all
        .filter(|(column, indexed)| *indexed || !column.is_key)
        .map(|(column, _)| column)
        .collect())
}

fn key_warning(column: &ExpectedAutoincrementColumn) -> Option<SchemaWarning> {
    let declared = column.declared.to_ascii_uppercase();
    let mut words = declared.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let counts = words.any(|word| COUNTER_TYPES.contains(&word));
    // A NOT NULL column already fails when it is left out.
    let is_number = column.is_key && !column.not_null && declared.contains("INT");
    if !counts && !is_number {
        return None;
    }
    let ExpectedAutoincrementColumn {
        table,
        name,
        declared,
        not_null,
        is_key,
    } = column;
    let happens = if *not_null {
        "is refused"
    } else {
        "stores NULL in it"
    };
    let instead = if *is_key {
        format!(
            "Make a table with `{name} INTEGER PRIMARY KEY`, which counts up, or give every row its value."
        )
    } else {
        "Only `INTEGER PRIMARY KEY` counts up: give every row its value.".to_owned()
    };
    Some(SchemaWarning {
        code: "key_not_generated",
        detail: format!(
            "`{name}` of table `{table}` is declared `{declared}`, which SQLite does not count up: an INSERT that leaves it out {happens}. {instead}"
        ),
    })
}

/// Warns of a CHECK that uses a nondeterministic function. In an update only CHECKs call such functions: SQLite refuses them in
/// generated columns and indexes.
fn check_warning(c: &Connection, table: &str) -> rusqlite::Result<Option<SchemaWarning>> {
    let Some(update) = self_assignment_update(c, table)? else {
        return Ok(None);
    };
    let calls = query_rows(c, &format!("EXPLAIN {update}"), |row| {
        let opcode: String = row.get(1)?;
        let function: Option<String> = row.get(5)?;
        Ok(function.filter(|_| opcode.ends_with("Func") || opcode == "Function"))
    });
    // If SQLite does not prepare it, the fault was reported earlier.
    let calls = calls.unwrap_or_default();
    let mut names = calls.iter().flatten().filter_map(|call| {
        let name = call.split('(').next()?.to_ascii_lowercase();
        NONDETERMINISTIC_FUNCTIONS
            .iter()
            .find(|changing| **changing == name)
    });
    Ok(names.next().map(|name| SchemaWarning {
        code: "check_not_deterministic",
        detail: format!(
            "A CHECK of table `{table}` uses `{name}`, which differs each time: a row that is taken now may be refused when it is changed. Check it in the INSERT or UPDATE instead, with WHERE."
        ),
    }))
}

/// Returns the statement that sets every column of a table to itself; `None` if no column can be set.
pub(super) fn self_assignment_update(
    c: &Connection,
    table: &str,
) -> rusqlite::Result<Option<String>> {
    let sets: Vec<String> = c
        .prepare("SELECT name FROM pragma_table_xinfo(?1) WHERE hidden = 0")?
        .query_map([table], |row| row.get::<_, String>(0))?
        .map(|name| name.map(|name| format!("{0} = {0}", quote_identifier(&name))))
        .collect::<rusqlite::Result<_>>()?;
    Ok((!sets.is_empty())
        .then(|| format!("UPDATE {} SET {}", quote_identifier(table), sets.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_checks_are_seen() {
        let settings = DatabaseOpenSettings::standalone(std::path::PathBuf::new(), 64 << 20);
        let handle = TenantConnection::in_memory(&settings, |_| Ok(())).unwrap();
        let c = &handle.connection;
        c.execute_batch(
            "CREATE TABLE t (a CHECK (a <> random()));
             CREATE TABLE u (a CHECK (a > abs(-1)), b DEFAULT (random()))",
        )
        .unwrap();
        let found = check_warning(c, "t").unwrap().unwrap();
        assert!(found.detail.contains("`random`"), "{}", found.detail);
        assert_eq!(check_warning(c, "u").unwrap(), None);
        assert_eq!(find_warnings(c).unwrap(), [found]);
    }
}
