//! Death at every fault point of files and of what names them: what was answered is there, what was not is gone once the collector has
//! been, on a directory and on a bucket.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use svc_tests::bucket::Bucket;
use svc_tests::{fault_points, wait_until};
use tempfile::TempDir;

use super::sha256;
use crate::crashes::{OwnerProcess, fault_group};
use crate::owner::text;
use crate::svc;

/// Groups of the fault points that are tested here alone.
pub(crate) const FAULT_GROUPS: [&str; 5] = ["blob", "file", "revision", "sweep", "collection"];

/// Fault points that pages pass, too.
const SHARED_POINTS: [&str; 7] = [
    "create.stored",
    "create.committed",
    "draft.stored",
    "republish.stored",
    "republish.committed",
    "release.committed",
    "delete.committed",
];

/// A file that the request at a fault point sends.
const NEW: &[u8] = b"new bytes";

/// A server's data directory, and the bucket of its content, if it has one.
struct CrashInstallation {
    data: TempDir,
    bucket: Option<Bucket>,
    credential: String,
}

/// State before the death.
struct StateBeforeDeath {
    project: String,
    live: String,
    draft: String,
    large: Vec<u8>,
}

/// A request during which the server dies.
enum Request {
    Json(Method, String, Value),
    File(String),
}

impl CrashInstallation {
    async fn new(bucket: Option<Bucket>) -> Self {
        let data = TempDir::new().unwrap();
        let create = ["namespace", "create", "acme", "--json"];
        let made = svc().run(data.path(), &create).await.json();
        Self {
            data,
            bucket,
            credential: text(&made["credential"]),
        }
    }

    async fn serve(&self, fault: Option<&str>) -> OwnerProcess<'_> {
        let keys = self.bucket.as_ref().map(Bucket::environment);
        let keys = keys.iter().flatten();
        let mut with: Vec<(&str, &str)> = keys.map(|(name, value)| (*name, &**value)).collect();
        with.extend(fault.map(|point| ("SVC_FAULT", point)));
        let place = ["--content-url", "s3://pages/mine"];
        let arguments = match self.bucket {
            Some(_) => &place[..],
            None => &place[..0],
        };
        let process = svc()
            .serve_with_environment(&with, &[], self.data.path(), arguments)
            .await;
        OwnerProcess {
            process,
            credential: &self.credential,
        }
    }

    async fn check(&self) -> Value {
        let check = ["check", "--json"];
        svc().run(self.data.path(), &check).await.json()
    }

    fn rows(&self) -> rusqlite::Connection {
        let rows = rusqlite::Connection::open(self.data.path().join("control.db")).unwrap();
        rows.busy_timeout(Duration::from_secs(5)).unwrap();
        rows
    }

    /// Has every mark be old, so that what has it may be collected.
    fn age_marks(&self) {
        self.rows()
            .execute("UPDATE garbage SET since = 1", [])
            .unwrap();
    }

    /// Has all that waits have waited, and the collector be done; returns the server that has done it.
    async fn settle<'a>(&'a self, at: OwnerProcess<'a>) -> OwnerProcess<'a> {
        self.rows()
            .execute(
                "UPDATE blobs SET staged_until = 1 WHERE staged_until IS NOT NULL",
                [],
            )
            .unwrap();
        // The start has marked what no row names, and the sweep marks what it ends.
        let is_marked = async || {
            let due = "SELECT (SELECT count(*) FROM blobs WHERE staged_until IS NOT NULL)
                + (SELECT count(*) FROM file_owners WHERE is_due = 1)";
            let due: i64 = self.rows().query_row(due, [], |row| row.get(0)).unwrap();
            let found = self.check().await;
            let marked = found["leftovers"].as_array().unwrap().iter().all(|left| {
                let digest = text(left);
                let digest = digest.strip_prefix("unreferenced object ");
                digest.is_some_and(|digest| self.is_marked(digest))
            });
            (due == 0 && marked).then_some(())
        };
        wait_until("what is left over to be marked", is_marked).await;
        at.process.kill().await;
        self.age_marks();
        let at = self.serve(None).await;
        let clean = async || {
            let found = self.check().await;
            assert_eq!(found["errors"], json!([]));
            (found["leftovers"] == json!([])).then_some(())
        };
        wait_until("nothing to be left over", clean).await;
        at
    }

    fn is_marked(&self, digest: &str) -> bool {
        let sql = "SELECT EXISTS (SELECT 1 FROM garbage WHERE digest = unhex(?1))";
        self.rows()
            .query_row(sql, [digest], |row| row.get(0))
            .unwrap()
    }
}

