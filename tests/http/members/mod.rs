//! Users and their roles: who may do what, over REST and as tools, with keys and with tokens.

mod backups;
mod billing;
mod borders;
pub(crate) mod crashes;
mod fake_billing;
mod keys;
mod operator;
mod roles;
mod tokens;
mod workspaces;

pub(crate) use fake_billing::{FakeBilling, send_webhook};

use http::Method;
use serde_json::{Value, json};
use svc::config::OauthSettings;
use svc_tests::{AUDIENCE, Answer, Builder, TestServer, TokenIssuer};

use crate::owner::{Owner, text};

const WORKSPACES_PATH: &str = "/api/v1/workspaces";

/// A server with an issuer of its users' tokens.
#[derive(Debug)]
pub(crate) struct MembersFixture {
    pub(crate) server: TestServer,
    pub(crate) issuer: TokenIssuer,
}

/// A user who has called the service once.
#[derive(Clone, Debug)]
pub(crate) struct User {
    pub(crate) owner: Owner,
    pub(crate) id: String,
}

impl MembersFixture {
    pub(crate) async fn new() -> Self {
        Self::with_settings(TestServer::builder(), |_| ()).await
    }

    /// Makes the members on a server of one's own, with changes of its `[oauth]`.
    pub(crate) async fn with_settings(
        builder: Builder,
        change: impl FnOnce(&mut OauthSettings),
    ) -> Self {
        let issuer = TokenIssuer::start().await;
        let mut oauth = OauthSettings {
            issuer: issuer.url().to_owned(),
            audience: AUDIENCE.to_owned(),
            scopes: Vec::new(),
        };
        change(&mut oauth);
        let server = builder.settings(|settings| settings.oauth = Some(oauth));
        let server = server.start().await;
        Self { server, issuer }
    }

    /// Returns a user, who is created by the first call.
    pub(crate) async fn user(&self, subject: &str) -> User {
        let owner = Owner::with_credential(&self.issuer.token(subject));
        let me = owner
            .send_request(&self.server, Method::GET, "/api/v1/me", None)
            .await;
        let id = text(&me.expect(200).json()["user_id"]);
        User { owner, id }
    }
}

impl User {
    pub(crate) async fn get(&self, fixture: &MembersFixture, path: &str) -> Answer {
        self.owner
            .send_request(&fixture.server, Method::GET, path, None)
            .await
    }

    pub(crate) async fn send(
        &self,
        fixture: &MembersFixture,
        method: Method,
        path: &str,
        body: Value,
    ) -> Answer {
        self.owner
            .send_request(&fixture.server, method, path, Some(&body))
            .await
    }

    pub(crate) async fn delete(&self, fixture: &MembersFixture, path: &str) -> Answer {
        self.owner
            .send_request(&fixture.server, Method::DELETE, path, None)
            .await
    }

    /// Makes a workspace; returns its id.
    pub(crate) async fn workspace(&self, fixture: &MembersFixture, slug: &str) -> String {
        let body = json!({ "display_name": slug, "slug": slug });
        let made = self
            .send(fixture, Method::POST, WORKSPACES_PATH, body)
            .await;
        text(&made.expect(201).json()["id"])
    }

    /// Gives a user a role.
    pub(crate) async fn add_member(
        &self,
        fixture: &MembersFixture,
        workspace: &str,
        user: &Self,
        role: &str,
    ) {
        let path = format!("{WORKSPACES_PATH}/{workspace}/members");
        let body = json!({ "user_id": user.id, "role": role });
        self.send(fixture, Method::POST, &path, body)
            .await
            .expect(201);
    }
}
