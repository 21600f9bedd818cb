//! Errors of revisions as problems.

use super::{PageReleaseError, PreviewError, RevisionError};
use crate::http::problem::{Problem, ProblemCode};

impl From<RevisionError> for Problem {
    fn from(error: RevisionError) -> Self {
        let detail = error.to_string();
        match error {
            RevisionError::NoRevision => Self::new(
                ProblemCode::NotFound,
                "The frontend has no such revision. List its revisions to see what it has.",
            ),
            RevisionError::Conflict(active) => Self::new(
                ProblemCode::RevisionConflict,
                format!("Another revision is active: {active}. Read it, make your change on top of it, and send that."),
            )
            .with("active_revision_id", active.to_string()),
            RevisionError::NeverReleased
            | RevisionError::Edit(_)
            | RevisionError::Content(_)
            | RevisionError::NoFile(_) => {
                Self::new(ProblemCode::InvalidRequest, detail)
            }
            RevisionError::TypeMismatch(_) => Self::new(
                ProblemCode::TypeMismatch,
                format!("{detail}, and keeps it. Leave `type` out, or make a new frontend."),
            ),
            RevisionError::TooLarge(_) => Self::new(
                ProblemCode::PayloadTooLarge,
                format!("{detail}, which is more than a source may have."),
            ),
            RevisionError::Path(fault) => fault.into(),
            RevisionError::Frontend(error) => error.into(),
        }
    }
}

impl From<PageReleaseError> for Problem {
    fn from(error: PageReleaseError) -> Self {
        match error {
            PageReleaseError::SlugTaken(slug) => Self::new(
                ProblemCode::SlugConflict,
                format!(
                    "The slug `{slug}` is taken, or kept for the service itself. Choose another one."
                ),
            ),
            PageReleaseError::TypeRequired(slug) => Self::new(
                ProblemCode::InvalidRequest,
                format!(
                    "The project has no page at `{slug}` yet: send its `type`, too, or correct the slug."
                ),
            ),
            PageReleaseError::Slug(fault) => {
                Self::new(ProblemCode::InvalidRequest, format!("`slug` {fault}"))
            }
            PageReleaseError::Revision(error) => error.into(),
        }
    }
}

impl From<PreviewError> for Problem {
    fn from(error: PreviewError) -> Self {
        match error {
            PreviewError::Lookup(error) => error.into(),
            PreviewError::Render(error) => error.into(),
            PreviewError::Failed(error) => Self::from(&*error),
            PreviewError::Limited(error) => error.into(),
        }
    }
}
