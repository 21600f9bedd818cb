//! Faults of a schema: tables that cannot be written and views that cannot be read.
//!
//! SQLite accepts definitions for which it cannot prepare a statement: a view of a missing table, or a foreign key to columns that
//! are no key. Tenants cannot drop anything, so such a fault would stay for ever and harm others: no row could be deleted from the
//! parent of a wrong foreign key. So a script that brings a fault is refused as a whole.

use std::time::Duration;

use rusqlite::{Connection, Row};

use super::authorizer::AuthorizerRole;
use super::catalog::{INTERNAL_NAMES_SQL, query_rows, quote_identifier};
use super::connection::TenantConnection;
use super::error::{StatementRunError, internal_error};
use super::warnings::self_assignment_update;
use svc_base::Stopwatch;

/// Fault that makes a table or a view unusable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SchemaFault {
    /// Name of the table or view at fault, in lower case.
    pub(super) name: String,
    /// Explanation, and what to do.
    pub(super) reason: String,
}

/// Finds the faults of a schema, in the order of its tables and views.
pub(super) fn find_faults(
    handle: &TenantConnection,
    budget: Duration,
) -> Result<Vec<SchemaFault>, StatementRunError> {
    let connection = &handle.connection;
    let watch = Stopwatch::start();
    let mut found = broken_foreign_keys(connection).map_err(internal_error)?;
    let sql = format!(
        "SELECT name, type = 'view' FROM sqlite_schema WHERE type IN ('table', 'view') AND {INTERNAL_NAMES_SQL} ORDER BY rowid"
    );
    let things = query_rows(connection, &sql, |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, bool>(1)?))
    });
    for (name, is_view) in things.map_err(internal_error)? {
        let shown = name.to_ascii_lowercase();
        if found.iter().any(|fault| fault.name == shown) {
            continue;
        }
        for (role, sql) in probe_statements(connection, &name, is_view).map_err(internal_error)? {
            let left = budget.saturating_sub(watch.elapsed());
            let prepared = handle.run_as_tenant(role, left, |connection| {
                connection.prepare(&sql)?;
                Ok(())
            });
            match prepared {
                Ok(()) => {}
                Err(StatementRunError::Refused { reason, .. }) => {
                    let fault = fault_of_error(&shown, is_view, &reason);
                    if !found.contains(&fault) {
                        found.push(fault);
                    }
                    break;
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(found)
}

/// Lists the statements that must work on a table or view.
fn probe_statements(
    connection: &Connection,
    name: &str,
    is_view: bool,
) -> rusqlite::Result<Vec<(AuthorizerRole, String)>> {
    let thing = quote_identifier(name);
    let mut all = vec![(AuthorizerRole::Read, format!("SELECT * FROM {thing}"))];
    if !is_view {
        all.push((
            AuthorizerRole::Write,
            format!("INSERT INTO {thing} DEFAULT VALUES"),
        ));
        all.extend(
            self_assignment_update(connection, name)?.map(|update| (AuthorizerRole::Write, update)),
        );
        all.push((AuthorizerRole::Write, format!("DELETE FROM {thing}")));
    }
    Ok(all)
}

/// Describes an error of SQLite for the author of the script.
fn fault_of_error(name: &str, is_view: bool, reason: &str) -> SchemaFault {
    // SQLite names the child, whether the statement was for the child or the parent.
    let mismatch = reason.strip_prefix("foreign key mismatch - \"");
    if let Some((child, parent)) = mismatch.and_then(|rest| rest.split_once("\" referencing \"")) {
        let parent = parent.trim_end_matches('"');
        return SchemaFault {
            name: child.to_ascii_lowercase(),
            reason: format!(
                "A foreign key of `{child}` cannot hold: what it refers to must be the PRIMARY KEY of `{parent}`, or UNIQUE there, with as many columns and their collations. Otherwise no row of either table could ever be written or deleted ({reason})."
            ),
        };
    }
    let what = if is_view {
        format!("The view `{name}` could never be read")
    } else {
        format!("The table `{name}` could never be written to")
    };
    SchemaFault {
        name: name.to_owned(),
        reason: format!("{what}: {reason}."),
    }
}

/// A column of a foreign key.
struct ForeignKeyColumn {
    child: String,
    parent: String,
    parent_column: Option<String>,
    /// `table` or `view`; `None` if there is no parent.
    parent_type: Option<String>,
    /// Whether the parent has `parent_column`.
    parent_has_column: bool,
}

/// Finds foreign keys to missing tables and columns.
fn broken_foreign_keys(connection: &Connection) -> rusqlite::Result<Vec<SchemaFault>> {
    let sql = format!(
        "SELECT t.name, k.\"table\", k.\"to\",
            (SELECT p.type FROM sqlite_schema AS p WHERE p.name = k.\"table\" COLLATE NOCASE AND p.type IN ('table', 'view')),
            EXISTS (SELECT 1 FROM pragma_table_xinfo(k.\"table\") AS x WHERE x.name = k.\"to\" COLLATE NOCASE)
        FROM (SELECT name FROM sqlite_schema WHERE type = 'table' AND {INTERNAL_NAMES_SQL} ORDER BY rowid) AS t
            JOIN pragma_foreign_key_list(t.name) AS k"
    );
    let read = |row: &Row<'_>| {
        Ok(ForeignKeyColumn {
            child: row.get(0)?,
            parent: row.get(1)?,
            parent_column: row.get(2)?,
            parent_type: row.get(3)?,
            parent_has_column: row.get(4)?,
        })
    };
    let references = query_rows(connection, &sql, read)?;
    Ok(references.iter().filter_map(foreign_key_fault).collect())
}

fn foreign_key_fault(reference: &ForeignKeyColumn) -> Option<SchemaFault> {
    let ForeignKeyColumn { child, parent, .. } = reference;
    let why = match (reference.parent_type.as_deref(), &reference.parent_column) {
        (None, _) => format!("there is no table `{parent}`"),
        (Some("view"), _) => format!("`{parent}` is a view"),
        (_, Some(to)) if !reference.parent_has_column => format!("`{parent}` has no column `{to}`"),
        _ => return None,
    };
    Some(SchemaFault {
        name: child.to_ascii_lowercase(),
        reason: format!(
            "A foreign key of `{child}` cannot hold: {why}, so that no row of `{child}` could ever be written. Make what it refers to in the same script or before it, or leave REFERENCES out."
        ),
    })
}
