//! The owner's console: a host of its own, what it serves and what not, and the ways in.

mod description;
mod documents;
mod hosts;
mod issuer;
mod links;
mod secrecy;

use http::{Method, header};
use reqwest::RequestBuilder;
use serde_json::json;
use svc::workspaces::Role;
use svc_tests::{Answer, Builder, ReadAnswer, TestServer};

/// Where a code is exchanged for a key.
const SESSION_PATH: &str = "/_svc/console/session";

/// A server, and requests to the host of its console.
#[derive(Debug)]
struct ConsoleFixture {
    server: TestServer,
    /// The host, as requests name it.
    host: String,
}

impl ConsoleFixture {
    async fn start() -> Self {
        Self::with(TestServer::builder()).await
    }

    async fn with(builder: Builder) -> Self {
        Self::of(builder.start().await)
    }

    fn of(server: TestServer) -> Self {
        let url = server.server().app().config.console_url.clone().unwrap();
        let (_, host) = url.split_once("://").unwrap();
        let host = host.to_owned();
        Self { server, host }
    }

    /// The console's origin.
    fn origin(&self) -> String {
        format!("http://{}", self.host)
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.server.request(method, path);
        request.header(header::HOST, &self.host)
    }

    async fn get(&self, path: &str) -> Answer {
        self.request(Method::GET, path).answer().await
    }

    /// Sends a request whose path no client library has normalized.
    async fn get_raw(&self, path: &str) -> Answer {
        self.server.get_raw(&self.host, path).await
    }

    /// Makes the code of a link, valid for `seconds` or until the server ends.
    async fn code(&self, workspace: &str, role: Role, seconds: Option<i64>) -> String {
        let workspaces = &self.server.server().app().workspaces;
        let made = workspaces.create_console_code(workspace, role, seconds);
        made.await.unwrap().code
    }

    async fn exchange(&self, code: &str) -> Answer {
        let request = self.request(Method::POST, SESSION_PATH);
        request.json(&json!({ "code": code })).answer().await
    }
}
