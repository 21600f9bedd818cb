//! Uploads: what is taken, what is refused and why, and that a refusal leaves nothing.

use http::Method;
use serde_json::{Value, json};
use svc_tests::{ReadAnswer, TestServer};

use super::{PNG, UploadFixture, sha256};
use crate::owner::text;

#[tokio::test]
async fn an_upload_is_a_row_and_the_answer_of_its_action() {
    let fixture = UploadFixture::new().await;
    let query = "add?name=..%2Fnotes%5Ca%01b.html&params=%7B%22caption%22:%22Hi%22%7D";
    let html = b"<!doctype html><script>alert(1)</script>";
    let answer = fixture
        .upload_with(query, html, &[("content-type", "text/html")])
        .await
        .expect(201);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let answer = answer.json();
    let file = &answer["file"];
    let id = text(&file["id"]);
    assert!(id.starts_with("file_") && id.len() == 31, "{id}");
    assert_eq!(
        *file,
        json!({
            "id": id, "name": "ab.html", "type": "text/plain", "size": html.len(), "sha256": sha256(html),
            "sizes": [], "created_at": "2026-11-20T12:00:00.000Z",
        })
    );
    assert_eq!(answer["result"]["rows"], json!([{ "id": 1 }]));
    assert_eq!(answer["result"]["rows_affected"], 1);
    let rows = fixture.project.rows("SELECT * FROM svc_files").await;
    assert_eq!(
        rows,
        json!([{
            "id": id, "name": "ab.html", "type": "text/plain", "size": html.len(), "sha256": sha256(html),
            "width": null, "height": null, "user_id": null, "created_at": "2026-11-20T12:00:00.000Z",
        }])
    );
    let rows = fixture
        .project
        .rows("SELECT file, caption FROM photos")
        .await;
    assert_eq!(rows, json!([{ "file": id, "caption": "Hi" }]));
}

#[tokio::test]
async fn kinds_are_recognised_whatever_the_client_says() {
    let fixture = UploadFixture::new().await;
    for (bytes, media_type) in [
        (&b"plain"[..], "text/plain"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "text/plain"),
        (b"", "text/plain"),
        (b"a\0b", "application/octet-stream"),
        (b"%PDF-1.7\n\xff", "application/pdf"),
        (b"PK\x03\x04\xff\xff", "application/octet-stream"),
        (b"OggS\0\x02", "audio/ogg"),
        (PNG, "image/png"),
    ] {
        let headers = [("content-type", "image/svg+xml")];
        let answer = fixture
            .upload_with("add", bytes, &headers)
            .await
            .expect(201);
        assert_eq!(answer.json()["file"]["type"], media_type);
    }
    let text = fixture.upload("picture", b"plain").await;
    text.problem(415, "unsupported_media_type");
    assert_eq!(fixture.project.count("svc_files").await, 8);
}

#[tokio::test]
async fn pictures_are_cleaned_and_get_their_sizes() {
    let fixture = UploadFixture::new().await;
    let mut sent = PNG.to_vec();
    sent.extend_from_slice(b"<script>alert(1)</script>");
    let file = fixture.uploaded("picture", &sent).await;
    assert_eq!(file["type"], "image/png");
    assert_eq!((&file["width"], &file["height"]), (&json!(1), &json!(1)));
    assert_eq!(
        (&file["size"], &file["sha256"]),
        (&json!(PNG.len()), &json!(sha256(PNG)))
    );
    assert_eq!(file["sizes"], json!([64]));
    let id = text(&file["id"]);
    let seen = fixture.download("see", &id).await.expect(200);
    assert_eq!(seen.body, PNG);
    let small = fixture.download("see", &format!("{id}?size=64")).await;
    let small = small.expect(200);
    assert!(matches!(
        small.header("content-type"),
        Some("image/jpeg" | "image/png")
    ));
    fixture
        .download("see", &format!("{id}?size=128"))
        .await
        .problem(404, "not_found");
    // Cut short, and damaged.
    for broken in [&PNG[..40], &[&PNG[..50], b"x", &PNG[51..]].concat()] {
        let answer = fixture.upload("picture", broken).await;
        answer.problem(400, "render_failed");
    }
    assert_eq!(fixture.project.count("svc_files").await, 1);
}

