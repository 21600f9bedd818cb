//! Errors of shares as problems.

use super::ShareError;
use crate::http::problem::{Problem, ProblemCode};

impl From<ShareError> for Problem {
    fn from(error: ShareError) -> Self {
        let detail = error.to_string();
        match error {
            ShareError::NotFound => Self::new(
                ProblemCode::NotFound,
                "There is no share of this id with this token. Send the `id` and the `delete_token` of one publishing.",
            ),
            ShareError::Disabled => Self::new(
                ProblemCode::Disabled,
                "The operator of this service has disabled this share for safety.",
            ),
            ShareError::Guarded(_) => Self::new(ProblemCode::InvalidRequest, format!("{detail}.")),
            ShareError::HalfDeleted(_) => {
                tracing::warn!("{detail}");
                Self::interrupted()
            }
            ShareError::Frontend(error) => error.into(),
        }
    }
}
