//! Maps errors of live queries to problems.

use std::sync::Arc;

use super::error::LiveError;
use super::query::EvaluationOutcome;
use crate::activity::LoggedOutcome;
use crate::backends::BackendError;
use crate::deployments::serving::PageLookupError;
use crate::http::extract::invalid_request;
use crate::http::problem::{Problem, ProblemCode};
use svc_base::pluralize;

/// Name of evaluations in the log, in place of a request id.
const EVALUATION_LOG_NAME: &str = "live query";

impl From<LiveError> for Problem {
    fn from(error: LiveError) -> Self {
        Self::from(&error)
    }
}

impl From<&LiveError> for Problem {
    fn from(error: &LiveError) -> Self {
        match error {
            LiveError::BucketEmpty(spent) => spent.clone().into(),
            LiveError::Quota(reached) => reached.clone().into(),
            LiveError::IdInUse(id) => invalid_request(format!(
                "`{id}` is in use, and ends by this: subscribe with another id, or unsubscribe first."
            )),
            LiveError::Subscriptions(most) => Self::new(
                ProblemCode::RateLimited,
                format!(
                    "A socket has {} at most. Stop one of them, then subscribe again.",
                    pluralize(most, "live query")
                ),
            )
            // Tells it from a bucket that is empty: to try again does not help.
            .with("live_per_socket", *most),
            LiveError::Backlog(most) => Self::new(
                ProblemCode::RateLimited,
                format!(
                    "{most} frames of this socket wait for those before them, which is the most, and this one was dropped. Wait for a result or an error, then send it again."
                ),
            ),
            LiveError::Backend(error) => error.into(),
            LiveError::Frame(error) => error.into(),
            LiveError::Disabled => PageLookupError::Disabled.into(),
            LiveError::Gone => Self::new(
                ProblemCode::NotFound,
                "The page, its project, its backend or its domain was deleted or has expired, and the stream has ended with it.",
            ),
        }
    }
}

/// Returns how a live query began, for the log of its page.
pub(super) fn logged_outcome(error: Option<&LiveError>) -> LoggedOutcome {
    match error {
        Some(error) => LoggedOutcome::failed(&error.into()),
        None => LoggedOutcome::ok(200),
    }
}

/// Returns the problem document of an error, for a listener.
pub(super) fn problem_document(error: &LiveError, base_url: &str, request: &str) -> String {
    Problem::from(error).document(base_url, request).to_json()
}

/// Returns the outcome of an evaluation that failed: a busy database does not end a subscription that has a result, and neither does
/// a ledger that is away.
pub(super) fn evaluation_outcome(error: BackendError) -> EvaluationOutcome {
    let problem = Problem::from(&error);
    problem.log(EVALUATION_LOG_NAME);
    let is_busy = matches!(
        problem.code,
        ProblemCode::DatabaseBusy | ProblemCode::CapacityReached | ProblemCode::Interrupted
    );
    let error = Arc::new(LiveError::from(error));
    if is_busy {
        EvaluationOutcome::Busy(error)
    } else {
        EvaluationOutcome::Failed(error)
    }
}
