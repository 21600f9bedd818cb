//! Errors of frontends as problems.

use super::FrontendError;
use crate::http::problem::{Problem, ProblemCode};

impl From<FrontendError> for Problem {
    fn from(error: FrontendError) -> Self {
        match error {
            FrontendError::NotFound => Self::new(
                ProblemCode::NotFound,
                "The project has no such active frontend. List them to see what it has.",
            ),
            FrontendError::Publish(error) => error.into(),
            FrontendError::Files(error) => error.into(),
        }
    }
}
