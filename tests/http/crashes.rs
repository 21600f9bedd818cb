//! Death at every fault point of publishing, releasing, deleting and ending: what follows is whole.

use std::path::Path;

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Process, wait_until};
pub(crate) use svc_tests::{fault_group, fault_points};
use tempfile::TempDir;

use crate::owner::text;
use crate::svc;
use crate::{
    audit, backend_crashes, backup_crashes, commands, commit_crashes, earlier_installation,
    guest_crashes, live, members, payments, project_releases, sharing_crashes, sites, uploads,
    visitors,
};

/// A server process, and the credential of the owner who calls it.
pub(crate) struct OwnerProcess<'a> {
    pub(crate) process: Process,
    pub(crate) credential: &'a str,
}

impl OwnerProcess<'_> {
    /// A request of the owner's; `None` if the server died instead of answering.
    pub(crate) async fn send_request(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Option<(u16, Value)> {
        let url = self.process.url(&format!("/api/v1/projects{path}"));
        let mut request = self
            .process
            .client()
            .request(method, url)
            .bearer_auth(self.credential);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.ok()?;
        let status = answer.status().as_u16();
        let body = answer.bytes().await.ok()?;
        Some((status, serde_json::from_slice(&body).unwrap_or(Value::Null)))
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        self.send_request(Method::GET, path, None)
            .await
            .expect("the server answers")
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.send_request(Method::POST, path, Some(body))
            .await
            .expect("the server answers")
    }
}

/// Ids of the fixture.
struct CreatedIds {
    project: String,
    live: String,
    draft: String,
}

/// A project with a frontend `room` whose page says One, and a draft that says Two.
async fn populate(data: &Path, credential: &str) -> CreatedIds {
    let site = OwnerProcess {
        process: svc().serve(data, &[]).await,
        credential,
    };
    let (status, project) = site.post("", json!({ "name": "House" })).await;
    assert_eq!(status, 201, "{project}");
    let project = text(&project["id"]);
    // The backend ends with the project, too.
    let backend = json!({ "ddl": "CREATE TABLE guests (name)" });
    let (status, made) = site.post(&format!("/{project}/backend"), backend).await;
    assert_eq!(status, 201, "{made}");
    let room = json!({ "type": "markdown", "content": "# One", "requested_slug": "room" });
    let (status, made) = site.post(&format!("/{project}/frontends"), room).await;
    assert_eq!(status, 201, "{made}");
    let path = format!("/{project}/frontends/room/revisions");
    let live = text(&site.get(&path).await.1["active_revision_id"]);
    let draft = json!({ "base_revision_id": live, "content": "# Two" });
    let draft = text(&site.post(&path, draft).await.1["revision"]["revision_id"]);
    site.process.kill().await;
    CreatedIds {
        project,
        live,
        draft,
    }
}

/// Returns the request during which the server dies at a point.
fn request_at_point(point: &str, before: &CreatedIds) -> (Method, String, Option<Value>) {
    let room = format!("/{}/frontends/room", before.project);
    match fault_group(point) {
        "create" => {
            let hall = json!({ "type": "markdown", "content": "# Hall", "requested_slug": "hall" });
            (
                Method::POST,
                format!("/{}/frontends", before.project),
                Some(hall),
            )
        }
        "draft" => {
            let draft = json!({ "base_revision_id": before.live, "content": "# Three" });
            (Method::POST, format!("{room}/revisions"), Some(draft))
        }
        "republish" => (Method::PUT, room, Some(json!({ "content": "# Four" }))),
        "release" => {
            let release = json!({
                "revision_id": before.draft, "expected_active_revision_id": before.live,
            });
            (Method::POST, format!("{room}/promote"), Some(release))
        }
        "delete" => (Method::DELETE, room, None),
        "teardown" => (Method::DELETE, format!("/{}", before.project), None),
        other => panic!("no deed leads to {other}"),
    }
}

/// The page that `room` has after a crash at a point: what was committed is done, what was not is not.
fn page_after(point: &str) -> Option<&'static str> {
    match point {
        "republish.committed" => Some("Four"),
        "release.committed" => Some("Two"),
        "delete.committed" => None,
        ended if ended.starts_with("teardown.") => None,
        _ => Some("One"),
    }
}

