//! A backend through kills and full disks: what was answered is there, whole, and what was refused is not.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Answer, Process, ReadAnswer, wait_until};
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::svc;

/// Visitors that write at once.
const WRITERS: u64 = 16;

const LIMITS: &str = "[limits]
op_burst = 100000000
op_deployment_burst = 100000000
owner_burst = 1000000
database_bytes = 268435456
free_disk_bytes = 0
";

/// An entry has two halves, which one statement writes.
const ENTRIES: &str = "CREATE TABLE entries (
  id INTEGER PRIMARY KEY,
  writer INTEGER NOT NULL,
  number INTEGER NOT NULL,
  half INTEGER NOT NULL,
  body TEXT NOT NULL,
  UNIQUE (writer, number, half)
)";
const ADD: &str = "INSERT INTO entries (writer, number, half, body)
  VALUES (:writer, :number, 1, :body), (:writer, :number, 2, :body)";
const PAGE: &str = "SELECT id, writer, number, half, length(body) AS length FROM entries
  WHERE id > :after ORDER BY id LIMIT 500";

/// Writer of an entry, and the number of the entry among those of its writer.
type Entry = (u64, u64);

fn body(number: u64, scale: u64) -> String {
    "x".repeat(usize::try_from((1 + number % 40) * scale).unwrap())
}

/// An owner's project with a backend and the page `room`.
struct BackendInstallation {
    data: PathBuf,
    config: String,
    credential: String,
    project: String,
    /// How long an entry's body is, as a multiple.
    scale: u64,
}

impl BackendInstallation {
    async fn new(config: &Path, data: PathBuf, scale: u64) -> Self {
        let config = config.join("svc.toml");
        std::fs::write(&config, LIMITS).unwrap();
        let create = ["namespace", "create", "acme", "--json"];
        let made = svc().run(&data, &create).await.json();
        let mut site = Self {
            data,
            config: config.to_str().unwrap().to_owned(),
            credential: made["credential"].as_str().unwrap().to_owned(),
            project: String::new(),
            scale,
        };
        let server = site.serve().await;
        let project = json!({ "name": "House" });
        let made = site.send_request(&server, Method::POST, "", &project).await;
        let made = made.expect(201).json();
        site.project = format!("/{}", made["id"].as_str().unwrap());
        let room = json!({ "type": "markdown", "content": "# Room", "requested_slug": "room" });
        let actions = json!([{ "name": "add", "sql": ADD }, { "name": "page", "sql": PAGE }]);
        for (method, below, body, status) in [
            (Method::POST, "backend", json!({ "ddl": ENTRIES }), 201),
            (
                Method::PUT,
                "backend/actions",
                json!({ "actions": actions }),
                200,
            ),
            (Method::POST, "frontends", room, 201),
        ] {
            let path = format!("{}/{below}", site.project);
            let answer = site.send_request(&server, method, &path, &body).await;
            answer.expect(status);
        }
        server.kill().await;
        site
    }

    async fn serve(&self) -> Process {
        svc().serve(&self.data, &["--config", &self.config]).await
    }

