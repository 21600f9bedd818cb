//! Nodes that all serve, PostgreSQL's servers and the bucket, with a relay on each way between them, and everything that can be done to
//! them.

use std::fs;
use std::mem;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::process::Signal;
use svc_tests::bucket::{Bucket, BucketFault};
use svc_tests::peer_relay::PeerRelay;
use svc_tests::postgres::Postgres;
use svc_tests::relay::{Relay, RelayMode, RelayTarget};
use svc_tests::{Binary, Process, ReadAnswer as _, TokenIssuer, wait_until};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::client_context::ClientContext;
use super::room;
use super::schedule::{Event, NODES};

/// Number of PostgreSQL's servers.
const SERVERS: usize = 3;

/// Settings of every node, but for those of the cluster.
const COMMON: &str = "base_url = 'http://127.0.0.1'
[limits]
op_burst = 100000000
op_deployment_burst = 100000000
owner_burst = 1000000
deploy_burst = 1000000
active_deployments = 1000000
database_bytes = 104857600
free_disk_bytes = 0
";

/// Position up to which a standby has what its primary has written.
const RECEIVED: &str = "SELECT (GREATEST(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) - '0/0'::pg_lsn)::bigint";

/// A process that is kept running, as supervisors do.
enum State {
    Ended,
    Starting(JoinHandle<Result<Process, String>>),
    Running(Process),
}

struct Node {
    state: State,
    name: String,
    data: PathBuf,
    /// Relays to PostgreSQL's servers,
    ledger: Vec<Relay>,
    /// to the bucket,
    bucket: Relay,
    /// from clients,
    clients: Relay,
    /// and from the other nodes.
    peers: PeerRelay,
    /// Whether the process was paused until another node had buried it.
    is_buried: bool,
}

impl Node {
    async fn unstarted(at: usize, postgres: &Postgres, bucket: &Bucket) -> Self {
        let mut ledger = Vec::new();
        for server in 0..SERVERS {
            let target = RelayTarget::Unix(postgres.socket(server));
            ledger.push(Relay::start(Some(target)).await);
        }
        Self {
            state: State::Ended,
            name: format!("n{}", at + 1),
            data: PathBuf::new(),
            ledger,
            bucket: Relay::start(Some(RelayTarget::Tcp(bucket.address()))).await,
            clients: Relay::start(None).await,
            peers: PeerRelay::start().await,
            is_buried: false,
        }
    }

    /// Settings of the node, and tables that all have. No page is shown that may be old: so every node shows the same.
    fn settings(&self, tables: &str) -> String {
        let servers = self.ledger.iter().map(|relay| relay.address().to_string());
        let servers = servers.collect::<Vec<_>>().join(",");
        let (name, access) = (&self.name, Bucket::settings_at(self.bucket.address()));
        let peers = self.peers.settings();
        format!(
            "{COMMON}[cluster]\nname = '{name}'\nledger = 'postgresql://postgres@{servers}/postgres'\n\
             bucket = 's3://pages/cluster'\n{peers}suspect_seconds = 4\nstale_pages_seconds = 0\n{access}{tables}"
        )
    }
}

/// An installation with all of its parts. The nodes end first.
pub(super) struct Machines {
    nodes: Vec<Node>,
    binary: Binary,
    postgres: Postgres,
    /// Server of PostgreSQL's that takes writes.
    primary: usize,
    bucket: Bucket,
    directory: TempDir,
    /// Number of data directories and names that were made.
    made: usize,
    context: Arc<ClientContext>,
}

impl Machines {
    /// Founds an installation with the page `room`, and starts its nodes.
    pub(super) async fn start(binary: Binary) -> Self {
        let (postgres, bucket) = (Postgres::start().await, Bucket::start().await);
        let mut nodes = Vec::new();
        for at in 0..NODES {
            nodes.push(Node::unstarted(at, &postgres, &bucket).await);
        }
        let addresses = nodes.iter().map(|node| node.clients.address());
        let context = ClientContext::new(addresses, TokenIssuer::start().await);
        let mut machines = Self {
            nodes,
            binary,
            postgres,
            primary: 0,
            bucket,
            directory: TempDir::with_prefix("svc-nemesis-").unwrap(),
            made: 0,
            context: Arc::new(context),
        };
        machines.found().await;
        machines
    }

    async fn found(&mut self) {
        for at in 0..NODES {
            self.throw_disk_away(at);
        }
        let config = self.configure(0);
        let data = self.new_path("founding");
        let arguments = ["cluster", "found", "--config", config.to_str().unwrap()];
        let founded = self.binary.run(&data, &arguments).await;
        assert!(founded.success, "{founded:?}");
        self.all_serving().await;
        let (data, process) = (&self.nodes[0].data, self.process(0).unwrap());
        room::make(&self.context, &self.binary, data, process).await;
        self.settle().await;
    }

