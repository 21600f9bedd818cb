//! Limits the expanded size of views: SQLite expands a view wherever it is named, and the views in it too, so that a few views
//! that each name another one twice would need gigabytes to prepare.

use std::collections::HashMap;

use super::model::BackendError;
use super::service::Backends;
use super::verdicts;
use svc_base::ids::BackendId;
use svc_sandbox::{AllowedStatement, NamedTable, SharedBudget, SqlPurpose};

/// Maximum number of tables and views in an expanded view.
const MAX_EXPANDED_TABLES: u32 = 32;
/// Maximum number of expressions, selects and tables in an expanded view.
const MAX_EXPANDED_PARTS: u32 = 10_000;
/// Maximum number of views of a backend.
const MAX_VIEWS: usize = 200;

/// Views of a backend, by name.
type ViewsByName = HashMap<String, UnexpandedView>;

/// View, not expanded.
#[derive(Clone, Debug)]
struct UnexpandedView {
    /// Tables and views that the view names.
    named: Vec<NamedTable>,
    /// Size of the view itself.
    parts: u32,
}

/// Remaining budget while a view is expanded.
#[derive(Clone, Copy, Debug)]
struct ViewExpansionBudget {
    tables: u32,
    parts: u32,
}

/// Views that are there before a script: those of its backend, which are read once a script makes views, and those of the scripts
/// before it.
#[derive(Debug)]
pub(super) struct ViewsBeforeScript {
    backend: Option<BackendId>,
    read: Option<ViewsByName>,
}

impl ViewsBeforeScript {
    /// Makes the views before the first script; `backend` is none if that script makes it.
    pub(super) fn of(backend: Option<BackendId>) -> Self {
        Self {
            backend,
            read: None,
        }
    }
}

impl Backends {
    /// Refuses a script whose views, together with those before it, expand to too much. They are before the next script then.
    pub(super) async fn check_views(
        &self,
        before: &mut ViewsBeforeScript,
        (sql, script): (&str, &[AllowedStatement]),
        budget: &SharedBudget,
    ) -> Result<(), BackendError> {
        let made = |statement: &&AllowedStatement| statement.view.is_some();
        if !script.iter().any(|statement| made(&statement)) {
            return Ok(());
        }
        let mut views = match (before.read.take(), before.backend) {
            (Some(read), _) => read,
            (None, Some(id)) => self.views(id, budget).await?,
            (None, None) => ViewsByName::new(),
        };
        views.extend(script.iter().filter_map(parse_view));
        let wide = views.keys().find(|name| !is_within_limits(&views, name));
        let reason = match wide {
            Some(wide) => format!(
                "The view `{wide}` stands for more than {MAX_EXPANDED_TABLES} tables or {MAX_EXPANDED_PARTS} expressions, with the views that it names written out: let it be less."
            ),
            None if views.len() > MAX_VIEWS => {
                format!("The backend would have more than {MAX_VIEWS} views, which is the most.")
            }
            None => {
                before.read = Some(views);
                return Ok(());
            }
        };
        // An older view can only have become too large by the views of the script that it names.
        let (number, blamed) = script
            .iter()
            .enumerate()
            .filter(|(_, statement)| made(statement))
            .max_by_key(|(number, statement)| (statement.view.as_ref() == wide, *number))
            .ok_or_else(|| anyhow::anyhow!("no view of the script is to blame"))?;
        Err(BackendError::ScriptRefused(verdicts::to_refusal(
            sql,
            number,
            Some(blamed.start),
            reason,
        )))
    }