#[tokio::test]
async fn what_the_statement_refuses_leaves_nothing() {
    let fixture = UploadFixture::new().await;
    let caption = "add?params=%7B%22caption%22:%22One%22%7D";
    fixture.upload(caption, b"first").await.expect(201);
    let before = fixture.settle().await;
    let used = fixture.used_bytes().await;
    fixture
        .upload("full", b"refused")
        .await
        .problem(403, "upload_refused");
    fixture
        .upload(caption, b"second")
        .await
        .problem(409, "constraint_violation");
    for (action, code) in [
        ("add?params=%7B%22other%22:1%7D", "params_mismatch"),
        ("add?params=%7B%22svc_file%22:1%7D", "reserved_param"),
        ("add?params=7", "invalid_request"),
        ("add?size=7", "invalid_request"),
        ("latest", "invalid_request"),
        ("remove", "invalid_request"),
    ] {
        let answer = fixture.upload(action, b"never").await;
        answer.problem(400, code);
    }
    let missing = fixture.upload("none", b"never").await;
    assert!(matches!(missing.status, 400 | 404), "{}", missing.text());
    assert_eq!(fixture.project.count("svc_files").await, 1);
    assert_eq!(fixture.settle().await, before);
    assert_eq!(fixture.used_bytes().await, used);
    assert_eq!(fixture.check().await["leftovers"], json!([]));
}

#[tokio::test]
async fn a_length_is_required_and_bounded() {
    let fixture = UploadFixture::new().await;
    let address = fixture.project.server.address();
    let head = |more: &str| {
        format!(
            "POST /room/api/files/picture HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{more}\r\n\r\n"
        )
    };
    let chunked = head("Transfer-Encoding: chunked") + "1\r\nx\r\n0\r\n\r\n";
    let answer = fixture.project.server.raw(chunked).await;
    answer.problem(411, "length_required");
    // Refused before a byte of it is read.
    let long = fixture
        .project
        .server
        .raw(head("Content-Length: 1001"))
        .await;
    long.problem(413, "payload_too_large");
}

#[tokio::test]
async fn a_form_does_as_well() {
    let fixture = UploadFixture::new().await;
    let part = |name: &str, content: &str| {
        format!("--b\r\nContent-Disposition: form-data; {name}\r\n\r\n{content}\r\n")
    };
    let send = async |parts: &[String]| {
        let body = parts.concat() + "--b--\r\n";
        let headers = [("content-type", "multipart/form-data; boundary=b")];
        fixture.upload_with("add", body.as_bytes(), &headers).await
    };
    let file = part("name=\"file\"; filename=\"C:\\fakepath\\a.txt\"", "Hello");
    let params = part("name=\"params\"", "{\"caption\":\"form\"}");
    for parts in [
        [params.clone(), file.clone()],
        [file.clone(), params.clone()],
    ] {
        let answer = send(&parts).await.expect(201).json();
        assert_eq!(answer["file"]["name"], "a.txt");
        let id = text(&answer["file"]["id"]);
        assert_eq!(fixture.download("see", &id).await.text(), "Hello");
        let delete = json!({ "file": id });
        fixture.project.call_ok("remove", &delete).await;
    }
    let other = part("name=\"other\"", "x");
    for parts in [
        &[params.clone()][..],
        &[file.clone(), file.clone()],
        &[params.clone(), params, file.clone()],
        &[file, other],
        &[],
    ] {
        send(parts).await.problem(400, "invalid_request");
    }
    assert_eq!(fixture.project.count("svc_files").await, 0);
}