    /// A request of the owner's.
    async fn send_request(
        &self,
        server: &Process,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Answer {
        let url = server.url(&format!("/api/v1/projects{path}"));
        let request = server.client().request(method, url);
        let request = request.bearer_auth(&self.credential);
        request.json(body).answer().await
    }

    async fn migrate(&self, server: &Process, ddl: &str) -> Answer {
        let path = format!("{}/backend", self.project);
        let body = json!({ "ddl": ddl });
        self.send_request(server, Method::PATCH, &path, &body).await
    }

    async fn detail(&self, server: &Process) -> Value {
        let url = server.url(&format!("/api/v1/projects{}/backend", self.project));
        let request = server.client().get(url).bearer_auth(&self.credential);
        request.answer().await.expect(200).json()
    }

    fn call(&self, entry: Entry) -> Value {
        let (writer, number) = entry;
        let body = body(number, self.scale);
        json!({
            "action": "add", "params": { "writer": writer, "number": number, "body": body },
        })
    }

    async fn add(&self, server: &Process, entry: Entry) -> Answer {
        server.json("/room/api/op", &self.call(entry)).await
    }

    /// Every entry that is there. That each is whole is looked at here.
    async fn entries(&self, server: &Process) -> BTreeSet<Entry> {
        let mut found: BTreeMap<Entry, Vec<u64>> = BTreeMap::new();
        let mut after = json!(0);
        loop {
            let call = json!({ "action": "page", "params": { "after": after } });
            let page = server.json("/room/api/op", &call).await.expect(200).json();
            let rows = page["rows"].as_array().unwrap();
            let Some(last) = rows.last() else { break };
            after = last["id"].clone();
            for row in rows {
                let [writer, number, half, length] =
                    ["writer", "number", "half", "length"].map(|name| row[name].as_u64().unwrap());
                assert_eq!(length, (1 + number % 40) * self.scale, "{row}");
                found.entry((writer, number)).or_default().push(half);
            }
        }
        for (entry, halves) in &found {
            assert_eq!(*halves, [1, 2], "{entry:?} is torn");
        }
        found.into_keys().collect()
    }

    /// That every migration is recorded once, and the file is no further than its ledger.
    async fn assert_migrations_recorded(&self, server: &Process, scripts: &[String]) {
        let detail = self.detail(server).await;
        assert_eq!(detail["warnings"], json!([]));
        let ledger = detail["migrations"].as_array().unwrap();
        let sql: Vec<_> = ledger
            .iter()
            .map(|entry| entry["sql"].as_str().unwrap())
            .collect();
        for script in scripts {
            let times = sql.iter().filter(|sql| *sql == script).count();
            assert_eq!(times, 1, "{script}");
        }
        assert_eq!(sql.len(), 1 + scripts.len());
    }

    async fn assert_check_passes(&self) {
        let checked = svc().run(&self.data, &["check", "--json"]).await.json();
        assert_eq!(checked["errors"], json!([]));
    }
}

/// Writes from all sides, kills the server once `answers` were answered and some milliseconds have passed; answers
/// what was answered, and whether the migration was.
async fn kill_while_writing(
    site: &BackendInstallation,
    next: &Arc<AtomicU64>,
    answers: usize,
    milliseconds: u64,
    migration: &str,
) -> (Vec<Entry>, bool) {
    let server = site.serve().await;
    let answered: Arc<Mutex<Vec<Entry>>> = Arc::default();
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let (client, url) = (server.client().clone(), server.url("/room/api/op"));
        let (answered, next) = (Arc::clone(&answered), Arc::clone(next));
        let scale = site.scale;
        writers.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let params =
                    json!({ "writer": writer, "number": number, "body": body(number, scale) });
                let call = json!({ "action": "add", "params": params });
                // A request that the kill cuts off was promised nothing.
                let Ok(response) = client.post(&url).json(&call).send().await else {
                    return;
                };
                let status = response.status();
                let Ok(said) = response.text().await else {
                    return;
                };
                assert_eq!(status, 200, "{said}");
                answered.lock().unwrap().push((writer, number));
            }
        });
    }
    let url = server.url(&format!("/api/v1/projects{}/backend", site.project));
    let request = server.client().patch(url).bearer_auth(&site.credential);
    let request = request.json(&json!({ "ddl": migration }));
    let migrating = tokio::spawn(async move {
        let Ok(response) = request.send().await else {
            return false;
        };
        let status = response.status();
        let Ok(said) = response.text().await else {
            return false;
        };
        assert_eq!(status, 200, "{said}");
        true
    });
    let enough = async || (answered.lock().unwrap().len() >= answers).then_some(());
    wait_until("enough answers", enough).await;
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
    server.kill().await;
    writers.join_all().await;
    let migrated = migrating.await.unwrap();
    let answered = std::mem::take(&mut *answered.lock().unwrap());
    (answered, migrated)
}

