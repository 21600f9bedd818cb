//! Kinds of sign-in, one module each: where a visitor is sent, and how the provider's answer becomes a verified identity.
//!
//! A new kind is a module here, a variant of [`SignInProviderClient`], and its rules for settings in `config/providers.rs`.

mod github;
mod oauth;
mod oidc;

use url::Url;

use self::github::GithubProvider;
use self::oauth::OauthClient;
use self::oidc::OidcProvider;
use super::model::{SignInFailure, VerifiedVisitor};
use crate::config::{IssuerAddressError, ProviderKind, ProviderSettings as Settings};
use crate::outbound::OutboundClient;
use svc_base::clock::Clock;

/// Issuer name under which visitors of the development issuer are stored, because its address may change.
const DEV_ISSUER: &str = "dev";

/// Provider, by its kind of sign-in.
#[derive(Debug)]
pub(super) enum SignInProviderClient {
    /// OpenID Connect.
    Oidc(Box<OidcProvider>),
    /// GitHub's OAuth.
    Github(GithubProvider),
}

/// Values of one sign-in that are exchanged with the provider.
#[derive(Clone, Debug)]
pub(super) struct SignInExchange {
    /// Redirect URI that the provider leads back to.
    pub redirect_uri: String,
    /// Nonce that the ID token must contain.
    pub nonce: String,
    /// PKCE verifier (RFC 7636).
    pub verifier: String,
}

/// Query of a provider's redirect to the callback.
#[derive(Clone, Debug, Default)]
pub(super) struct CallbackQuery {
    /// Sealed state of the pending sign-in.
    pub state: Option<String>,
    /// Authorization code.
    pub code: Option<String>,
    /// Issuer of the answer (RFC 9207).
    pub iss: Option<String>,
    /// Error instead of a code.
    pub error: Option<String>,
}

impl SignInProviderClient {
    /// Creates a provider from its settings.
    ///
    /// # Errors
    /// An address that cannot be called; the checks of the settings refuse it before.
    pub(super) fn from_settings(
        settings: &Settings,
        outbound: &OutboundClient,
        clock: &Clock,
    ) -> Result<Self, IssuerAddressError> {
        let client = OauthClient::new(settings.clone(), outbound.clone());
        Ok(match settings.kind {
            ProviderKind::Oidc => Self::Oidc(OidcProvider::new(client, clock, None)?.into()),
            ProviderKind::Dev => {
                Self::Oidc(OidcProvider::new(client, clock, Some(DEV_ISSUER))?.into())
            }
            ProviderKind::Github => Self::Github(GithubProvider::new(client)),
        })
    }

    /// Returns the URL of the provider's sign-in page for one sign-in.
    pub(super) async fn authorization_url(
        &self,
        exchange: &SignInExchange,
        state: &str,
    ) -> Result<Url, SignInFailure> {
        match self {
            Self::Oidc(provider) => provider.authorization_url(exchange, state).await,
            Self::Github(provider) => provider.authorization_url(exchange, state),
        }
    }

    /// Verifies a provider's answer, and returns the visitor who signed in.
    pub(super) async fn verify_sign_in(
        &self,
        answer: &CallbackQuery,
        exchange: &SignInExchange,
    ) -> Result<VerifiedVisitor, SignInFailure> {
        match self {
            Self::Oidc(provider) => provider.verify_sign_in(answer, exchange).await,
            Self::Github(provider) => provider.verify_sign_in(answer, exchange).await,
        }
    }

    /// Checks that a provider is reachable and knows the client; returns the faults, described for the operator.
    pub(super) async fn find_faults(&self, redirect_uri: &str) -> Vec<String> {
        match self {
            Self::Oidc(provider) => provider.find_faults(redirect_uri).await,
            Self::Github(provider) => provider.find_faults(redirect_uri).await,
        }
    }
}
