//! OpenID Connect issuer inside the server, for developing pages: it asks for a name and an e-mail address and accepts any.
//!
//! It speaks OpenID Connect over HTTP like a real issuer, so that a page that works with it works with those. It exists only with
//! `serve --dev` on a loopback `base_url`.

mod pages;
pub mod routes;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use super::state::pkce_challenge;
use crate::config::{ProviderKind, ProviderSettings};
use crate::infra::Infra;
use crate::issuers::{SigningError, SigningKey};
use crate::workspaces::credential;
use svc_base::clock::{Clock, Timestamp};
use svc_base::random::Random;

/// Lifetime of an authorization code, in milliseconds.
const CODE_LIFETIME_MS: i64 = 60_000;
/// Maximum number of codes that are not used yet.
const MAX_CODES: usize = 10_000;
/// Lifetime of a token, in seconds.
const TOKEN_SECONDS: i64 = 300;

/// The development issuer.
#[derive(Debug)]
pub struct DevIssuer {
    settings: ProviderSettings,
    /// Base URL for browsers.
    public: String,
    redirect_uri: String,
    key: SigningKey,
    clock: Clock,
    random: Random,
    codes: Mutex<HashMap<String, AuthorizationCodeGrant>>,
}

/// Sign-in that an authorization code stands for.
#[derive(Clone, Debug)]
struct AuthorizationCodeGrant {
    request: AuthorizationRequest,
    name: String,
    email: String,
    at: Timestamp,
}

/// Parameters of an authorization request.
#[derive(Clone, Debug)]
struct AuthorizationRequest {
    state: String,
    nonce: String,
    challenge: String,
}

impl DevIssuer {
    /// Creates the issuer, with a new key; `None` if the settings have no such provider.
    ///
    /// # Errors
    /// When the system has no randomness.
    pub fn new(infra: &Infra) -> Result<Option<Self>, SigningError> {
        let config = &infra.config;
        let mut providers = config.providers.iter();
        let Some(settings) = providers.find(|one| one.kind == ProviderKind::Dev) else {
            return Ok(None);
        };
        let (sites, name) = (&config.sites_url, &settings.name);
        Ok(Some(Self {
            public: format!("{sites}/_svc/dev"),
            redirect_uri: format!("{sites}/_svc/auth/callback/{name}"),
            settings: settings.clone(),
            key: SigningKey::generate("dev")?,
            clock: infra.clock.clone(),
            random: infra.random.clone(),
            codes: Mutex::default(),
        }))
    }

    fn discovery(&self) -> Value {
        let issuer = &self.settings.issuer;
        json!({
            "issuer": issuer,
            "authorization_endpoint": format!("{}/authorize", self.public),
            "token_endpoint": format!("{issuer}/token"),
            "jwks_uri": format!("{issuer}/keys"),
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "authorization_response_iss_parameter_supported": true,
        })
    }

    fn keys(&self) -> Value {
        json!({ "keys": [self.key.public_jwk()] })
    }

    /// Issues an authorization code for a person; `None` if there are too many codes, or no randomness.
    fn issue_code(
        &self,
        request: AuthorizationRequest,
        name: String,
        email: String,
    ) -> Option<String> {
        let (text, at) = (
            credential::random_secret(&self.random).ok()?,
            self.clock.now(),
        );
        let mut codes = self.codes.lock().unwrap_or_else(PoisonError::into_inner);
        codes.retain(|_, code| at.0 - code.at.0 < CODE_LIFETIME_MS);
        if codes.len() >= MAX_CODES {
            return None;
        }
        let code = AuthorizationCodeGrant {
            request,
            name,
            email,
            at,
        };
        codes.insert(text.clone(), code);
        Some(text)
    }

    /// Exchanges a code for tokens, and uses the code up; `None` if it is unknown, expired, or belongs to another sign-in.
    fn exchange_code(&self, code: &str, verifier: &str, redirect_uri: &str) -> Option<Value> {
        let now = self.clock.now();
        let taken = self
            .codes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(code)?;
        let fits = now.0 - taken.at.0 < CODE_LIFETIME_MS
            && redirect_uri == self.redirect_uri
            && pkce_challenge(verifier) == taken.request.challenge;
        if !fits {
            return None;
        }
        let seconds = now.0 / 1000;
        let claims = json!({
            "iss": self.settings.issuer,
            "aud": self.settings.client_id,
            "sub": taken.email,
            "iat": seconds,
            "exp": seconds + TOKEN_SECONDS,
            "nonce": taken.request.nonce,
            "name": taken.name,
            "email": taken.email,
            "email_verified": true,
        });
        let id_token = self.key.sign(&claims).ok()?;
        let access_token = credential::random_secret(&self.random).ok()?;
        Some(json!({
            "id_token": id_token,
            "access_token": access_token,
            "token_type": "Bearer",
            "expires_in": TOKEN_SECONDS,
        }))
    }
}
