//! Errors of frontends and revisions as problems.

use super::FrontendError;
use crate::http::problem::{Code, Problem};

impl From<FrontendError> for Problem {
    fn from(error: FrontendError) -> Self {
        let detail = error.to_string();
        match error {
            FrontendError::NotFound => Self::new(
                Code::NotFound,
                "The project has no such active frontend. List them to see what it has.",
            ),
            FrontendError::NoRevision => Self::new(
                Code::NotFound,
                "The frontend has no such revision. List its revisions to see what it has.",
            ),
            FrontendError::Conflict(active) => Self::new(
                Code::RevisionConflict,
                format!("Another revision is active: {active}. Read it, make your change on top of it, and send that."),
            )
            .with("active_revision_id", active.to_string()),
            FrontendError::NeverReleased | FrontendError::Edit(_) => {
                Self::new(Code::InvalidRequest, detail)
            }
            FrontendError::TypeMismatch(_) => Self::new(
                Code::TypeMismatch,
                format!("{detail}, and keeps it. Leave `type` out, or make a new frontend."),
            ),
            FrontendError::TooLarge(_) => Self::new(
                Code::PayloadTooLarge,
                format!("{detail}, which is more than a source may have."),
            ),
            FrontendError::Publish(error) => error.into(),
        }
    }
}
