//! Sign-in by GitHub, which speaks OAuth 2.0 and has no ID tokens: who signed in is asked of its API with the token that the code became.

use http::header;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use url::Url;

use super::model::{AuthError, Failure, Profile, SignedIn};
use super::oidc::{self, Asking};
use super::providers::Provider;
use crate::issuers::CALL_TIME;
use crate::outbound::{Answer, Outbound};

/// GitHub refuses who does not say what they are.
const AGENT: &str = "svc";

#[derive(Deserialize)]
struct Tokens {
    access_token: String,
}

#[derive(Deserialize)]
struct User {
    id: u64,
    login: String,
    name: Option<String>,
    avatar_url: Option<String>,
}

#[derive(Deserialize)]
struct Email {
    email: String,
    primary: bool,
    verified: bool,
}

/// An address of GitHub's pages, or of an installation of its own.
pub(super) fn page(provider: &Provider, path: &str) -> Result<Url, Failure> {
    address(&format!("{}{path}", base(provider)))
}

/// An address of its API.
fn api(provider: &Provider, path: &str) -> Result<Url, Failure> {
    match base(provider) {
        "https://github.com" => address(&format!("https://api.github.com{path}")),
        own => address(&format!("{own}/api/v3{path}")),
    }
}

fn base(provider: &Provider) -> &str {
    provider.settings.issuer.trim_end_matches('/')
}

fn address(text: &str) -> Result<Url, Failure> {
    Url::parse(text).map_err(|error| Failure::new(AuthError::ProviderError, error.to_string()))
}

/// Shows a code to the token endpoint.
pub(super) async fn show_code(
    provider: &Provider,
    outbound: &Outbound,
    code: &str,
    asking: &Asking<'_>,
) -> Result<Answer, Failure> {
    let settings = &provider.settings;
    let form = [
        ("grant_type", "authorization_code"),
        ("code", code),
        ("redirect_uri", asking.redirect_uri),
        ("code_verifier", asking.verifier),
        ("client_id", settings.client_id.as_str()),
        ("client_secret", settings.client_secret.as_str()),
    ];
    let endpoint = page(provider, "/login/oauth/access_token")?;
    let call = outbound.call(CALL_TIME, |client| {
        oidc::posted(client.post(endpoint), &form).header(header::USER_AGENT, AGENT)
    });
    Ok(call.await?)
}

/// Turns a code into who signed in.
pub(super) async fn signed_in(
    provider: &Provider,
    outbound: &Outbound,
    code: &str,
    asking: &Asking<'_>,
) -> Result<SignedIn, Failure> {
    let settings = &provider.settings;
    let answer = show_code(provider, outbound, code, asking).await?;
    let tokens: Tokens = oidc::read(&answer, "a code")?;
    let ask = Api {
        outbound,
        token: &tokens.access_token,
    };
    let user: User = ask.get(api(provider, "/user")?).await?;
    let wants_email = settings
        .scopes
        .iter()
        .any(|scope| scope == "user:email" || scope == "user");
    let email = if wants_email {
        let emails: Vec<Email> = ask.get(api(provider, "/user/emails")?).await?;
        let primary = emails.into_iter().find(|one| one.primary && one.verified);
        primary.map(|one| one.email)
    } else {
        None
    };
    Ok(SignedIn {
        issuer: base(provider).to_owned(),
        subject: user.id.to_string(),
        profile: Profile {
            email,
            name: user
                .name
                .filter(|name| !name.is_empty())
                .or(Some(user.login)),
            picture: user.avatar_url,
            locale: None,
        }
        .checked(),
    })
}

struct Api<'a> {
    outbound: &'a Outbound,
    token: &'a str,
}

impl Api<'_> {
    async fn get<T: DeserializeOwned>(&self, address: Url) -> Result<T, Failure> {
        let call = self.outbound.call(CALL_TIME, |client| {
            client
                .get(address)
                .bearer_auth(self.token)
                .header(header::ACCEPT, "application/vnd.github+json")
                .header(header::USER_AGENT, AGENT)
        });
        oidc::read(&call.await?, "who signed in")
    }
}
