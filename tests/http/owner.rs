//! An owner: a workspace with its credential, and what it does.

use http::Method;
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use svc::workspaces::Plan;
use svc_tests::{Answer, ReadAnswer, TestServer};

use crate::svc;

/// A workspace's credential, and requests with it.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    pub(crate) credential: String,
}

impl Owner {
    /// A new workspace on the pro plan.
    pub(crate) async fn new(server: &TestServer, name: &str) -> Self {
        Self::with_plan(server, name, Plan::Pro).await
    }

    /// A new workspace on a plan.
    pub(crate) async fn with_plan(server: &TestServer, name: &str, plan: Plan) -> Self {
        let workspaces = &server.server().app().workspaces;
        let credential = workspaces.create(name, plan).await.unwrap().credential;
        Self { credential }
    }

    /// A caller with any credential, such as a user's token.
    pub(crate) fn with_credential(credential: &str) -> Self {
        Self {
            credential: credential.to_owned(),
        }
    }

    /// A request with a JSON body, or none, to any path.
    pub(crate) async fn send_request(
        &self,
        server: &TestServer,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Answer {
        let request = self.request(server, method, path);
        match body {
            Some(body) => request.json(body).answer().await,
            None => request.answer().await,
        }
    }

    /// A request with the credential.
    pub(crate) fn request(
        &self,
        server: &TestServer,
        method: Method,
        path: &str,
    ) -> RequestBuilder {
        server.request(method, path).bearer_auth(&self.credential)
    }

    /// A GET below `/api/v1/projects`.
    pub(crate) async fn get(&self, server: &TestServer, path: &str) -> Answer {
        self.request(server, Method::GET, &format!("/api/v1/projects{path}"))
            .answer()
            .await
    }

    /// A DELETE below `/api/v1/projects`.
    pub(crate) async fn delete(&self, server: &TestServer, path: &str) -> Answer {
        self.request(server, Method::DELETE, &format!("/api/v1/projects{path}"))
            .answer()
            .await
    }

    /// A request with a JSON body below `/api/v1/projects`.
    pub(crate) async fn send(
        &self,
        server: &TestServer,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Answer {
        let path = format!("/api/v1/projects{path}");
        self.request(server, method, &path)
            .json(body)
            .answer()
            .await
    }

    /// A POST below `/api/v1/projects`.
    pub(crate) async fn post(&self, server: &TestServer, path: &str, body: &Value) -> Answer {
        self.send(server, Method::POST, path, body).await
    }

    /// Makes a project; returns its id.
    pub(crate) async fn project(&self, server: &TestServer, name: &str) -> String {
        let made = self
            .post(server, "", &json!({ "name": name }))
            .await
            .expect(201);
        text(&made.json()["id"])
    }

    /// Publishes Markdown as a frontend; returns its document.
    pub(crate) async fn frontend(&self, server: &TestServer, project: &str, slug: &str) -> Value {
        let body = json!({ "type": "markdown", "content": "# One", "requested_slug": slug });
        self.post(server, &format!("/{project}/frontends"), &body)
            .await
            .expect(201)
            .json()
    }
}

/// Returns a JSON string.
#[track_caller]
pub(crate) fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("no text: {value}"))
        .to_owned()
}

/// Makes a key of any role, as an operator.
pub(crate) async fn operator_key(server: &TestServer, namespace: &str, role: &str) -> Owner {
    let create = ["key", "create", namespace, "--role", role, "--json"];
    let made = server.command(&svc(), &create).await.json();
    Owner::with_credential(&text(&made["credential"]))
}
