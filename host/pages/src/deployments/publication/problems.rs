//! Errors of publications as problems.

use super::PublishError;
use crate::deployments::problems::internal_problem;
use crate::http::problem::{Problem, ProblemCode};

impl From<PublishError> for Problem {
    fn from(error: PublishError) -> Self {
        Self::from(&error)
    }
}

impl From<&PublishError> for Problem {
    fn from(error: &PublishError) -> Self {
        let detail = error.to_string();
        match error {
            PublishError::Malformed(malformed) => {
                let problem = Self::new(ProblemCode::RenderFailed, detail);
                match malformed.place {
                    Some(place) => problem.with("line", place.line).with("column", place.column),
                    None => problem,
                }
            }
            PublishError::Budget(budget) => Self::new(
                ProblemCode::RenderFailed,
                format!("The content needs more than the {} budget of a page allows. Make it smaller or simpler.", budget.as_str()),
            )
            .with("budget", budget.as_str()),
            PublishError::Cap(reached) => (*reached).into(),
            PublishError::Unsupported(content_type) => Self::new(
                ProblemCode::RenderFailed,
                format!("The renderer of this server does not know the type `{content_type}`. Publish the content as another type, such as `html`, or ask the server's operator for a renderer that knows it."),
            ),
            PublishError::Rules(fault) => Self::new(
                ProblemCode::RulesRefused,
                format!("In `{}`, line {}: {} Nothing was changed.", fault.file, fault.line, fault.reason),
            )
            .with("file", fault.file.path())
            .with("line", fault.line)
            .with("reason", fault.reason.as_str()),
            PublishError::RulesUnsupported => Self::new(
                ProblemCode::RenderFailed,
                "The renderer of this server judges no rules of sites. Leave `_headers` and `_redirects` out, or ask the server's operator for a renderer that does. Nothing was changed.",
            ),
            PublishError::Capacity(detail) => Self::new(ProblemCode::CapacityReached, *detail),
            PublishError::Blocked(blocked) => blocked.into(),
            PublishError::Abandoned(abandoned) => (*abandoned).into(),
            PublishError::Internal(error) => internal_problem(error),
        }
    }
}
