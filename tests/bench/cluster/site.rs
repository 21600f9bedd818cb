//! Cluster of a run: a PostgreSQL that syncs to the disk, a directory as the bucket, and nodes by the defaults.

use std::cell::Cell;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use svc_tests::postgres::Postgres;
use tokio::runtime::Runtime;
use tokio_postgres::Client;

use super::super::client;
use super::super::server::{Bench, Running, cpu_of};

/// Pause between two attempts of a request, and the time after which there is no other.
const PAUSE: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_secs(60);
/// Databases that an installation may have.
const BACKENDS: usize = 2_000;

/// Node that has control.
const OWNER: &str = "SELECT n.name FROM svc.places p JOIN svc.nodes n ON n.run = p.run WHERE n.live AND p.db = 'control'";

/// A cluster.
pub(super) struct Site<'b> {
    bench: &'b Bench,
    /// Runtime of the bench's own requests to the ledger; nodes are processes of their own.
    runtime: Runtime,
    client: Client,
    ledger: String,
    bucket: String,
    /// Number of nodes that were started.
    started: Cell<usize>,
    postgres: Postgres,
}

/// A node. Dropping it kills it.
pub(super) struct Node {
    pub(super) svc: Running,
    name: String,
    /// Name of the data directory.
    pub(super) data: String,
    directory: PathBuf,
}

impl Node {
    /// Sends a request on a connection of its own, again and again until it is answered by `status`: a takeover may break connections.
    pub(super) fn wait_for_answer(&self, request: &[u8], status: u16) -> anyhow::Result<()> {
        let since = Instant::now();
        loop {
            let answer = self
                .svc
                .client()
                .and_then(|mut client| client.send(request));
            match answer.map(|answer| answer.status) {
                Ok(answered) if answered == status => return Ok(()),
                Ok(503) | Err(_) => thread::sleep(PAUSE),
                Ok(other) => bail!("a request was answered by {other}"),
            }
            ensure!(since.elapsed() < LONGEST, "the node does not serve");
        }
    }

    /// Waits until the node serves.
    pub(super) fn wait_until_ready(&self) -> anyhow::Result<()> {
        let request = client::get(self.svc.address, "/readyz", "identity");
        self.wait_for_answer(&request, 200)
    }

    /// Waits until a page can be published, which needs the node that has control.
    pub(super) fn wait_for_control(&self) -> anyhow::Result<()> {
        let page = json!({ "content": "# Published" });
        let request = client::post(self.svc.address, "/api/v1/deploy", &page);
        self.wait_for_answer(&request, 201)
    }

    /// Kills the node, and throws its disk away.
    pub(super) fn lose(self) -> anyhow::Result<()> {
        drop(self.svc);
        Ok(std::fs::remove_dir_all(self.directory)?)
    }
}

impl<'b> Site<'b> {
    /// Starts PostgreSQL, and founds an empty installation in it.
    pub(super) fn found(bench: &'b Bench) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        // The directory of the run is for its user alone, and PostgreSQL may run as another one.
        let program = std::env::current_exe()?;
        let home = program.parent().context("a program without a directory")?;
        let postgres = runtime.block_on(Postgres::start_durable(home));
        let client = runtime.block_on(postgres.client());
        let bucket = bench.directory("cluster-bucket");
        std::fs::create_dir(&bucket)?;
        let site = Self {
            bench,
            runtime,
            client,
            ledger: postgres.url(),
            bucket: format!("file://{}", bucket.display()),
            started: Cell::new(0),
            postgres,
        };
        site.node("founding")?.found_cluster("cluster-founding")?;
        Ok(site)
    }

    /// The program with the settings of a node.
    fn node(&self, name: &str) -> anyhow::Result<Bench> {
        let Self { ledger, bucket, .. } = self;
        let lines = format!(
            "backends = {BACKENDS}\n[cluster]\nname = \"{name}\"\nledger = \"{ledger}\"\nbucket = \"{bucket}\"\npeer_listen = \"127.0.0.1:0\"\n"
        );
        self.bench
            .with_more_settings(&format!("cluster-{name}"), &lines)
    }

    /// Starts a node with an empty disk. It follows the node that has control, if there is one.
    pub(super) fn start(&self) -> anyhow::Result<Node> {
        let number = self.started.replace(self.started.get() + 1);
        let data = format!("cluster-data-{number}");
        let name = format!("n{number}");
        let svc = self.node(&name)?.start_svc(&data)?;
        let directory = self.bench.directory(&data);
        Ok(Node {
            svc,
            name,
            data,
            directory,
        })
    }

    /// Starts a node with an empty disk, and waits until it serves.
    pub(super) fn start_serving(&self) -> anyhow::Result<Node> {
        let node = self.start()?;
        node.wait_until_ready()?;
        Ok(node)
    }

    /// Takes the node that has control out of some.
    pub(super) fn take_owner(&self, nodes: &mut Vec<Node>) -> anyhow::Result<Node> {
        let name = self.text(OWNER)?;
        let at = nodes.iter().position(|node| node.name == name);
        let at = at.with_context(|| format!("{name} has control, which is none of these nodes"))?;
        Ok(nodes.swap_remove(at))
    }

    /// Number of databases that a node has, the installation's own left out.
    pub(super) fn places(&self, node: &Node) -> anyhow::Result<i64> {
        let name = &node.name;
        self.number(&format!(
            "SELECT count(*) FROM svc.places p JOIN svc.nodes n ON n.run = p.run WHERE n.live AND n.name = '{name}' AND p.db <> 'control'"
        ))
    }

    /// Processor time that the ledger's servers have used so far.
    pub(super) fn ledger_cpu(&self) -> Duration {
        let ids = self.postgres.processes();
        // A process may have ended since it was listed.
        let times = ids.iter().filter_map(|id| cpu_of(&id.to_string()).ok());
        times.sum()
    }

    /// Restores the installation onto one machine; returns the answer of the command.
    pub(super) fn restore(&self, data: &str) -> anyhow::Result<Value> {
        self.bench.restore_cluster(data, &self.bucket, &self.ledger)
    }

    /// Returns the connection to the ledger.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Waits for an answer of the ledger.
    pub(super) fn wait<F: Future>(&self, answer: F) -> F::Output {
        self.runtime.block_on(answer)
    }

    /// Asks the ledger for a number.
    pub(super) fn number(&self, sql: &str) -> anyhow::Result<i64> {
        let row = self.wait(self.client.query_one(sql, &[]))?;
        Ok(row.try_get(0)?)
    }

    /// Asks the ledger for a text.
    pub(super) fn text(&self, sql: &str) -> anyhow::Result<String> {
        let row = self.wait(self.client.query_one(sql, &[]))?;
        Ok(row.try_get(0)?)
    }
}
