//! OAuth 2.0's code flow, as far as kinds of sign-in share it.

use http::{StatusCode, header};
use reqwest::RequestBuilder;
use serde::Deserialize;
use url::Url;

use super::{CallbackQuery, SignInExchange};
use crate::config::ProviderSettings as Settings;
use crate::outbound::{OutboundClient, OutboundError, OutboundResponse};
use crate::visitors::model::{SignInError, SignInFailure};
use crate::visitors::state::pkce_challenge;

/// Authorization code that was never issued: a token endpoint that gets it first checks the client.
const PROBE_CODE: &str = "none-svc-provider-check";
/// PKCE verifier that matches no code, in the right form.
const PROBE_VERIFIER: &str = "none-none-none-none-none-none-none-none-none-none";
/// Error codes of a token endpoint for an unknown client or a wrong secret.
const UNKNOWN_CLIENT_ERRORS: [&str; 3] = [
    "invalid_client",
    "unauthorized_client",
    "incorrect_client_credentials",
];

/// This installation as a client of a provider.
#[derive(Debug)]
pub(super) struct OauthClient {
    pub(super) settings: Settings,
    pub(super) outbound: OutboundClient,
}

impl From<OutboundError> for SignInFailure {
    fn from(error: OutboundError) -> Self {
        let told = match error {
            OutboundError::TooLarge => SignInError::ProviderError,
            OutboundError::Timeout | OutboundError::Unconnected(_) | OutboundError::Failed(_) => {
                SignInError::ProviderUnavailable
            }
        };
        Self::new(told, error.to_string())
    }
}

impl OauthClient {
    pub(super) fn new(settings: Settings, outbound: OutboundClient) -> Self {
        Self { settings, outbound }
    }

    /// Adds the parameters of an authorization request to the URL of an endpoint.
    pub(super) fn authorization_url(
        &self,
        mut address: Url,
        exchange: &SignInExchange,
        state: &str,
    ) -> Url {
        address
            .query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.settings.client_id)
            .append_pair("redirect_uri", &exchange.redirect_uri)
            .append_pair("scope", &self.settings.scopes.join(" "))
            .append_pair("state", state)
            .append_pair("code_challenge", &pkce_challenge(&exchange.verifier))
            .append_pair("code_challenge_method", "S256");
        address
    }

    /// Adds to an authorization request that the visitor chooses the account. Many projects share one client: without this, a provider that
    /// remembers the consent to it signs visitors in to any of them without a question.
    pub(super) fn ask_for_account(address: &mut Url) {
        address
            .query_pairs_mut()
            .append_pair("prompt", "select_account");
    }

    /// Whether sign-ins request a scope.
    pub(super) fn requests_scope(&self, scope: &str) -> bool {
        self.settings.scopes.iter().any(|one| one == scope)
    }

    /// Reads from the answer to the probe code whether the provider knows the client; returns the fault. Some providers answer 404 for an unknown
    /// client.
    pub(super) fn find_client_fault(
        &self,
        shown: Result<OutboundResponse, SignInFailure>,
        missing_is_unknown: bool,
    ) -> Option<String> {
        let name = &self.settings.name;
        let answer = match shown {
            Ok(answer) => answer,
            Err(failure) => {
                return Some(format!(
                    "the token endpoint does not answer: {}: check that this machine reaches it",
                    failure.cause
                ));
            }
        };
        let code = error_code(&answer).unwrap_or_default();
        let unknown = UNKNOWN_CLIENT_ERRORS.contains(&code.as_str())
            || answer.status == StatusCode::UNAUTHORIZED
            || missing_is_unknown && answer.status == StatusCode::NOT_FOUND;
        if unknown {
            return Some(format!(
                "the provider does not take the client: check `client_id` and `client_secret` of providers.{name}, and that the secret has not expired"
            ));
        }
        if answer.status.is_server_error() || answer.status.is_redirection() {
            return Some(format!(
                "the token endpoint answers with {}: check `issuer`, and try again later",
                answer.status.as_u16()
            ));
        }
        None
    }
}

/// Returns a code that was never issued, with values that match no sign-in.
pub(super) fn probe_exchange(redirect_uri: &str) -> (&'static str, SignInExchange) {
    let exchange = SignInExchange {
        redirect_uri: redirect_uri.to_owned(),
        nonce: String::new(),
        verifier: PROBE_VERIFIER.to_owned(),
    };
    (PROBE_CODE, exchange)
}

/// Returns the authorization code of an answer.
///
/// # Errors
/// The provider's error, or a missing code.
pub(super) fn authorization_code(answer: &CallbackQuery) -> Result<&str, SignInFailure> {
    if let Some(error) = &answer.error {
        return Err(provider_error(error));
    }
    let code = answer.code.as_deref().filter(|code| !code.is_empty());
    code.ok_or_else(|| SignInFailure::new(SignInError::ProviderError, "it answered without a code"))
}

/// Maps a provider's error code (RFC 6749, section 4.1.2.1, and OpenID Connect Core, section 3.1.2.6).
fn provider_error(error: &str) -> SignInFailure {
    const DENIED: [&str; 6] = [
        "access_denied",
        "login_required",
        "interaction_required",
        "consent_required",
        "account_selection_required",
        "user_cancelled_login",
    ];
    match error {
        denied if DENIED.contains(&denied) => SignInFailure::new(
            SignInError::AccessDenied,
            "the visitor or the provider said no",
        ),
        "temporarily_unavailable" => SignInFailure::new(
            SignInError::ProviderUnavailable,
            "it says that it is not available",
        ),
        _ => SignInFailure::new(SignInError::ProviderError, "it answered with an error"),
    }
}

/// Makes a request a POST of a form with an answer in JSON.
pub(super) fn form_post(call: RequestBuilder, form: &[(&str, &str)]) -> RequestBuilder {
    let mut body = form_urlencoded::Serializer::new(String::new());
    body.extend_pairs(form);
    call.header(header::ACCEPT, "application/json")
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(body.finish())
}

/// Parses an answer that must be a success in JSON; `asked` names the request in errors.
pub(super) fn parse_answer<T: serde::de::DeserializeOwned>(
    answer: &OutboundResponse,
    asked: &str,
) -> Result<T, SignInFailure> {
    let failed = |cause: String| SignInFailure::new(SignInError::ProviderError, cause);
    let status = answer.status.as_u16();
    match error_code(answer) {
        Some(code) => Err(failed(format!("it refused {asked}: {status} {code}"))),
        None if !answer.status.is_success() => {
            Err(failed(format!("it answered {asked} with {status}")))
        }
        None => serde_json::from_slice(&answer.body)
            .map_err(|_| failed(format!("its answer to {asked} cannot be read"))),
    }
}

/// Returns the error code of an answer, which GitHub sends with status 200.
fn error_code(answer: &OutboundResponse) -> Option<String> {
    #[derive(Deserialize)]
    struct OauthRefusal {
        error: String,
    }
    let refusal = serde_json::from_slice::<OauthRefusal>(&answer.body).ok();
    refusal
        .map(|refusal| refusal.error)
        .filter(|code| is_code(code))
}

/// Whether a text has the form of an OAuth error code, which may be logged.
fn is_code(text: &str) -> bool {
    (1..=60).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
}
