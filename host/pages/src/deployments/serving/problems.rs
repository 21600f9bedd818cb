//! Errors of serving as problems.

use super::service::SourceEncodeError;
use super::{PageLookupError, UnlockError};
use crate::deployments::problems::{WORKERS_BUSY_MESSAGE, internal_problem};
use crate::http::problem::{Problem, ProblemCode};

impl From<PageLookupError> for Problem {
    fn from(error: PageLookupError) -> Self {
        match error {
            PageLookupError::NotFound => Self::not_found(),
            PageLookupError::Disabled => Self::new(
                ProblemCode::Disabled,
                "The operator of this service has disabled this page for safety.",
            ),
            PageLookupError::Busy => Self::new(
                ProblemCode::CapacityReached,
                "Too many large pages are being read. Try again in a minute.",
            ),
            PageLookupError::Internal(error) => internal_problem(&error),
        }
    }
}

impl From<SourceEncodeError> for Problem {
    fn from(error: SourceEncodeError) -> Self {
        match error {
            SourceEncodeError::Busy => {
                Self::new(ProblemCode::CapacityReached, WORKERS_BUSY_MESSAGE)
            }
            SourceEncodeError::Failed(error) => Self::internal(&error),
        }
    }
}

impl From<UnlockError> for Problem {
    fn from(error: UnlockError) -> Self {
        match error {
            UnlockError::Lookup(error) => error.into(),
            UnlockError::Wrong => Self::new(
                ProblemCode::Unauthorized,
                "That is not the page's password.",
            ),
            UnlockError::Busy => Self::new(
                ProblemCode::CapacityReached,
                "No worker is free to check the password. Try again in a minute.",
            ),
        }
    }
}
