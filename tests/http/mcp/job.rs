//! An agent's whole job, over the tools alone.

use serde_json::{Value, json};
use svc_tests::{ReadAnswer, TestServer};

use super::client::Client;
use crate::owner::{Owner, text};

const PAGE: &str = r#"<!doctype html><html><head><title>Notes</title></head><body><h1>Notes</h1><ul id="list"></ul>
<script>
async function show() {
  const { rows } = await svc.db.op("list_notes");
  document.getElementById("list").innerHTML = "";
  for (const row of rows) { const li = document.createElement("li"); li.textContent = row.text; document.getElementById("list").append(li); }
}
show();
</script></body></html>"#;

#[tokio::test]
async fn from_a_project_to_a_rollback() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    for client in [
        Client::with_credential(&server, &owner.credential),
        Client::with_credential(&server, &owner.credential).legacy(),
    ] {
        let listed = client
            .call_ok("manage_project", json!({ "action": "list" }))
            .await;
        assert_eq!(listed["projects"], json!([]));
        let project = client
            .call_ok(
                "manage_project",
                json!({ "action": "create", "name": "Notes" }),
            )
            .await;
        let id = text(&project["id"]);
        build_backend(&client, &id).await;
        let slug = publish_and_use_page(&client, &id).await;
        check_history(&client, &id, &slug).await;
        let gone = json!({ "action": "delete", "project_id": id });
        assert_eq!(
            client.call_ok("manage_project", gone).await,
            json!({ "deleted": true })
        );
        server
            .get(&format!("/{slug}"))
            .answer()
            .await
            .problem(404, "not_found");
    }
}

async fn build_backend(client: &Client<'_>, id: &str) {
    let ddl = "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL);";
    let create = json!({ "action": "create", "project_id": id, "ddl": ddl });
    let made = client.call_ok("manage_backend", create).await;
    let tables = made["schema"]["tables"].to_string();
    assert!(tables.contains("\"notes\""), "{tables}");
    let actions = json!([
        { "name": "add_note", "sql": "INSERT INTO notes (text) VALUES (:text) RETURNING id" },
        { "name": "list_notes", "sql": "SELECT id, text FROM notes ORDER BY id" },
    ]);
    let define = json!({ "action": "update", "project_id": id, "actions": actions });
    let defined = client.call_ok("manage_backend", define).await;
    assert_eq!(defined["actions"].as_array().unwrap().len(), 2);
}

/// Publishes the page, and uses it as its visitors do.
async fn publish_and_use_page(client: &Client<'_>, id: &str) -> String {
    let create = json!({ "action": "create", "project_id": id, "type": "html", "content": PAGE });
    let made = client.call_ok("manage_frontend", create).await;
    let slug = text(&made["slug"]);
    let url = format!("/{slug}");
    let live = client.server.get(&url).answer().await.expect(200);
    assert!(live.text().contains("/_svc/runtime/") && live.text().contains("svc.db.op"));
    let op = async |body: Value| {
        let request = client.server.json(&format!("/{slug}/api/op"), &body);
        request.answer().await.expect(200).json()
    };
    op(json!({ "action": "add_note", "params": { "text": "hello" } })).await;
    let notes = op(json!({ "action": "list_notes" })).await;
    assert_eq!(notes["rows"], json!([{ "id": 1, "text": "hello" }]));
    slug
}

async fn check_history(client: &Client<'_>, id: &str, slug: &str) {
    let arguments = |action: &str, more: Value| {
        let mut arguments = more;
        arguments["action"] = action.into();
        arguments["project_id"] = id.into();
        arguments["slug"] = slug.into();
        arguments
    };
    let send_request = |action: &'static str, more: Value| {
        client.call_ok("manage_frontend", arguments(action, more))
    };
    let seen = async || {
        client
            .server
            .get(&format!("/{slug}"))
            .answer()
            .await
            .expect(200)
            .text()
            .to_owned()
    };
    let first = text(&send_request("list_revisions", json!({})).await["active_revision_id"]);
    let source = send_request("content", json!({})).await;
    assert_eq!(source["content"], PAGE);
    let edits = json!([{ "find": "<h1>Notes</h1>", "replace": "<h1>My notes</h1>" }]);
    let drafted = send_request(
        "create_revision",
        json!({ "base_revision_id": first, "edits": edits }),
    )
    .await;
    assert_eq!(drafted["deduplicated"], false);
    let draft = text(&drafted["revision"]["revision_id"]);
    let preview = text(&drafted["preview_url"]);
    let path = preview.split_once("/_preview/").unwrap().1;
    let preview = client
        .server
        .get(&format!("/_preview/{path}"))
        .answer()
        .await
        .expect(200);
    assert!(preview.text().contains("<h1>My notes</h1>"));
    assert!(!preview.text().contains("/_svc/runtime/"));
    assert!(seen().await.contains("<h1>Notes</h1>"));
    let promote = json!({ "revision_id": draft, "expected_active_revision_id": first });
    let released = send_request("promote", promote.clone()).await;
    assert_eq!(released["frontend"]["active_revision_id"], draft);
    assert!(seen().await.contains("<h1>My notes</h1>"));
    // Somebody who still believes in the first revision overwrites nothing.
    let late = json!({ "revision_id": first, "expected_active_revision_id": first });
    let problem = client
        .call_refused(
            "manage_frontend",
            arguments("promote", late),
            "revision_conflict",
        )
        .await;
    assert_eq!(
        (&problem["status"], &problem["active_revision_id"]),
        (&json!(409), &json!(draft))
    );
    let stale = json!({ "base_revision_id": first, "content": "x" });
    client
        .call_refused(
            "manage_frontend",
            arguments("create_revision", stale),
            "revision_conflict",
        )
        .await;
    let back = json!({ "revision_id": first, "expected_active_revision_id": draft, "message": "too soon" });
    let released = send_request("rollback", back).await;
    assert_eq!(released["revision"]["kind"], "rollback");
    assert!(seen().await.contains("<h1>Notes</h1>"));
    let releases = send_request("releases", json!({})).await;
    assert_eq!(releases["releases"][0]["message"], "too soon");
}
