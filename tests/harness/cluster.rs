//! A cluster on this machine: PostgreSQL with two synced standbys, a directory as the bucket, and nodes as processes of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::Method;
use reqwest::{Client, RequestBuilder};
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::answer::{Answer, ReadAnswer};
use crate::http_client;
use crate::peer_relay::PeerRelay;
use crate::postgres::Postgres;
use crate::process::{Binary, Output, Process};
use crate::seeded_rng::SeededRng;
use crate::wait::wait_until;

/// Writers at once.
const WRITERS: u64 = 16;
/// Longest time that a writer waits for an answer.
const CALL_TIMEOUT: Duration = Duration::from_secs(15);
/// Pause of a writer that was not answered by 200.
const PAUSE: Duration = Duration::from_millis(20);

/// Settings of every node, but for those of the cluster.
const LIMITS: &str = "[limits]
op_burst = 100000000
op_deployment_burst = 100000000
owner_burst = 1000000
deploy_burst = 1000000
mcp_burst = 1000000
sign_in_burst = 1000000
active_deployments = 1000000
free_workspaces_per_user = 1000000
workspaces_per_user = 1000000
projects_free = 1000000
projects_pro = 1000000
free_disk_bytes = 0
";

/// The table of entries has no rule against the same entry twice: that is looked for.
const TABLES: &str =
    "CREATE TABLE entries (id INTEGER PRIMARY KEY, writer INTEGER, number INTEGER);
    CREATE TABLE filler (id INTEGER PRIMARY KEY, body BLOB)";
const ADD: &str = "INSERT INTO entries (writer, number) VALUES (:writer, :number)";
/// Changes as many pages that the ledger gets a long tail, and the database stays small.
const FILL: &str = "INSERT OR REPLACE INTO filler (id, body) VALUES (1, randomblob(100000))";
const PAGE: &str = "SELECT id, writer, number FROM entries WHERE id > :after ORDER BY id LIMIT 500";

/// Listener for other nodes, at a free port.
const PEERS: &str = "peer_listen = '127.0.0.1:0'\n";

/// Writer of an entry, and its number among those of the writer.
pub type Entry = (u64, u64);

/// An installation of several nodes. The page `room` has the actions `add`, `fill` and `page`.
#[derive(Debug)]
pub struct Cluster {
    binary: Binary,
    pub postgres: Postgres,
    directory: TempDir,
    /// More settings of every node, which come first.
    settings: String,
    /// Number of data directories that were made.
    directories: AtomicU64,
    credential: String,
    project: String,
}

/// A node. Dropping it kills it.
#[derive(Debug)]
pub struct ClusterNode {
    pub process: Process,
    pub data: PathBuf,
}

impl ClusterNode {
    /// Kills the node and throws its disk away.
    pub async fn lose(self) {
        self.process.kill().await;
        fs::remove_dir_all(self.data).unwrap();
    }

    /// Waits until the node serves.
    pub async fn wait_until_ready(&self) {
        wait_until("a node that serves", async || {
            let request = self.process.client().get(self.process.url("/readyz"));
            // A standby that begins to serve closes connections that rest.
            let answer = request.send().await.ok()?;
            (answer.status() == 200).then_some(())
        })
        .await;
    }

    /// Adds an entry.
    pub async fn add(&self, entry: Entry) -> Answer {
        self.process.json("/room/api/op", &call(entry)).await
    }
}

/// The call that adds an entry.
fn call((writer, number): Entry) -> Value {
    json!({ "action": "add", "params": { "writer": writer, "number": number } })
}

impl Cluster {
    /// Starts the ledger, which nobody has founded yet.
    pub async fn unfounded(binary: Binary) -> Self {
        let directory = TempDir::with_prefix("svc-cluster-").unwrap();
        fs::create_dir(directory.path().join("bucket")).unwrap();
        Self {
            binary,
            postgres: Postgres::start().await,
            directory,
            settings: String::new(),
            directories: AtomicU64::new(0),
            credential: String::new(),
            project: String::new(),
        }
    }

