//! Sign-in by OpenID Connect: the visitor comes back with a code, which is exchanged for an ID token.

use http::header;
use serde::Deserialize;
use url::Url;

use super::oauth::{self, OauthClient};
use super::{CallbackQuery, SignInExchange};
use crate::config::{IssuerAddress, IssuerAddressError};
use crate::issuers::{self, CALL_TIMEOUT, IdTokenClaims, Issuer, IssuerError, IssuerMetadata};
use crate::outbound::OutboundResponse;
use crate::visitors::model::{SignInError, SignInFailure, VerifiedVisitor, VisitorProfile};
use svc_base::clock::Clock;

/// Hosts of the sign-in pages of Google and Microsoft, which can ask which account to use and do not say so in their discovery documents.
const ACCOUNT_SELECTORS: [&str; 2] = ["accounts.google.com", "login.microsoftonline.com"];

/// Answer of the token endpoint.
#[derive(Deserialize)]
struct TokenEndpointAnswer {
    id_token: Option<String>,
    access_token: Option<String>,
}

/// Claims from the user info endpoint.
#[derive(Deserialize)]
struct UserInfo {
    sub: Option<String>,
    #[serde(flatten)]
    profile: issuers::ProfileClaims,
}

impl From<IssuerError> for SignInFailure {
    fn from(error: IssuerError) -> Self {
        let told = match error {
            IssuerError::Unreachable(_) => SignInError::ProviderUnavailable,
            IssuerError::Unusable(_) => SignInError::ProviderError,
            IssuerError::Token(_) => SignInError::TokenInvalid,
        };
        Self::new(told, error.to_string())
    }
}

/// An issuer that speaks OpenID Connect.
#[derive(Debug)]
pub(in crate::visitors) struct OidcProvider {
    client: OauthClient,
    issuer: Issuer,
    /// Issuer name under which subjects are stored, if it differs from the issuer's own.
    stored_issuer: Option<&'static str>,
}

impl OidcProvider {
    pub(super) fn new(
        client: OauthClient,
        clock: &Clock,
        stored_issuer: Option<&'static str>,
    ) -> Result<Self, IssuerAddressError> {
        let address = IssuerAddress::parse(&client.settings.issuer)?;
        Ok(Self {
            issuer: Issuer::new(address, client.outbound.clone(), clock.clone()),
            client,
            stored_issuer,
        })
    }

    pub(super) async fn authorization_url(
        &self,
        exchange: &SignInExchange,
        state: &str,
    ) -> Result<Url, SignInFailure> {
        let metadata = self.issuer.metadata().await?;
        let endpoint = metadata.authorization_endpoint.clone();
        let endpoint = endpoint.ok_or_else(|| missing_endpoint("authorization_endpoint"))?;
        let selects_account = metadata.selects_account || is_account_selector(&endpoint);
        let mut address = self.client.authorization_url(endpoint, exchange, state);
        address
            .query_pairs_mut()
            .append_pair("nonce", &exchange.nonce);
        // Issuers that do not know a value refuse the request, so the operator's own setting comes first.
        match &self.client.settings.prompt {
            Some(prompt) => {
                address.query_pairs_mut().append_pair("prompt", prompt);
            }
            None if selects_account => OauthClient::ask_for_account(&mut address),
            None => {}
        }
        Ok(address)
    }

    pub(super) async fn verify_sign_in(
        &self,
        answer: &CallbackQuery,
        exchange: &SignInExchange,
    ) -> Result<VerifiedVisitor, SignInFailure> {
        let metadata = self.issuer.metadata().await?;
        let named = answer.iss.as_deref();
        check_issuer(&metadata, named)?;
        let shown = self.exchange_code(&metadata, oauth::authorization_code(answer)?, exchange);
        let tokens: TokenEndpointAnswer = oauth::parse_answer(&shown.await?, "a code")?;
        let id_token = tokens.id_token.ok_or_else(|| {
            let cause = "it answered a code without an ID token";
            SignInFailure::new(SignInError::ProviderError, cause)
        })?;
        let client_id = &self.client.settings.client_id;
        let claims = self
            .issuer
            .verify_id_token(&id_token, client_id, &exchange.nonce);
        let claims = claims.await?;
        // An issuer of many tenants names the tenant in its answer.
        if named.is_some_and(|named| named != claims.issuer) {
            let cause = "its answer names another issuer than the ID token";
            return Err(SignInFailure::new(SignInError::TokenInvalid, cause));
        }
        let claims = match (&metadata.userinfo_endpoint, tokens.access_token) {
            (Some(endpoint), Some(token)) if self.lacks_requested_claims(&claims) => {
                self.complete_claims(claims, endpoint, &token).await?
            }
            _ => claims,
        };
        Ok(VerifiedVisitor {
            issuer: self.stored_issuer.map_or(claims.issuer, str::to_owned),
            subject: claims.subject,
            profile: VisitorProfile {
                email: claims.email.filter(|_| claims.email_verified),
                name: claims.name,
                picture: claims.picture,
                locale: claims.locale,
            }
            .checked(),
            passkey: None,
        })
    }

    /// Checks the discovery document, the keys, and whether the issuer knows the client.
    pub(super) async fn find_faults(&self, redirect_uri: &str) -> Vec<String> {
        let metadata = match self.issuer.metadata().await {
            Ok(metadata) => metadata,
            Err(error) => return vec![describe_fault(&error, "`issuer`")],
        };
        let mut faults = missing_endpoints(&metadata);
        match self.issuer.keys().await {
            Err(error) => faults.push(describe_fault(
                &error,
                "`jwks_uri` of its discovery document",
            )),
            Ok(keys) if keys.count() == 0 => {
                faults.push("the issuer has no key that can verify an ID token".to_owned());
            }
            Ok(_) => {}
        }
        if metadata.token_endpoint.is_some() {
            let (code, exchange) = oauth::probe_exchange(redirect_uri);
            let shown = self.exchange_code(&metadata, code, &exchange).await;
            faults.extend(self.client.find_client_fault(shown, false));
        }
        faults
    }

