//! The names of tables, views, indexes and schemas: which may be named, and for what.

use crate::functions::TABLE_VALUED_FUNCTIONS;
use crate::position::quote_excerpt;

/// The one table of the server's that may be read.
pub const READABLE_TABLE: &str = "svc_payments";

/// The modules of SQLite's build whose names are, or could become, tables without being made.
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

/// Purpose for which a name is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum NameUse {
    /// Rows are read.
    Read,
    /// Rows are written.
    Write,
    /// A table, a view or an index is made; a common table expression gets its name.
    Create,
    /// A table gets a column or an index, or a foreign key refers to it.
    Extend,
    /// An index is chosen.
    Index,
}

/// Describes the fault in naming a table, a view or an index this, in lower case.
pub(crate) fn name_fault(name: &str, used: NameUse) -> Option<String> {
    let shown = quote_excerpt(name);
    if name == READABLE_TABLE && used == NameUse::Read {
        return None;
    }
    if name == READABLE_TABLE && matches!(used, NameUse::Write | NameUse::Extend) {
        return Some(format!(
            "{shown} is kept by the server: it can be read, and nothing else."
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

/// Describes the fault in calling a table-valued function of this name, in lower case.
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

/// Describes the fault in naming this schema, in lower case.
pub(crate) fn schema_fault(name: &str) -> Option<String> {
    (name != "main").then(|| {
        format!(
            "The schema {} cannot be named: there is `main` alone, and it goes without saying.",
            quote_excerpt(name)
        )
    })
}
