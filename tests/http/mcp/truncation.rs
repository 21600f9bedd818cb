//! Answers that are too large for a result: what is left of them is what matters, and says what is missing.

use std::collections::HashSet;

use serde_json::{Value, json};
use svc_tests::TestServer;

use super::client::Client;
use crate::owner::{Owner, text};
use crate::uploads::UploadFixture;

struct BackendTool<'a> {
    client: Client<'a>,
    owner: Owner,
    project: String,
}

impl<'a> BackendTool<'a> {
    async fn new(server: &'a TestServer, ddl: &str) -> Self {
        let owner = Owner::new(server, "acme").await;
        let project = owner.project(server, "House").await;
        let path = format!("/{project}/backend");
        owner
            .post(server, &path, &json!({ "ddl": ddl }))
            .await
            .expect(201);
        Self {
            client: Client::with_credential(server, &owner.credential),
            owner,
            project,
        }
    }

    fn arguments(&self, action: &str, more: Value) -> Value {
        let mut arguments = more;
        arguments["action"] = action.into();
        arguments["project_id"] = self.project.as_str().into();
        arguments
    }

    async fn send_request(&self, action: &str, more: Value) -> Value {
        let arguments = self.arguments(action, more);
        self.client.call_ok("manage_backend", arguments).await
    }

    async fn detail(&self) -> Value {
        let path = format!("/{}/backend", self.project);
        self.owner
            .get(self.client.server, &path)
            .await
            .expect(200)
            .json()
    }
}

/// Tables with so many columns that their schema is too large for a result.
fn wide_schema() -> String {
    let columns: Vec<_> = (0..60)
        .map(|n| format!("column_number_{n} TEXT NOT NULL DEFAULT 'nothing'"))
        .collect();
    let tables = (0..12).map(|n| {
        format!(
            "CREATE TABLE wide_{n} ({}); CREATE INDEX by_{n} ON wide_{n} (column_number_1);",
            columns.join(", ")
        )
    });
    tables.collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn a_dry_run_shows_the_difference() {
    let server = TestServer::start().await;
    let backend = BackendTool::new(&server, &wide_schema()).await;
    let ddl = "ALTER TABLE wide_7 ADD COLUMN fresh INTEGER; CREATE TABLE added (a, b); CREATE INDEX by_a ON added (a); CREATE VIEW seen AS SELECT a FROM added";
    let tried = backend
        .send_request("update", json!({ "ddl": ddl, "dry_run": true }))
        .await;
    let column = |name: &str, declared: &str| json!({ "name": name, "type": declared, "not_null": false, "default": null, "primary_key": false });
    let changes = json!({
        "tables": [
            { "name": "wide_7", "new": false, "columns": [column("fresh", "INTEGER")] },
            { "name": "added", "new": true, "columns": [column("a", ""), column("b", "")] },
        ],
        "indexes": [{ "name": "by_a", "table": "added", "columns": ["a"], "unique": false }],
        "views": [{ "name": "seen" }],
    });
    assert_eq!(tried["changes"], changes);
    assert_eq!(
        (&tried["status"], &tried["broken_actions"]),
        (&json!("applied"), &json!([]))
    );
    assert_eq!(
        (&tried["schema"], &tried["truncated"]),
        (&Value::Null, &json!(true))
    );
    assert!(
        tried["note"].as_str().unwrap().contains("`changes`"),
        "{tried}"
    );
    // REST has all of it.
    let path = format!("/{}/backend?dry_run=true", backend.project);
    let body = json!({ "ddl": ddl });
    let rest = backend
        .owner
        .send(&server, http::Method::PATCH, &path, &body)
        .await
        .expect(200)
        .json();
    assert_eq!(rest["changes"], changes);
    assert_eq!(rest["schema"]["before"], backend.detail().await["schema"]);
}

#[tokio::test]
async fn a_large_backend_is_seen_part_by_part() {
    let server = TestServer::start().await;
    let backend = BackendTool::new(&server, &wide_schema()).await;
    let whole = backend.send_request("get", json!({})).await;
    assert_eq!(whole["truncated"], true);
    let note = whole["note"].as_str().unwrap();
    assert!(
        note.contains("`part`") && note.contains("_left_out"),
        "{note}"
    );
    let detail = backend.detail().await;
    for part in ["actions", "inventory"] {
        let seen = backend.send_request("get", json!({ "part": part })).await;
        let expected = json!({ "id": detail["id"], "warnings": [], part: detail[part] });
        assert_eq!(seen, expected);
    }
    let schema = backend
        .send_request("get", json!({ "part": "schema" }))
        .await;
    let (shown, all) = (&schema["schema"]["tables"], &detail["schema"]["tables"]);
    let columns = &shown[0]["columns"];
    let left_out = 60 - columns.as_array().unwrap().len();
    assert!(left_out > 0, "{schema}");
    assert_eq!(shown[0]["columns_left_out"], left_out);
    assert_eq!(
        all[13]["name"], "svc_payments",
        "what is the service's comes last"
    );
    // A table alone is shown whole, with its indexes and its rows.
    let seen = backend
        .send_request("get", json!({ "table": "WIDE_3" }))
        .await;
    let expected = json!({
        "id": detail["id"], "warnings": [],
        "schema": { "tables": [all[3]], "indexes": [detail["schema"]["indexes"][3]], "views": [] },
        "inventory": { "tables": [{ "name": "wide_3", "rows": 0 }], "bytes_on_disk": detail["inventory"]["bytes_on_disk"] },
    });
    assert_eq!(seen, expected);
    for (wrong, code, says) in [
        (
            json!({ "part": "tables" }),
            "invalid_request",
            "schema, actions, migrations, inventory",
        ),
        (json!({ "table": 7 }), "invalid_request", "`table`"),
        (
            json!({ "part": "actions", "table": "wide_3" }),
            "invalid_request",
            "`table` goes with",
        ),
        (
            json!({ "table": "nothing" }),
            "not_found",
            "no table `nothing`",
        ),
    ] {
        let arguments = backend.arguments("get", wrong.clone());
        let problem = backend
            .client
            .call_refused("manage_backend", arguments, code)
            .await;
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(says), "{wrong}: {detail}");
    }
}

