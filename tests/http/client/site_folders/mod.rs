//! Folders of the client's commands: published as sites, pushed, watched, applied, pulled and shared.

mod applied;
mod hostile;
mod pushed;
mod shared;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::routing::any;
use serde_json::Value;
use svc_tests::{Output, run_command};

use super::ClientFixture;
use super::concurrent_changes::forward;
use super::failures::serve_router;

/// A request that a command has sent: its method and path, and the bytes of its body.
#[derive(Clone, Debug)]
struct SentRequest {
    line: String,
    bytes: usize,
}

/// A user with a project, and a server that lists what it is sent.
struct SiteFixture {
    client: ClientFixture,
    sent: Arc<Mutex<Vec<SentRequest>>>,
    proxy: SocketAddr,
}

impl SiteFixture {
    /// Starts with a project and no page.
    async fn start() -> Self {
        let client = ClientFixture::without_owner_rate_limit().await;
        client.run_for_stdout(&["project", "create", "Shop"]).await;
        let sent = Arc::new(Mutex::new(Vec::new()));
        let proxy = serve_with_sizes(client.url(), Arc::clone(&sent)).await;
        Self {
            client,
            sent,
            proxy,
        }
    }

    /// Starts with a folder that is published at `/dist`.
    async fn with_site(files: &[(&str, &str)]) -> Self {
        let fixture = Self::start().await;
        fixture.write_all(files);
        let words = ["publish", "dist", "--project", "Shop"];
        fixture.client.run_for_stdout(&words).await;
        fixture
    }

    fn write_all(&self, files: &[(&str, &str)]) {
        for (path, text) in files {
            self.client.write(&format!("dist/{path}"), text);
        }
    }

    /// Runs a command and lists what it sends.
    async fn record(&self, arguments: &[&str]) -> (Output, Vec<SentRequest>) {
        self.sent.lock().unwrap().clear();
        let mut command = self.client.command(arguments);
        command.env("SVC_SERVER", format!("http://{}", self.proxy));
        let output = run_command(command).await;
        let sent = self.sent.lock().unwrap().clone();
        (output, sent)
    }

    /// Paths of the live files of a site.
    async fn paths(&self, slug: &str) -> Vec<String> {
        let words = ["frontend", "content", slug, "--project", "Shop"];
        paths_of(&self.client.json(&words).await)
    }

    /// A live file as visitors get it.
    async fn read(&self, path: &str) -> String {
        let answer = self.client.server.get(path).await.expect(200);
        answer.text().to_owned()
    }

    /// Publishes the folder as a colleague does, from another folder.
    async fn push_from_elsewhere(&self) {
        let elsewhere = self.client.path_of("elsewhere");
        std::fs::create_dir_all(&elsewhere).unwrap();
        let words = ["push", "../dist", "--project", "Shop", "--force"];
        let mut command = self.client.command(&words);
        command.current_dir(elsewhere);
        let output = run_command(command).await;
        assert!(output.success, "{output:?}");
    }
}

/// Paths of a document with files.
fn paths_of(content: &Value) -> Vec<String> {
    let files = content["files"].as_object().unwrap();
    files.keys().cloned().collect()
}

/// Starts a proxy that lists the requests that it passes on, with their sizes.
async fn serve_with_sizes(server: String, sent: Arc<Mutex<Vec<SentRequest>>>) -> SocketAddr {
    let client = svc_tests::http_client().no_proxy().build().unwrap();
    let pass = move |request: Request| {
        let (client, server, sent) = (client.clone(), server.clone(), Arc::clone(&sent));
        async move {
            let (parts, body) = request.into_parts();
            let body = to_bytes(body, 8 << 20).await.unwrap();
            sent.lock().unwrap().push(SentRequest {
                line: format!("{} {}", parts.method, parts.uri.path()),
                bytes: body.len(),
            });
            let request = Request::from_parts(parts, Body::from(body));
            forward(&client, &server, request).await
        }
    };
    serve_router(Router::new().fallback(any(pass))).await
}

/// Requests whose method and path have this beginning and end.
fn matching<'s>(sent: &'s [SentRequest], method: &str, end: &str) -> Vec<&'s SentRequest> {
    let is_one = |one: &&SentRequest| one.line.starts_with(method) && one.line.ends_with(end);
    sent.iter().filter(is_one).collect()
}
