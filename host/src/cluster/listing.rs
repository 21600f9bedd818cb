//! Nodes as operators see them: the list, and the removal of dead ones from it.

use std::collections::BTreeMap;

use anyhow::bail;
use serde::Serialize;
use svc_ledger::{BEAT_EVERY, BeatCount, DatabaseName, Ledger, NodeState, RunId};

use super::found::FOUNDING_SUFFIX;
use super::run::{Run, SeenNode};

/// A node, as operators see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeView {
    /// Name of the node.
    pub name: String,
    /// Id of its run.
    pub run: String,
    /// Whether it lives.
    pub live: bool,
    /// Whether it takes no more databases.
    pub leaving: bool,
    /// Whether it has control.
    pub control: bool,
    /// Whether it serves: it has control, or follows the node that has it. One that does not stands by.
    pub serves: bool,
    /// Number of databases that it has.
    pub databases: usize,
    /// Address for the other nodes.
    pub peer_url: String,
    /// Version of its program.
    pub version: String,
    /// Newest schema that its program knows.
    pub schema: u32,
    /// Time since this node has seen its beat move.
    pub beat_age_ms: u64,
    /// Commits of control that it lacks; `None` for a node that follows none.
    pub feed_lag: Option<u64>,
}

/// Lists the nodes that are in the ledger now.
pub(super) async fn list_nodes<L: Ledger>(run: &Run<L>) -> anyhow::Result<Vec<NodeView>> {
    run.beat().await?;
    let places = run.ledger().places().await?;
    let (seen, now) = (run.nodes().borrow().clone(), run.clock().elapsed());
    let shown = seen.iter().filter(|one| is_listed(one, &seen));
    let views = shown.map(|one| {
        let (state, node) = (&one.state, &one.state.node);
        let owned = places.iter().filter(|place| place.run == node.run);
        let age = now.saturating_sub(one.since);
        NodeView {
            name: node.name.clone(),
            run: node.run.to_string(),
            live: state.live,
            leaving: state.live && state.leaving,
            control: state.live
                && owned
                    .clone()
                    .any(|place| place.database == DatabaseName::Control),
            serves: state.live && state.serves,
            databases: if state.live { owned.count() } else { 0 },
            peer_url: node.peer_url.clone(),
            version: node.version.clone(),
            schema: node.schema,
            beat_age_ms: u64::try_from(age.as_millis()).unwrap_or(u64::MAX),
            feed_lag: run.feed_lags().of(node.run).filter(|_| state.live),
        }
    });
    let mut views: Vec<NodeView> = views.collect();
    views.sort_by(|a, b| (&a.name, &a.run).cmp(&(&b.name, &b.run)));
    Ok(views)
}

/// Takes a dead node off the lists. One that stands still is waited for until it is taken for dead.
pub(super) async fn remove_node<L: Ledger>(run: &Run<L>, name: &str) -> anyhow::Result<()> {
    if name == run.name() {
        bail!("this is {name} itself, which runs: stop it, and remove it at another node");
    }
    let mut beats: BTreeMap<RunId, BeatCount> = BTreeMap::new();
    loop {
        // Whoever has stood still for long enough is taken for dead by this.
        run.beat().await?;
        let nodes = run.nodes().borrow().clone();
        let mut named: Vec<NodeState> = nodes.into_iter().map(|seen| seen.state).collect();
        named.retain(|state| state.node.name == name && !state.removed);
        if named.is_empty() {
            bail!("no node is named {name:?}: `svc node list` has the names");
        }
        named.retain(|state| state.live);
        if named.is_empty() && run.ledger().remove_node(run.id(), name).await? {
            return Ok(());
        }
        for state in &named {
            if *beats.entry(state.node.run).or_insert(state.beat) != state.beat {
                bail!("{name} runs: stop it first");
            }
        }
        tokio::time::sleep(BEAT_EVERY).await;
    }
}

/// Whether operators see a run: one that lives, or the newest of a name that no run has which lives.
fn is_listed(run: &SeenNode, all: &[SeenNode]) -> bool {
    let (state, node) = (&run.state, &run.state.node);
    let mut others = all
        .iter()
        .map(|other| &other.state)
        .filter(|other| other.node.name == node.name);
    // Ids of runs are in the order of their starts.
    let is_replaced = others.any(|other| other.live || other.node.run > node.run);
    !node.name.ends_with(FOUNDING_SUFFIX) && !state.removed && (state.live || !is_replaced)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use svc_base::clock::Clock;
    use svc_base::random::Random;
    use svc_ledger::MemoryLedger;

    use super::super::tests::{joined_run, seen_node, settings};
    use super::*;

    fn seen(number: u128, name: &str, live: bool) -> SeenNode {
        let mut seen = seen_node(number, name);
        (seen.state.live, seen.state.serves) = (live, live);
        seen
    }

    #[test]
    fn operators_see_each_node_once() {
        let all = [
            seen(1, "n1 (founding)", false),
            seen(2, "n1", false),
            seen(3, "n2", true),
            seen(4, "n3", false),
            seen(5, "n3", false),
            // A start that was refused, because its name was taken.
            seen(6, "n2", false),
            seen(7, "n1", true),
            seen(8, "n4 (founding)", true),
            SeenNode {
                state: NodeState {
                    removed: true,
                    ..seen(9, "n5", false).state
                },
                since: Duration::ZERO,
            },
        ];
        let listed = all.iter().filter(|run| is_listed(run, &all));
        let listed: Vec<_> = listed
            .map(|run| (run.state.node.name.as_str(), run.state.live))
            .collect();
        assert_eq!(listed, [("n2", true), ("n3", false), ("n1", true)]);
    }

    #[tokio::test]
    async fn a_dead_node_is_removed_and_no_other() {
        let ledger = Arc::new(MemoryLedger::default());
        let (clock, random) = (Clock::system(), Random::system());
        let join = async |name| {
            let settings = settings(name);
            let run = Run::join(Arc::clone(&ledger), &settings, &clock, &random);
            run.await.unwrap()
        };
        let (here, _beats) = (join("n2").await, join("n3").await);
        // It does not beat by itself.
        let dead = joined_run(&ledger).await;
        ledger.bury(here.id(), dead, None).await.unwrap();
        let names = async || {
            let listed = list_nodes(&here).await.unwrap().into_iter();
            listed.map(|node| node.name).collect::<Vec<_>>()
        };
        assert_eq!(names().await, ["n1", "n2", "n3"]);
        for (name, says) in [
            ("n2", "this is n2 itself"),
            ("n3", "n3 runs"),
            ("n4", "no node is named"),
        ] {
            let refused = remove_node(&here, name).await.unwrap_err().to_string();
            assert!(refused.contains(says), "{refused}");
        }
        remove_node(&here, "n1").await.unwrap();
        assert_eq!(names().await, ["n2", "n3"]);
        assert!(remove_node(&here, "n1").await.is_err());
    }
}