#[tokio::test]
async fn whatever_the_point_of_death_what_follows_is_whole() {
    // Fault points of backends and backups have their own tests.
    let others = [
        &backend_crashes::FAULT_GROUPS[..],
        &backup_crashes::FAULT_GROUPS,
        &earlier_installation::FAULT_GROUPS,
        &commands::FAULT_GROUPS,
        &commit_crashes::FAULT_GROUPS,
        &guest_crashes::FAULT_GROUPS,
        &sharing_crashes::FAULT_GROUPS,
        &members::crashes::FAULT_GROUPS,
        &payments::crashes::FAULT_GROUPS,
        &visitors::crashes::FAULT_GROUPS,
        &live::FAULT_GROUPS,
        &audit::rows::FAULT_GROUPS,
        &project_releases::crashes::FAULT_GROUPS,
        &sites::crashes::FAULT_GROUPS,
        &uploads::crashes::FAULT_GROUPS,
        // `tests/cluster` dies at these: it has a ledger.
        &["cluster"],
    ]
    .concat();
    let ours = |point: &String| !others.contains(&fault_group(point));
    for point in fault_points().into_iter().filter(ours) {
        let data = TempDir::new().unwrap();
        let made = svc()
            .run(data.path(), &["namespace", "create", "acme", "--json"])
            .await
            .json();
        let credential = text(&made["credential"]);
        let before = populate(data.path(), &credential).await;

        let process = svc().serve_to_fault(Some(&point), data.path(), &[]).await;
        let dying = OwnerProcess {
            process,
            credential: &credential,
        };
        let (method, path, body) = request_at_point(&point, &before);
        // The answer may have been sent before the server dies.
        let _ = dying.send_request(method, &path, body).await;
        let (status, _) = dying.process.wait_for_exit().await;
        assert!(!status.success(), "{point}: it did not die");

        let process = svc().serve(data.path(), &[]).await;
        let site = OwnerProcess {
            process,
            credential: &credential,
        };
        let room = site.process.get("/room").await;
        match page_after(&point) {
            Some(page) => {
                assert!(
                    room.expect(200).text().contains(&format!(">{page}<")),
                    "{point}"
                );
            }
            None => assert_eq!(room.status, 404, "{point}"),
        }
        let frontends = format!("/{}/frontends", before.project);
        if point.starts_with("teardown.") {
            let gone = async || (site.get(&frontends).await.0 == 404).then_some(());
            wait_until("the project to be gone", gone).await;
        } else {
            let (status, list) = site.get(&frontends).await;
            assert_eq!(status, 200, "{point}");
            for frontend in list["frontends"].as_array().unwrap() {
                assert_eq!(frontend["state"], "active", "{point}: half visible");
                let page = format!("/{}", text(&frontend["slug"]));
                site.process.get(&page).await.expect(200);
            }
            let hall = site.process.get("/hall").await.status;
            assert_eq!(hall == 200, point == "create.committed", "{point}");
        }
        let whole = async || {
            let found = svc().run(data.path(), &["check", "--json"]).await.json();
            assert_eq!(found["errors"], json!([]), "{point}");
            let none_left = !point.starts_with("teardown.") || found["deployments"] == 0;
            none_left.then_some(())
        };
        wait_until("nothing to be left of what ended", whole).await;
        site.process.kill().await;
    }
}

/// Ends a project by its own clock, without a request, and dies on the way.
#[tokio::test]
async fn whatever_the_point_of_death_what_has_expired_ends() {
    let points = fault_points().into_iter();
    let points: Vec<_> = points.filter(|p| p.starts_with("teardown.")).collect();
    assert!(points.len() >= 4, "{points:?}");
    for point in points {
        let data = TempDir::new().unwrap();
        let made = svc()
            .run(data.path(), &["namespace", "create", "acme", "--json"])
            .await
            .json();
        let credential = text(&made["credential"]);
        let before = populate(data.path(), &credential).await;

        let dying = svc().serve_to_fault(Some(&point), data.path(), &[]).await;
        dying.get("/room").await.expect(200);
        // No life is as short as a test's patience, so its end is moved to long ago.
        let rows = rusqlite::Connection::open(data.path().join("control.db")).unwrap();
        rows.busy_timeout(std::time::Duration::from_secs(5))
            .unwrap();
        let expired = "BEGIN IMMEDIATE;
            UPDATE deployments SET expires_at = 1 WHERE slug = 'room';
            UPDATE projects SET expires_at = 1 WHERE workspace_id IS NOT NULL;
            COMMIT";
        rows.execute_batch(expired).unwrap();
        drop(rows);
        let (status, _) = dying.wait_for_exit().await;
        assert!(!status.success(), "{point}: it did not die");

        let process = svc().serve(data.path(), &[]).await;
        let site = OwnerProcess {
            process,
            credential: &credential,
        };
        assert_eq!(site.process.get("/room").await.status, 404, "{point}");
        let gone = site.get(&format!("/{}", before.project)).await;
        assert_eq!(gone.0, 404, "{point}");
        let whole = async || {
            let found = svc().run(data.path(), &["check", "--json"]).await.json();
            assert_eq!(found["errors"], json!([]), "{point}");
            // The project's own row, which has its label, goes last.
            let rows = rusqlite::Connection::open(data.path().join("control.db")).unwrap();
            let sql = "SELECT count(*) FROM projects WHERE workspace_id IS NOT NULL";
            let projects: i64 = rows.query_row(sql, [], |row| row.get(0)).unwrap();
            (found["deployments"] == 0 && projects == 0).then_some(())
        };
        wait_until("nothing to be left of what ended", whole).await;
        // The slug is free, and so is a project in the plan.
        let (status, project) = site.post("", json!({ "name": "House" })).await;
        assert_eq!(
            (status, &project["host_label"]),
            (201, &json!("house-acme"))
        );
        let path = format!("/{}/frontends", text(&project["id"]));
        let room = json!({ "type": "markdown", "content": "# New", "requested_slug": "room" });
        let (status, room) = site.post(&path, room).await;
        assert_eq!((status, &room["slug"]), (201, &json!("room")), "{point}");
        site.process.kill().await;
    }
}
