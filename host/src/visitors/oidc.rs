//! Sign-in by OpenID Connect: where the visitor is sent, and how the code that they come back with becomes who they are.

use http::header;
use reqwest::RequestBuilder;
use serde::Deserialize;
use url::Url;

use super::model::{AuthError, Failure, Profile, SignedIn};
use super::providers::Provider;
use crate::config::ProviderKind;
use crate::issuers::{self, CALL_TIME, IdClaims, IssuerError, Metadata};
use crate::outbound::{Answer, Outbound, OutboundError};

/// Parameters of a sign-in at a provider.
#[derive(Debug)]
pub(super) struct Asking<'a> {
    /// Where it leads back to.
    pub redirect_uri: &'a str,
    /// Nonce that the ID token must have.
    pub nonce: &'a str,
    /// The secret of PKCE.
    pub verifier: &'a str,
    /// The issuer that the provider's answer names, if it names one (RFC 9207).
    pub issuer: Option<&'a str>,
}

/// Answer of the token endpoint.
#[derive(Deserialize)]
struct Tokens {
    id_token: Option<String>,
    access_token: Option<String>,
}

/// Claims of an issuer about the person for whom an access token stands.
#[derive(Deserialize)]
struct UserInfo {
    sub: Option<String>,
    #[serde(flatten)]
    profile: issuers::Profile,
}

impl From<IssuerError> for Failure {
    fn from(error: IssuerError) -> Self {
        let told = match error {
            IssuerError::Unreachable(_) => AuthError::ProviderUnavailable,
            IssuerError::Unusable(_) => AuthError::ProviderError,
            IssuerError::Token(_) => AuthError::TokenInvalid,
        };
        Self::new(told, error.to_string())
    }
}

impl From<OutboundError> for Failure {
    fn from(error: OutboundError) -> Self {
        let told = match error {
            OutboundError::TooLarge => AuthError::ProviderError,
            OutboundError::Timeout | OutboundError::Unconnected(_) | OutboundError::Failed(_) => {
                AuthError::ProviderUnavailable
            }
        };
        Self::new(told, error.to_string())
    }
}

/// The address at which the visitor signs in.
pub(super) async fn authorization(provider: &Provider) -> Result<Url, Failure> {
    let metadata = provider.issuer.metadata().await?;
    metadata
        .authorization_endpoint
        .clone()
        .ok_or_else(|| lacks("authorization_endpoint"))
}

fn lacks(what: &str) -> Failure {
    let cause = format!("its discovery document has no `{what}`");
    Failure::new(AuthError::ProviderError, cause)
}

/// Checks that an answer names the issuer that was asked, if it names one (RFC 9207): the code of another one is not sent on.
pub(super) async fn check_issuer(provider: &Provider, named: Option<&str>) -> Result<(), Failure> {
    let metadata = provider.issuer.metadata().await?;
    match named {
        Some(named) if !metadata.is_issuer(named) => Err(Failure::new(
            AuthError::ProviderError,
            "its answer names another issuer",
        )),
        None if metadata.names_itself => Err(Failure::new(
            AuthError::ProviderError,
            "its answer names no issuer, though it says that its answers do",
        )),
        _ => Ok(()),
    }
}

/// Turns a code into who signed in.
pub(super) async fn signed_in(
    provider: &Provider,
    outbound: &Outbound,
    code: &str,
    asking: &Asking<'_>,
) -> Result<SignedIn, Failure> {
    let metadata = provider.issuer.metadata().await?;
    let tokens = exchange(provider, outbound, &metadata, code, asking).await?;
    let id_token = tokens.id_token.ok_or_else(|| {
        let cause = "it answered a code without an ID token";
        Failure::new(AuthError::ProviderError, cause)
    })?;
    let client_id = &provider.settings.client_id;
    let claims = provider.issuer.id_token(&id_token, client_id, asking.nonce);
    let claims = claims.await?;
    // One that stands for many tenants says in its answer which of them it is.
    if asking.issuer.is_some_and(|named| named != claims.issuer) {
        let cause = "its answer names another issuer than the ID token";
        return Err(Failure::new(AuthError::TokenInvalid, cause));
    }
    let claims = match (&metadata.userinfo_endpoint, tokens.access_token) {
        (Some(endpoint), Some(token)) if is_wanting(provider, &claims) => {
            completed(claims, outbound, endpoint, &token).await?
        }
        _ => claims,
    };
    let issuer = match provider.settings.kind {
        // The server's own address may change; those who sign in there do not.
        ProviderKind::Dev => "dev".to_owned(),
        ProviderKind::Oidc | ProviderKind::Github => claims.issuer,
    };
    Ok(SignedIn {
        issuer,
        subject: claims.subject,
        profile: Profile {
            email: claims.email.filter(|_| claims.email_verified),
            name: claims.name,
            picture: claims.picture,
            locale: claims.locale,
        }
        .checked(),
    })
}

