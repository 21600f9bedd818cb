//! Errors of releases as problems.

use serde_json::{Value, json};

use super::model::{ReleaseConflicts, ReleaseError, ReleasePart};
use crate::backends::model::ActionConflict;
use crate::deployments::revisions::ExpectedRevision;
use crate::http::problem::{Problem, ProblemCode};

/// Member of a problem that names the part of the release.
pub(super) const PART_MEMBER: &str = "part";

impl ReleasePart {
    /// Adds the part to its problem. A cap that is reached names its own part.
    pub fn of(self, problem: impl Into<Problem>) -> Problem {
        let problem = problem.into();
        match problem.extensions.contains_key(PART_MEMBER) {
            true => problem,
            false => problem.with(PART_MEMBER, self.to_string()),
        }
    }
}

impl From<ReleaseError> for Problem {
    fn from(error: ReleaseError) -> Self {
        match error {
            ReleaseError::Part { part, error } => part.of(*error),
            ReleaseError::Conflict(conflicts) => conflict_problem(&conflicts),
            ReleaseError::Project(error) => error.into(),
            ReleaseError::Pages(error) => error.into(),
            ReleaseError::Backend(error) => error.into(),
            ReleaseError::Store(error) => error.into(),
        }
    }
}

/// Returns the problem of what has changed since the caller looked: pages first, then actions, as they were sent.
fn conflict_problem(conflicts: &ReleaseConflicts) -> Problem {
    let pages = conflicts.pages.iter().map(|conflict| {
        let expected = match &conflict.page.expected {
            ExpectedRevision::NoPage => Value::Null,
            ExpectedRevision::Live(id) => id.to_string().into(),
            ExpectedRevision::NotAnId(text) => text.as_str().into(),
        };
        let found = conflict.found.map(|id| id.to_string());
        json!({ "kind": "page", "name": conflict.page.slug, "expected": expected, "found": found })
    });
    let actions = conflicts.actions.iter().map(ActionConflict::to_json);
    let conflicts: Vec<Value> = pages.chain(actions).collect();
    let names: Vec<String> = conflicts
        .iter()
        .map(|conflict| {
            let text = |member: &str| conflict[member].as_str().unwrap_or_default().to_owned();
            format!("{} `{}`", text("kind"), text("name"))
        })
        .collect();
    let detail = format!(
        "Nothing was released, because something else is live than you expect: {}. Read what is live (`found`), make your change on top of it, and send that.",
        names.join(", ")
    );
    Problem::new(ProblemCode::ReleaseConflict, detail).with("conflicts", conflicts)
}
