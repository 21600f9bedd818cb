//! Large things in small results: sources in ranges, histories in pages, and whatever else is long cut with a note.

use serde_json::{Value, json};
use svc_tests::{ReadAnswer, TestServer};

use super::client::Client;
use crate::owner::{Owner, text};

/// A page of a megabyte, as long as an argument may be, with characters of every length.
fn large_page() -> String {
    let mut page = String::from("<!doctype html><title>Large</title>\n");
    let mut line = 0;
    while page.len() < 1_000_000 {
        page.push_str(&format!("<p id=p{line}>Line {line}: Grüße, \u{1f600} — and so on, and so on, and so on, and so on.</p>\n"));
        line += 1;
    }
    page
}

struct PageTool<'a> {
    client: Client<'a>,
    project: String,
}

impl PageTool<'_> {
    async fn send_request(&self, action: &str, more: Value) -> Value {
        self.client
            .call_ok("manage_frontend", self.arguments(action, more))
            .await
    }

    fn arguments(&self, action: &str, more: Value) -> Value {
        let mut arguments = more;
        arguments["action"] = action.into();
        arguments["project_id"] = self.project.as_str().into();
        if action != "create" {
            arguments["slug"] = "large".into();
        }
        arguments
    }

    /// The whole source, in as many ranges as it takes.
    async fn read(&self) -> String {
        let (mut source, mut offset) = (String::new(), json!(0));
        let mut ranges = 0;
        while !offset.is_null() {
            let part = self
                .send_request("content", json!({ "offset": offset }))
                .await;
            assert_eq!(part["offset"], offset);
            source.push_str(part["content"].as_str().unwrap());
            offset = part["next_offset"].clone();
            assert_eq!(part["note"].is_null(), offset.is_null());
            ranges += 1;
        }
        assert!(ranges < 80, "{ranges} ranges");
        source
    }
}

#[tokio::test]
async fn a_page_of_a_megabyte_is_read_in_ranges_and_edited_by_patches() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    let page = PageTool {
        client: Client::with_credential(&server, &owner.credential),
        project,
    };
    let mut expected = large_page();
    let new = json!({ "type": "html", "content": expected, "requested_slug": "large" });
    page.send_request("create", new).await;
    // Without a range, as much as fits, and where to go on.
    let first = page.send_request("content", json!({})).await;
    assert_eq!(first["total_characters"], expected.chars().count());
    assert!(first["note"].as_str().unwrap().contains("offset"));
    assert_eq!(page.read().await, expected);
    let mut active =
        text(&page.send_request("list_revisions", json!({})).await["active_revision_id"]);
    for line in [3, 4_000, 9_000] {
        let (find, replace) = (format!("Line {line}:"), format!("Changed {line}:"));
        let edits = json!([{ "find": find, "replace": replace }]);
        let drafted = page
            .send_request(
                "create_revision",
                json!({ "base_revision_id": active, "edits": edits }),
            )
            .await;
        let draft = text(&drafted["revision"]["revision_id"]);
        let release = json!({ "revision_id": draft, "expected_active_revision_id": active });
        page.send_request("promote", release).await;
        expected = expected.replace(&find, &replace);
        active = draft;
    }
    let raw = server.get("/large/raw").answer().await.expect(200);
    assert_eq!(raw.text(), expected);
    assert_eq!(page.read().await, expected);
}

#[tokio::test]
async fn ranges_count_characters() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    let page = PageTool {
        client: Client::with_credential(&server, &owner.credential),
        project,
    };
    let content = "aä\u{1f600}\"\nb";
    let new = json!({ "type": "markdown", "content": content, "requested_slug": "large" });
    page.send_request("create", new).await;
    let whole = page.send_request("content", json!({})).await;
    assert_eq!(
        (&whole["content"], &whole["offset"]),
        (&json!(content), &Value::Null)
    );
    for (range, part, next) in [
        (json!({ "offset": 1, "limit": 2 }), "ä\u{1f600}", json!(3)),
        (json!({ "limit": 4 }), "aä\u{1f600}\"", json!(4)),
        (json!({ "offset": 3 }), "\"\nb", Value::Null),
        (json!({ "offset": 0, "limit": 100 }), content, Value::Null),
        (json!({ "offset": 6 }), "", Value::Null),
    ] {
        let found = page.send_request("content", range.clone()).await;
        assert_eq!(found["content"], part, "{range}");
        assert_eq!(found["next_offset"], next, "{range}");
        assert_eq!(found["total_characters"], 6, "{range}");
        assert_eq!(found["content_sha256"], whole["content_sha256"]);
    }
    for range in [json!({ "offset": 7 }), json!({ "limit": 0 })] {
        let arguments = page.arguments("content", range);
        page.client
            .call_refused("manage_frontend", arguments, "invalid_request")
            .await;
    }
    let known = json!({ "known_content_sha256": whole["content_sha256"], "offset": 3 });
    assert_eq!(page.send_request("content", known).await["unchanged"], true);
}

#[tokio::test]
async fn a_long_history_comes_in_pages_that_fit() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    let page = PageTool {
        client: Client::with_credential(&server, &owner.credential),
        project,
    };
    page.send_request(
        "create",
        json!({ "type": "html", "content": "one", "requested_slug": "large" }),
    )
    .await;
    let active = text(&page.send_request("list_revisions", json!({})).await["active_revision_id"]);
    for number in 0..30 {
        let draft = json!({ "base_revision_id": active, "content": format!("draft {number}"), "message": "\"m\"".repeat(300) });
        page.send_request("create_revision", draft).await;
    }
    let (mut seen, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let found = page
            .send_request("list_revisions", json!({ "limit": 200, "cursor": cursor }))
            .await;
        assert!(found["truncated"].is_null());
        let revisions = found["revisions"].as_array().unwrap();
        seen.extend(
            revisions
                .iter()
                .map(|revision| text(&revision["revision_id"])),
        );
        cursor = found["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(seen.len(), 31);
    seen.dedup();
    assert_eq!(seen.len(), 31);
}

#[tokio::test]
async fn a_large_backend_is_cut_with_a_note() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    let client = Client::with_credential(&server, &owner.credential);
    let ddl = format!("CREATE TABLE t (a); -- {}", "\"x\" ".repeat(20_000));
    let made = client
        .call_ok(
            "manage_backend",
            json!({ "action": "create", "project_id": project, "ddl": ddl }),
        )
        .await;
    assert_eq!(made["truncated"], true);
    assert!(made["note"].as_str().unwrap().contains("cut"));
    assert_eq!(made["schema"]["tables"].as_array().unwrap().len(), 3);
    let sql = made["migrations"][0]["sql"].as_str().unwrap();
    assert!(sql.starts_with("CREATE TABLE t") && sql.len() < 20_000);
    // Nothing of it is lost where results may be long.
    let answer = owner
        .get(&server, &format!("/{project}/backend"))
        .await
        .expect(200);
    assert_eq!(answer.json()["migrations"][0]["sql"], ddl);
}
