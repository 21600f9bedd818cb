//! Maps errors of visitors to problems.

use super::model::VisitorError;
use super::return_to;
use crate::http::extract::invalid_request;
use crate::http::problem::{Problem, ProblemCode};

impl From<VisitorError> for Problem {
    fn from(error: VisitorError) -> Self {
        match error {
            VisitorError::NoSignIn => Self::new(
                ProblemCode::NotFound,
                "A quick share has no sign-in. Publish the page as a frontend of a project.",
            ),
            VisitorError::Unconfigured => Self::new(
                ProblemCode::IdentityUnconfigured,
                "This page has no sign-in: the operator of the server has set up no provider that its project offers.",
            ),
            VisitorError::ReturnTo(slug) => invalid_request(format!(
                "`return_to` must be a path of this page, such as /{slug} or /{slug}?a=b, of at most {} bytes.",
                return_to::MAX_BYTES
            )),
            VisitorError::UnknownSignIn => invalid_request(
                "`state_invalid`: this sign-in was not begun here. Go back to the page and sign in again.",
            ),
            VisitorError::Gone => Self::not_found(),
            VisitorError::Page(error) => error.into(),
            VisitorError::Project(error) => error.into(),
            VisitorError::Store(error) => error.into(),
            VisitorError::Random(error) => Self::internal(&error),
        }
    }
}