    /// Starts the ledger, and founds an empty installation in it.
    pub async fn found(binary: Binary) -> Self {
        Self::found_with_settings(binary, "").await
    }

    /// Starts the ledger, and founds an empty installation in it whose nodes have more settings.
    pub async fn found_with_settings(binary: Binary, settings: &str) -> Self {
        let mut cluster = Self::unfounded(binary).await;
        settings.clone_into(&mut cluster.settings);
        let data = cluster.new_data("founding");
        for _ in 0..2 {
            let founded = cluster.found_with(&data, None).await;
            assert!(founded.success, "{founded:?}");
        }
        cluster
    }

    /// Founds with the installation in a data directory; the command dies at a fault point if one is named.
    pub async fn found_with(&self, data: &Path, fault: Option<&str>) -> Output {
        let config = self.config("n1", PEERS);
        let arguments = ["cluster", "found", "--config", config.to_str().unwrap()];
        match fault {
            Some(fault) => self.binary.run_to_fault(fault, data, &arguments).await,
            None => self.binary.run(data, &arguments).await,
        }
    }

    /// Makes an installation of one machine that has the page `room`, and the entries that are given. Nobody serves it then.
    pub async fn installation(&mut self, entries: &[Entry]) -> PathBuf {
        let data = self.new_data("one");
        let config = self.directory.path().join("one.toml");
        fs::write(&config, LIMITS).unwrap();
        let arguments = ["--config", config.to_str().unwrap()];
        let process = self.binary.serve(&data, &arguments).await;
        let node = ClusterNode { process, data };
        self.make_room(&node).await;
        for entry in entries {
            node.add(*entry).await.expect(200);
        }
        let share = json!({ "content": "# Once", "one_time": true });
        let published = node.process.json("/api/v1/deploy", &share).await;
        published.expect(201);
        node.process.signal(Signal::TERM);
        node.process.wait_for_exit().await;
        node.data
    }

    /// Empties the ledger and the bucket, which no process uses.
    pub async fn empty(&self) {
        let forget = "DROP SCHEMA IF EXISTS svc CASCADE";
        self.postgres.sql(0, forget).await;
        fs::remove_dir_all(self.bucket()).unwrap();
        fs::create_dir(self.bucket()).unwrap();
    }

    /// Returns the directory that is the bucket.
    pub fn bucket(&self) -> PathBuf {
        self.directory.path().join("bucket")
    }

    /// Founds an installation, and starts a node that serves the page `room`.
    pub async fn with_room(binary: Binary) -> (Self, ClusterNode) {
        Self::with_room_and_settings(binary, "").await
    }

    /// Does the same, with more settings of every node.
    pub async fn with_room_and_settings(binary: Binary, settings: &str) -> (Self, ClusterNode) {
        let mut cluster = Self::found_with_settings(binary, settings).await;
        let node = cluster.start("n1", false).await;
        node.wait_until_ready().await;
        cluster.make_room(&node).await;
        (cluster, node)
    }

    /// Returns the path of a data directory that is not there yet.
    pub fn new_data(&self, name: &str) -> PathBuf {
        let number = self.directories.fetch_add(1, Ordering::Relaxed);
        self.directory.path().join(format!("{name}-{number}"))
    }

    /// Writes the settings of a node.
    fn config(&self, name: &str, peers: &str) -> PathBuf {
        let path = self.directory.path().join(format!("{name}.toml"));
        let bucket = self.bucket();
        let (url, bucket) = (self.postgres.url(), bucket.display());
        let settings = &self.settings;
        let text = format!(
            "{settings}{LIMITS}[cluster]\nname = '{name}'\nledger = '{url}'\nbucket = 'file://{bucket}'\n\
             {peers}suspect_seconds = 4\n"
        );
        fs::write(&path, text).unwrap();
        path
    }

    /// Starts a node with an empty disk: it serves or stands by.
    pub async fn start(&self, name: &str, standby: bool) -> ClusterNode {
        let started = self.try_start(name, standby).await;
        started.unwrap_or_else(|said| panic!("not ready: {said}"))
    }

