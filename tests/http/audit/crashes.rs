//! Death while something is changed: there is an entry if and only if there is the change.

use std::path::Path;

use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::crashes::{OwnerProcess, fault_group, fault_points};
use crate::owner::text;
use crate::svc;

/// Deeds that lead to the points here, with their names in the audit.
const FAULT_GROUPS: [(&str, &str); 11] = [
    ("create", "frontend.create"),
    ("draft", "revision.create"),
    ("republish", "frontend.publish"),
    ("release", "revision.promote"),
    ("delete", "frontend.delete"),
    ("teardown", "project.delete"),
    ("provision", "backend.create"),
    ("migrate", "backend.migrate"),
    ("define", "backend.define"),
    ("rewind", "backend.restore"),
    ("raze", "backend.delete"),
];

/// State before the crash.
struct CreatedIds {
    project: String,
    live: String,
    draft: String,
}

/// A project with a frontend and a draft, and with a backend if the deed needs one.
async fn populate(site: &OwnerProcess<'_>, group: &str) -> CreatedIds {
    let (status, project) = site.post("", json!({ "name": "House" })).await;
    assert_eq!(status, 201, "{project}");
    let project = text(&project["id"]);
    let room = json!({ "type": "markdown", "content": "# One", "requested_slug": "room" });
    let (status, made) = site.post(&format!("/{project}/frontends"), room).await;
    assert_eq!(status, 201, "{made}");
    let path = format!("/{project}/frontends/room/revisions");
    let live = text(&site.get(&path).await.1["active_revision_id"]);
    let draft = json!({ "base_revision_id": live, "content": "# Two" });
    let draft = text(&site.post(&path, draft).await.1["revision"]["revision_id"]);
    if group != "provision" {
        let backend = json!({ "ddl": "CREATE TABLE guests (name)" });
        let (status, made) = site.post(&format!("/{project}/backend"), backend).await;
        assert_eq!(status, 201, "{made}");
    }
    CreatedIds {
        project,
        live,
        draft,
    }
}

async fn now() -> String {
    let now = svc_base::clock::Clock::system().now();
    now.to_string()
}

/// Asks for the deed; the server dies on the way.
async fn perform(site: &OwnerProcess<'_>, group: &str, before: &CreatedIds) {
    let (project, live) = (&before.project, &before.live);
    let room = format!("/{project}/frontends/room");
    let backend = format!("/{project}/backend");
    let (method, path, body) = match group {
        "create" => {
            let hall = json!({ "type": "markdown", "content": "# Hall", "requested_slug": "hall" });
            (Method::POST, format!("/{project}/frontends"), hall)
        }
        "draft" => {
            let draft = json!({ "base_revision_id": live, "content": "# Three" });
            (Method::POST, format!("{room}/revisions"), draft)
        }
        "republish" => (Method::PUT, room, json!({ "content": "# Four" })),
        "release" => {
            let release =
                json!({ "revision_id": before.draft, "expected_active_revision_id": live });
            (Method::POST, format!("{room}/promote"), release)
        }
        "delete" => (Method::DELETE, room, Value::Null),
        "teardown" => (Method::DELETE, format!("/{project}"), Value::Null),
        "provision" => (
            Method::POST,
            backend,
            json!({ "ddl": "CREATE TABLE guests (name)" }),
        ),
        "migrate" => (
            Method::PATCH,
            backend,
            json!({ "ddl": "CREATE TABLE more (name)" }),
        ),
        "define" => {
            let actions = json!({ "actions": [{ "name": "one", "sql": "SELECT 1 AS one" }] });
            (Method::PUT, format!("{backend}/actions"), actions)
        }
        "rewind" => (
            Method::POST,
            format!("{backend}/restore"),
            json!({ "at": now().await }),
        ),
        "raze" => (Method::DELETE, backend, Value::Null),
        other => panic!("no deed {other}"),
    };
    let body = (!body.is_null()).then_some(body);
    // Its answer may have left before the end, which goes on behind it.
    drop(site.send_request(method, &path, body).await);
}

/// Whether the deed was done, as the owner sees it.
async fn is_done(site: &OwnerProcess<'_>, group: &str, before: &CreatedIds) -> bool {
    let project = &before.project;
    let room = site.get(&format!("/{project}/frontends/room")).await;
    let (status, backend) = site.get(&format!("/{project}/backend")).await;
    let ledger = backend["migrations"].as_array().map_or(0, Vec::len);
    match group {
        "create" => site.get(&format!("/{project}/frontends/hall")).await.0 == 200,
        "draft" => room.1["revision_count"] == 3,
        "republish" | "release" => room.1["active_revision_id"] != *before.live,
        "delete" => room.0 == 404,
        "teardown" => site.get(&format!("/{project}")).await.0 == 404,
        "provision" => status == 200,
        "raze" => status == 404,
        "migrate" | "rewind" => ledger == 2,
        "define" => backend["actions"]
            .as_array()
            .is_some_and(|all| !all.is_empty()),
        other => panic!("no deed {other}"),
    }
}

/// The entries of the deed.
async fn entries(data: &Path, action: &str) -> Vec<Value> {
    let read = ["audit", "acme", "--json"];
    let listed = svc().run(data, &read).await.json()["entries"].take();
    let all = listed.as_array().unwrap().clone();
    all.into_iter()
        .filter(|entry| entry["action"] == action)
        .collect()
}

#[tokio::test]
async fn there_is_an_entry_if_and_only_if_there_is_the_change() {
    let mut seen = 0;
    for point in fault_points() {
        let group = fault_group(&point);
        let Some((_, action)) = FAULT_GROUPS.iter().find(|(known, _)| *known == group) else {
            continue;
        };
        seen += 1;
        let data = TempDir::new().unwrap();
        let create = ["namespace", "create", "acme", "--json"];
        let made = svc().run(data.path(), &create).await.json();
        let credential = text(&made["credential"]);
        let site = OwnerProcess {
            process: svc().serve(data.path(), &[]).await,
            credential: &credential,
        };
        let before = populate(&site, group).await;
        site.process.kill().await;
        let already = entries(data.path(), action).await.len();
        let site = OwnerProcess {
            process: svc().serve_to_fault(Some(&point), data.path(), &[]).await,
            credential: &credential,
        };
        perform(&site, group, &before).await;
        let (status, _) = site.process.wait_for_exit().await;
        assert!(!status.success(), "{point}: it did not die");

        let site = OwnerProcess {
            process: svc().serve(data.path(), &[]).await,
            credential: &credential,
        };
        let done = is_done(&site, group, &before).await;
        let left = entries(data.path(), action).await;
        assert_eq!(left.len() - already, usize::from(done), "{point}: {left:?}");
        let key = credential.split('_').nth(1).unwrap();
        for entry in &left {
            assert_eq!(entry["principal"], key, "{point}");
        }
        site.process.kill().await;
    }
    assert!(seen > 20, "{seen} points");
}
