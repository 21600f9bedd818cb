//! Death at every fault point of a release: what follows is the old state or the new one, never a mixture, and the same body goes on.

use tempfile::TempDir;

use super::*;
use crate::crashes::{OwnerProcess, fault_group, fault_points};
use crate::svc;

/// Groups of the fault points that are tested here.
pub(crate) const FAULT_GROUPS: [&str; 1] = ["project_release"];

/// Fault points of the operations that a release is made of, at which it may die, too. Both migrations pass theirs on a copy before
/// they pass them in the backend.
const BORROWED_POINTS: [&str; 7] = [
    "migrate.applied",
    "migrate.applied@3",
    "migrate.committed",
    "migrate.committed@3",
    "migrate.recording",
    "provision.made",
    "provision.recorded",
];

/// Points at which no migration is in the backend yet; `migrate.applied@3` is that of the first one, where it is not the backend's.
fn is_before_migrations(point: &str, with_backend: bool) -> bool {
    let early = [
        "project_release.stored",
        "project_release.judged",
        "migrate.applied",
        "migrate.committed",
        "provision.made",
    ];
    early.contains(&point) || (point == "migrate.applied@3" && with_backend)
}

/// Makes a project with a page, and with a backend if there is to be one; returns its id and the page's revision.
async fn populate(data: &std::path::Path, credential: &str, with_backend: bool) -> (String, Value) {
    let site = OwnerProcess {
        process: svc().serve(data, &[]).await,
        credential,
    };
    let (status, project) = site.post("", json!({ "name": "House" })).await;
    assert_eq!(status, 201, "{project}");
    let project = text(&project["id"]);
    let room = json!({ "type": "markdown", "content": "# One", "requested_slug": "room" });
    let (status, made) = site.post(&format!("/{project}/frontends"), room).await;
    assert_eq!(status, 201, "{made}");
    let path = format!("/{project}/frontends/room/revisions");
    let live = site.get(&path).await.1["active_revision_id"].clone();
    let old = json!({ "type": "markdown", "content": "# Old", "requested_slug": "old" });
    let (status, made) = site.post(&format!("/{project}/frontends"), old).await;
    assert_eq!(status, 201, "{made}");
    if with_backend {
        let path = format!("/{project}/backend");
        let (status, made) = site.post(&path, json!({ "ddl": GUESTS })).await;
        assert_eq!(status, 201, "{made}");
        let actions = json!({ "actions": [{ "name": "say", "sql": "SELECT 1 AS n" }] });
        let path = format!("{path}/actions");
        let put = site.send_request(Method::PUT, &path, Some(actions)).await;
        assert_eq!(put.unwrap().0, 200);
    }
    site.process.kill().await;
    (project, live)
}

/// The release during which the server dies, and which is sent again.
fn body(live: &Value, old: &Value, with_backend: bool) -> Value {
    let mut migrations = vec![
        json!({ "ddl": "CREATE TABLE first (a)" }),
        json!({ "ddl": "CREATE TABLE second (a)" }),
    ];
    if !with_backend {
        migrations.insert(0, json!({ "ddl": GUESTS }));
    }
    json!({
        "migrations": migrations,
        "actions": [{ "name": "say", "sql": "SELECT 2 AS n FROM (SELECT count(*) FROM second)" }],
        "pages": [page("room", "# Two", live), new_page("hall", "# Hall")],
        "remove_pages": [{ "slug": "old", "expected_active_revision_id": old }],
        "home": "hall",
        "message": "two",
    })
}