    /// Starts a node with an empty disk; returns its output if it ends at once.
    pub async fn try_start(&self, name: &str, standby: bool) -> Result<ClusterNode, String> {
        self.launch(name, PEERS, standby, None).await
    }

    /// Starts a node with an empty disk that serves, and that others reach through a relay.
    pub async fn start_behind(&self, name: &str, peers: &PeerRelay) -> ClusterNode {
        let started = self.launch(name, &peers.settings(), false, None).await;
        started.unwrap_or_else(|said| panic!("not ready: {said}"))
    }

    /// Starts a standby with an empty disk that dies at a fault point; returns its output if it ends at once.
    pub async fn start_to_fault(&self, name: &str, fault: &str) -> Result<ClusterNode, String> {
        self.launch(name, PEERS, true, Some(fault)).await
    }

    async fn launch(
        &self,
        name: &str,
        peers: &str,
        standby: bool,
        fault: Option<&str>,
    ) -> Result<ClusterNode, String> {
        let data = self.new_data(name);
        let config = self.config(name, peers);
        let config = config.to_str().unwrap();
        let mut arguments = vec!["--config", config];
        arguments.extend(standby.then_some("--standby"));
        let process = self.binary.try_serve_to_fault(fault, &data, &arguments);
        let process = process.await?;
        Ok(ClusterNode { process, data })
    }

    /// Has a node take control, as an operator does; the node may die of it.
    pub async fn promote(&self, node: &ClusterNode) -> Output {
        self.run(&node.data, &["promote", "--json"]).await
    }

    /// Runs a command at the data directory of a node.
    pub async fn run(&self, data: &Path, arguments: &[&str]) -> Output {
        self.binary.run(data, arguments).await
    }

    /// Returns the nodes that are listed at one of them.
    pub async fn nodes(&self, at: &ClusterNode) -> Vec<Value> {
        let list = ["node", "list", "--json"];
        let mut listed = self.run(&at.data, &list).await.json();
        let fields = listed.as_object().unwrap();
        assert!(fields.keys().eq(["nodes"]), "{listed}");
        serde_json::from_value(listed["nodes"].take()).unwrap()
    }

    /// Restores the installation onto one machine, with the ledger or from the bucket alone. Returns the new data directory, and the answer
    /// of the command.
    pub async fn restore(&self, with_ledger: bool) -> (PathBuf, Value) {
        let data = self.new_data("restored");
        let bucket = self.directory.path().join("bucket");
        let (bucket, ledger) = (format!("file://{}", bucket.display()), self.postgres.url());
        let mut arguments = vec!["restore", "--json", "--from", &bucket];
        if with_ledger {
            arguments.extend(["--ledger", &ledger]);
        }
        let restored = self.run(&data, &arguments).await.json();
        (data, restored)
    }

    /// Starts a server of one machine on a data directory.
    pub async fn serve_alone(&self, data: PathBuf) -> ClusterNode {
        let config = self.directory.path().join("alone.toml");
        fs::write(&config, LIMITS).unwrap();
        let arguments = ["--config", config.to_str().unwrap()];
        let process = self.binary.serve(&data, &arguments).await;
        let node = ClusterNode { process, data };
        node.wait_until_ready().await;
        node
    }

    /// Makes the page `room` with its project.
    pub async fn make_room(&mut self, node: &ClusterNode) {
        let create = ["namespace", "create", "acme", "--json"];
        let made = self.run(&node.data, &create).await.json();
        made["credential"]
            .as_str()
            .unwrap()
            .clone_into(&mut self.credential);
        let house = json!({ "name": "House" });
        let made = self.owner(node, Method::POST, "", &house).await;
        let made = made.expect(201).json();
        self.project = format!("/{}", made["id"].as_str().unwrap());
        let room = json!({ "type": "markdown", "content": "# Room", "requested_slug": "room" });
        let actions = [("add", ADD), ("fill", FILL), ("page", PAGE)];
        let actions = actions.map(|(name, sql)| json!({ "name": name, "sql": sql }));
        for (method, below, body, status) in [
            (Method::POST, "backend", json!({ "ddl": TABLES }), 201),
            (
                Method::PUT,
                "backend/actions",
                json!({ "actions": actions }),
                200,
            ),
            (Method::POST, "frontends", room, 201),
        ] {
            let path = format!("{}/{below}", self.project);
            self.owner(node, method, &path, &body).await.expect(status);
        }
    }

