//! How sign-ins fail: what is said, and where they lead back to.

use super::model::{AuthError, Failure};
use super::return_to;
use crate::http::extract::invalid;
use crate::http::problem::{Code, Problem};

/// Logs why a sign-in failed; returns where it leads back to.
pub(super) fn fail(origin: &str, back: &str, provider: &str, failure: &Failure) -> String {
    let (error, cause) = (failure.error.code(), failure.cause.as_str());
    tracing::warn!(provider, error, cause, "a sign-in failed");
    return_to::with_error(origin, back, error)
}

/// Reads a provider's error (RFC 6749, section 4.1.2.1, and OpenID Connect Core, section 3.1.2.6).
pub(super) fn said_no(error: &str) -> Failure {
    const NO: [&str; 6] = [
        "access_denied",
        "login_required",
        "interaction_required",
        "consent_required",
        "account_selection_required",
        "user_cancelled_login",
    ];
    match error {
        no if NO.contains(&no) => Failure::new(
            AuthError::AccessDenied,
            "the visitor or the provider said no",
        ),
        "temporarily_unavailable" => Failure::new(
            AuthError::ProviderUnavailable,
            "it says that it is not available",
        ),
        _ => Failure::new(AuthError::ProviderError, "it answered with an error"),
    }
}

/// Of a provider that the project has ceased to offer.
pub(super) fn not_offered() -> Failure {
    Failure::new(
        AuthError::ProviderNotAllowed,
        "the project does not offer it",
    )
}

/// The problem of a page that nobody signs in on.
pub(super) fn no_sign_in() -> Problem {
    Problem::new(
        Code::NotFound,
        "A quick share has no sign-in. Publish the page as a frontend of a project.",
    )
}

/// Of a page that offers no provider.
pub(super) fn unconfigured() -> Problem {
    Problem::new(
        Code::IdentityUnconfigured,
        "This page has no sign-in: the operator of the server has set up no provider that its project offers.",
    )
}

/// The problem of what comes back from a provider and belongs to no sign-in: nothing says where to lead back to.
pub(super) fn unknown() -> Problem {
    invalid(
        "`state_invalid`: this sign-in was not begun here. Go back to the page and sign in again.",
    )
}
