//! Kinds of sign-in, one module each: where a visitor is sent, and how the provider's answer becomes a verified identity.
//!
//! A new kind is a module here, a variant of [`SignInProviderClient`], and its rules for settings in `config/providers.rs`.

pub(super) mod email;
mod github;
mod oauth;
mod oidc;
pub(super) mod passkey;

use url::Url;

use self::email::EmailProvider;
use self::github::GithubProvider;
use self::oauth::OauthClient;
use self::oidc::OidcProvider;
use self::passkey::PasskeyProvider;
use super::model::{SignInError, SignInFailure, VerifiedVisitor};
use crate::config::{Config, ProviderKind, ProviderSettings as Settings};
use crate::outbound::OutboundClient;
use crate::outbound::mail::MailAddress;
use svc_base::clock::Clock;
use svc_base::random::Random;

/// Issuer name under which visitors of the development issuer are stored, because its address may change.
const DEV_ISSUER: &str = "dev";

/// Provider, by its kind of sign-in.
#[derive(Debug)]
pub(super) enum SignInProviderClient {
    /// OpenID Connect.
    Oidc(Box<OidcProvider>),
    /// GitHub's OAuth.
    Github(GithubProvider),
    /// Codes by e-mail, which no other server has a part in.
    Email(Box<EmailProvider>),
    /// Passkeys, which no other server has a part in either.
    Passkey(Box<PasskeyProvider>),
}

/// Parts that providers are made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProviderResources<'a> {
    pub config: &'a Config,
    pub outbound: &'a OutboundClient,
    pub clock: &'a Clock,
    pub random: &'a Random,
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
    /// An address that cannot be called; the checks of the settings refuse it before. No randomness.
    pub(super) fn from_settings(
        settings: &Settings,
        with: ProviderResources<'_>,
    ) -> anyhow::Result<Self> {
        let client = OauthClient::new(settings.clone(), with.outbound.clone());
        let clock = with.clock;
        Ok(match settings.kind {
            ProviderKind::Oidc => Self::Oidc(OidcProvider::new(client, clock, None)?.into()),
            ProviderKind::Dev => {
                Self::Oidc(OidcProvider::new(client, clock, Some(DEV_ISSUER))?.into())
            }
            ProviderKind::Github => Self::Github(GithubProvider::new(client)),
            ProviderKind::Email => {
                let issuer = &settings.issuer;
                Self::Email(EmailProvider::new(with.config, issuer, clock, with.random)?.into())
            }
            ProviderKind::Passkey => {
                Self::Passkey(PasskeyProvider::new(with.config, &settings.issuer)?.into())
            }
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
            Self::Email(provider) => provider.authorization_url(state),
            Self::Passkey(provider) => provider.authorization_url(state),
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
            Self::Email(_) | Self::Passkey(_) => {
                let cause = "it has no callback: its visitors sign in on a page of the server";
                Err(SignInFailure::new(SignInError::ProviderError, cause))
            }
        }
    }

    /// Checks that a provider is reachable and knows the client; returns the faults, described for the operator.
    pub(super) async fn find_faults(&self, redirect_uri: &str) -> Vec<String> {
        match self {
            Self::Oidc(provider) => provider.find_faults(redirect_uri).await,
            Self::Github(provider) => provider.find_faults(redirect_uri).await,
            Self::Email(provider) => provider.find_faults().await,
            // Settings that are not valid were refused before.
            Self::Passkey(_) => Vec::new(),
        }
    }

    /// Sends a mail without a code; returns the faults, described for the operator. `None` if the provider sends no mails.
    pub(super) async fn send_test_mail(&self, address: MailAddress) -> Option<Vec<String>> {
        match self.email() {
            Some(provider) => Some(provider.send_test_mail(address).await),
            None => None,
        }
    }

    /// Returns the provider that sends codes by e-mail, if it is one.
    pub(super) fn email(&self) -> Option<&EmailProvider> {
        match self {
            Self::Email(provider) => Some(provider),
            Self::Oidc(_) | Self::Github(_) | Self::Passkey(_) => None,
        }
    }

    /// Returns the provider of passkeys, if it is one.
    pub(super) fn passkey(&self) -> Option<&PasskeyProvider> {
        match self {
            Self::Passkey(provider) => Some(provider),
            Self::Oidc(_) | Self::Github(_) | Self::Email(_) => None,
        }
    }
}
