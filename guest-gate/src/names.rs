//! Names of tables, views, indexes and schemas that a statement may use.

use crate::functions::TABLE_VALUED_FUNCTIONS;
use crate::position::quote_excerpt;

/// Internal table that may be read, and nothing else.
pub const READABLE_TABLE: &str = "svc_payments";

/// Internal table of visitors' files: rows may be read and deleted, and tables may refer to it.
pub const FILES_TABLE: &str = "svc_files";

/// Modules of SQLite's build whose names are tables without being created, or could become such.
pub const SQLITE_MODULES: &[&str] = &[
    "bytecode",
    "dbstat",
    "fts3",
    "fts3tokenize",
    "fts4",
    "fts4aux",
    "fts5",
    "fts5vocab",
    "rtree",
    "rtree_i32",
    "tables_used",
];

/// Use of a name in a statement.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum NameUse {
    /// Rows are read.
    Read,
    /// Rows are inserted or updated.
    Write,
    /// Rows are deleted.
    Delete,
    /// A table, a view or an index is created, or a common table expression gets the name.
    Create,
    /// A table gets a column or an index.
    Extend,
    /// A foreign key refers to a table.
    Refer,
    /// An index is chosen by INDEXED BY.
    Index,
}

impl NameUse {
    /// Whether a table that is there is changed, or others are tied to it.
    const fn is_change(self) -> bool {
        matches!(
            self,
            Self::Write | Self::Delete | Self::Extend | Self::Refer
        )
    }
}

/// Returns the reason why a table, a view or an index of this name, in lower case, must not be used so.
pub(crate) fn name_fault(name: &str, used: NameUse) -> Option<String> {
    let shown = quote_excerpt(name);
    if name == READABLE_TABLE && used == NameUse::Read {
        return None;
    }
    if name == FILES_TABLE && matches!(used, NameUse::Read | NameUse::Delete | NameUse::Refer) {
        return None;
    }
    if name == READABLE_TABLE && used.is_change() {
        return Some(format!(
            "{shown} is kept by the server: it can be read, and nothing else."
        ));
    }
    if name == FILES_TABLE && used.is_change() {
        return Some(format!(
            "{shown} is kept by the server: its rows can be read and deleted, and foreign keys can refer to its `id`. An upload inserts them."
        ));
    }
    if name.starts_with("svc_") {
        return Some(match used {
            NameUse::Create => {
                format!("{shown} begins with `svc_`, which is reserved: choose another name.")
            }
            _ => format!("{shown} is internal to the server: `svc_` is a reserved prefix."),
        });
    }
    if name.starts_with("sqlite_") {
        return Some(format!(
            "{shown} is SQLite's own and cannot be used: the schema can be read through GET …/api/schema."
        ));
    }
    if name.starts_with("pragma_") || SQLITE_MODULES.binary_search(&name).is_ok() {
        return Some(format!(
            "{shown} is a name of SQLite's own and cannot be used here."
        ));
    }
    if TABLE_VALUED_FUNCTIONS.binary_search(&name).is_ok() && used != NameUse::Read {
        return Some(format!(
            "{shown} is a table-valued function: it can be read, and nothing else."
        ));
    }
    None
}

/// Returns the reason why no table-valued function of this name, in lower case, may be called.
pub(crate) fn table_function_fault(name: &str) -> Option<String> {
    if TABLE_VALUED_FUNCTIONS.binary_search(&name).is_ok() {
        return None;
    }
    name_fault(name, NameUse::Read).or_else(|| {
        Some(format!(
            "{} is not a table-valued function: `json_each` and `json_tree` are.",
            quote_excerpt(name)
        ))
    })
}

/// Returns the reason why a schema of this name, in lower case, must not be named.
pub(crate) fn schema_fault(name: &str) -> Option<String> {
    (name != "main").then(|| {
        format!(
            "The schema {} cannot be named: there is `main` alone, and it goes without saying.",
            quote_excerpt(name)
        )
    })
}