    pub(super) fn context(&self) -> &Arc<ClientContext> {
        &self.context
    }

    /// Returns the process of a node, if it runs.
    pub(super) fn process(&self, at: usize) -> Option<&Process> {
        match &self.nodes[at].state {
            State::Running(process) => Some(process),
            State::Ended | State::Starting(_) => None,
        }
    }

    fn new_path(&mut self, name: &str) -> PathBuf {
        self.made += 1;
        self.directory.path().join(format!("{name}-{}", self.made))
    }

    fn throw_disk_away(&mut self, at: usize) {
        // The first one was never made.
        let _ = fs::remove_dir_all(&self.nodes[at].data);
        self.nodes[at].data = self.new_path("data");
    }

    /// Writes the settings of a node.
    fn configure(&self, at: usize) -> PathBuf {
        let node = &self.nodes[at];
        let path = self.directory.path().join(format!("{}.toml", node.name));
        fs::write(&path, node.settings(&self.context.issuer.settings())).unwrap();
        path
    }

    /// Begins to start a node.
    fn begin(&mut self, at: usize) {
        let config = self.configure(at);
        let (binary, data) = (self.binary.clone(), self.nodes[at].data.clone());
        let started = tokio::spawn(async move {
            let arguments = ["--config", config.to_str().unwrap()];
            binary.try_serve_to_fault(None, &data, &arguments).await
        });
        self.nodes[at].state = State::Starting(started);
    }

    /// Starts the nodes that have ended, as supervisors do.
    pub(super) async fn look_after(&mut self) {
        for at in 0..NODES {
            let is_over = match &mut self.nodes[at].state {
                State::Ended => true,
                State::Starting(start) => start.is_finished(),
                State::Running(process) => process.has_ended(),
            };
            if !is_over {
                continue;
            }
            match mem::replace(&mut self.nodes[at].state, State::Ended) {
                State::Ended => self.begin(at),
                State::Starting(start) => {
                    let started = start.await.unwrap();
                    self.note_start(at, started);
                }
                State::Running(process) => {
                    self.note_end(at, process).await;
                    self.begin(at);
                }
            }
        }
    }

    fn note_start(&mut self, at: usize, started: Result<Process, String>) {
        let node = &mut self.nodes[at];
        match started {
            Ok(process) => {
                let address = RelayTarget::Tcp(process.address());
                node.clients.turn_to(Some(address));
                node.state = State::Running(process);
                self.context.open(at);
            }
            // Without the ledger, or the bucket, none starts.
            Err(said) => {
                let last = said.lines().last().unwrap_or_default();
                println!("{} has not started: {last}", node.name);
                if said.contains("panicked") {
                    self.context.record().fault(said);
                }
                self.begin(at);
            }
        }
    }

    /// Looks how a process has ended that was not killed: fenced, or at a takeover without the ledger or the bucket.
    async fn note_end(&mut self, at: usize, process: Process) {
        self.context.close(at);
        let node = &mut self.nodes[at];
        node.clients.turn_to(None);
        let is_buried = mem::take(&mut node.is_buried);
        let said = process.stderr();
        let (status, shown) = process.wait_for_exit().await;
        let has_served = shown.lines().any(|line| line.starts_with("ready "));
        println!("{} has ended: {status}", node.name);
        match status.code() {
            Some(3) => {}
            Some(1) if !has_served && !is_buried => {}
            _ => {
                let fault = format!("{} has ended by {status}: {said}", node.name);
                self.context.record().fault(fault);
            }
        }
    }

    /// Begins a fault. Returns whether it could be.
    pub(super) async fn disturb(&mut self, event: Event) -> bool {
        match event {
            Event::Kill { node, is_renamed } => return self.kill(node, is_renamed).await,
            Event::Pause { node } => return self.pause(node),
            Event::CutLedger { node, mode } => self.switch_ledger(node, mode),
            Event::CutBucket { node, mode } => self.nodes[node].bucket.switch(mode),
            Event::CutClients { node, mode } => {
                if mode != RelayMode::Delay {
                    self.context.close(node);
                }
                self.nodes[node].clients.switch(mode);
            }
            Event::CutPeers { node, mode } => self.nodes[node].peers.switch(mode),
            Event::FailBucket { fault } => self.bucket.set_fault(fault),
            Event::FailOver => self.fail_over().await,
            Event::StopStandbys => {
                for standby in self.standbys() {
                    self.postgres.stop(standby);
                }
                self.context.note_standbys();
            }
        }
        true
    }