#[tokio::test]
async fn the_same_key_is_the_same_upload() {
    let fixture = UploadFixture::new().await;
    let key = [("idempotency-key", "one")];
    let first = fixture.upload_with("add", b"once", &key).await.expect(201);
    let again = fixture.upload_with("add", b"once", &key).await.expect(201);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(first.json(), again.json());
    let other = fixture.upload_with("add", b"other", &key).await;
    other.problem(409, "idempotency_conflict");
    assert_eq!(fixture.project.count("photos").await, 1);
    // A refusal is tried again.
    let key = [("idempotency-key", "two")];
    for _ in 0..2 {
        let refused = fixture.upload_with("full", b"x", &key).await;
        refused.problem(403, "upload_refused");
    }
    // At once, one of them is it.
    let key = [("idempotency-key", "three")];
    let race = (0..3).map(|_| fixture.upload_with("add", b"raced", &key));
    let answers = futures_util::future::join_all(race).await;
    let taken = answers.iter().filter(|answer| answer.status == 201);
    assert!(taken.count() >= 1);
    for answer in answers.iter().filter(|answer| answer.status != 201) {
        answer.problem(409, "idempotency_conflict");
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
    fixture.upload_with("add", b"raced", &key).await.expect(201);
    assert_eq!(fixture.project.count("photos").await, 2);
    fixture.settle().await;
    assert_eq!(fixture.check().await["errors"], json!([]));
}

#[tokio::test]
async fn an_action_with_a_file_is_called_by_its_routes_alone() {
    let fixture = UploadFixture::new().await;
    let id = fixture.text_file("x").await;
    for (action, params) in [
        ("add", json!({})),
        ("see", json!({})),
        ("see", json!({ "svc_file": id })),
    ] {
        let answer = fixture.project.call_action(action, &params).await;
        answer.problem(400, "invalid_request");
    }
    let definitions = [
        ("INSERT INTO photos (file) VALUES (:svc_file)", Value::Null),
        (
            "INSERT INTO photos (file) VALUES (:svc_file_name)",
            json!({ "anonymous": true }),
        ),
        ("SELECT 1 AS one", json!({ "anonymous": true })),
        ("SELECT :svc_file AS f", json!({ "sizes": [100] })),
        ("SELECT :svc_file AS f", json!({ "types": ["image"] })),
        ("SELECT :svc_file AS f", json!({ "types": [] })),
        ("SELECT :svc_file AS f", json!({ "max_bytes": 0 })),
        ("SELECT :svc_file AS f", json!({ "more": 1 })),
        ("UPDATE svc_files SET name = :name", Value::Null),
        ("INSERT INTO svc_files (id) VALUES (:id)", Value::Null),
    ];
    for (sql, files) in definitions {
        let mut action = json!({ "name": "wrong", "sql": sql });
        if !files.is_null() {
            action["files"] = files;
        }
        let refused = fixture.project.put(&json!([action])).await;
        assert_eq!(refused.status, 400, "{sql}: {}", refused.text());
    }
    // Other rules are another version.
    let action = json!([{ "name": "see", "sql": "SELECT 1 FROM photos WHERE file = :svc_file", "files": { "embed": true } }]);
    let defined = fixture.project.put(&action).await.expect(200).json();
    let see = crate::project_fixture::named(&defined["actions"], "see").clone();
    assert_eq!(
        (&see["version"], &see["files"]),
        (&json!(2), &json!({ "embed": true }))
    );
}

#[tokio::test]
async fn another_origin_uploads_nothing() {
    let fixture = UploadFixture::new().await;
    let headers = [
        ("origin", "https://evil.example"),
        ("sec-fetch-site", "cross-site"),
    ];
    let answer = fixture.upload_with("add", b"x", &headers).await;
    let op = fixture.project.server.request(Method::POST, "/room/api/op");
    let op = op
        .header("origin", headers[0].1)
        .header("sec-fetch-site", "cross-site");
    let op = op.json(&json!({ "action": "latest" })).answer().await;
    // As a call of an action is: visitors without an identity may be anywhere.
    assert_eq!(answer.status == 201, op.status == 200, "{}", answer.text());
}

#[tokio::test]
async fn what_is_sent_again_takes_no_room() {
    let server = TestServer::builder().limits(|limits| limits.storage_bytes_pro = 3_000);
    let fixture = UploadFixture::on_server(server.start().await).await;
    fixture.uploaded("add", &[b'x'; 2_000]).await;
    let key = [("idempotency-key", "last")];
    let last = fixture.upload_with("add", &[b'y'; 1_000], &key).await;
    last.expect(201);
    let again = fixture.upload_with("add", &[b'y'; 1_000], &key).await;
    let again = again.expect(201);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    let more = fixture.upload("add", &[b'z'; 1_000]).await;
    assert_eq!(more.problem(413, "storage_full")["used_bytes"], 3_000);
}

#[tokio::test]
async fn what_is_refused_takes_no_room() {
    let server = TestServer::builder().limits(|limits| limits.storage_bytes_pro = 3_000);
    let fixture = UploadFixture::on_server(server.start().await).await;
    for _ in 0..3 {
        let refused = fixture.upload("full", &[b'x'; 2_000]).await;
        refused.problem(403, "upload_refused");
        assert_eq!(fixture.used_bytes().await, 0);
    }
    fixture.uploaded("add", &[b'y'; 3_000]).await;
    assert_eq!(fixture.used_bytes().await, 3_000);
}

#[tokio::test]
async fn the_length_is_judged_before_query_and_key() {
    let server = TestServer::start().await;
    let fixture = UploadFixture::on_server(server).await;
    let long = vec![b'x'; 1_001];
    for (query, headers) in [
        ("picture?x=1", [("x-nothing", "1")]),
        ("picture", [("idempotency-key", "two words")]),
    ] {
        let answer = fixture.upload_with(query, &long, &headers).await;
        answer.problem(413, "payload_too_large");
        let answer = fixture.upload_with(query, b"x", &headers).await;
        answer.problem(400, "invalid_request");
    }
}

#[tokio::test]
async fn a_file_that_its_own_statement_deletes_is_refused() {
    let fixture = UploadFixture::new().await;
    let gone = json!([{
        "name": "gone", "sql": "DELETE FROM svc_files WHERE id = :svc_file RETURNING name",
        "files": { "anonymous": true },
    }]);
    fixture.project.put(&gone).await.expect(200);
    let refused = fixture.upload("gone", b"x").await;
    refused.problem(403, "upload_refused");
    assert_eq!(fixture.project.count("svc_files").await, 0);
    fixture.settle().await;
    assert_eq!(fixture.used_bytes().await, 0);
}

#[tokio::test]
async fn a_key_is_of_its_page_alone() {
    let fixture = UploadFixture::new().await;
    let (owner, server) = (&fixture.project.owner, &fixture.project.server);
    owner
        .frontend(server, &fixture.project.project, "hall")
        .await;
    let key = ("idempotency-key", "one");
    fixture.upload_with("add", b"one", &[key]).await.expect(201);
    let request = server.request(Method::POST, "/hall/api/files/add");
    let request = request.header(key.0, key.1).header("content-length", 3);
    let other = request.body("two").answer().await.expect(201);
    assert_eq!(other.header("idempotency-replayed"), None);
}

#[tokio::test]
async fn a_long_answer_is_kept_for_its_key_as_a_short_one_is() {
    let fixture = UploadFixture::new().await;
    let rows = "INSERT INTO photos (file, caption) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400) SELECT :svc_file, i FROM n RETURNING id, printf('%01000d', id) AS long";
    let many = json!([{ "name": "many", "sql": rows, "files": { "anonymous": true } }]);
    fixture.project.put(&many).await.expect(200);
    let key = [("idempotency-key", "long")];
    let first = fixture.upload_with("many", b"x", &key).await.expect(201);
    assert!(first.body.len() > 400_000);
    let again = fixture.upload_with("many", b"x", &key).await.expect(201);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert!(again.body == first.body);
    assert_eq!(fixture.project.count("photos").await, 400);
}
