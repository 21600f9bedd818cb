//! Errors of workspaces as problems.

use super::WorkspaceError;
use crate::http::problem::{Code, Problem};

impl From<WorkspaceError> for Problem {
    fn from(error: WorkspaceError) -> Self {
        let detail = format!("In `workspace`: {error}.");
        match error {
            WorkspaceError::Unknown(_) => Self::new(Code::NotFound, detail),
            WorkspaceError::Foreign(_) => Self::new(Code::Forbidden, detail),
            WorkspaceError::Store(error) => error.into(),
            other => Self::internal(&other),
        }
    }
}
