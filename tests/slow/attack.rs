//! Ten minutes of everything hostile at once, with kills between: no answer is a failure of ours, the neighbour's rows are all there, and
//! `svc check` finds a sound data directory.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Answer, Process, ReadAnswer, SeededRng};
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::attacker::{AttackSources, Attacker, EXPRESSIONS, Tenant};
use crate::svc;

/// How long it lasts in all; `ATTACK_SECONDS` says otherwise.
const SECONDS: u64 = 600;
/// How long a server lives before it is killed.
const LIFE: Duration = Duration::from_secs(60);

/// Enough for a flood; every other limit is the service's.
const LIMITS: &str = "[limits]
deploy_burst = 1000000
mcp_burst = 1000000
op_burst = 1000000
op_deployment_burst = 1000000
owner_burst = 1000000
free_disk_bytes = 0
";

const CONTENT: &str = include_str!("../corpus/hostile/content.json");
const BODIES: &str = include_str!("../corpus/hostile/bodies.json");

/// Sends a request of an owner's.
async fn send(
    server: &Process,
    credential: &str,
    method: Method,
    path: &str,
    body: &Value,
) -> Answer {
    let url = server.url(&format!("/api/v1/projects{path}"));
    let request = server.client().request(method, url);
    request.bearer_auth(credential).json(body).answer().await
}

impl Tenant {
    async fn settle(
        server: &Process,
        credential: &str,
        page: &'static str,
        ddl: &str,
        actions: &Value,
    ) -> Self {
        let post = async |path: &str, body: &Value| {
            let answer = send(server, credential, Method::POST, path, body).await;
            answer.expect(201).json()
        };
        let made = post("", &json!({ "name": page })).await;
        let project = format!("/{}", made["id"].as_str().unwrap());
        let backend = json!({ "ddl": ddl, "realtime": true });
        post(&format!("{project}/backend"), &backend).await;
        let path = format!("{project}/backend/actions");
        let defined = json!({ "actions": actions });
        send(server, credential, Method::PUT, &path, &defined)
            .await
            .expect(200);
        let frontend = json!({ "type": "html", "content": "x", "requested_slug": page });
        post(&format!("{project}/frontends"), &frontend).await;
        Self {
            credential: credential.to_owned(),
            project,
            page,
        }
    }
}

/// The neighbour's rows, counted by the server.
async fn count(server: &Process) -> u64 {
    let call = json!({ "action": "count", "params": {} });
    let answer = server.json("/calm/api/op", &call).await.expect(200).json();
    answer["rows"][0]["n"].as_u64().unwrap()
}

struct AttackRun {
    data: PathBuf,
    config: String,
    numbers: SeededRng,
    faults: Arc<Mutex<Vec<String>>>,
    sources: Arc<AttackSources>,
}

impl AttackRun {
    fn new(directory: &Path) -> Self {
        let config = directory.join("svc.toml");
        std::fs::write(&config, LIMITS).unwrap();
        let corpus = |text| serde_json::from_str::<Vec<Value>>(text).unwrap();
        Self {
            data: directory.join("data"),
            config: config.to_str().unwrap().to_owned(),
            numbers: SeededRng::new(7),
            faults: Arc::default(),
            sources: Arc::new(AttackSources {
                contents: corpus(CONTENT),
                bodies: corpus(BODIES),
            }),
        }
    }

    async fn key(&self, name: &str) -> String {
        let create = ["namespace", "create", name, "--json"];
        let made = svc().run(&self.data, &create).await.json();
        made["credential"].as_str().unwrap().to_owned()
    }

    async fn serve(&self) -> Process {
        svc().serve(&self.data, &["--config", &self.config]).await
    }

    /// One life of a server under attack, to its kill; returns how many of the neighbour's inserts were answered.
    async fn run_server_until_killed(&mut self, tenant: &Tenant, until: Instant) -> u64 {
        let server = self.serve().await;
        let mut attackers = JoinSet::new();
        for _ in 0..24 {
            let attacker = Attacker {
                client: server.client().clone(),
                address: server.address(),
                tenant: tenant.clone(),
                numbers: SeededRng::new(self.numbers.draw()),
                faults: Arc::clone(&self.faults),
            };
            attackers.spawn(attacker.attack(until, Arc::clone(&self.sources)));
        }
        let mut kept = 0;
        while Instant::now() < until {
            let call = json!({ "action": "add", "params": {} });
            let answer = server.json("/calm/api/op", &call).await;
            assert_eq!(answer.status, 200, "the neighbour: {}", answer.text());
            kept += 1;
            server.get("/calm").await.expect(200);
            server.get("/healthz").await.expect(200);
        }
        let said = server.stderr();
        assert!(!said.contains("panicked"), "{said}");
        server.kill().await;
        attackers.join_all().await;
        kept
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_minutes_of_attack_leave_a_sound_directory() {
    let directory = TempDir::new().unwrap();
    let mut siege = AttackRun::new(directory.path());
    let (bad, calm) = (siege.key("bad").await, siege.key("calm").await);
    let server = siege.serve().await;
    let actions: Vec<Value> = EXPRESSIONS
        .iter()
        .map(|(name, times, part)| json!({ "name": name, "sql": format!("SELECT {} AS x", vec![*part; *times].join(" + ")) }))
        .collect();
    let attacked = Tenant::settle(
        &server,
        &bad,
        "bait",
        "CREATE TABLE bait (a TEXT)",
        &json!(actions),
    )
    .await;
    let own = json!([
        { "name": "add", "sql": "INSERT INTO t DEFAULT VALUES" },
        { "name": "count", "sql": "SELECT count(*) AS n FROM t" },
    ]);
    Tenant::settle(
        &server,
        &calm,
        "calm",
        "CREATE TABLE t (id INTEGER PRIMARY KEY)",
        &own,
    )
    .await;
    server.kill().await;

    let seconds = std::env::var("ATTACK_SECONDS").map_or(SECONDS, |text| text.parse().unwrap());
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut kept = 0;
    while Instant::now() < end {
        let until = end.min(Instant::now() + LIFE);
        kept += siege.run_server_until_killed(&attacked, until).await;
        let checked = svc().run(&siege.data, &["check", "--json"]).await.json();
        assert_eq!(checked["errors"], json!([]));
        let server = siege.serve().await;
        let there = count(&server).await;
        assert!(there >= kept, "{there} rows of {kept} that were promised");
        server.kill().await;
        let faults = siege.faults.lock().unwrap();
        assert!(
            faults.is_empty(),
            "{} faults: {:#?}",
            faults.len(),
            &faults[..faults.len().min(5)]
        );
    }
    println!("{kept} inserts of the neighbour were answered");
}