    /// Mends what a fault has broken.
    pub(super) async fn mend(&mut self, event: Event) {
        match event {
            Event::Kill { .. } | Event::FailOver => {}
            Event::Pause { node } => self.wake(node).await,
            Event::CutLedger { node, .. } => self.switch_ledger(node, RelayMode::Pass),
            Event::CutBucket { node, .. } => self.nodes[node].bucket.switch(RelayMode::Pass),
            Event::CutClients { node, mode } => {
                self.nodes[node].clients.switch(RelayMode::Pass);
                if mode != RelayMode::Delay {
                    self.context.open(node);
                }
            }
            Event::CutPeers { node, .. } => self.nodes[node].peers.switch(RelayMode::Pass),
            Event::FailBucket { .. } => self.bucket.set_fault(BucketFault::None),
            Event::StopStandbys => {
                self.context.note_standbys();
                for standby in self.standbys() {
                    self.postgres.run_standby(standby, self.primary).await;
                }
            }
        }
    }

    async fn kill(&mut self, at: usize, is_renamed: bool) -> bool {
        if self.process(at).is_none() {
            return false;
        }
        self.context.close(at);
        self.nodes[at].clients.turn_to(None);
        if let State::Running(process) = mem::replace(&mut self.nodes[at].state, State::Ended) {
            process.kill().await;
        }
        self.throw_disk_away(at);
        if is_renamed {
            self.nodes[at].name = format!("n{}-{}", at + 1, self.made);
        }
        self.nodes[at].is_buried = false;
        self.begin(at);
        true
    }

    fn pause(&self, at: usize) -> bool {
        let Some(process) = self.process(at) else {
            return false;
        };
        self.context.close(at);
        process.signal(Signal::STOP);
        true
    }

    async fn wake(&mut self, at: usize) {
        let is_buried = self.is_live(at).await == Some(false);
        if let Some(process) = self.process(at) {
            process.signal(Signal::CONT);
        }
        self.nodes[at].is_buried |= is_buried;
        self.context.open(at);
    }

    fn switch_ledger(&self, at: usize, mode: RelayMode) {
        for relay in &self.nodes[at].ledger {
            relay.switch(mode);
        }
    }

    fn standbys(&self) -> impl Iterator<Item = usize> + use<> {
        let primary = self.primary;
        (0..SERVERS).filter(move |server| *server != primary)
    }

    /// Kills the primary, and promotes the standby that has most, as managers of PostgreSQL do.
    async fn fail_over(&mut self) {
        self.postgres.stop(self.primary);
        let mut received = Vec::new();
        for standby in self.standbys() {
            let position = self.postgres.number(standby, RECEIVED).await;
            received.push((position, standby));
        }
        let (_, promoted) = received.into_iter().max().unwrap();
        self.postgres.promote(promoted).await;
        self.primary = promoted;
        for standby in self.standbys() {
            self.postgres.rebuild(standby, promoted).await;
        }
    }

    /// Whether the newest run of a node's name may write, as far as the primary knows.
    async fn is_live(&self, at: usize) -> Option<bool> {
        let name = &self.nodes[at].name;
        let statement = format!(
            "SELECT live::int::bigint FROM svc.nodes WHERE name = '{name}' ORDER BY run DESC LIMIT 1"
        );
        let live = self.postgres.number(self.primary, &statement).await;
        live.map(|live| live == 1)
    }

    /// Waits until every node runs and none is buried: one that is must end.
    pub(super) async fn settle(&mut self) {
        wait_until("nodes that run and are live", async || {
            self.look_after().await;
            for at in 0..NODES {
                if self.process(at).is_none() || self.is_live(at).await != Some(true) {
                    return None;
                }
            }
            Some(())
        })
        .await;
    }

    /// Waits until every node serves.
    pub(super) async fn all_serving(&mut self) {
        wait_until("nodes that serve", async || {
            self.look_after().await;
            for at in 0..NODES {
                if !self.is_serving(at).await {
                    return None;
                }
            }
            Some(())
        })
        .await;
    }

    /// Has a node take control, and bring the database of the page there: it reads both from the ledger and the bucket.
    pub(super) async fn make_owner(&mut self, at: usize) {
        let promoted = self.binary.run(&self.nodes[at].data, &["promote"]).await;
        assert!(promoted.success, "{promoted:?}");
        // The one that had control ends, and starts again.
        self.settle().await;
        self.all_serving().await;
        room::migrate(&self.context, self.process(at).unwrap(), at).await;
    }

    async fn is_serving(&self, at: usize) -> bool {
        let Some(process) = self.process(at) else {
            return false;
        };
        let probe = process.client().get(process.url("/readyz"));
        let answer = probe.try_answer().await;
        answer.is_some_and(|answer| answer.status == 200)
    }

    /// Ends the nodes, those included that begin to start.
    pub(super) async fn stop(self) {
        for node in self.nodes {
            if let State::Starting(start) = node.state {
                drop(start.await);
            }
        }
    }
}
