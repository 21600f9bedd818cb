//! Sites: folders of files as frontends of a project.

mod blobs;
pub(crate) mod crashes;
mod doors;
mod drafts;
mod encodings;
mod ends;
mod hostile_paths;
mod immutable;
mod kept;
mod model;
mod mounts;
mod others;
mod preview_origins;
mod publications;
mod quotas;
mod refused_rules;
mod rules;
mod runtime_by_address;
mod serving;
mod shared_files;
mod shares;
mod single_files;
mod skew;
mod takedown;

use http::Method;
use serde_json::{Value, json};
use svc::content::Digest;
use svc_tests::{Answer, ReadAnswer, TestServer};

use crate::owner::{Owner, text};

/// Returns the SHA-256 of bytes, in hexadecimal.
fn sha256(bytes: &[u8]) -> String {
    Digest::of(bytes).to_string()
}

/// Sends a file under a SHA-256.
async fn put_as(
    owner: &Owner,
    server: &TestServer,
    project: &str,
    (digest, bytes): (&str, Vec<u8>),
) -> Answer {
    let path = format!("/api/v1/projects/{project}/blobs/{digest}");
    // Clients leave out the length of an empty body, which is required.
    let request = owner.request(server, Method::PUT, &path);
    let request = request.header("content-length", bytes.len());
    request.body(bytes).answer().await
}

/// Sends a file ahead; returns its SHA-256.
async fn put(owner: &Owner, server: &TestServer, project: &str, bytes: &[u8]) -> String {
    let digest = sha256(bytes);
    let sent = put_as(owner, server, project, (&digest, bytes.to_vec())).await;
    sent.expect(204);
    digest
}

/// Returns the number of objects, without the scripts of the platform, once the collector has been.
async fn collected_objects(server: &TestServer) -> usize {
    server.advance(3600);
    let app = server.server().app();
    app.files.sweep().await.unwrap();
    server.advance(3600);
    app.collector.collect().await.unwrap();
    let scripts = app
        .control
        .read(|c| c.query_row("SELECT count(*) FROM runtimes", [], |row| row.get(0)));
    let scripts: u32 = scripts.await.unwrap();
    app.content.list().await.unwrap().0.len() - scripts as usize
}

/// A project with a site at `/site`, and its owner.
struct SiteFixture {
    server: TestServer,
    owner: Owner,
    project: String,
}

impl SiteFixture {
    /// Starts a server with a project, in which nothing is published yet.
    async fn empty(server: TestServer) -> Self {
        let owner = Owner::new(&server, "acme").await;
        let project = owner.project(&server, "House").await;
        Self {
            server,
            owner,
            project,
        }
    }

    /// Starts a server with a site of these texts.
    async fn with_files(files: &[(&str, &str)]) -> Self {
        let fixture = Self::empty(TestServer::start().await).await;
        let site = json!({ "type": "site", "files": texts(files), "requested_slug": "site" });
        fixture.create(&site).await.expect(201);
        fixture
    }

    /// Publishes a frontend.
    async fn create(&self, body: &Value) -> Answer {
        let path = format!("/{}/frontends", self.project);
        self.owner.post(&self.server, &path, body).await
    }

    /// Sends a request below the site's management address.
    async fn send(&self, method: Method, below: &str, body: Option<&Value>) -> Answer {
        let path = format!("/api/v1/projects/{}/frontends/site{below}", self.project);
        self.owner
            .send_request(&self.server, method, &path, body)
            .await
    }

    /// Sends a file ahead; returns its SHA-256.
    async fn put(&self, bytes: &[u8]) -> String {
        put(&self.owner, &self.server, &self.project, bytes).await
    }

    /// Returns the id of the live revision.
    async fn active(&self) -> String {
        let revisions = self.send(Method::GET, "/revisions", None).await;
        text(&revisions.expect(200).json()["active_revision_id"])
    }

    /// Makes a draft; returns its document.
    async fn draft(&self, body: &Value) -> Value {
        let mut body = body.clone();
        body["base_revision_id"] = self.active().await.into();
        let made = self.send(Method::POST, "/revisions", Some(&body)).await;
        made.expect(200).json()
    }

    /// Promotes a revision or rolls back to it.
    async fn release(&self, kind: &str, revision: &Value) -> Answer {
        let body = json!({
            "revision_id": revision, "expected_active_revision_id": self.active().await,
        });
        self.send(Method::POST, &format!("/{kind}"), Some(&body))
            .await
    }

    /// Reads a path on the project's origin.
    async fn get(&self, path: &str) -> Answer {
        let host = format!("house-acme.localhost:{}", self.server.address().port());
        self.server.get_raw(&host, path).await
    }

    /// Returns the text that a path answers with 200.
    async fn read(&self, path: &str) -> String {
        self.get(path).await.expect(200).text().to_owned()
    }
}

/// Returns files of texts, as requests have them.
fn texts(files: &[(&str, &str)]) -> Value {
    let file = |(path, text): &(&str, &str)| ((*path).to_owned(), json!({ "text": text }));
    Value::Object(files.iter().map(file).collect())
}

/// Publishes files in place of those of the site.
async fn publish(fixture: &SiteFixture, files: &[(&str, &str)]) -> Answer {
    let body = json!({ "files": texts(files) });
    fixture.send(Method::PUT, "", Some(&body)).await
}
