//! Counts of a hundred thousand mixed calls: exact, and still so after a kill, but for the last minute before it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Process, ReadAnswer};
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::svc;

const REQUESTS: u64 = 100_000;
/// Visitors who ask at once.
const VISITORS: u64 = 16;
/// Counts are synced once a minute.
const SYNC: Duration = Duration::from_secs(65);
const LIMITS: &str = "[limits]
op_per_minute = 1000000000
op_burst = 1000000000
op_deployment_per_minute = 1000000000
op_deployment_burst = 1000000000
";

/// An owner's project with the page `room`.
struct Room {
    config: String,
    data: TempDir,
    credential: String,
    project: String,
}

/// Answers that were counted by who asked: views, calls, and calls that failed.
#[derive(Debug, Default)]
struct Answered {
    views: AtomicU64,
    calls: AtomicU64,
    errors: AtomicU64,
}

impl Answered {
    fn add(&self, views: u64, calls: u64, errors: u64) {
        self.views.fetch_add(views, Ordering::Relaxed);
        self.calls.fetch_add(calls, Ordering::Relaxed);
        self.errors.fetch_add(errors, Ordering::Relaxed);
    }

    fn sums(&self) -> [u64; 3] {
        [&self.views, &self.calls, &self.errors].map(|sum| sum.load(Ordering::Relaxed))
    }
}

impl Room {
    async fn new(directory: &Path) -> Self {
        let config = directory.join("svc.toml");
        std::fs::write(&config, LIMITS).unwrap();
        let data = TempDir::new().unwrap();
        let create = ["namespace", "create", "acme", "--json"];
        let made = svc().run(data.path(), &create).await.json();
        let mut room = Self {
            config: config.to_str().unwrap().to_owned(),
            data,
            credential: made["credential"].as_str().unwrap().to_owned(),
            project: String::new(),
        };
        let server = room.serve().await;
        let project = json!({ "name": "House" });
        let made = room.ask(&server, Method::POST, "", &project).await;
        room.project = format!("/{}", made["id"].as_str().unwrap());
        let ddl = "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT UNIQUE); INSERT INTO notes (text) VALUES ('taken');";
        let actions = json!([
            { "name": "get", "sql": "SELECT text FROM notes WHERE id = :id" },
            { "name": "add", "sql": "INSERT INTO notes (text) VALUES (:text)" },
        ]);
        let page = json!({ "type": "markdown", "content": "# Room", "requested_slug": "room" });
        for (method, below, body) in [
            (Method::POST, "/backend", json!({ "ddl": ddl })),
            (
                Method::PUT,
                "/backend/actions",
                json!({ "actions": actions }),
            ),
            (Method::POST, "/frontends", page),
        ] {
            let path = format!("{}{below}", room.project);
            room.ask(&server, method, &path, &body).await;
        }
        server.kill().await;
        room
    }

    async fn serve(&self) -> Process {
        svc()
            .serve(self.data.path(), &["--config", &self.config])
            .await
    }

    /// Sends a request of the owner's that is taken.
    async fn ask(&self, server: &Process, method: Method, path: &str, body: &Value) -> Value {
        let url = server.url(&format!("/api/v1/projects{path}"));
        let mut request = reqwest::Client::new()
            .request(method, url)
            .bearer_auth(&self.credential);
        if !body.is_null() {
            request = request.json(body);
        }
        let answer = request.answer().await;
        assert!(answer.status < 300, "{answer:?}");
        answer.json()
    }

    /// Returns what the server has counted in the last day.
    async fn counted(&self, server: &Process) -> [u64; 3] {
        let path = format!("{}/stats?step=hour", self.project);
        let stats = self.ask(server, Method::GET, &path, &Value::Null).await;
        let sum = |name: &str| {
            let hours = stats["series"].as_array().unwrap();
            hours.iter().map(|hour| hour[name].as_u64().unwrap()).sum()
        };
        ["views", "calls", "errors"].map(sum)
    }
}

/// Sends so many requests of all kinds, many at once.
async fn ask_all(server: &Process, count: u64, answered: &Arc<Answered>) {
    let mut visitors = JoinSet::new();
    for visitor in 0..VISITORS {
        let (page, answered) = (server.url("/room"), Arc::clone(answered));
        visitors.spawn(async move {
            let client = reqwest::Client::new();
            for number in (visitor..count).step_by(VISITORS as usize) {
                ask_once(&client, &page, number, &answered).await;
            }
        });
    }
    visitors.join_all().await;
}

async fn ask_once(client: &reqwest::Client, page: &str, number: u64, answered: &Answered) {
    let get = json!({ "action": "get", "params": { "id": 1 } });
    let taken = json!({ "action": "add", "params": { "text": "taken" } });
    let (body, status, [views, calls, errors]) = match number % 6 {
        0 | 1 => (Value::Null, 200, [1, 0, 0]),
        2 => (get, 200, [0, 1, 0]),
        3 => (json!({ "ops": [get, get] }), 200, [0, 2, 0]),
        4 => (taken, 409, [0, 1, 1]),
        _ => (json!({ "action": "unheard_of" }), 404, [0, 1, 1]),
    };
    let request = match body.is_null() {
        true => client.get(page),
        false => client.post(format!("{page}/api/op")).json(&body),
    };
    request.answer().await.expect(status);
    answered.add(views, calls, errors);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_requests_are_counted_exactly() {
    let directory = TempDir::new().unwrap();
    let room = Room::new(directory.path()).await;
    let answered = Arc::new(Answered::default());
    let server = room.serve().await;
    ask_all(&server, REQUESTS / 2, &answered).await;
    assert_eq!(room.counted(&server).await, answered.sums());
    tokio::time::sleep(SYNC).await;
    server.kill().await;
    let server = room.serve().await;
    assert_eq!(room.counted(&server).await, answered.sums(), "after a kill");
    ask_all(&server, REQUESTS / 2, &answered).await;
    assert_eq!(room.counted(&server).await, answered.sums(), "after both");
}
