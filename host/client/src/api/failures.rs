//! Failures of requests that got no answer, or one that is none of ours.

use http::StatusCode;

use super::ApiClient;
use crate::endpoints::Endpoint;
use crate::error::{CliFailure, FailureExitCode};

impl ApiClient {
    /// Failure of a request that got no answer.
    pub(super) fn unreachable_failure(&self, error: &reqwest::Error) -> CliFailure {
        let server = self.target.server.as_str();
        // The innermost error is the system's; the outer ones repeat the URL.
        let mut inner: &dyn std::error::Error = error;
        while let Some(source) = inner.source() {
            inner = source;
        }
        let (title, detail) = if error.is_timeout() {
            (
                "No answer in time",
                format!("{server} did not answer in time. Try again, or ask its operator."),
            )
        } else if error.is_connect() {
            (
                "No connection",
                format!(
                    "{server} cannot be reached: {inner}. Is the address right, and does the server run? `--server URL` or `svc login URL` names another."
                ),
            )
        } else {
            (
                "The connection broke",
                format!(
                    "{server} ended the connection before its answer was there: {inner}. Try again."
                ),
            )
        };
        CliFailure::new(FailureExitCode::NoAnswer, title, detail)
    }
}

/// Failure of an answer above its size limit.
pub(super) fn too_large(api: &ApiClient, call: &Endpoint, most: u64) -> CliFailure {
    let detail = format!(
        "{} answered `{} {}` with more than {} MB, and so much is not read.",
        api.server_url(),
        call.method,
        call.path,
        most >> 20
    );
    CliFailure::new(FailureExitCode::NoAnswer, "The answer is too large", detail)
}

/// Failure of an answer that comes below the least rate.
pub(super) fn too_slow(api: &ApiClient, call: &Endpoint) -> CliFailure {
    let detail = format!(
        "{} sends its answer to `{} {}` too slowly to wait for the end. Nothing is kept; try again.",
        api.server_url(),
        call.method,
        call.path
    );
    CliFailure::new(FailureExitCode::NoAnswer, "The answer is too slow", detail)
}

/// Failure of an answer that does not come from an svc server.
pub(super) fn not_an_answer(api: &ApiClient, call: &Endpoint, status: StatusCode) -> CliFailure {
    let detail = format!(
        "{} answered `{} {}` with {status}, and not as svc does. Is it the address of an svc server, and nothing in between?",
        api.server_url(),
        call.method,
        call.path
    );
    CliFailure::new(FailureExitCode::NoAnswer, "Not an answer", detail)
}