/// Sends a file; `None` if the server died instead of answering.
async fn put(at: &OwnerProcess<'_>, path: &str, bytes: &[u8]) -> Option<u16> {
    let url = at.process.url(&format!("/api/v1/projects{path}"));
    let request = at.process.client().put(url).bearer_auth(at.credential);
    let answer = request.body(bytes.to_vec()).send().await.ok()?;
    Some(answer.status().as_u16())
}

/// A project with a site of a small file and a large one, a draft of it, and a file that waits.
async fn populate(at: &OwnerProcess<'_>) -> StateBeforeDeath {
    let (status, project) = at.post("", json!({ "name": "House" })).await;
    assert_eq!(status, 201, "{project}");
    let project = text(&project["id"]);
    let large: Vec<u8> = (0..1_300_000_u32)
        .flat_map(|n| [n.to_le_bytes()[1]])
        .collect();
    for bytes in [&large[..], b"waits"] {
        let path = format!("/{project}/blobs/{}", sha256(bytes));
        assert_eq!(put(at, &path, bytes).await, Some(204));
    }
    let files = json!({ "index.html": { "text": "One" }, "large": { "sha256": sha256(&large) } });
    let site = json!({ "type": "site", "files": files, "requested_slug": "site" });
    let (status, made) = at.post(&format!("/{project}/frontends"), site).await;
    assert_eq!(status, 201, "{made}");
    let path = format!("/{project}/frontends/site/revisions");
    let live = text(&at.get(&path).await.1["active_revision_id"]);
    let set = json!({ "set": { "index.html": { "text": "Two" } } });
    let draft = json!({ "base_revision_id": live, "changes": set });
    let (status, draft) = at.post(&path, draft).await;
    assert_eq!(status, 200, "{draft}");
    StateBeforeDeath {
        draft: text(&draft["revision"]["revision_id"]),
        project,
        live,
        large,
    }
}

/// Returns the request during which the server dies at a point, or after which it does.
fn request_at_point(point: &str, before: &StateBeforeDeath) -> Request {
    let frontends = format!("/{}/frontends", before.project);
    let site = format!("{frontends}/site");
    let file = |text: &str| json!({ "text": text });
    match fault_group(point) {
        "blob" => Request::File(format!("/{}/blobs/{}", before.project, sha256(NEW))),
        "file" => Request::File(format!("{site}/files/new")),
        "create" => {
            let files = json!({ "a": file("hall"), "b": { "sha256": sha256(&before.large) } });
            let hall = json!({ "type": "site", "files": files, "requested_slug": "hall" });
            Request::Json(Method::POST, frontends, hall)
        }
        "draft" => {
            let set = json!({ "set": { "three": file("Three") } });
            let draft = json!({ "base_revision_id": before.live, "changes": set });
            Request::Json(Method::POST, format!("{site}/revisions"), draft)
        }
        "republish" => {
            let large = json!({ "sha256": sha256(&before.large) });
            let files = json!({ "index.html": file("Four"), "large": large });
            Request::Json(Method::PUT, site, json!({ "files": files }))
        }
        "release" => {
            let release = json!({
                "revision_id": before.draft, "expected_active_revision_id": before.live,
            });
            Request::Json(Method::POST, format!("{site}/promote"), release)
        }
        "delete" => Request::Json(Method::DELETE, site, Value::Null),
        "revision" | "sweep" | "collection" => {
            let path = format!("{site}/revisions/{}", before.draft);
            Request::Json(Method::DELETE, path, Value::Null)
        }
        other => panic!("no request leads to {other}"),
    }
}