    /// Reads the views of a backend.
    async fn views(
        &self,
        id: BackendId,
        budget: &SharedBudget,
    ) -> Result<ViewsByName, BackendError> {
        let mut views = ViewsByName::new();
        for sql in self.databases.views(id).await? {
            let judged = self.verdicts.script(&sql, SqlPurpose::Migration, budget);
            match judged.await {
                Ok(statements) => views.extend(statements.iter().filter_map(parse_view)),
                // A view that the current gate refuses counts as a table.
                Err(BackendError::ScriptRefused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(views)
    }
}

fn parse_view(statement: &AllowedStatement) -> Option<(String, UnexpandedView)> {
    let name = statement.view.clone()?;
    let named = statement.tables.iter().filter(|table| table.name != name);
    let view = UnexpandedView {
        named: named.cloned().collect(),
        parts: statement.parts,
    };
    Some((name, view))
}

/// Whether an expanded view is within the limits.
fn is_within_limits(views: &ViewsByName, name: &str) -> bool {
    let mut left = ViewExpansionBudget {
        tables: MAX_EXPANDED_TABLES,
        parts: MAX_EXPANDED_PARTS,
    };
    expand_view(views, name, &mut left)
}

/// Expands a view as long as the budget lasts; the budget also bounds the depth.
fn expand_view(views: &ViewsByName, name: &str, left: &mut ViewExpansionBudget) -> bool {
    let Some(view) = views.get(name) else {
        return true;
    };
    let Some(parts) = left.parts.checked_sub(view.parts) else {
        return false;
    };
    left.parts = parts;
    view.named.iter().all(|table| {
        (0..table.times).all(|_| match left.tables.checked_sub(1) {
            Some(tables) => {
                left.tables = tables;
                expand_view(views, &table.name, left)
            }
            None => false,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn views(of: &[(&str, &[(&str, u32)])]) -> ViewsByName {
        let named = |tables: &[(&str, u32)]| {
            let tables = tables.iter().map(|(name, times)| NamedTable {
                name: (*name).to_owned(),
                times: *times,
            });
            UnexpandedView {
                named: tables.collect(),
                parts: 10,
            }
        };
        of.iter()
            .map(|(view, tables)| ((*view).to_owned(), named(tables)))
            .collect()
    }

    #[test]
    fn a_view_stands_for_so_many_tables() {
        assert!(is_within_limits(&views(&[("v", &[("t", 32)])]), "v"));
        assert!(!is_within_limits(&views(&[("v", &[("t", 33)])]), "v"));
        let nested = views(&[("v", &[("w", 4), ("t", 1)]), ("w", &[("t", 5), ("u", 1)])]);
        assert!(is_within_limits(&nested, "v"), "4 times 1 and 6, and 1");
        let nested = views(&[("v", &[("w", 5)]), ("w", &[("t", 6)])]);
        assert!(!is_within_limits(&nested, "v"), "5 times 1 and 6");
        let doubled: Vec<(String, String)> = (1..100)
            .map(|level| (format!("v{level}"), format!("v{}", level - 1)))
            .collect();
        let doubled: Vec<(&str, [(&str, u32); 1])> = doubled
            .iter()
            .map(|(view, named)| (view.as_str(), [(named.as_str(), 2)]))
            .collect();
        let doubled: Vec<(&str, &[(&str, u32)])> =
            doubled.iter().map(|(v, n)| (*v, n.as_slice())).collect();
        assert!(!is_within_limits(&views(&doubled), "v99"));
        assert!(is_within_limits(&views(&doubled), "v4"));
    }

    #[test]
    fn a_view_of_much_text_is_much_wherever_it_is_named() {
        let mut nested = views(&[("v", &[("w", 3)]), ("w", &[("t", 1)])]);
        assert!(is_within_limits(&nested, "v"));
        nested.get_mut("w").unwrap().parts = MAX_EXPANDED_PARTS / 3;
        assert!(
            !is_within_limits(&nested, "v"),
            "3 times a third, and a little"
        );
        assert!(is_within_limits(&nested, "w"));
    }

    #[test]
    fn a_view_that_names_itself_ends() {
        let circle = views(&[("v", &[("w", 1)]), ("w", &[("v", 1)])]);
        assert!(!is_within_limits(&circle, "v"));
    }
}
