//! Death at every fault point of visitors' files: a 201 is there, row and bytes; what was not answered is there wholly, or gone after the sweep.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use svc_tests::bucket::Bucket;
use svc_tests::{Binary, ReadAnswer, fault_points, wait_until};
use tempfile::TempDir;

use super::{PHOTOS, actions};
use crate::crashes::{OwnerProcess, fault_group};
use crate::owner::text;
use crate::svc;

/// Groups of the fault points that are tested here alone.
pub(crate) const FAULT_GROUPS: [&str; 2] = ["upload", "visitor_files"];

/// A file that was answered before, and one during which the server dies.
const BEFORE: &[u8] = b"answered before";
const NEW: &[u8] = b"new bytes";
const AFTERWARDS: &[u8] = b"bytes of afterwards";

/// A server's data directory, and the bucket of its content, if it has one.
pub(super) struct CrashInstallation {
    data: TempDir,
    bucket: Option<Bucket>,
    credential: String,
}

impl CrashInstallation {
    pub(super) async fn new(bucket: Option<Bucket>) -> Self {
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
        self.serve_with(svc(), fault).await
    }

    pub(super) async fn serve_with(
        &self,
        program: Binary,
        fault: Option<&str>,
    ) -> OwnerProcess<'_> {
        let keys = self.bucket.as_ref().map(Bucket::environment);
        let keys = keys.iter().flatten();
        let mut with: Vec<(&str, &str)> = keys.map(|(name, value)| (*name, &**value)).collect();
        with.extend(fault.map(|point| ("SVC_FAULT", point)));
        let place = ["--content-url", "s3://pages/mine"];
        let arguments = match self.bucket {
            Some(_) => &place[..],
            None => &place[..0],
        };
        let process = program
            .serve_with_environment(&with, &[], self.data.path(), arguments)
            .await;
        OwnerProcess {
            process,
            credential: &self.credential,
        }
    }

    fn rows(&self) -> rusqlite::Connection {
        let rows = rusqlite::Connection::open(self.data.path().join("control.db")).unwrap();
        rows.busy_timeout(Duration::from_secs(5)).unwrap();
        rows
    }

    /// Counts files in a state.
    fn count(&self, state: &str) -> i64 {
        let sql = "SELECT count(*) FROM visitor_files WHERE state = ?1";
        let rows = self.rows();
        rows.query_row(sql, [state], |row| row.get(0)).unwrap()
    }

    /// Has all that waits have waited.
    fn age(&self) {
        let rows = self.rows();
        rows.execute("UPDATE garbage SET since = 1", []).unwrap();
        let old = "UPDATE visitor_files SET since = 1 WHERE state <> 'kept'";
        rows.execute(old, []).unwrap();
    }

    /// Has what is left over be gone; returns the server that is there then.
    async fn settle<'a>(&'a self, mut at: OwnerProcess<'a>) -> OwnerProcess<'a> {
        let errors = async || {
            let check = svc()
                .run(self.data.path(), &["check", "--json"])
                .await
                .json();
            assert_eq!(check["errors"], json!([]));
            (check["leftovers"] == json!([])).then_some(())
        };
        for _ in 0..3 {
            at.process.kill().await;
            self.age();
            at = self.serve(None).await;
        }
        wait_until("nothing to be left over", errors).await;
        at
    }
}

/// Uploads a file; `None` if the server died instead of answering.
pub(super) async fn upload(at: &OwnerProcess<'_>, content: &[u8]) -> Option<(u16, Value)> {
    let url = at.process.url("/room/api/files/add");
    let request = at.process.client().post(url).body(content.to_vec());
    let answer = request.try_answer().await?;
    let body = serde_json::from_slice(&answer.body).unwrap_or(Value::Null);
    Some((answer.status, body))
}

async fn remove(at: &OwnerProcess<'_>, id: &str) {
    let body = json!({ "action": "remove", "params": { "file": id } });
    let url = at.process.url("/room/api/op");
    // The server may die while it answers.
    drop(at.process.client().post(url).json(&body).try_answer().await);
}

