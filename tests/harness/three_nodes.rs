//! Three nodes that all serve one installation, each behind a relay for the others, and requests to any of them.

use std::time::Duration;

use http::Method;
use reqwest::{Client, RequestBuilder};
use serde_json::Value;

use crate::answer::{Answer, ReadAnswer as _};
use crate::cluster::{Cluster, ClusterNode};
use crate::http_client;
use crate::peer_relay::PeerRelay;
use crate::process::Binary;
use crate::relay::RelayMode;
use crate::seeded_rng::SeededRng;
use crate::wait::wait_until;

/// Number of the nodes.
pub const NODES: usize = 3;
/// Longest time of a request to a node that runs.
pub const LONGEST: Duration = Duration::from_secs(12);
/// Address of the installation, which is the same at every node.
pub const ORIGIN: &str = "http://svc.test";
/// Host of that address.
const HOST: &str = "svc.test";
const NAMES: [&str; NODES] = ["n1", "n2", "n3"];
/// Time after which a client gives up.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// An installation of three nodes, with the page `room`. Dropping it kills them.
#[derive(Debug)]
pub struct ThreeNodes {
    pub cluster: Cluster,
    nodes: Vec<Option<ClusterNode>>,
    peers: Vec<PeerRelay>,
    client: Client,
}

impl ThreeNodes {
    /// Starts an installation whose nodes have these tables of settings besides the usual ones.
    pub async fn start(binary: Binary, tables: &str) -> Self {
        let settings = format!("base_url = '{ORIGIN}'\n{tables}");
        let cluster = Cluster::found_with_settings(binary, &settings).await;
        let mut peers = Vec::new();
        for _ in NAMES {
            peers.push(PeerRelay::start().await);
        }
        let client = http_client()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .timeout(CALL_TIMEOUT);
        let mut nodes = Self {
            cluster,
            nodes: NAMES.map(|_| None).into(),
            peers,
            client: client.build().unwrap(),
        };
        let first = nodes.cluster.start_behind(NAMES[0], &nodes.peers[0]).await;
        first.wait_until_ready().await;
        nodes.cluster.make_room(&first).await;
        nodes.nodes[0] = Some(first);
        nodes.restart().await;
        nodes
    }

    /// Starts those that were killed, each with an empty disk, and waits until all are ready.
    pub async fn restart(&mut self) {
        for (at, node) in self.nodes.iter_mut().enumerate() {
            if node.is_none() {
                let started = self.cluster.start_behind(NAMES[at], &self.peers[at]).await;
                *node = Some(started);
            }
        }
        self.wait_until_ready().await;
    }

    /// Waits until all that live are ready.
    pub async fn wait_until_ready(&self) {
        for node in self.living() {
            node.wait_until_ready().await;
        }
    }

    /// Kills a node that lives, and throws its disk away.
    pub async fn kill(&mut self, at: usize) {
        self.nodes[at].take().unwrap().lose().await;
    }

    /// Returns the nodes that live.
    pub fn living(&self) -> Vec<&ClusterNode> {
        self.nodes.iter().flatten().collect()
    }

    /// Returns a node that lives.
    pub fn node(&self, at: usize) -> &ClusterNode {
        self.nodes[at].as_ref().unwrap()
    }

    /// Changes what the network does to connections of the others to a node.
    pub fn switch(&self, at: usize, mode: RelayMode) {
        self.peers[at].switch(mode);
    }

    /// Returns the node that has control. All must live.
    pub async fn control(&self) -> usize {
        wait_until("a node that has control", async || {
            let list = ["node", "list", "--json"];
            let listed = self.cluster.run(&self.node(0).data, &list).await;
            let listed: Value = serde_json::from_str(&listed.stdout).ok()?;
            let mut nodes = listed["nodes"].as_array()?.iter();
            let owner = nodes.find(|node| node["live"] == true && node["control"] == true)?;
            NAMES.iter().position(|name| owner["name"] == *name)
        })
        .await
    }

    /// Returns a request to a node, at the installation's own address.
    pub fn request(&self, node: &ClusterNode, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, node.process.url(path));
        request.header("host", HOST)
    }

    /// Returns a request to a random node that lives.
    pub fn any_request(&self, rng: &mut SeededRng, method: Method, path: &str) -> RequestBuilder {
        let living = self.living();
        self.request(living[rng.below(living.len())], method, path)
    }

    /// Publishes a page at random nodes until that is acknowledged, with one key. Returns the slug.
    pub async fn publish(&self, rng: &mut SeededRng, page: &Value, key: &str) -> String {
        let published = self.send(rng, "/api/v1/deploy", page, key, None).await;
        let published = published.expect(201).json();
        published["slug"].as_str().unwrap().to_owned()
    }

    /// Sends a POST to random nodes until one answers by something else than that it cannot do so now, each time with the same key.
    pub async fn send(
        &self,
        rng: &mut SeededRng,
        path: &str,
        body: &Value,
        key: &str,
        credential: Option<&str>,
    ) -> Answer {
        wait_until(path, async || {
            let mut request = self.any_request(rng, Method::POST, path);
            if let Some(credential) = credential {
                request = request.bearer_auth(credential);
            }
            let request = request.header("idempotency-key", key).json(body);
            let answer = request.try_answer().await?;
            (!is_refusal(&answer)).then_some(answer)
        })
        .await
    }
}

/// Whether a request is to be sent again: the node cannot answer it now, or an earlier one with the same key is under way.
fn is_refusal(answer: &Answer) -> bool {
    let is_running = answer.status == 409 && answer.header("retry-after").is_some();
    answer.status == 503 || is_running
}