async fn exchange(
    provider: &Provider,
    outbound: &Outbound,
    metadata: &Metadata,
    code: &str,
    asking: &Asking<'_>,
) -> Result<Tokens, Failure> {
    let answer = show_code(provider, outbound, metadata, code, asking).await?;
    read(&answer, "a code")
}

/// Shows a code to the token endpoint.
pub(super) async fn show_code(
    provider: &Provider,
    outbound: &Outbound,
    metadata: &Metadata,
    code: &str,
    asking: &Asking<'_>,
) -> Result<Answer, Failure> {
    let endpoint = metadata
        .token_endpoint
        .clone()
        .ok_or_else(|| lacks("token_endpoint"))?;
    let settings = &provider.settings;
    let mut form = vec![
        ("grant_type", "authorization_code"),
        ("code", code),
        ("redirect_uri", asking.redirect_uri),
        ("code_verifier", asking.verifier),
    ];
    let secret = settings.client_secret.as_str();
    let in_body = secret.is_empty() || metadata.secret_in_body;
    if in_body {
        form.push(("client_id", &settings.client_id));
    }
    if in_body && !secret.is_empty() {
        form.push(("client_secret", secret));
    }
    let call = outbound.call(CALL_TIME, |client| {
        let call = posted(client.post(endpoint), &form);
        if in_body {
            call
        } else {
            // RFC 6749, section 2.3.1: each is encoded as in a form.
            call.basic_auth(encoded(&settings.client_id), Some(encoded(secret)))
        }
    });
    Ok(call.await?)
}

/// A POST of a form that is answered in JSON.
pub(super) fn posted(call: RequestBuilder, form: &[(&str, &str)]) -> RequestBuilder {
    let mut body = form_urlencoded::Serializer::new(String::new());
    body.extend_pairs(form);
    call.header(header::ACCEPT, "application/json")
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(body.finish())
}

fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// Reads an answer that must be a success in JSON.
pub(super) fn read<T: serde::de::DeserializeOwned>(
    answer: &Answer,
    asked: &str,
) -> Result<T, Failure> {
    let failed = |cause: String| Failure::new(AuthError::ProviderError, cause);
    let status = answer.status.as_u16();
    match refusal(answer) {
        Some(code) => Err(failed(format!("it refused {asked}: {status} {code}"))),
        None if !answer.status.is_success() => {
            Err(failed(format!("it answered {asked} with {status}")))
        }
        None => serde_json::from_slice(&answer.body)
            .map_err(|_| failed(format!("its answer to {asked} cannot be read"))),
    }
}

/// The code with which an answer refuses: GitHub does so with a 200.
pub(super) fn refusal(answer: &Answer) -> Option<String> {
    #[derive(Deserialize)]
    struct Refusal {
        error: String,
    }
    let refusal = serde_json::from_slice::<Refusal>(&answer.body).ok();
    refusal
        .map(|refusal| refusal.error)
        .filter(|code| is_code(code))
}

/// Whether this is one of OAuth's codes, which may be logged, and not something else that was put there.
fn is_code(text: &str) -> bool {
    (1..=60).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
}

/// Whether the token leaves out what was asked for: some issuers tell it only when asked again.
fn is_wanting(provider: &Provider, claims: &IdClaims) -> bool {
    let asked = |scope: &str| provider.settings.scopes.iter().any(|one| one == scope);
    (claims.email.is_none() && asked("email")) || (claims.name.is_none() && asked("profile"))
}

/// Fills in what the issuer tells of whom an access token stands for.
async fn completed(
    mut claims: IdClaims,
    outbound: &Outbound,
    endpoint: &Url,
    token: &str,
) -> Result<IdClaims, Failure> {
    let call = outbound.call(CALL_TIME, |client| {
        let call = client.get(endpoint.clone()).bearer_auth(token);
        call.header(header::ACCEPT, "application/json")
    });
    let answer = call.await?;
    let info = answer
        .status
        .is_success()
        .then(|| serde_json::from_slice::<UserInfo>(&answer.body));
    let Some(Ok(info)) = info else {
        // What the token says is enough to know who it is.
        tracing::info!(
            status = answer.status.as_u16(),
            "a provider tells no more of who signed in"
        );
        return Ok(claims);
    };
    // OpenID Connect Core, section 5.3.2: an answer about somebody else is not used.
    if info.sub.as_deref() != Some(claims.subject.as_str()) {
        return Err(Failure::new(
            AuthError::TokenInvalid,
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
