//! Faults of a provider, as far as asking it tells, in the operator's words.

use http::StatusCode;

use super::github;
use super::model::Failure;
use super::oidc::{self, Asking};
use super::providers::Provider;
use crate::config::ProviderKind;
use crate::issuers::{IssuerError, Metadata};
use crate::outbound::{Answer, Outbound};

/// A code that nobody gave out: whoever is shown it says first whether it knows who shows it.
const NO_CODE: &str = "none-svc-provider-check";
/// A secret of PKCE that fits no code, in the form that one has.
const NO_VERIFIER: &str = "none-none-none-none-none-none-none-none-none-none";
/// Codes with which a token endpoint refuses a client that it does not know, or that shows another secret.
const UNKNOWN: [&str; 3] = [
    "invalid_client",
    "unauthorized_client",
    "incorrect_client_credentials",
];

/// Asks a provider for what it says of itself, and whether it knows the client; returns what is wrong.
pub async fn faults(provider: &Provider, outbound: &Outbound, redirect_uri: &str) -> Vec<String> {
    let asking = Asking {
        redirect_uri,
        nonce: "",
        verifier: NO_VERIFIER,
        issuer: None,
    };
    if provider.settings.kind == ProviderKind::Github {
        // It describes itself nowhere.
        let shown = github::show_code(provider, outbound, NO_CODE, &asking).await;
        return of_client(provider, shown).into_iter().collect();
    }
    let metadata = match provider.issuer.metadata().await {
        Ok(metadata) => metadata,
        Err(error) => return vec![said(&error, "`issuer`")],
    };
    let mut wrong = missing(&metadata);
    match provider.issuer.keys().await {
        Err(error) => wrong.push(said(&error, "`jwks_uri` of its discovery document")),
        Ok(keys) if keys.count() == 0 => {
            wrong.push("the issuer has no key that can verify an ID token".to_owned());
        }
        Ok(_) => {}
    }
    if metadata.token_endpoint.is_some() {
        let shown = oidc::show_code(provider, outbound, &metadata, NO_CODE, &asking).await;
        wrong.extend(of_client(provider, shown));
    }
    wrong
}

/// Endpoints that nobody can sign in without.
fn missing(metadata: &Metadata) -> Vec<String> {
    let endpoints = [
        ("authorization_endpoint", &metadata.authorization_endpoint),
        ("token_endpoint", &metadata.token_endpoint),
    ];
    let missing = endpoints
        .into_iter()
        .filter(|(_, endpoint)| endpoint.is_none());
    let said = missing
        .map(|(name, _)| format!("the issuer names no `{name}`: nobody can sign in with it"));
    said.collect()
}

/// Reads from the answer to a code that nobody gave out what is wrong with the client.
fn of_client(provider: &Provider, shown: Result<Answer, Failure>) -> Option<String> {
    let name = &provider.settings.name;
    let answer = match shown {
        Ok(answer) => answer,
        Err(failure) => {
            return Some(format!(
                "the token endpoint does not answer: {}: check that this machine reaches it",
                failure.cause
            ));
        }
    };
    let code = oidc::refusal(&answer).unwrap_or_default();
    let github = provider.settings.kind == ProviderKind::Github;
    let unknown = UNKNOWN.contains(&code.as_str())
        || answer.status == StatusCode::UNAUTHORIZED
        || github && answer.status == StatusCode::NOT_FOUND;
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

fn said(error: &IssuerError, asked: &str) -> String {
    match error {
        IssuerError::Unreachable(_) => {
            format!("{error}: check {asked}, and that this machine reaches it")
        }
        IssuerError::Unusable(_) | IssuerError::Token(_) => format!("{error}: check {asked}"),
    }
}
