//! Kinds of sign-in, one module each: where a visitor is sent, and how the answer that the visitor comes back with becomes a verified identity.
//!
//! A new kind is a module here, a variant of [`SignInKind`], and its rules for settings in `config/providers.rs`.

mod github;
mod oauth;
mod oidc;

use url::Url;

use self::github::Github;
use self::oauth::Client;
use self::oidc::Oidc;
use super::model::{SignInFailure, VerifiedVisitor};
use crate::config::{AddressError, Provider as Settings, ProviderKind};
use crate::outbound::Outbound;
use svc_base::clock::Clock;

/// Subject namespace of those who sign in at the issuer inside the server, whose own address may change.
const DEV_ISSUER: &str = "dev";

/// A provider, by its kind.
#[derive(Debug)]
pub(super) enum SignInKind {
    /// OpenID Connect.
    Oidc(Box<Oidc>),
    /// GitHub's OAuth.
    Github(Github),
}

/// Values of one sign-in that are agreed on with the provider.
#[derive(Clone, Debug)]
pub(super) struct SignInExchange {
    /// Address that the provider leads back to.
    pub redirect_uri: String,
    /// Nonce that the provider's proof of identity must have.
    pub nonce: String,
    /// Secret of PKCE (RFC 7636).
    pub verifier: String,
}

/// Answer of a provider, by the query with which it leads back.
#[derive(Clone, Debug, Default)]
pub(super) struct CallbackAnswer {
    /// Sealed sign-in that the answer belongs to.
    pub state: Option<String>,
    /// Code that is exchanged for the visitor's identity.
    pub code: Option<String>,
    /// Issuer that answers (RFC 9207).
    pub iss: Option<String>,
    /// Error in place of a code.
    pub error: Option<String>,
}

impl SignInKind {
    /// The provider of these settings.
    ///
    /// # Errors
    /// An address that cannot be asked, which settings have refused before.
    pub(super) fn from_settings(
        settings: &Settings,
        outbound: &Outbound,
        clock: &Clock,
    ) -> Result<Self, AddressError> {
        let client = Client::new(settings.clone(), outbound.clone());
        Ok(match settings.kind {
            ProviderKind::Oidc => Self::Oidc(Oidc::new(client, clock, None)?.into()),
            ProviderKind::Dev => Self::Oidc(Oidc::new(client, clock, Some(DEV_ISSUER))?.into()),
            ProviderKind::Github => Self::Github(Github::new(client)),
        })
    }

    /// Returns the address at which a visitor signs in.
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

    /// Turns a provider's answer into the visitor who signed in.
    pub(super) async fn verify_sign_in(
        &self,
        answer: &CallbackAnswer,
        exchange: &SignInExchange,
    ) -> Result<VerifiedVisitor, SignInFailure> {
        match self {
            Self::Oidc(provider) => provider.verify_sign_in(answer, exchange).await,
            Self::Github(provider) => provider.verify_sign_in(answer, exchange).await,
        }
    }

    /// Asks a provider to describe itself, and whether it knows the client; returns what is wrong, in the operator's words.
    pub(super) async fn find_faults(&self, redirect_uri: &str) -> Vec<String> {
        match self {
            Self::Oidc(provider) => provider.find_faults(redirect_uri).await,
            Self::Github(provider) => provider.find_faults(redirect_uri).await,
        }
    }
}
