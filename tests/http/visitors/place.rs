//! A guest book whose visitors sign in, and the browsers that they come with.

use http::{HeaderMap, Method};
use serde_json::{Value, json};
use svc::config::Settings;
use svc_tests::browser::Browser;
use svc_tests::{Answer, TestServer};

use crate::account::text;
use crate::house::House;

/// What the guest book is made of.
pub(crate) const DDL: &str = "CREATE TABLE entries (id INTEGER PRIMARY KEY, user_id TEXT NOT NULL, email TEXT, words TEXT NOT NULL)";

/// A house whose page `room` has accounts.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) house: House,
    /// The page's own origin.
    pub(crate) origin: String,
    /// The sites host.
    pub(crate) sites: String,
}

impl Place {
    /// The guest book on a server with other settings.
    pub(crate) async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let server = TestServer::builder().settings(change).start().await;
        let house = House::on(server, DDL).await;
        let actions = json!([
            {"name": "sign", "sql": "INSERT INTO entries (user_id, email, words) VALUES (:svc_user_id, :svc_user_email, :words) RETURNING id"},
            {"name": "mine", "sql": "SELECT words, user_id, email FROM entries WHERE user_id = :svc_user_id ORDER BY id"},
            {"name": "all", "sql": "SELECT words FROM entries ORDER BY id"},
        ]);
        house.put(&actions).await.expect(200);
        Self::of(house).await
    }

    /// The place that a house is.
    pub(crate) async fn of(house: House) -> Self {
        let project = house
            .owner
            .get(&house.server, &format!("/{}", house.project))
            .await;
        let origin = text(&project.expect(200).json()["url"]);
        let sites = house.server.server().app().config.sites_url.clone();
        Self {
            house,
            origin,
            sites,
        }
    }

    /// With the provider of the server itself.
    pub(crate) async fn developing() -> Self {
        Self::with(|settings| settings.dev = true).await
    }

    /// A new browser.
    pub(crate) fn browser(&self) -> Browser {
        Browser::new(self.house.server.address())
    }

    /// The address of something of the page `room`.
    pub(crate) fn url(&self, below: &str) -> String {
        format!("{}/room{below}", self.origin)
    }

    /// Who is signed in, as the page is told.
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
            .ask(Method::POST, &url, headers, Some(body.to_string()))
            .await
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
