//! Runs that this node knows of, by what its beats have told it.

use std::sync::Arc;

use svc_ledger::RunId;
use tokio::sync::watch;

use super::super::gate::AnswerGate;
use super::super::run::SeenNode;

/// Runs as the newest beat of this one found them.
#[derive(Clone, Debug)]
pub struct KnownRuns {
    nodes: watch::Receiver<Vec<SeenNode>>,
    gate: Arc<AnswerGate>,
}

/// Address of a run, with the key that it is to show there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PeerAddress {
    pub(super) url: String,
    pub(super) key: Vec<u8>,
}

impl KnownRuns {
    /// Creates the view of a run with this gate, whose beats `nodes` tells of.
    pub(in crate::cluster) fn new(
        nodes: watch::Receiver<Vec<SeenNode>>,
        gate: Arc<AnswerGate>,
    ) -> Self {
        Self { nodes, gate }
    }

    /// Finds the run that lives and has this public key.
    pub(in crate::cluster) fn find_by_key(&self, key: &[u8]) -> Option<RunId> {
        let nodes = self.nodes.borrow();
        let mut live = nodes.iter().filter(|seen| seen.state.live);
        live.find(|seen| seen.state.node.peer_key == key)
            .map(|seen| seen.state.node.run)
    }

    /// Returns the address of a run that lives.
    pub(super) fn address_of(&self, run: RunId) -> Option<PeerAddress> {
        let nodes = self.nodes.borrow();
        let seen = nodes.iter().find(|seen| seen.state.node.run == run)?;
        let node = &seen.state.node;
        seen.state.live.then(|| PeerAddress {
            url: node.peer_url.clone(),
            key: node.peer_key.clone(),
        })
    }

    /// Whether a run lives, by the newest beat.
    pub fn is_live(&self, run: RunId) -> bool {
        is_live(&self.nodes.borrow(), run)
    }

    /// Whether another run lives and is not suspected, by the newest beat.
    pub fn is_trusted(&self, run: RunId) -> bool {
        self.is_live(run) && self.gate.is_trusted(run)
    }

    /// Waits until a run lives no more.
    pub async fn wait_until_dead(&self, run: RunId) {
        let mut nodes = self.nodes.clone();
        // Without beats nothing more is known: this process ends.
        let _ = nodes.wait_for(|nodes| !is_live(nodes, run)).await;
    }

    /// Waits until a run lives no more, or is suspected. Nobody waits longer for an answer of it.
    pub async fn wait_until_distrusted(&self, run: RunId) {
        let mut nodes = self.nodes.clone();
        // A beat is told after it was looked at for suspects.
        while self.is_trusted(run) {
            if nodes.changed().await.is_err() {
                return;
            }
        }
    }
}

fn is_live(nodes: &[SeenNode], run: RunId) -> bool {
    let mut live = nodes.iter().filter(|seen| seen.state.live);
    live.any(|seen| seen.state.node.run == run)
}