/// Start page of the site after a death at a point.
fn page_after(point: &str) -> Option<&'static str> {
    match point {
        "republish.committed" => Some("Four"),
        "release.committed" => Some("Two"),
        "delete.committed" => None,
        _ => Some("One"),
    }
}

/// Holds the server to what must be there after a death at a point.
async fn assert_whole(point: &str, at: &OwnerProcess<'_>, before: &StateBeforeDeath) {
    let page = at.process.get("/site/").await;
    let large = at.process.get("/site/large").await;
    match page_after(point) {
        Some(text) => {
            assert_eq!(page.expect(200).text(), text, "{point}");
            assert!(large.expect(200).body == before.large, "{point}");
        }
        None => assert_eq!((page.status, large.status), (404, 404), "{point}"),
    }
    assert_eq!(at.process.get("/site/new").await.status, 404, "{point}");
    let hall = at.process.get("/hall/a").await.status;
    assert_eq!(hall == 200, point == "create.committed", "{point}");
    let path = format!(
        "/{}/frontends/site/revisions/{}",
        before.project, before.draft
    );
    let draft = at.get(&path).await.0;
    let has_ended = matches!(
        fault_group(point),
        "revision" | "sweep" | "collection" | "delete"
    );
    assert_eq!(draft, if has_ended { 404 } else { 200 }, "{point}");
}

/// Dies at a point, and looks at what follows.
async fn die_at(point: &str, bucket: Option<Bucket>) {
    let here = CrashInstallation::new(bucket).await;
    let at = here.serve(None).await;
    let before = populate(&at).await;
    at.process.kill().await;

    let dying = here.serve(Some(point)).await;
    let path = format!("/{}/frontends", before.project);
    // The answer may have been sent before the server dies.
    match request_at_point(point, &before) {
        Request::Json(method, path, body) => {
            let body = Some(body).filter(|body| !body.is_null());
            drop(dying.send_request(method, &path, body).await);
        }
        Request::File(path) => {
            let _ = put(&dying, &path, NEW).await;
        }
    }
    if fault_group(point) == "collection" {
        let marked = async || {
            let sql = "SELECT count(*) FROM garbage";
            let marks: i64 = here.rows().query_row(sql, [], |row| row.get(0)).unwrap();
            // The two forms of the manifest, and the file.
            (marks >= 3).then_some(())
        };
        wait_until("the draft's file to be marked", marked).await;
        here.age_marks();
    }
    let (status, _) = dying.process.wait_for_exit().await;
    assert!(!status.success(), "{point}: it did not die");

    let at = here.serve(None).await;
    assert_whole(point, &at, &before).await;
    // A file that was sent is there once its row is.
    let probe = json!({ "type": "site", "files": { "new": { "sha256": sha256(NEW) } }, "requested_slug": "probe" });
    let (probed, _) = at.post(&path, probe).await;
    let expected = if point == "blob.committed" { 201 } else { 409 };
    assert_eq!(probed, expected, "{point}");
    let at = here.settle(at).await;
    assert_whole(point, &at, &before).await;
    if expected == 201 {
        let probe = at.process.get("/probe/new").await;
        assert_eq!(probe.expect(200).body, NEW);
    }
    let waits = json!({ "type": "site", "files": { "a": { "sha256": sha256(b"waits") } } });
    assert_eq!(at.post(&path, waits).await.0, 409, "{point}");
    at.process.kill().await;
}

/// The points that are passed by files, or by what names them.
fn points() -> Vec<String> {
    let all = fault_points();
    for shared in SHARED_POINTS {
        assert!(all.contains(shared), "{shared}");
    }
    let ours = all.into_iter().filter(|point| {
        FAULT_GROUPS.contains(&fault_group(point)) || SHARED_POINTS.contains(&&**point)
    });
    ours.collect()
}

#[tokio::test]
async fn whatever_the_point_of_death_files_are_whole_or_gone() {
    for point in points() {
        die_at(&point, None).await;
    }
}

#[tokio::test]
async fn whatever_the_point_of_death_files_in_a_bucket_are_whole_or_gone() {
    for point in points() {
        die_at(&point, Some(Bucket::start().await)).await;
    }
}