#[tokio::test]
async fn fifty_kills_lose_no_answered_write_and_tear_none() {
    let directory = TempDir::new().unwrap();
    let site = BackendInstallation::new(directory.path(), directory.path().join("data"), 30).await;
    let next = Arc::new(AtomicU64::new(0));
    let mut promised = BTreeSet::new();
    let mut scripts = Vec::new();
    for round in 0_u64..50 {
        let script = format!("CREATE TABLE of_{round} (a); INSERT INTO of_{round} VALUES (1)");
        // From the first answer on, and in the middle of the flood.
        let answers = usize::try_from(1 + round % 5 * 40).unwrap();
        let pause = round * 17 % 31;
        let (answered, migrated) = kill_while_writing(&site, &next, answers, pause, &script).await;
        assert!(answered.len() >= answers);
        promised.extend(answered);
        let server = site.serve().await;
        let there = site.entries(&server).await;
        let lost: Vec<_> = promised.difference(&there).collect();
        assert!(lost.is_empty(), "round {round}: {lost:?}");
        let again = site.migrate(&server, &script).await.expect(200).json();
        let status = again["status"].as_str().unwrap();
        if migrated {
            assert_eq!(status, "already_applied", "round {round}");
        }
        assert!(
            ["applied", "already_applied", "healed"].contains(&status),
            "{again}"
        );
        scripts.push(script);
        site.assert_migrations_recorded(&server, &scripts).await;
        site.assert_check_passes().await;
        server.kill().await;
    }
}

/// A small file system in memory. Dropping it takes it away.
struct Disk(TempDir);

impl Disk {
    fn new(megabytes: u32) -> Self {
        let disk = Self(TempDir::new().unwrap());
        let size = format!("size={megabytes}m");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]);
        let mounted = mount.arg(disk.0.path()).output().unwrap();
        // It fails rather than pass for having tested something.
        let said = String::from_utf8_lossy(&mounted.stderr);
        assert!(
            mounted.status.success(),
            "this test mounts a file system, which takes root: {said}"
        );
        disk
    }

    /// Fills it up but for some bytes; returns the file that does.
    fn fill(&self, leave: u64) -> PathBuf {
        let path = self.0.path().join("ballast");
        let room = rustix::fs::statvfs(self.0.path()).unwrap();
        let free = room.f_bavail * room.f_frsize;
        let ballast = free.saturating_sub(leave);
        std::fs::write(&path, vec![0; usize::try_from(ballast).unwrap()]).unwrap();
        path
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: a server that a failed test leaves behind may still hold it.
        let _ = Command::new("umount")
            .arg("--lazy")
            .arg(self.0.path())
            .output();
    }
}

/// That a refusal says what is the matter.
#[track_caller]
fn assert_disk_full(answer: &Answer) {
    answer.problem(503, "capacity_reached");
    assert_eq!(answer.header("retry-after"), Some("60"));
}

#[tokio::test]
async fn a_full_disk_loses_nothing_and_is_recovered_from() {
    let disk = Disk::new(96);
    let config = TempDir::new().unwrap();
    let site = BackendInstallation::new(config.path(), disk.0.path().join("data"), 1000).await;
    let mut promised = BTreeSet::new();
    let mut scripts = Vec::new();
    let mut server = site.serve().await;
    let mut number = 0;
    for (round, leave) in [0_u64, 4_096, 20_000, 100_000, 400_000, 1_500_000]
        .into_iter()
        .enumerate()
    {
        let ballast = disk.fill(leave);
        let script = format!("CREATE TABLE of_{round} (a); INSERT INTO of_{round} VALUES (1)");
        let mut refused = 0;
        while refused < 12 {
            let entry = (round as u64, number);
            let answer = site.add(&server, entry).await;
            if answer.status == 200 {
                promised.insert(entry);
            } else {
                assert_disk_full(&answer);
                refused += 1;
            }
            number += 1;
            assert!(number < 20_000, "the disk is never full");
            if refused % 4 == 3 {
                let answer = site.migrate(&server, &script).await;
                match answer.status {
                    200 => {}
                    409 => drop(answer.problem(409, "migration_not_recorded")),
                    _ => assert_disk_full(&answer),
                }
            }
        }
        // Whoever only reads is served meanwhile.
        server.get("/room").await.expect(200);
        assert_eq!(
            site.entries(&server).await,
            promised,
            "round {round}, while it is full"
        );
        std::fs::remove_file(ballast).unwrap();
        let entry = (round as u64, number);
        let back = async || (site.add(&server, entry).await.status == 200).then_some(());
        wait_until("room to write again", back).await;
        promised.insert(entry);
        number += 1;
        site.migrate(&server, &script).await.expect(200);
        scripts.push(script);
        site.assert_migrations_recorded(&server, &scripts).await;
        assert_eq!(site.entries(&server).await, promised, "round {round}");
        server.kill().await;
        server = site.serve().await;
        assert_eq!(
            site.entries(&server).await,
            promised,
            "round {round}, after a kill"
        );
        site.assert_check_passes().await;
    }
    server.kill().await;
}
