//! Files that visitors bring: uploads and downloads by actions, and what becomes of the files.

mod arrivals;
pub(crate) mod crashes;
mod downloads;
mod ends;
mod model;
mod owners;
mod quotas;
mod syncs;
mod visitors;

use http::Method;
use serde_json::{Value, json};
use svc::content::Digest;
use svc_tests::{Answer, ReadAnswer, TestServer};

use crate::owner::text;
use crate::project_fixture::ProjectFixture;

/// A table whose rows go with their files.
pub(crate) const PHOTOS: &str = "CREATE TABLE photos (id INTEGER PRIMARY KEY, file TEXT NOT NULL REFERENCES svc_files(id) ON DELETE CASCADE, caption TEXT UNIQUE);";

/// A picture of one pixel.
pub(crate) const PNG: &[u8] = b"\x89PNG\x0d\x0a\x1a\x0a\x00\x00\x00\x0dIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\x0dIDATx\xdacd\xf8\xcfP\x0f\x00\x03\x86\x01\x80Z4}k\x00\x00\x00\x00IEND\xaeB`\x82";

/// Returns the actions that a page with photos has.
pub(crate) fn actions() -> Value {
    let add = "INSERT INTO photos (file, caption) VALUES (:svc_file, :caption) RETURNING id";
    let any = json!({ "anonymous": true });
    json!([
        { "name": "add", "sql": add, "files": any, "defaults": { "caption": null } },
        {
            "name": "picture", "sql": add, "defaults": { "caption": null },
            "files": { "anonymous": true, "types": ["image/*"], "sizes": [64], "max_bytes": 1000 },
        },
        { "name": "full", "sql": "INSERT INTO photos (file) SELECT :svc_file WHERE 0", "files": any },
        { "name": "see", "sql": "SELECT 1 FROM photos WHERE file = :svc_file" },
        { "name": "embedded", "sql": "SELECT 1 FROM photos WHERE file = :svc_file", "files": { "embed": true } },
        { "name": "asked", "sql": "SELECT 1 FROM photos WHERE file = :svc_file AND caption = :caption" },
        { "name": "latest", "sql": "SELECT file, caption FROM photos ORDER BY id DESC" },
        { "name": "remove", "sql": "DELETE FROM svc_files WHERE id = :file" },
    ])
}

/// A page `room` whose visitors upload files.
pub(crate) struct UploadFixture {
    pub(crate) project: ProjectFixture,
}

impl UploadFixture {
    pub(crate) async fn new() -> Self {
        Self::on_server(TestServer::start().await).await
    }

    pub(crate) async fn on_server(server: TestServer) -> Self {
        let project = ProjectFixture::on_server(server, PHOTOS).await;
        project.put(&actions()).await.expect(200);
        Self { project }
    }

    /// Uploads a file to `room`, by an action and the query behind it.
    pub(crate) async fn upload(&self, action: &str, file: &[u8]) -> Answer {
        self.upload_with(action, file, &[]).await
    }

    /// Uploads a file with headers.
    pub(crate) async fn upload_with(
        &self,
        action: &str,
        file: &[u8],
        headers: &[(&str, &str)],
    ) -> Answer {
        let path = format!("/room/api/files/{action}");
        let mut request = self.project.server.request(Method::POST, &path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        // Clients leave out the length of an empty body, which is required.
        let request = request.header("content-length", file.len());
        request.body(file.to_vec()).answer().await
    }

    /// Uploads a file that is taken; returns its document.
    pub(crate) async fn uploaded(&self, action: &str, file: &[u8]) -> Value {
        let answer = self.upload(action, file).await.expect(201);
        answer.json()["file"].clone()
    }

    /// Uploads a text that is taken; returns its id.
    pub(crate) async fn text_file(&self, content: &str) -> String {
        text(&self.uploaded("add", content.as_bytes()).await["id"])
    }

    /// Downloads a file, by an action, with the query behind its id.
    pub(crate) async fn download(&self, action: &str, file: &str) -> Answer {
        let path = format!("/room/api/files/{action}/{file}");
        self.project.server.get(&path).answer().await
    }

    /// Sends a request of the owner's below the project's files.
    pub(crate) async fn owned(&self, method: Method, below: &str) -> Answer {
        let project = &self.project;
        let path = format!("/api/v1/projects/{}/files{below}", project.project);
        let request = project.owner.request(&project.server, method, &path);
        request.answer().await
    }

    /// Has the server look at what has ended, and collect what nothing names; returns the number of objects of files.
    pub(crate) async fn settle(&self) -> usize {
        let app = self.project.server.server().app();
        app.visitor_files.follow_changes().await.unwrap();
        app.visitor_files.expire().await.unwrap();
        self.project.server.advance(3600);
        app.files.sweep().await.unwrap();
        self.project.server.advance(3600);
        app.collector.collect().await.unwrap();
        app.content.list().await.unwrap().0.len()
    }

    /// Returns the bytes of the project's files, as they are counted.
    pub(crate) async fn used_bytes(&self) -> u64 {
        let list = self.owned(Method::GET, "").await.expect(200).json();
        list["used_bytes"].as_u64().unwrap()
    }

    /// Returns what `svc check` finds.
    pub(crate) async fn check(&self) -> Value {
        let server = &self.project.server;
        server
            .command(&crate::svc(), &["check", "--json"])
            .await
            .json()
    }
}

/// Returns the SHA-256 of bytes, in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Digest::of(bytes).to_string()
}
