//! Errors of live queries as problems.

use std::sync::Arc;

use super::query::Outcome;
use super::service::LiveError;
use crate::backends::BackendError;
use crate::http::extract::invalid;
use crate::http::problem::{Code, Problem};
use svc_base::pluralize;

/// Name of evaluations in the log, which belong to no request.
const EVALUATION: &str = "live query";

impl From<LiveError> for Problem {
    fn from(error: LiveError) -> Self {
        match error {
            LiveError::Spent(spent) => spent.into(),
            LiveError::Quota(reached) => reached.into(),
            LiveError::IdInUse(id) => invalid(format!(
                "`{id}` is in use, and ends by this: subscribe with another id, or unsubscribe first."
            )),
            LiveError::Subscriptions(most) => Self::new(
                Code::RateLimited,
                format!(
                    "A socket has {} at most. Stop one of them, then subscribe again.",
                    pluralize(most, "live query")
                ),
            )
            // Tells it from a bucket that is empty: to try again does not help.
            .with("live_per_socket", most),
            LiveError::Backlog(most) => Self::new(
                Code::RateLimited,
                format!(
                    "{most} frames of this socket wait for those before them, which is the most, and this one was dropped. Wait for a result or an error, then send it again."
                ),
            ),
            LiveError::Backend(error) => error.into(),
        }
    }
}

/// Returns the outcome of an evaluation that failed: a busy database ends nothing that has a result.
pub(super) fn evaluation_outcome(error: BackendError) -> Outcome {
    let problem = Problem::from(error);
    problem.log(EVALUATION);
    let is_busy = matches!(problem.code, Code::DatabaseBusy | Code::CapacityReached);
    let problem = Arc::new(problem);
    if is_busy {
        Outcome::Busy(problem)
    } else {
        Outcome::Failed(problem)
    }
}