/// Asserts that all of the release is there, or nothing but some migrations; returns whether it is.
async fn assert_whole(site: &OwnerProcess<'_>, project: &str, point: &str) -> bool {
    let raw = async |slug: &str| {
        let answer = site.process.get(&format!("/{slug}/raw")).await;
        (answer.status == 200).then(|| answer.text().to_owned())
    };
    let room = raw("room").await.expect("the page stays");
    let is_new = room == "# Two";
    assert!(is_new || room == "# One", "{point}: {room}");
    assert_eq!(
        raw("hall").await.as_deref(),
        is_new.then_some("# Hall"),
        "{point}"
    );
    assert_eq!(
        raw("old").await.as_deref(),
        (!is_new).then_some("# Old"),
        "{point}"
    );
    let (_, detail) = site.get(&format!("/{project}")).await;
    assert_eq!(detail["home"], json!(is_new.then_some("hall")), "{point}");
    let (status, backend) = site.get(&format!("/{project}/backend")).await;
    let said = site
        .process
        .json("/room/api/op", &json!({ "action": "say" }))
        .await;
    let n = match status {
        200 if said.status == 200 => said.json()["rows"].clone(),
        _ => Value::Null,
    };
    if is_new {
        // The count of an aggregate is one row.
        assert_eq!(n, json!([{ "n": 2 }]), "{point}: {backend}");
        assert_eq!(tables(&backend["schema"]["tables"]).len(), 3, "{point}");
    } else {
        assert!(n == Value::Null || n == json!([{ "n": 1 }]), "{point}: {n}");
    }
    let (_, list) = site.get(&format!("/{project}/frontends")).await;
    for frontend in list["frontends"].as_array().unwrap() {
        assert_eq!(frontend["state"], "active", "{point}: half visible");
    }
    assert_eq!(list["frontends"].as_array().unwrap().len(), 2, "{point}");
    is_new
}

#[tokio::test]
async fn whatever_the_point_of_death_the_release_is_whole_or_not_made() {
    let all = fault_points();
    let ours = all
        .iter()
        .filter(|point| FAULT_GROUPS.contains(&fault_group(point)));
    let borrowed = BORROWED_POINTS.iter().map(|point| (*point).to_owned());
    let name = |point: &str| point.split('@').next().unwrap_or(point).to_owned();
    let borrowed: Vec<String> = borrowed.collect();
    assert!(borrowed.iter().all(|point| all.contains(&name(point))));
    let mut died = 0;
    for (point, with_backend) in ours
        .cloned()
        .chain(borrowed)
        .flat_map(|point| [(point.clone(), true), (point, false)])
    {
        if point.starts_with("provision.") && with_backend {
            continue;
        }
        let data = TempDir::new().unwrap();
        let made = svc()
            .run(data.path(), &["namespace", "create", "acme", "--json"])
            .await
            .json();
        let credential = text(&made["credential"]);
        let (project, live) = populate(data.path(), &credential, with_backend).await;

        let dying = OwnerProcess {
            process: svc().serve(data.path(), &[]).await,
            credential: &credential,
        };
        let path = format!("/{project}/frontends/old/revisions");
        let old = dying.get(&path).await.1["active_revision_id"].clone();
        dying.process.kill().await;
        let body = body(&live, &old, with_backend);
        let release = format!("/{project}/release");
        let dying = OwnerProcess {
            process: svc().serve_to_fault(Some(&point), data.path(), &[]).await,
            credential: &credential,
        };
        // The answer may have been sent before the server dies.
        let _ = dying
            .send_request(Method::POST, &release, Some(body.clone()))
            .await;
        let (status, _) = dying.process.wait_for_exit().await;
        assert!(!status.success(), "{point}: it did not die");
        died += 1;

        let site = OwnerProcess {
            process: svc().serve(data.path(), &[]).await,
            credential: &credential,
        };
        let is_new = assert_whole(&site, &project, &point).await;
        assert_eq!(is_new, point == "project_release.committed", "{point}");
        let (status, again) = site.post(&release, body).await;
        if is_new {
            assert_eq!(status, 409, "{point}: {again}");
            assert_eq!(again["code"], "release_conflict", "{point}");
        } else {
            assert_eq!(status, 200, "{point}: {again}");
            let was_applied = again["migrations"][0]["status"] != "applied";
            let early = is_before_migrations(&point, with_backend);
            assert_eq!(was_applied, !early, "{point}: {again}");
        }
        assert!(assert_whole(&site, &project, &point).await, "{point}");
        let (_, backend) = site.get(&format!("/{project}/backend")).await;
        assert_eq!(backend["warnings"], json!([]), "{point}");
        site.process.kill().await;
    }
    assert!(died > 10, "{died}");
}
