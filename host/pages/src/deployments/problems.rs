//! Problems that all services of deployments answer.

use crate::content;
use crate::control;
use crate::http::problem::{Problem, ProblemCode};

/// Refusal for want of a thread.
pub(super) const WORKERS_BUSY_MESSAGE: &str = "All render workers are busy. Try again in a minute.";

/// Returns the problem of a failure of ours. If the store of content is out of reach, it is one for a while, and so it is for a client
/// with too many reads under way, and at a machine that follows another one.
pub(super) fn internal_problem(error: &anyhow::Error) -> Problem {
    use control::Error::{Elsewhere, Stale, TooManyReads, Unanswered};
    let failed = error.downcast_ref::<control::Error>();
    if let Some(passing @ (TooManyReads | Elsewhere | Stale | Unanswered)) = failed {
        return Problem::from(passing);
    }
    let unreachable = |cause: &(dyn std::error::Error + 'static)| {
        matches!(cause.downcast_ref(), Some(content::Error::Unreachable(_)))
    };
    let problem = Problem::internal(&format!("{error:#}"));
    if !error.chain().any(unreachable) {
        return problem;
    }
    let detail = "The server cannot reach its storage. Nothing was changed; try again in a minute.";
    Problem {
        cause: problem.cause,
        ..Problem::new(ProblemCode::CapacityReached, detail)
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, header};

    use super::*;

    #[test]
    fn what_passes_is_no_failure_of_ours() {
        for (error, code) in [
            (control::Error::TooManyReads, ProblemCode::CapacityReached),
            (control::Error::Elsewhere, ProblemCode::CapacityReached),
            (control::Error::Stale, ProblemCode::CapacityReached),
            (control::Error::Unanswered, ProblemCode::CapacityReached),
            (control::Error::Panicked, ProblemCode::Internal),
        ] {
            assert_eq!(internal_problem(&anyhow::Error::from(error)).code, code);
        }
    }

    #[test]
    fn a_machine_that_follows_is_asked_again_soon() {
        for error in [control::Error::Elsewhere, control::Error::Stale] {
            let problem = internal_problem(&anyhow::Error::from(error));
            let wait = HeaderValue::from_static("1");
            assert_eq!(problem.headers, [(header::RETRY_AFTER, wait)]);
        }
    }
}
