//! Errors of serving as problems.

use super::service::EncodeError;
use super::{LookupError, UnlockError};
use crate::deployments::problems::{NO_WORKER, internal};
use crate::http::problem::{Code, Problem};

impl From<LookupError> for Problem {
    fn from(error: LookupError) -> Self {
        match error {
            LookupError::NotFound => Self::not_found(),
            LookupError::Disabled => Self::new(
                Code::Disabled,
                "The operator of this service has disabled this page for safety.",
            ),
            LookupError::Internal(error) => internal(&error),
        }
    }
}

impl From<EncodeError> for Problem {
    fn from(error: EncodeError) -> Self {
        match error {
            EncodeError::Busy => Self::new(Code::CapacityReached, NO_WORKER),
            EncodeError::Failed(error) => Self::internal(&error),
        }
    }
}

impl From<UnlockError> for Problem {
    fn from(error: UnlockError) -> Self {
        match error {
            UnlockError::Lookup(error) => error.into(),
            UnlockError::Wrong => Self::new(Code::Unauthorized, "That is not the page's password."),
            UnlockError::Busy => Self::new(
                Code::CapacityReached,
                "No worker is free to check the password. Try again in a minute.",
            ),
        }
    }
}
