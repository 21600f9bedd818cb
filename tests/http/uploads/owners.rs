//! Owners' view of the files that their visitors have uploaded.

use http::Method;
use serde_json::{Value, json};

use super::{PNG, UploadFixture};
use crate::owner::{operator_key, text};

#[tokio::test]
async fn an_owner_lists_reads_and_deletes() {
    let fixture = UploadFixture::new().await;
    let mut ids = Vec::new();
    for content in ["one", "two", "three"] {
        ids.push(fixture.text_file(content).await);
        fixture.project.server.advance(1);
    }
    let list = fixture.owned(Method::GET, "").await.expect(200).json();
    let listed: Vec<_> = list["files"].as_array().unwrap().iter().collect();
    let newest = [&ids[2], &ids[1], &ids[0]];
    let found: Vec<_> = listed.iter().map(|file| text(&file["id"])).collect();
    assert_eq!(found.iter().collect::<Vec<_>>(), newest);
    assert_eq!(listed[0]["size"], 5);
    assert_eq!(
        (&list["used_bytes"], &list["next_cursor"]),
        (&json!(11), &Value::Null)
    );
    assert!(list["limit_bytes"].as_u64().unwrap() > 0);
    let page = fixture
        .owned(Method::GET, "?limit=2")
        .await
        .expect(200)
        .json();
    let next = text(&page["next_cursor"]);
    let rest = fixture
        .owned(Method::GET, &format!("?limit=2&cursor={next}"))
        .await;
    let rest = rest.expect(200).json();
    assert_eq!(rest["files"][0]["id"], ids[0]);
    for wrong in ["?limit=0", "?limit=201", "?cursor=x", "?more=1"] {
        let answer = fixture.owned(Method::GET, wrong).await;
        answer.problem(400, "invalid_request");
    }
    let detail = format!("/{}", fixture.project.project);
    let detail = fixture
        .project
        .owner
        .get(&fixture.project.server, &detail)
        .await;
    assert_eq!(detail.expect(200).json()["storage"]["used_bytes"], 11);

    let below = format!("/{}", ids[0]);
    let file = fixture.owned(Method::GET, &below).await.expect(200);
    assert_eq!(file.text(), "one");
    let said = file.header("content-disposition").unwrap();
    assert!(said.starts_with("attachment"), "{said}");
    assert_eq!(file.header("x-content-type-options"), Some("nosniff"));
    for _ in 0..2 {
        fixture.owned(Method::DELETE, &below).await.expect(204);
    }
    let gone = fixture.owned(Method::GET, &below).await;
    gone.problem(404, "not_found");
    assert_eq!(fixture.project.count("photos").await, 2);
}

#[tokio::test]
async fn who_may_not_sees_and_deletes_nothing() {
    let fixture = UploadFixture::new().await;
    let id = text(&fixture.uploaded("add", PNG).await["id"]);
    let server = &fixture.project.server;
    let path = format!("/api/v1/projects/{}/files/{id}", fixture.project.project);
    let viewer = operator_key(server, "acme", "viewer").await;
    let read = viewer.send_request(server, Method::GET, &path, None).await;
    assert_eq!(read.expect(200).body, PNG);
    let deleted = viewer
        .send_request(server, Method::DELETE, &path, None)
        .await;
    deleted.problem(403, "forbidden");
    let stranger = crate::owner::Owner::new(server, "other").await;
    for method in [Method::GET, Method::DELETE] {
        let refused = stranger.send_request(server, method, &path, None).await;
        refused.problem(403, "forbidden");
    }
}

#[tokio::test]
async fn a_file_that_a_row_needs_stays() {
    let fixture = UploadFixture::new().await;
    let keep = "CREATE TABLE kept (file TEXT NOT NULL REFERENCES svc_files(id))";
    fixture.project.migrate(keep).await.expect(200);
    let action = json!([{
        "name": "keep", "sql": "INSERT INTO kept (file) VALUES (:svc_file)", "files": { "anonymous": true },
    }]);
    fixture.project.put(&action).await.expect(200);
    let id = text(&fixture.uploaded("keep", b"kept").await["id"]);
    let deleted = fixture.owned(Method::DELETE, &format!("/{id}")).await;
    deleted.problem(409, "constraint_violation");
    let called = fixture
        .project
        .call_action("remove", &json!({ "file": id }))
        .await;
    called.problem(409, "constraint_violation");
    assert_eq!(fixture.project.count("svc_files").await, 1);
}

#[tokio::test]
async fn blocked_bytes_are_refused_and_answered_no_more() {
    let fixture = UploadFixture::new().await;
    let id = fixture.text_file("bad bytes").await;
    let server = &fixture.project.server;
    let block = ["content", "block", &super::sha256(b"bad bytes")];
    server.command(&crate::svc(), &block).await;
    let list = ["content", "list", &fixture.project.project, "--json"];
    let listed = server.command(&crate::svc(), &list).await.json();
    let mut listed = listed["content"].as_array().unwrap().iter();
    let entry = listed.find(|entry| entry["file"] == json!(id)).unwrap();
    assert_eq!(entry["sha256"], json!(super::sha256(b"bad bytes")));
    assert_eq!(entry["blocked"], json!(true));
    let blocked = fixture.download("see", &id).await;
    blocked.problem(403, "disabled");
    let again = fixture.upload("add", b"bad bytes").await;
    again.problem(403, "content_blocked");
}
