//! An installation of several nodes in this process, behind a relay that chooses blindly, in the place of one server: tests that were
//! written for one machine run against it unchanged.
//!
//! With `SVC_TEST_NODES=2` in the environment each [`crate::TestServer`] is such an installation. Nothing else differs for a test. Its
//! client keeps no connection, so that each request may reach another node; the nodes have a clock in common, which the test moves. What a
//! test does inside the server happens at the node that has control. [`one_machine`] lists the tests that get one machine all the same.
//!
//! [`one_machine`]: crate::one_machine

use std::convert::Infallible;
use std::mem;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use svc::config::Settings;
use svc::server::Server;
use svc_base::clock::Clock;
use svc_base::random::Random;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use crate::blind_relay::pass_on_blindly;
use crate::ledgers::NodeDisks;

/// Variable of the environment with the number of nodes that a server under test has.
const NODES: &str = "SVC_TEST_NODES";
/// Variable of the environment with the number that the relay's choices begin with.
const SEED: &str = "SVC_TEST_SEED";
/// Addresses of the nodes' listeners but for their last number and the port, which is that of the relay.
const NETWORK: [u8; 3] = [127, 0, 1];
/// Pause between two looks of a node at who has joined.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Longest time that threads have to end which nobody waits for.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns how many nodes the environment asks for, if it asks for several.
pub(crate) fn requested() -> Option<usize> {
    let count = std::env::var(NODES).ok()?;
    let count = count.parse().expect("SVC_TEST_NODES is a number");
    (count > 1).then_some(count)
}

/// The nodes that run, and the relay in front of them. They have a runtime of their own: dropping the value ends all that they do. The relay
/// has the test's, so that what a node has sent at last arrives.
#[derive(Debug)]
pub(crate) struct Nodes {
    /// All nodes but the one that has control.
    followers: Vec<Server>,
    /// Data directories of all nodes.
    data: Vec<PathBuf>,
    /// Number of commands that were run.
    commands: AtomicUsize,
    relay: JoinHandle<()>,
    runtime: Option<Runtime>,
}

impl Nodes {
    /// Starts so many nodes. Returns them, and the one that has control.
    pub(crate) async fn start(
        settings: &Settings,
        clock: &Clock,
        count: usize,
        disks: &NodeDisks,
    ) -> (Self, Server) {
        let relay = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        // Nobody else has this port at any address of this machine.
        let port = relay.local_addr().unwrap().port();
        let [a, b, c] = NETWORK;
        let addresses = (1..).map(|number| SocketAddr::from(([a, b, c, number], port)));
        let addresses: Vec<_> = addresses.take(count).collect();
        let each = (1..=count)
            .zip(&addresses)
            .map(|(number, address)| Settings {
                data: Some(disks.data(number)),
                cluster: Some(disks.table(number)),
                reached_at: Some(SocketAddr::new(settings.listen().ip(), port)),
                listen: Some(*address),
                ..settings.clone()
            });
        let (each, clock): (Vec<Settings>, Clock) = (each.collect(), clock.clone());
        // One thread, as the test's own: nothing of it runs any more once the runtime ends.
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build();
        let mut nodes = Self {
            followers: Vec::new(),
            commands: AtomicUsize::new(0),
            relay: tokio::spawn(pass_on_blindly(relay, addresses, seed())),
            runtime: Some(runtime.unwrap()),
            data: (1..=count).map(|number| disks.data(number)).collect(),
        };
        let starting = async move || start_all(each, &clock).await;
        let mut servers = nodes.run(starting).await;
        let owner = servers.remove(0);
        nodes.followers = servers;
        (nodes, owner)
    }

    /// All nodes but the one that has control.
    pub(crate) fn followers(&self) -> &[Server] {
        &self.followers
    }

    /// Data directory of the next node in turn, to run a command at.
    pub(crate) fn data_of_next(&self) -> &Path {
        let command = self.commands.fetch_add(1, Ordering::Relaxed);
        // The first one is for who does not have control.
        &self.data[(command + 1) % self.data.len()]
    }

    /// Stops all nodes in good order, the one that has control last: nobody takes over.
    pub(crate) async fn stop(mut self, owner: Server) {
        let servers = mem::take(&mut self.followers).into_iter().chain([owner]);
        let servers: Vec<_> = servers.collect();
        let stopping = async move || {
            for server in servers {
                server.stop().await.expect("the node stops");
            }
        };
        self.run(stopping).await;
    }

    /// Runs something on the nodes' runtime to its end.
    async fn run<T: Send + 'static>(&self, work: impl AsyncFnOnce() -> T + Send + 'static) -> T {
        let runtime = self.runtime.as_ref().expect("the nodes run");
        let handle = runtime.handle().clone();
        let run = move || handle.block_on(work());
        tokio::task::spawn_blocking(run).await.unwrap()
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else {
            return;
        };
        self.relay.abort();
        // A runtime may not end in a task of another one. The nodes are dropped after it: nothing of them notices.
        let ending = thread::spawn(move || runtime.shutdown_timeout(END_TIMEOUT));
        let _ = ending.join();
    }
}

/// Starts the nodes in their order.
async fn start_all(settings: Vec<Settings>, clock: &Clock) -> Vec<Server> {
    let mut servers: Vec<Server> = Vec::new();
    for settings in settings {
        let starting = Server::start(settings, clock.clone(), Random::system());
        let started = match servers.first() {
            None => starting.await,
            Some(owner) => tokio::select! {
                started = starting => started,
                never = look_around(owner) => match never {},
            },
        };
        servers.push(started.expect("the node starts"));
    }
    servers
}

/// Has a node look who has joined, again and again: others would be strangers to it until its next beat.
async fn look_around(node: &Server) -> Infallible {
    let cluster = node.app().cluster.as_ref().expect("it is a node");
    loop {
        // It has the next look, too.
        let _ = cluster.node().list().await;
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Number that the choices of a test's relays begin with: the environment's, and another one for each test.
fn seed() -> u64 {
    let given = std::env::var(SEED).map_or(1, |seed| seed.parse().expect("a number"));
    let test = thread::current().name().unwrap_or_default().to_owned();
    let mix = |seed: u64, byte: u8| seed.wrapping_mul(31).wrapping_add(byte.into());
    test.bytes().fold(given, mix)
}