    /// Sends a code to the token endpoint.
    async fn exchange_code(
        &self,
        metadata: &IssuerMetadata,
        code: &str,
        exchange: &SignInExchange,
    ) -> Result<OutboundResponse, SignInFailure> {
        let endpoint = metadata.token_endpoint.clone();
        let endpoint = endpoint.ok_or_else(|| missing_endpoint("token_endpoint"))?;
        let settings = &self.client.settings;
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", exchange.redirect_uri.as_str()),
            ("code_verifier", exchange.verifier.as_str()),
        ];
        let secret = settings.client_secret.as_str();
        let in_body = secret.is_empty() || metadata.secret_in_body;
        if in_body {
            form.push(("client_id", &settings.client_id));
        }
        if in_body && !secret.is_empty() {
            form.push(("client_secret", secret));
        }
        let call = self.client.outbound.call(CALL_TIMEOUT, |client| {
            let call = oauth::form_post(client.post(endpoint), &form);
            if in_body {
                call
            } else {
                // RFC 6749, section 2.3.1: both are form-encoded.
                call.basic_auth(form_encode(&settings.client_id), Some(form_encode(secret)))
            }
        });
        Ok(call.await?)
    }

    /// Whether an ID token lacks requested claims: some issuers return them only from the user info endpoint.
    fn lacks_requested_claims(&self, claims: &IdTokenClaims) -> bool {
        (claims.email.is_none() && self.client.requests_scope("email"))
            || (claims.name.is_none() && self.client.requests_scope("profile"))
    }

    /// Adds missing claims from the user info endpoint.
    async fn complete_claims(
        &self,
        mut claims: IdTokenClaims,
        endpoint: &Url,
        token: &str,
    ) -> Result<IdTokenClaims, SignInFailure> {
        let call = self.client.outbound.call(CALL_TIMEOUT, |client| {
            let call = client.get(endpoint.clone()).bearer_auth(token);
            call.header(header::ACCEPT, "application/json")
        });
        let answer = call.await?;
        let info = answer
            .status
            .is_success()
            .then(|| serde_json::from_slice::<UserInfo>(&answer.body));
        let Some(Ok(info)) = info else {
            // The ID token suffices to identify the visitor.
            tracing::info!(
                status = answer.status.as_u16(),
                "a provider tells no more of who signed in"
            );
            return Ok(claims);
        };
        // OpenID Connect Core, section 5.3.2: an answer about another subject is not used.
        if info.sub.as_deref() != Some(claims.subject.as_str()) {
            return Err(SignInFailure::new(
                SignInError::TokenInvalid,
                "what it tells of who signed in is about somebody else",
            ));
        }
        let told = info.profile;
        if claims.email.is_none() {
            claims.email = told.email;
            claims.email_verified = told.email_verified;
        }
        claims.name = claims.name.or(told.name);
        claims.picture = claims.picture.or(told.picture);
        claims.locale = claims.locale.or(told.locale);
        Ok(claims)
    }
}

/// Whether an issuer's sign-in page is known to ask which account to use.
fn is_account_selector(endpoint: &Url) -> bool {
    let host = endpoint.host_str();
    host.is_some_and(|host| ACCOUNT_SELECTORS.contains(&host))
}

fn missing_endpoint(member: &str) -> SignInFailure {
    let cause = format!("its discovery document has no `{member}`");
    SignInFailure::new(SignInError::ProviderError, cause)
}

/// Checks that an answer that names an issuer names the right one (RFC 9207), so that another issuer's code is not sent to it.
fn check_issuer(metadata: &IssuerMetadata, named: Option<&str>) -> Result<(), SignInFailure> {
    match named {
        Some(named) if !metadata.is_issuer(named) => Err(SignInFailure::new(
            SignInError::ProviderError,
            "its answer names another issuer",
        )),
        None if metadata.answers_name_issuer => Err(SignInFailure::new(
            SignInError::ProviderError,
            "its answer names no issuer, though it says that its answers do",
        )),
        _ => Ok(()),
    }
}

fn form_encode(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// Lists the missing endpoints that sign-in requires.
fn missing_endpoints(metadata: &IssuerMetadata) -> Vec<String> {
    let endpoints = [
        ("authorization_endpoint", &metadata.authorization_endpoint),
        ("token_endpoint", &metadata.token_endpoint),
    ];
    let missing = endpoints
        .into_iter()
        .filter(|(_, endpoint)| endpoint.is_none());
    let faults = missing
        .map(|(name, _)| format!("the issuer names no `{name}`: nobody can sign in with it"));
    faults.collect()
}

fn describe_fault(error: &IssuerError, asked: &str) -> String {
    match error {
        IssuerError::Unreachable(_) => {
            format!("{error}: check {asked}, and that this machine reaches it")
        }
        IssuerError::Unusable(_) | IssuerError::Token(_) => format!("{error}: check {asked}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn google_and_microsoft_ask_which_account_to_use() {
        for (endpoint, expected) in [
            ("https://accounts.google.com/o/oauth2/v2/auth", true),
            (
                "https://login.microsoftonline.com/common/oauth2/v2.0/authorize",
                true,
            ),
            ("https://accounts.google.com.example/authorize", false),
            ("https://gitlab.com/oauth/authorize", false),
        ] {
            let endpoint = Url::parse(endpoint).unwrap();
            assert_eq!(is_account_selector(&endpoint), expected, "{endpoint}");
        }
    }
}
