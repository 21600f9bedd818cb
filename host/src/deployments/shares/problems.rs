//! Errors of shares as problems.

use super::ShareError;
use crate::http::problem::{Code, Problem};

impl From<ShareError> for Problem {
    fn from(error: ShareError) -> Self {
        let detail = error.to_string();
        match error {
            ShareError::NotFound => Self::new(
                Code::NotFound,
                "There is no share of this id with this token. Send the `id` and the `delete_token` of one publishing.",
            ),
            ShareError::Disabled => Self::new(
                Code::Disabled,
                "The operator of this service has disabled this share for safety.",
            ),
            ShareError::Guarded(_) => Self::new(Code::InvalidRequest, format!("{detail}.")),
            ShareError::Frontend(error) => error.into(),
        }
    }
}
