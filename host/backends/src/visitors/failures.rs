//! Failed sign-ins: the log entry, and the URL that the browser returns to.

use super::model::{SignInError, SignInFailure};
use super::return_to;

/// Logs why a sign-in failed; returns the URL that the browser returns to.
pub(super) fn failure_url(
    origin: &str,
    back: &str,
    provider: &str,
    failure: &SignInFailure,
) -> String {
    let (error, cause) = (failure.error.code(), failure.cause.as_str());
    tracing::warn!(provider, error, cause, "a sign-in failed");
    return_to::url_with_error(origin, back, error)
}

/// Returns the failure of a sign-in with a provider that the project does not offer.
pub(super) fn not_offered() -> SignInFailure {
    SignInFailure::new(
        SignInError::ProviderNotAllowed,
        "the project does not offer it",
    )
}