/// Makes a page that takes files, with one file; returns the id of that.
pub(super) async fn populate(at: &OwnerProcess<'_>) -> String {
    let (status, project) = at.post("", json!({ "name": "House" })).await;
    assert_eq!(status, 201, "{project}");
    let project = text(&project["id"]);
    let (status, made) = at
        .post(&format!("/{project}/backend"), json!({ "ddl": PHOTOS }))
        .await;
    assert_eq!(status, 201, "{made}");
    let room = json!({ "type": "markdown", "content": "# One", "requested_slug": "room" });
    let (status, made) = at.post(&format!("/{project}/frontends"), room).await;
    assert_eq!(status, 201, "{made}");
    let path = format!("/{project}/backend/actions");
    let body = json!({ "actions": actions() });
    let (status, made) = at
        .send_request(Method::PUT, &path, Some(body))
        .await
        .unwrap();
    assert_eq!(status, 200, "{made}");
    let (status, made) = upload(at, BEFORE).await.unwrap();
    assert_eq!(status, 201, "{made}");
    text(&made["file"]["id"])
}

/// Lists the files of the page, each of which must answer; returns their contents.
async fn contents(at: &OwnerProcess<'_>, point: &str) -> Vec<Vec<u8>> {
    let latest = at
        .process
        .json("/room/api/op", &json!({ "action": "latest" }))
        .await;
    let latest = latest.expect(200).json();
    let mut contents = Vec::new();
    for row in latest["rows"].as_array().unwrap() {
        let path = format!("/room/api/files/see/{}", text(&row["file"]));
        let answer = at.process.get(&path).await;
        assert_eq!(answer.status, 200, "{point}");
        contents.push(answer.body.to_vec());
    }
    contents.sort();
    contents
}

/// Dies at a point, and looks at what follows.
async fn die_at(point: &str, bucket: Option<Bucket>) {
    let here = CrashInstallation::new(bucket).await;
    let at = here.serve(None).await;
    let before = populate(&at).await;
    let kept = async || (here.count("kept") > 0).then_some(());
    wait_until("the file to be noted", kept).await;
    at.process.kill().await;
    if point == "visitor_files.expired" {
        let at = here.serve(None).await;
        remove(&at, &before).await;
        let ended = async || (here.count("ended") > 0).then_some(());
        wait_until("the file to have ended", ended).await;
        at.process.kill().await;
        here.age();
    }
    let dying = here.serve(Some(point)).await;
    let answered = match fault_group(point) {
        "upload" => upload(&dying, NEW).await,
        _ => {
            remove(&dying, &before).await;
            None
        }
    };
    let (status, _) = dying.process.wait_for_exit().await;
    assert!(!status.success(), "{point}: it did not die");
    let is_answered = answered.is_some_and(|(status, _)| status == 201);

    let at = here.serve(None).await;
    let is_new = match point {
        "upload.committed" => true,
        _ => is_answered,
    };
    let there = |is_new: bool| -> Vec<Vec<u8>> {
        match (fault_group(point), is_new) {
            ("upload", true) => vec![BEFORE.to_vec(), NEW.to_vec()],
            ("upload", false) => vec![BEFORE.to_vec()],
            _ => Vec::new(),
        }
    };
    assert_eq!(contents(&at, point).await, there(is_new), "{point}");
    let at = here.settle(at).await;
    assert_eq!(contents(&at, point).await, there(is_new), "{point}");
    // It goes on. Bytes that a bucket may still be asked to delete are taken later.
    let (status, again) = upload(&at, AFTERWARDS).await.unwrap();
    assert_eq!(status, 201, "{point}: {again}");
    at.process.kill().await;
}

fn points() -> impl Iterator<Item = String> {
    let all = fault_points().into_iter();
    all.filter(|point| FAULT_GROUPS.contains(&fault_group(point)))
}

#[tokio::test]
async fn whatever_the_point_of_death_a_201_is_there() {
    for point in points() {
        die_at(&point, None).await;
    }
}

#[tokio::test]
async fn whatever_the_point_of_death_a_201_is_in_the_bucket() {
    for point in points() {
        die_at(&point, Some(Bucket::start().await)).await;
    }
}
