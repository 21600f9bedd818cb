//! Errors of reports as problems.

use super::ReportError;
use crate::http::problem::Problem;

impl From<ReportError> for Problem {
    fn from(error: ReportError) -> Self {
        match error {
            ReportError::NotFound => Self::not_found(),
            ReportError::Store(error) => error.into(),
            ReportError::Random(error) => Self::internal(&error),
        }
    }
}
