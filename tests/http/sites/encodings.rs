//! Encodings of a site's texts: made once, behind the publication, and kept as long as the file.

use http::Method;
use serde_json::json;
use svc_tests::{Answer, ReadAnswer, TestServer};

use super::{SiteFixture, collected_objects, put, texts};
use crate::svc;

/// Asks for a file in an encoding.
async fn ask(fixture: &SiteFixture, path: &str, encodings: &str) -> Answer {
    let port = fixture.server.address().port();
    let request = format!(
        "GET /site/{path} HTTP/1.1\r\nHost: house-acme.localhost:{port}\r\nConnection: close\r\nAccept-Encoding: {encodings}\r\n\r\n"
    );
    fixture.server.raw(request).await.expect(200)
}

/// Returns the encoding of a file.
async fn encoding(fixture: &SiteFixture, path: &str, encodings: &str) -> Option<String> {
    let answer = ask(fixture, path, encodings).await;
    answer.header("content-encoding").map(str::to_owned)
}

async fn make_encodings(fixture: &SiteFixture) {
    let app = fixture.server.server().app();
    app.files.make_encodings().await.unwrap();
    // Files in memory are looked at again after a while.
    fixture.server.advance(10);
}

#[tokio::test]
async fn texts_are_encoded_behind_their_publication() {
    let style = "a { color: red }\n".repeat(200);
    let long = "run(1);\n".repeat(200_000);
    let fixture = SiteFixture::empty(TestServer::start().await).await;
    let digest = fixture.put(long.as_bytes()).await;
    let site = json!({ "type": "site", "requested_slug": "site", "files": {
        "a.css": { "text": style }, "copy.bin": { "text": style }, "small.css": { "text": "a {}" },
        "long.js": { "sha256": digest },
    } });
    fixture.create(&site).await.expect(201);
    assert_eq!(ask(&fixture, "a.css", "identity").await.text(), style);
    let quick = ask(&fixture, "a.css", "gzip").await;
    make_encodings(&fixture).await;
    // One strong tag is one text of bytes, whenever they were made.
    let stored = ask(&fixture, "a.css", "gzip").await;
    assert_eq!(quick.header("etag"), stored.header("etag"));
    assert_eq!(quick.body, stored.body);
    for (path, accepted, expected) in [
        ("a.css", "br, zstd, gzip", Some("br")),
        ("a.css", "zstd, gzip", Some("zstd")),
        ("a.css", "gzip", Some("gzip")),
        ("a.css", "identity", None),
        ("long.js", "gzip, br", Some("br")),
        ("long.js", "gzip", Some("gzip")),
        ("long.js", "identity", None),
        ("copy.bin", "br", None),
        ("small.css", "br", None),
    ] {
        let found = encoding(&fixture, path, accepted).await;
        assert_eq!(found.as_deref(), expected, "{path} {accepted}");
    }
    assert_eq!(ask(&fixture, "long.js", "identity").await.text(), long);
    assert!(ask(&fixture, "long.js", "br").await.body.len() < 10_000);
    let check = fixture
        .server
        .command(&svc(), &["check", "--json"])
        .await
        .json();
    assert_eq!(
        (&check["errors"], &check["leftovers"]),
        (&json!([]), &json!([]))
    );
}

#[tokio::test]
async fn encodings_live_as_long_as_their_file() {
    let fixture = SiteFixture::empty(TestServer::start().await).await;
    let before = collected_objects(&fixture.server).await;
    let style = "a { color: red }\n".repeat(200);
    let files = texts(&[("a.css", &*style)]);
    let site = json!({ "type": "site", "files": files, "requested_slug": "site" });
    fixture.create(&site).await.expect(201);
    make_encodings(&fixture).await;
    // Both forms of the manifest, the file, and its encodings.
    assert_eq!(collected_objects(&fixture.server).await, before + 4);
    // Another project has its own right to the same.
    let other = fixture.owner.project(&fixture.server, "Other").await;
    let body = json!({ "type": "site", "files": files, "requested_slug": "other" });
    let path = format!("/{other}/frontends");
    fixture
        .owner
        .post(&fixture.server, &path, &body)
        .await
        .expect(201);
    make_encodings(&fixture).await;
    fixture
        .owner
        .delete(&fixture.server, &format!("/{other}"))
        .await
        .expect(204);
    collected_objects(&fixture.server).await;
    assert_eq!(
        encoding(&fixture, "a.css", "br").await.as_deref(),
        Some("br")
    );
    fixture.send(Method::DELETE, "", None).await.expect(204);
    assert_eq!(collected_objects(&fixture.server).await, before);
}

/// Changes rows.
async fn change(fixture: &SiteFixture, sql: String) {
    let control = &fixture.server.server().app().control;
    let changed = control.write(move |tx| {
        tx.execute_batch(&sql)?;
        Ok::<_, svc::control::Error>(())
    });
    changed.await.unwrap();
}

#[tokio::test]
async fn an_encoding_does_not_tell_what_another_project_has() {
    let fixture = SiteFixture::empty(TestServer::start().await).await;
    let style = "a { color: red }\n".repeat(200);
    let other = fixture.owner.project(&fixture.server, "Other").await;
    let body = json!({ "type": "site", "files": texts(&[("a.css", &*style)]) });
    let path = format!("/{other}/frontends");
    let made = fixture.owner.post(&fixture.server, &path, &body).await;
    made.expect(201);
    make_encodings(&fixture).await;
    let mut site = body.clone();
    site["requested_slug"] = "site".into();
    fixture.create(&site).await.expect(201);
    // As long as its own are not made, however long that takes.
    let project = &fixture.project;
    change(&fixture, format!("UPDATE blobs SET encoded_digest = NULL, encoded_bytes = 0, encode_since = NULL WHERE owner_id = '{project}'")).await;
    assert_eq!(encoding(&fixture, "a.css", "br").await, None);
    change(
        &fixture,
        format!("UPDATE blobs SET encode_since = 1 WHERE owner_id = '{project}'"),
    )
    .await;
    make_encodings(&fixture).await;
    let found = encoding(&fixture, "a.css", "br").await;
    assert_eq!(found.as_deref(), Some("br"));
}

#[tokio::test]
async fn a_claimed_text_has_encodings_though_its_project_had_it_before() {
    let fixture = SiteFixture::empty(TestServer::start().await).await;
    let before = collected_objects(&fixture.server).await;
    let style = "a { color: red }\n".repeat(200);
    put(
        &fixture.owner,
        &fixture.server,
        &fixture.project,
        style.as_bytes(),
    )
    .await;
    let body = json!({ "type": "site", "files": texts(&[("a.css", &*style)]), "name": "site" });
    let shared = fixture.server.json("/api/v1/deploy", &body).answer().await;
    let shared = shared.expect(201).json();
    make_encodings(&fixture).await;
    let claim = json!({ "id": shared["id"], "delete_token": shared["delete_token"] });
    let path = format!("/{}/frontends/claim", fixture.project);
    let claimed = fixture.owner.post(&fixture.server, &path, &claim).await;
    claimed.expect(201);
    make_encodings(&fixture).await;
    let found = encoding(&fixture, "a.css", "br").await;
    assert_eq!(found.as_deref(), Some("br"));
    let check = fixture
        .server
        .command(&svc(), &["check", "--json"])
        .await
        .json();
    assert_eq!(check["errors"], json!([]));
    fixture.send(Method::DELETE, "", None).await.expect(204);
    fixture.server.advance(100_000);
    assert_eq!(collected_objects(&fixture.server).await, before);
}