#[tokio::test]
async fn rows_that_are_cut_are_not_told_to_be_all() {
    let server = TestServer::start().await;
    let backend =
        BackendTool::new(&server, "CREATE TABLE t (n INTEGER PRIMARY KEY, text TEXT)").await;
    let frontend = backend
        .owner
        .frontend(&server, &backend.project, "room")
        .await;
    assert!(frontend["id"].is_string());
    let many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400) SELECT i, printf('%.200c', 'x') AS text FROM n";
    let actions = json!([{ "name": "many", "sql": many }]);
    backend
        .send_request("update", json!({ "actions": actions }))
        .await;
    let called = backend
        .send_request("batch", json!({ "ops": [{ "action": "many" }] }))
        .await;
    let answer = &called["results"][0];
    let shown = answer["rows"].as_array().unwrap().len();
    assert!(shown < 400, "{shown}");
    assert_eq!(answer["rows_left_out"], 400 - shown);
    assert_eq!(
        (&answer["truncated"], &called["truncated"]),
        (&json!(true), &json!(true))
    );
}

#[tokio::test]
async fn a_tool_lists_all_files_however_long_their_names_are() {
    let server = TestServer::builder().limits(|limits| limits.upload_burst = 100);
    let fixture = UploadFixture::on_server(server.start().await).await;
    let name = "%F0%9F%98%80".repeat(255);
    for n in 0..20 {
        let action = format!("add?name={name}");
        fixture.uploaded(&action, format!("{n}").as_bytes()).await;
    }
    let project = &fixture.project;
    let client = Client::with_credential(&project.server, &project.owner.credential);
    let mut call = json!({ "action": "files", "project_id": project.project });
    let mut found = HashSet::new();
    loop {
        let page = client.call_ok("manage_backend", call.clone()).await;
        let files = page["files"].as_array().unwrap();
        found.extend(files.iter().map(|file| text(&file["id"])));
        if page["next_cursor"].is_null() {
            break;
        }
        assert!(files.len() < 20);
        call["cursor"] = page["next_cursor"].clone();
    }
    assert_eq!(found.len(), 20);
}