    /// Sends a request of the owner's, about something of the project.
    pub async fn ask(
        &self,
        node: &ClusterNode,
        method: Method,
        below: &str,
        body: &Value,
    ) -> Answer {
        let path = format!("{}{below}", self.project);
        self.owner(node, method, &path, body).await
    }

    /// Returns the owner's credential.
    pub fn credential(&self) -> &str {
        &self.credential
    }

    /// Returns the id of the owner's project.
    pub fn project(&self) -> &str {
        self.project.trim_start_matches('/')
    }

    /// Sends a request of the owner's.
    async fn owner(&self, node: &ClusterNode, method: Method, path: &str, body: &Value) -> Answer {
        let request = self.owner_request(node, method, path);
        request.json(body).answer().await
    }

    /// Returns a request of the owner's that has no body yet.
    pub fn owner_request(&self, node: &ClusterNode, method: Method, path: &str) -> RequestBuilder {
        let url = node.process.url(&format!("/api/v1/projects{path}"));
        let request = node.process.client().request(method, url);
        request.bearer_auth(&self.credential)
    }

    /// Returns the path of the backend of `room`, as the owner's requests have it.
    pub fn backend(&self) -> String {
        format!("{}/backend", self.project)
    }

    /// All entries that a node has, with how often each is there.
    pub async fn entries(&self, node: &ClusterNode) -> BTreeMap<Entry, usize> {
        let mut found = BTreeMap::new();
        let mut after = 0;
        loop {
            let page = json!({ "action": "page", "params": { "after": after } });
            let answer = node.process.json("/room/api/op", &page).await.expect(200);
            let answer = answer.json();
            let rows = answer["rows"].as_array().unwrap();
            for row in rows {
                let number = |name: &str| row[name].as_u64().unwrap();
                after = number("id");
                *found
                    .entry((number("writer"), number("number")))
                    .or_insert(0) += 1;
            }
            if rows.is_empty() {
                return found;
            }
        }
    }
}

/// Writers that go on whatever happens, each entry sent once. What they know outlives the nodes.
#[derive(Debug)]
pub struct Writers {
    target: Arc<Mutex<Target>>,
    acknowledged: Arc<Mutex<BTreeSet<Entry>>>,
    sent: Arc<Mutex<BTreeSet<Entry>>>,
    stop: Arc<AtomicBool>,
    tasks: JoinSet<()>,
}

/// Nodes that writers write at, each request at a random one.
#[derive(Debug, Default)]
struct Target {
    urls: Vec<String>,
    /// Number of times that writers were turned to other nodes.
    turns: u64,
    /// Time at which a request that was begun since then was acknowledged for the first time.
    answered: Option<Instant>,
}

impl Target {
    fn turn_to(&mut self, nodes: &[&ClusterNode]) {
        let urls = nodes.iter().map(|node| node.process.url("/room/api/op"));
        self.urls = urls.collect();
        self.turns += 1;
        self.answered = None;
    }

    /// Draws a node; returns its URL with the number of the turn.
    fn draw(&self, rng: &mut SeededRng) -> (String, u64) {
        let at = usize::try_from(rng.draw()).unwrap() % self.urls.len();
        (self.urls[at].clone(), self.turns)
    }
}

impl Writers {
    /// Starts to write at a node.
    pub fn start(node: &ClusterNode) -> Self {
        Self::start_at(&[node])
    }

    /// Starts to write at random nodes of these.
    pub fn start_at(nodes: &[&ClusterNode]) -> Self {
        let mut target = Target::default();
        target.turn_to(nodes);
        let mut writers = Self {
            target: Arc::new(Mutex::new(target)),
            acknowledged: Arc::default(),
            sent: Arc::default(),
            stop: Arc::default(),
            tasks: JoinSet::new(),
        };
        let client = http_client()
            .no_proxy()
            .timeout(CALL_TIMEOUT)
            .build()
            .unwrap();
        for writer in 0..WRITERS {
            let task = writers.write(client.clone(), writer);
            writers.tasks.spawn(task);
        }
        writers
    }

