//! Downloads: who may have a file, what an answer says, ranges, and that nothing runs.

use serde_json::json;
use svc_tests::{Answer, ReadAnswer};

use super::{PNG, UploadFixture, sha256};
use crate::owner::text;

/// Policy of every answer with a file.
const POLICY: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; media-src 'self'";

#[track_caller]
fn assert_inert(answer: &Answer) {
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", POLICY),
        ("x-robots-tag", "noindex"),
    ] {
        assert_eq!(answer.header(name), Some(value));
    }
}

#[tokio::test]
async fn a_file_is_what_its_bytes_say_and_runs_as_nothing() {
    let fixture = UploadFixture::new().await;
    for (bytes, kind, shown) in [
        (
            &b"<script>alert(1)</script>"[..],
            "text/plain; charset=utf-8",
            "inline",
        ),
        (PNG, "image/png", "inline"),
        (b"OggS\0\x02", "audio/ogg", "inline"),
        (b"%PDF-1.7\n\xff", "application/pdf", "attachment"),
        (b"MZ\x90\0", "application/octet-stream", "attachment"),
    ] {
        let path = "add?name=%22;%20a%0d.html";
        let made = fixture.upload(path, bytes).await.expect(201).json();
        let id = text(&made["file"]["id"]);
        let answer = fixture.download("see", &id).await.expect(200);
        assert_eq!(answer.body, bytes);
        assert_inert(&answer);
        assert_eq!(answer.header("content-type"), Some(kind));
        let said = answer.header("content-disposition").unwrap();
        assert!(said.starts_with(shown), "{kind}: {said}");
        assert_eq!(
            answer.header("cache-control"),
            Some("public, max-age=0, must-revalidate")
        );
        assert_eq!(
            answer.header("cross-origin-resource-policy"),
            Some("same-origin")
        );
        let saved = fixture.download("see", &format!("{id}?download=1")).await;
        let said = saved.expect(200);
        let said = said.header("content-disposition").unwrap();
        assert!(said.starts_with("attachment"), "{kind}: {said}");
        let embedded = fixture.download("embedded", &id).await.expect(200);
        assert_eq!(
            embedded.header("cross-origin-resource-policy"),
            Some("cross-origin")
        );
        let path = format!("/room/api/files/see/{id}");
        let head = fixture.project.server.head(&path).answer().await;
        assert_eq!(head.status, 200);
        assert_inert(&head);
        assert!(head.body.is_empty());
    }
}

#[tokio::test]
async fn parts_and_tags_are_those_of_the_file() {
    let fixture = UploadFixture::new().await;
    let bytes: Vec<u8> = (0..3_000_000_u32)
        .map(|at| at.to_le_bytes()[1] | 0x80)
        .collect();
    let id = text(&fixture.uploaded("add", &bytes).await["id"]);
    let path = format!("/room/api/files/see/{id}");
    let server = &fixture.project.server;
    let whole = server.get(&path).answer().await.expect(200);
    assert!(whole.body == bytes);
    let tag = whole.header("etag").unwrap().to_owned();
    let known = server
        .get(&path)
        .header("if-none-match", &tag)
        .answer()
        .await;
    assert_eq!((known.status, known.body.len()), (304, 0));
    for (range, from, to) in [
        ("bytes=0-9", 0, 10),
        ("bytes=1048570-1048590", 1_048_570, 1_048_591),
        ("bytes=-5", 2_999_995, 3_000_000),
        ("bytes=2999999-", 2_999_999, 3_000_000),
    ] {
        let part = server.get(&path).header("range", range).answer().await;
        let part = part.expect(206);
        assert!(part.body == bytes[from..to], "{range}");
        let said = format!("bytes {from}-{}/3000000", to - 1);
        assert_eq!(part.header("content-range"), Some(&*said));
    }
    let empty = fixture.text_file("").await;
    let empty = format!("/room/api/files/see/{empty}");
    for range in ["bytes=0-0", "bytes=0-", "bytes=-1"] {
        let part = server.get(&empty).header("range", range).answer().await;
        part.problem(416, "range_not_satisfiable");
        assert_eq!(part.header("content-range"), Some("bytes */0"), "{range}");
        assert_eq!(
            part.header("cross-origin-resource-policy"),
            Some("same-origin")
        );
        assert!(part.header("ratelimit").is_some());
    }
    let beyond = server.get(&path).header("range", "bytes=3000000-");
    let beyond = beyond.answer().await;
    beyond.problem(416, "range_not_satisfiable");
    let stored = fixture.uploaded("add", &bytes).await;
    assert_eq!(stored["sha256"], sha256(&bytes));
}

#[tokio::test]
async fn a_file_that_no_row_allows_is_not_there() {
    let fixture = UploadFixture::new().await;
    let id = fixture.text_file("x").await;
    fixture.download("see", &id).await.expect(200);
    for (action, file) in [
        ("see", "file_00000000000000000000000000"),
        ("see", "file_%2e%2e"),
        ("see", "x"),
        ("none", &*id),
        ("asked", &*id),
        ("add", &*id),
        ("latest", &*id),
    ] {
        let answer = fixture.download(action, file).await;
        answer.problem(404, "not_found");
    }
    for query in ["?size=63", "?size=x", "?download=2", "?more=1"] {
        let answer = fixture.download("see", &format!("{id}{query}")).await;
        assert!(
            matches!(answer.status, 400 | 404),
            "{query}: {}",
            answer.text()
        );
    }
    // A missing action or file is told before a wrong query.
    for (action, file) in [("none", &*id), ("see", "file_00000000000000000000000000")] {
        let answer = fixture.download(action, &format!("{file}?more=1")).await;
        answer.problem(404, "not_found");
    }
    // The authority is asked each time.
    fixture.project.rows("SELECT 1 AS one").await;
    let unlink = json!([{ "name": "unlink", "sql": "DELETE FROM photos WHERE file = :file" }]);
    fixture.project.put(&unlink).await.expect(200);
    fixture
        .project
        .call_ok("unlink", &json!({ "file": id }))
        .await;
    fixture.download("see", &id).await.problem(404, "not_found");
    // Another project's action does not give it, either.
    let owner = &fixture.project.owner;
    let server = &fixture.project.server;
    let other = owner.project(server, "Other").await;
    let ddl = json!({ "ddl": "CREATE TABLE any (file TEXT)" });
    owner
        .post(server, &format!("/{other}/backend"), &ddl)
        .await
        .expect(201);
    owner.frontend(server, &other, "hall").await;
    let actions = json!({ "actions": [{ "name": "see", "sql": "SELECT :svc_file AS f" }] });
    let path = format!("/api/v1/projects/{other}/backend/actions");
    owner
        .send_request(server, http::Method::PUT, &path, Some(&actions))
        .await
        .expect(200);
    let path = format!("/hall/api/files/see/{id}");
    server.get(&path).answer().await.problem(404, "not_found");
}
