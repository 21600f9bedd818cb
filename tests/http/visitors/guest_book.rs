//! A guest book whose visitors sign in, and the browsers that they come with.

use std::collections::HashMap;

use http::{HeaderMap, Method};
use serde_json::{Value, json};
use svc::config::{ProviderKind, ProviderSettings, Settings};
use svc_tests::browser::{Browser, location};
use svc_tests::stub_issuer::StubIssuer;
use svc_tests::{Answer, TestServer};

use crate::owner::text;
use crate::project_fixture::ProjectFixture;

/// Schema of the guest book.
pub(crate) const DDL: &str = "CREATE TABLE entries (id INTEGER PRIMARY KEY, user_id TEXT NOT NULL, email TEXT, words TEXT NOT NULL)";

/// A fixture whose page `room` has accounts.
#[derive(Debug)]
pub(crate) struct GuestBook {
    pub(crate) fixture: ProjectFixture,
    /// The page's own origin.
    pub(crate) origin: String,
    /// The sites host.
    pub(crate) sites: String,
}

impl GuestBook {
    /// The guest book on a server with other settings.
    pub(crate) async fn with_settings(change: impl FnOnce(&mut Settings)) -> Self {
        let server = TestServer::builder().settings(change).start().await;
        let fixture = ProjectFixture::on_server(server, DDL).await;
        let actions = json!([
            {"name": "sign", "sql": "INSERT INTO entries (user_id, email, words) VALUES (:svc_user_id, :svc_user_email, :words) RETURNING id"},
            {"name": "mine", "sql": "SELECT words, user_id, email FROM entries WHERE user_id = :svc_user_id ORDER BY id"},
            {"name": "all", "sql": "SELECT words FROM entries ORDER BY id"},
        ]);
        fixture.put(&actions).await.expect(200);
        Self::from_fixture(fixture).await
    }

    pub(crate) async fn from_fixture(fixture: ProjectFixture) -> Self {
        let project = fixture
            .owner
            .get(&fixture.server, &format!("/{}", fixture.project))
            .await;
        let origin = text(&project.expect(200).json()["url"]);
        let sites = fixture.server.server().app().config.sites_url.clone();
        Self {
            fixture,
            origin,
            sites,
        }
    }

    /// Replaces the server by the one that `to` returns; name and port must stay ([`pin_address`]).
    pub(crate) async fn move_to_server(
        self,
        to: impl AsyncFnOnce(TestServer) -> TestServer,
    ) -> Self {
        let ProjectFixture {
            server,
            owner,
            project,
        } = self.fixture;
        let server = to(server).await;
        Self {
            fixture: ProjectFixture {
                server,
                owner,
                project,
            },
            ..self
        }
    }

    /// Returns a browser with the cookies of another one.
    pub(crate) fn browser_of(&self, before: &Browser) -> Browser {
        let mut browser = self.browser();
        browser.cookies.clone_from(&before.cookies);
        browser
    }

    /// Starts a server with its own provider, for development.
    pub(crate) async fn with_dev_provider() -> Self {
        Self::with_settings(|settings| settings.dev = true).await
    }

    /// A new browser.
    pub(crate) fn browser(&self) -> Browser {
        Browser::new(self.fixture.server.address())
    }

    /// The address of something of the page `room`.
    pub(crate) fn url(&self, below: &str) -> String {
        format!("{}/room{below}", self.origin)
    }

    /// Asks the page who is signed in.
    pub(crate) async fn user(&self, browser: &mut Browser) -> Value {
        let answer = browser.get(&self.url("/auth/status")).await.expect(200);
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.header("access-control-allow-origin"), None);
        answer.json()["user"].clone()
    }

    /// Calls an action as the page itself does.
    pub(crate) async fn call(&self, browser: &mut Browser, body: &Value) -> Answer {
        let origin = self.origin.clone();
        self.call_from(browser, &[("origin", &origin)], body).await
    }

    /// Calls an action with other headers.
    pub(crate) async fn call_from(
        &self,
        browser: &mut Browser,
        headers: &[(&'static str, &str)],
        body: &Value,
    ) -> Answer {
        let headers = headers
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()));
        let headers = HeaderMap::from_iter(headers);
        let url = self.url("/api/op");
        browser
            .send_request(Method::POST, &url, headers, Some(body.to_string()))
            .await
    }

    /// Starts a server with these issuers as its providers.
    pub(crate) async fn with_issuers(issuers: &[(&str, &StubIssuer)]) -> Self {
        let providers = issuers
            .iter()
            .map(|(name, stub)| provider_settings(name, stub))
            .collect();
        Self::with_settings(|settings| settings.providers = providers).await
    }

    /// Begins a sign-in; returns the parameters of the request to the issuer.
    pub(crate) async fn begin_sign_in(
        &self,
        browser: &mut Browser,
        query: &str,
    ) -> HashMap<String, String> {
        let url = self.url(&format!("/auth/login{query}"));
        let answer = browser.get(&url).await.expect(302);
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        let location = location(&url, &answer);
        let query = location.split_once('?').expect("a query").1.to_owned();
        url::form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect()
    }

    /// Follows the issuer's redirect to the callback; returns the next URL.
    pub(crate) async fn return_from_issuer(
        &self,
        browser: &mut Browser,
        provider: &str,
        query: &str,
    ) -> String {
        let url = format!("{}/_svc/auth/callback/{provider}?{query}", self.sites);
        let answer = browser.get(&url).await.expect(302);
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        location(&url, &answer)
    }

    /// Begins a sign-in and returns with a valid code; returns the URL of the completion.
    pub(crate) async fn completion_url(&self, browser: &mut Browser, provider: &str) -> String {
        let asked = self
            .begin_sign_in(browser, &format!("?provider={provider}"))
            .await;
        let query = format!("code={}&state={}", asked["nonce"], asked["state"]);
        self.return_from_issuer(browser, provider, &query).await
    }

    /// Signs in with an issuer; returns the URL at the end.
    pub(crate) async fn sign_in_with_issuer(
        &self,
        browser: &mut Browser,
        provider: &str,
    ) -> String {
        let complete = self.completion_url(browser, provider).await;
        let answer = browser.get(&complete).await.expect(302);
        location(&complete, &answer)
    }

    /// Returns the address that a failed sign-in leads to.
    pub(crate) fn failure_url(&self, code: &str) -> String {
        self.url(&format!("?auth_error={code}"))
    }

    /// Signs in with the provider of the server itself; returns where that leads.
    pub(crate) async fn sign_in(&self, browser: &mut Browser, form: &str, query: &str) -> String {
        let (at, page) = browser
            .open(&self.url(&format!("/auth/login{query}")))
            .await;
        assert!(page.expect(200).text().contains("no real sign-in"));
        let sent = browser.submit(&at, form).await.expect(303);
        browser.follow(&at, sent).await.0
    }
}

/// Fixes a server's name and port across restarts, and makes this issuer its provider.
pub(crate) fn pin_address(settings: &mut Settings, stub: &StubIssuer) {
    settings.base_url = Some("http://svc.test".parse().unwrap());
    settings.sites_domain = Some("pages.test".to_owned());
    settings.providers = vec![provider_settings("acme", stub)];
}

/// The settings of a provider that is this issuer.
pub(crate) fn provider_settings(name: &str, stub: &StubIssuer) -> ProviderSettings {
    ProviderSettings {
        name: name.to_owned(),
        display_name: String::new(),
        kind: ProviderKind::Oidc,
        issuer: stub.address(),
        client_id: "me".to_owned(),
        client_secret: "sesame".to_owned(),
        scopes: Vec::new(),
        prompt: None,
    }
}