    fn write(&self, client: Client, writer: u64) -> impl Future<Output = ()> + Send + use<> {
        let (target, stop) = (Arc::clone(&self.target), Arc::clone(&self.stop));
        let (acknowledged, sent) = (Arc::clone(&self.acknowledged), Arc::clone(&self.sent));
        let mut rng = SeededRng::new(writer);
        async move {
            let mut number = 0;
            while !stop.load(Ordering::Relaxed) {
                let entry = (writer, number);
                number += 1;
                sent.lock().unwrap().insert(entry);
                let (at, turn) = target.lock().unwrap().draw(&mut rng);
                let answer = client.post(&at).json(&call(entry)).send().await;
                let status = answer.map(|answer| answer.status().as_u16());
                match status {
                    Ok(200) => {
                        acknowledged.lock().unwrap().insert(entry);
                        let mut target = target.lock().unwrap();
                        if target.turns == turn {
                            target.answered.get_or_insert_with(Instant::now);
                        }
                    }
                    // Nothing was done, or nobody knows.
                    Ok(503) | Err(_) => tokio::time::sleep(PAUSE).await,
                    Ok(other) => panic!("an entry was answered by {other}"),
                }
            }
        }
    }

    /// Has the writers go on at another node.
    pub fn turn_to(&self, node: &ClusterNode) {
        self.turn_to_any(&[node]);
    }

    /// Has the writers go on at random nodes of these.
    pub fn turn_to_any(&self, nodes: &[&ClusterNode]) {
        self.target.lock().unwrap().turn_to(nodes);
    }

    /// Waits until a node that they were turned to has acknowledged an entry; returns when that was.
    pub async fn wait_for_answer(&self) -> Instant {
        let answered = async || self.target.lock().unwrap().answered;
        wait_until("an entry to be acknowledged by another node", answered).await
    }

    /// Number of entries that were acknowledged so far.
    pub fn acknowledged(&self) -> usize {
        self.acknowledged.lock().unwrap().len()
    }

    /// Waits until so many more entries are acknowledged.
    pub async fn wait_for(&self, more: usize) {
        let enough = self.acknowledged() + more;
        wait_until("acknowledged entries", async || {
            (self.acknowledged() >= enough).then_some(())
        })
        .await;
    }

    /// Ends the writers, and compares what they know with what a node has.
    pub async fn check(self, cluster: &Cluster, node: &ClusterNode) {
        self.check_at(cluster, &[node]).await;
    }

    /// Ends the writers, and compares what they know with what each of these nodes has.
    pub async fn check_at(self, cluster: &Cluster, nodes: &[&ClusterNode]) {
        self.stop.store(true, Ordering::Relaxed);
        self.tasks.join_all().await;
        for node in nodes {
            let found = cluster.entries(node).await;
            let (acknowledged, sent) = (self.acknowledged.lock(), self.sent.lock());
            let faults = entry_faults(&acknowledged.unwrap(), &sent.unwrap(), &found);
            assert!(faults.is_empty(), "{faults:?}");
        }
    }
}

/// Compares the entries that a node has, with how often each is there, with those that were acknowledged and those that were sent. Returns
/// what is wrong.
pub fn entry_faults(
    acknowledged: &BTreeSet<Entry>,
    sent: &BTreeSet<Entry>,
    found: &BTreeMap<Entry, usize>,
) -> Vec<String> {
    let lost = acknowledged
        .iter()
        .filter(|entry| !found.contains_key(*entry));
    let mut faults: Vec<_> = lost
        .map(|entry| format!("{entry:?} was acknowledged and is lost"))
        .collect();
    for (entry, times) in found {
        if *times != 1 {
            faults.push(format!("{entry:?} is there {times} times"));
        }
        if !sent.contains(entry) {
            faults.push(format!("nobody has sent {entry:?}"));
        }
    }
    faults
}
