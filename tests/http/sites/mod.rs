//! Sites: folders of files as frontends of a project.

mod blobs;

use http::Method;
use svc::content::Digest;
use svc_tests::{Answer, ReadAnswer, TestServer};

use crate::owner::Owner;

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
    let request = owner.request(server, Method::PUT, &path);
    request.body(bytes).answer().await
}

/// Sends a file ahead; returns its SHA-256.
async fn put(owner: &Owner, server: &TestServer, project: &str, bytes: &[u8]) -> String {
    let digest = sha256(bytes);
    let sent = put_as(owner, server, project, (&digest, bytes.to_vec())).await;
    sent.expect(204);
    digest
}

/// Returns the number of objects and of rows that name them, once the collector has been.
async fn collected_objects(server: &TestServer) -> usize {
    server.advance(3600);
    let app = server.server().app();
    app.files.sweep().await.unwrap();
    server.advance(3600);
    app.collector.collect().await.unwrap();
    app.content.list().await.unwrap().0.len()
}
