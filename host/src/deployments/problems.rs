//! Errors of deployments as problems.

use super::publish::PublishError;
use super::reports::ReportError;
use super::serve::{LookupError, UnlockError};
use crate::content;
use crate::http::problem::{Code, Problem};

/// The problem of a failure of ours. If the store of content is out of reach, it is one for a while.
pub(super) fn failed(error: &anyhow::Error) -> Problem {
    let unreachable = |cause: &(dyn std::error::Error + 'static)| {
        matches!(cause.downcast_ref(), Some(content::Error::Unreachable(_)))
    };
    let internal = Problem::internal(&format!("{error:#}"));
    if !error.chain().any(unreachable) {
        return internal;
    }
    let detail = "The server cannot reach its storage. Nothing was changed; try again in a minute.";
    Problem {
        cause: internal.cause,
        ..Problem::new(Code::CapacityReached, detail)
    }
}

impl From<PublishError> for Problem {
    fn from(error: PublishError) -> Self {
        let detail = error.to_string();
        match error {
            PublishError::Malformed(malformed) => {
                let problem = Self::new(Code::RenderFailed, detail);
                match malformed.place {
                    Some(place) => problem.with("line", place.line).with("column", place.column),
                    None => problem,
                }
            }
            PublishError::Budget(budget) => Self::new(
                Code::RenderFailed,
                format!("The content needs more than the {} budget of a page allows. Make it smaller or simpler.", budget.as_str()),
            )
            .with("budget", budget.as_str()),
            PublishError::Cap(reached) => reached.into(),
            PublishError::Unsupported(content_type) => Self::new(
                Code::RenderFailed,
                format!("The renderer of this server does not know the type `{content_type}`. Publish the content as another type, such as `html`, or ask the server's operator for a renderer that knows it."),
            ),
            PublishError::Capacity(detail) => Self::new(Code::CapacityReached, detail),
            PublishError::Abandoned(abandoned) => abandoned.into(),
            PublishError::Internal(error) => failed(&error),
        }
    }
}

impl From<LookupError> for Problem {
    fn from(error: LookupError) -> Self {
        match error {
            LookupError::NotFound => Self::not_found(),
            LookupError::Disabled => Self::new(
                Code::Disabled,
                "The operator of this service has disabled this page for safety.",
            ),
            LookupError::Render(error) => error.into(),
            LookupError::Internal(error) => failed(&error),
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

impl From<ReportError> for Problem {
    fn from(error: ReportError) -> Self {
        match error {
            ReportError::NotFound => Self::not_found(),
            ReportError::Store(error) => error.into(),
            ReportError::Random(error) => Self::internal(&error),
        }
    }
}
