//! Sign-in by GitHub, which speaks OAuth 2.0 without ID tokens: its API identifies the visitor by an access token.

use http::header;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use url::Url;

use super::oauth::{self, OauthClient};
use super::{CallbackQuery, SignInExchange};
use crate::issuers::CALL_TIMEOUT;
use crate::outbound::{OutboundClient, OutboundResponse};
use crate::visitors::model::{SignInError, SignInFailure, VerifiedVisitor, VisitorProfile};

/// User agent, which GitHub requires.
const USER_AGENT_NAME: &str = "svc";

#[derive(Deserialize)]
struct GithubTokenAnswer {
    access_token: String,
}

#[derive(Deserialize)]
struct GithubUser {
    id: u64,
    login: String,
    name: Option<String>,
    avatar_url: Option<String>,
}

#[derive(Deserialize)]
struct GithubEmail {
    email: String,
    primary: bool,
    verified: bool,
}

/// GitHub, or a GitHub Enterprise server.
#[derive(Debug)]
pub(in crate::visitors) struct GithubProvider {
    client: OauthClient,
}

impl GithubProvider {
    pub(super) fn new(client: OauthClient) -> Self {
        Self { client }
    }

    pub(super) fn authorization_url(
        &self,
        exchange: &SignInExchange,
        state: &str,
    ) -> Result<Url, SignInFailure> {
        let address = self.page("/login/oauth/authorize")?;
        let mut address = self.client.authorization_url(address, exchange, state);
        OauthClient::ask_for_account(&mut address);
        Ok(address)
    }

    pub(super) async fn verify_sign_in(
        &self,
        answer: &CallbackQuery,
        exchange: &SignInExchange,
    ) -> Result<VerifiedVisitor, SignInFailure> {
        let answer = self
            .exchange_code(oauth::authorization_code(answer)?, exchange)
            .await?;
        let tokens: GithubTokenAnswer = oauth::parse_answer(&answer, "a code")?;
        let api = GithubApi {
            outbound: &self.client.outbound,
            token: &tokens.access_token,
        };
        let user: GithubUser = api.get(self.api("/user")?).await?;
        let wants_email =
            self.client.requests_scope("user:email") || self.client.requests_scope("user");
        let email = if wants_email {
            let emails: Vec<GithubEmail> = api.get(self.api("/user/emails")?).await?;
            let primary = emails.into_iter().find(|one| one.primary && one.verified);
            primary.map(|one| one.email)
        } else {
            None
        };
        Ok(VerifiedVisitor {
            issuer: self.base().to_owned(),
            subject: user.id.to_string(),
            profile: VisitorProfile {
                email,
                name: user
                    .name
                    .filter(|name| !name.is_empty())
                    .or(Some(user.login)),
                picture: user.avatar_url,
                locale: None,
            }
            .checked(),
            passkey: None,
        })
    }

    /// Checks whether GitHub knows the client. GitHub has no discovery document.
    pub(super) async fn find_faults(&self, redirect_uri: &str) -> Vec<String> {
        let (code, exchange) = oauth::probe_exchange(redirect_uri);
        let shown = self.exchange_code(code, &exchange).await;
        self.client
            .find_client_fault(shown, true)
            .into_iter()
            .collect()
    }

    /// Sends a code to the token endpoint.
    async fn exchange_code(
        &self,
        code: &str,
        exchange: &SignInExchange,
    ) -> Result<OutboundResponse, SignInFailure> {
        let settings = &self.client.settings;
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", exchange.redirect_uri.as_str()),
            ("code_verifier", exchange.verifier.as_str()),
            ("client_id", settings.client_id.as_str()),
            ("client_secret", settings.client_secret.as_str()),
        ];
        let endpoint = self.page("/login/oauth/access_token")?;
        let call = self.client.outbound.call(CALL_TIMEOUT, |client| {
            oauth::form_post(client.post(endpoint), &form)
                .header(header::USER_AGENT, USER_AGENT_NAME)
        });
        Ok(call.await?)
    }

    /// Returns a URL of GitHub's pages.
    fn page(&self, path: &str) -> Result<Url, SignInFailure> {
        parse_url(&format!("{}{path}", self.base()))
    }

    /// Returns a URL of GitHub's API.
    fn api(&self, path: &str) -> Result<Url, SignInFailure> {
        match self.base() {
            "https://github.com" => parse_url(&format!("https://api.github.com{path}")),
            own => parse_url(&format!("{own}/api/v3{path}")),
        }
    }

    fn base(&self) -> &str {
        self.client.settings.issuer.trim_end_matches('/')
    }
}

fn parse_url(text: &str) -> Result<Url, SignInFailure> {
    Url::parse(text)
        .map_err(|error| SignInFailure::new(SignInError::ProviderError, error.to_string()))
}

/// Client of GitHub's API, on behalf of a visitor.
struct GithubApi<'a> {
    outbound: &'a OutboundClient,
    token: &'a str,
}

impl GithubApi<'_> {
    async fn get<T: DeserializeOwned>(&self, address: Url) -> Result<T, SignInFailure> {
        let call = self.outbound.call(CALL_TIMEOUT, |client| {
            client
                .get(address)
                .bearer_auth(self.token)
                .header(header::ACCEPT, "application/vnd.github+json")
                .header(header::USER_AGENT, USER_AGENT_NAME)
        });
        oauth::parse_answer(&call.await?, "who signed in")
    }
}
