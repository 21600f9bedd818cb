//! Errors of visitors as problems.

use super::model::VisitorError;
use crate::http::problem::Problem;

impl From<VisitorError> for Problem {
    fn from(error: VisitorError) -> Self {
        match error {
            VisitorError::Store(error) => error.into(),
            VisitorError::Random(error) => Self::internal(&error),
        }
    }
}
