//! Rows that owners write are in the audit: by their queries, and by actions that they call.

use http::Method;
use serde_json::{Value, json};
use svc_tests::ReadAnswer;
use tempfile::TempDir;

use super::{WORKSPACES, entries};
use crate::crashes::{OwnerProcess, fault_group, fault_points};
use crate::members::{MembersFixture, User};
use crate::owner::{Owner, text};
use crate::svc;

/// Deeds that lead to the points of death that are tried here.
pub(crate) const FAULT_GROUPS: [&str; 1] = ["query"];

const DDL: &str = "CREATE TABLE t (n INTEGER UNIQUE, who TEXT)";

/// A user's page with a table and actions.
struct AuditFixture {
    fixture: MembersFixture,
    alice: User,
    workspace: String,
    project: String,
    backend: Value,
}

impl AuditFixture {
    async fn new() -> Self {
        let fixture = MembersFixture::new().await;
        let alice = fixture.user("alice").await;
        let workspace = alice.workspace(&fixture, "acme").await;
        let project = alice.owner.project(&fixture.server, "House").await;
        let path = format!("/{project}/backend");
        let made = alice
            .owner
            .post(&fixture.server, &path, &json!({ "ddl": DDL }))
            .await;
        let backend = made.expect(201).json()["id"].clone();
        let actions = json!({ "actions": [
            { "name": "add", "sql": "INSERT INTO t (n, who) VALUES (:n, :svc_user_id)" },
            { "name": "put", "sql": "INSERT INTO t (n) VALUES (:n)" },
            { "name": "all", "sql": "SELECT n FROM t ORDER BY n" },
        ]});
        let put = alice
            .owner
            .send(
                &fixture.server,
                Method::PUT,
                &format!("{path}/actions"),
                &actions,
            )
            .await;
        put.expect(200);
        alice
            .owner
            .frontend(&fixture.server, &project, "room")
            .await;
        Self {
            fixture,
            alice,
            workspace,
            project,
            backend,
        }
    }

    /// Sends something as somebody; returns how it was answered, and the entries that it leaves.
    async fn send_and_read_entries(
        &self,
        who: Option<&Owner>,
        path: &str,
        body: Value,
    ) -> (u16, Vec<Value>) {
        let server = &self.fixture.server;
        let before = entries(server, &self.workspace).await;
        let request = server.json(path, &body);
        let request = request.header("mcp-protocol-version", "2025-11-25");
        let answer = match who {
            Some(who) => request.bearer_auth(&who.credential).answer().await,
            None => request.answer().await,
        };
        let mut after = entries(server, &self.workspace).await;
        after.truncate(after.len() - before.len());
        for entry in &after {
            let request_id = answer.header("x-request-id").unwrap();
            assert_eq!(entry["request_id"], request_id);
            assert_eq!(entry["target"], self.backend);
        }
        (answer.status, after)
    }

    async fn rows(&self) -> Value {
        let body = json!({ "action": "all" });
        let answer = self
            .fixture
            .server
            .json("/room/api/op", &body)
            .answer()
            .await;
        answer.expect(200).json()["rows"].take()
    }
}

#[tokio::test]
async fn what_owners_write_leaves_one_entry_and_what_they_read_none() {
    let fixture_of_rows = AuditFixture::new().await;
    let alice = Some(&fixture_of_rows.alice.owner);
    let query = |sql: &str| ("/room/api/query", json!({ "sql": sql }));
    let by = json!({ "user_id": "usr_test" });
    let op = |mut body: Value| {
        body["as"] = by.clone();
        ("/room/api/op", body)
    };
    let tool = |ops: Value| {
        let given = json!({ "action": "batch", "project_id": fixture_of_rows.project, "ops": ops, "as": by });
        let params = json!({ "name": "manage_backend", "arguments": given });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        ("/mcp", call)
    };
    let add = |n: i64| json!({ "action": "add", "params": { "n": n } });
    let all = json!({ "action": "all" });
    for ((path, body), status, act) in [
        (query("SELECT n FROM t"), 200, None),
        (
            query("INSERT INTO t (n) VALUES (1)"),
            200,
            Some("backend.query"),
        ),
        // Refused: by a constraint as it runs, by the gate, for its params.
        (query("INSERT INTO t (n) VALUES (1)"), 409, None),
        (query("DROP TABLE t"), 400, None),
        (query("INSERT INTO nowhere VALUES (1)"), 400, None),
        (query("INSERT INTO t (n) VALUES (:n)"), 400, None),
        (
            query("UPDATE t SET who = 'secret-words' RETURNING n"),
            200,
            Some("backend.query"),
        ),
        (
            query("WITH x AS (SELECT 9 AS n) INSERT INTO t (n) SELECT n FROM x"),
            200,
            Some("backend.query"),
        ),
        (op(add(2)), 200, Some("backend.call")),
        (op(add(2)), 409, None),
        (op(all.clone()), 200, None),
        (op(json!({ "action": "nothing" })), 404, None),
        (
            op(json!({ "ops": [add(3), add(4), all] })),
            200,
            Some("backend.call"),
        ),
        (op(json!({ "ops": [add(5), add(4)] })), 409, None),
        (tool(json!([add(6)])), 200, Some("backend.call")),
        // The first of its ops is undone with the second.
        (tool(json!([add(7), add(6)])), 200, None),
        (tool(json!([all])), 200, None),
    ] {
        let (answered, left) = fixture_of_rows
            .send_and_read_entries(alice, path, body.clone())
            .await;
        assert_eq!(answered, status, "{body}");
        let acts: Vec<_> = left.iter().map(|entry| text(&entry["action"])).collect();
        assert_eq!(acts, Vec::from_iter(act), "{body}");
        for entry in &left {
            assert_eq!(entry["principal"], fixture_of_rows.alice.id, "{body}");
        }
    }
    let expected = [1, 2, 3, 4, 6, 9].map(|n| json!({ "n": n }));
    assert_eq!(fixture_of_rows.rows().await, json!(expected));
    // Visitors are nobody's members, whatever they send along.
    let put = |n: i64| json!({ "action": "put", "params": { "n": n } });
    for (who, n) in [(None, 10), (alice, 11)] {
        let (status, left) = fixture_of_rows
            .send_and_read_entries(who, "/room/api/op", put(n))
            .await;
        assert_eq!((status, left), (200, Vec::new()));
    }
    // Who may not write leaves nothing.
    let bob = fixture_of_rows.fixture.user("bob").await;
    fixture_of_rows
        .alice
        .add_member(&fixture_of_rows.fixture, "acme", &bob, "viewer")
        .await;
    for (path, body) in [query("INSERT INTO t (n) VALUES (12)"), op(add(12))] {
        let (status, left) = fixture_of_rows
            .send_and_read_entries(Some(&bob.owner), path, body)
            .await;
        assert_eq!((status, left), (403, Vec::new()));
    }
    let path = format!("{WORKSPACES}/acme/audit");
    let listed = fixture_of_rows
        .alice
        .get(&fixture_of_rows.fixture, &path)
        .await
        .expect(200);
    assert!(!listed.text().contains("secret-words"));
}

#[tokio::test]
async fn whatever_the_point_of_death_no_change_is_without_its_entry() {
    let mut seen = Vec::new();
    for point in fault_points() {
        if !FAULT_GROUPS.contains(&fault_group(&point)) {
            continue;
        }
        let data = TempDir::new().unwrap();
        let create = ["namespace", "create", "acme", "--json"];
        let made = svc().run(data.path(), &create).await.json();
        let credential = text(&made["credential"]);
        let site = OwnerProcess {
            process: svc().serve(data.path(), &[]).await,
            credential: &credential,
        };
        let (_, project) = site.post("", json!({ "name": "House" })).await;
        let project = text(&project["id"]);
        let backend = json!({ "ddl": DDL });
        let (status, made) = site.post(&format!("/{project}/backend"), backend).await;
        assert_eq!(status, 201, "{made}");
        let room = json!({ "type": "markdown", "content": "# One", "requested_slug": "room" });
        let (status, made) = site.post(&format!("/{project}/frontends"), room).await;
        assert_eq!(status, 201, "{made}");
        site.process.kill().await;

        let dying = svc().serve_to_fault(Some(&point), data.path(), &[]).await;
        let query = async |process: &svc_tests::Process, sql: &str| {
            let request = process.client().post(process.url("/room/api/query"));
            let request = request.bearer_auth(&credential);
            request.json(&json!({ "sql": sql })).send().await
        };
        let asked = query(&dying, "INSERT INTO t (n) VALUES (1)").await;
        assert!(asked.is_err(), "{point}: it answered");
        let (status, _) = dying.wait_for_exit().await;
        assert!(!status.success(), "{point}: it did not die");

        let process = svc().serve(data.path(), &[]).await;
        let found = query(&process, "SELECT count(*) AS n FROM t").await;
        let found: Value = found.unwrap().json().await.unwrap();
        let audit = ["audit", "acme", "--json"];
        let audit = svc().run(data.path(), &audit).await.json();
        let mut entries = audit["entries"].as_array().unwrap().iter();
        let entries = entries
            .by_ref()
            .filter(|one| one["action"] == "backend.query");
        seen.push((
            point.clone(),
            found["rows"][0]["n"].as_u64().unwrap(),
            entries.count(),
        ));
        process.kill().await;
    }
    // An entry is noted first: after a crash between the two it names what was not done.
    let expected = [("query.noted", 0, 1), ("query.written", 1, 1)];
    assert_eq!(
        seen,
        expected.map(|(point, rows, left)| (point.to_owned(), rows, left))
    );
}
