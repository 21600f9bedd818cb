//! A candidate for control: a node that waits until control belongs to nobody that lives, or until an operator says so, and takes it. It
//! serves as a follower meanwhile, or stands by.

use std::fmt;
use std::mem;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use super::run::{Run, SeenNode};
use svc_ledger::{ClaimOutcome, DatabaseName, Ledger, LedgerError, NodeState, Place, RunId};

/// Run that waits for control.
pub struct ControlCandidate<L> {
    run: Arc<Run<L>>,
    /// Whether it leaves control to any other run that serves.
    is_patient: bool,
    /// Run that has control, as far as it is known.
    holder: Option<RunId>,
    /// Whether the last claim was not sent, because control is of a newer program.
    is_outdated: bool,
}

impl<L> fmt::Debug for ControlCandidate<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlCandidate")
            .field("run", &self.run)
            .field("holder", &self.holder)
            .finish_non_exhaustive()
    }
}

/// Control, with whether another run had it before.
#[derive(Clone, Copy, Debug)]
pub struct ControlClaim {
    /// The place.
    pub place: Place,
    /// Whether this run waited for it.
    pub took_over: bool,
}

impl<L: Ledger> ControlCandidate<L> {
    /// Looks whether control is to be had at once. If so, the claim is returned; else the candidate that waits.
    ///
    /// # Errors
    /// When the ledger does not answer, or this run was buried already.
    pub async fn begin(
        run: Arc<Run<L>>,
        is_patient: bool,
    ) -> Result<Result<ControlClaim, Self>, LedgerError> {
        let mut candidate = Self {
            run,
            is_patient,
            holder: None,
            is_outdated: false,
        };
        if is_patient {
            candidate.holder = find_holder(&candidate.run).await?;
        }
        let nodes = candidate.run.nodes().borrow().clone();
        if candidate.may_claim(&nodes)
            && let Some(place) = candidate.claim().await?
        {
            let took_over = false;
            return Ok(Ok(ControlClaim { place, took_over }));
        }
        Ok(Err(candidate))
    }

    /// Waits until control belongs to this run. An operator's request to take it at once is a message.
    ///
    /// # Errors
    /// [`LedgerError::Fenced`]: this run was buried.
    pub async fn wait(
        mut self,
        promotions: &mut mpsc::Receiver<()>,
    ) -> Result<ControlClaim, LedgerError> {
        let took_over = true;
        let mut nodes = self.run.nodes();
        let mut is_promoted = false;
        loop {
            tokio::select! {
                Some(()) = promotions.recv() => is_promoted = true,
                _ = nodes.changed() => {}
            }
            let tried = self.try_once(&mut nodes, is_promoted).await;
            match tried {
                Ok(Some(place)) => return Ok(ControlClaim { place, took_over }),
                Ok(None) => {}
                Err(LedgerError::Fenced) => return Err(LedgerError::Fenced),
                // The next beat brings another try.
                Err(error) => tracing::warn!(%error, "control could not be claimed"),
            }
        }
    }

    async fn try_once(
        &mut self,
        nodes: &mut watch::Receiver<Vec<SeenNode>>,
        is_promoted: bool,
    ) -> Result<Option<Place>, LedgerError> {
        if is_promoted {
            if let Some(place) = self.claim().await? {
                return Ok(Some(place));
            }
            let Some(holder) = self.holder.filter(|_| !self.is_outdated) else {
                return Ok(None);
            };
            self.run.bury(holder, None).await?;
            return self.claim().await;
        }
        let nodes = nodes.borrow_and_update().clone();
        match self.may_claim(&nodes) {
            true => self.claim().await,
            false => Ok(None),
        }
    }

    /// Whether nobody is known to have control that lives, and nobody else is to take it.
    fn may_claim(&self, nodes: &[SeenNode]) -> bool {
        let me = self.run.id();
        let mut others = nodes
            .iter()
            .map(|seen| &seen.state)
            .filter(|state| state.live && state.node.run != me);
        match self.holder {
            Some(holder) if self.is_patient => {
                let mut all = nodes.iter().map(|seen| &seen.state.node);
                // One that the ledger does not tell any more died long ago.
                let schema = all.find(|node| node.run == holder).map(|node| node.schema);
                // Who serves and can read what the dead one has left takes control within a moment.
                let takes_it = |state: &NodeState| {
                    state.serves && !state.leaving && Some(state.node.schema) >= schema
                };
                !others.any(|state| state.node.run == holder || takes_it(state))
            }
            Some(holder) => !others.any(|state| state.node.run == holder),
            // Of runs that are patient alone, the first one claims it.
            None if self.is_patient => others.all(|state| state.node.run > me),
            None => true,
        }
    }

    /// Claims control, unless a run that lives has it, or one of a newer program had it last. Returns when the run before answers nothing
    /// any more.
    async fn claim(&mut self) -> Result<Option<Place>, LedgerError> {
        let before = find_holder(&self.run).await?;
        let newer = before.and_then(|owner| newer_owner(&self.run, owner));
        let was_outdated = mem::replace(&mut self.is_outdated, newer.is_some());
        if let Some(owner) = newer {
            if !was_outdated {
                tracing::warn!("control is not taken: {owner}");
            }
            return Ok(None);
        }
        match self.run.claim_control().await? {
            ClaimOutcome::Claimed(place) => {
                if let Some(before) = before.filter(|run| *run != self.run.id()) {
                    self.run.wait_until_silent(before).await?;
                }
                Ok(Some(place))
            }
            ClaimOutcome::Held(place) => {
                self.holder = Some(place.run);
                Ok(None)
            }
        }
    }
}

/// A run that has control, or had it last, and whose program knows a newer schema than this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NewerOwner {
    name: String,
    version: String,
}

impl fmt::Display for NewerOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, version } = self;
        write!(
            f,
            "{name} has control or had it last, and runs svc {version}, whose databases this program cannot read: upgrade this node first"
        )
    }
}

/// Returns the run that has control or had it last, if its program is newer than this one.
///
/// # Errors
/// The ledger's.
pub(super) async fn find_newer_owner<L: Ledger>(
    run: &Run<L>,
) -> Result<Option<NewerOwner>, LedgerError> {
    let owner = find_holder(run).await?;
    Ok(owner.and_then(|owner| newer_owner(run, owner)))
}

/// Whether the run that has control has a program of another schema than this one, which cannot follow it then.
pub(super) async fn is_of_other_schema<L: Ledger>(run: &Run<L>) -> Result<bool, LedgerError> {
    let owner = find_holder(run).await?;
    let nodes = run.nodes();
    let nodes = nodes.borrow();
    let mut nodes = nodes.iter().map(|seen| &seen.state.node);
    Ok(nodes.any(|node| Some(node.run) == owner && node.schema != run.schema()))
}

fn newer_owner<L: Ledger>(run: &Run<L>, owner: RunId) -> Option<NewerOwner> {
    let nodes = run.nodes();
    let nodes = nodes.borrow();
    let mut nodes = nodes.iter().map(|seen| &seen.state.node);
    // One that the ledger does not tell any more died long ago.
    let owner = nodes.find(|node| node.run == owner)?;
    (owner.schema > run.schema()).then(|| NewerOwner {
        name: owner.name.clone(),
        version: owner.version.clone(),
    })
}

/// Returns the run that has the place of control, whether it lives or not.
pub(super) async fn find_holder<L: Ledger>(run: &Run<L>) -> Result<Option<RunId>, LedgerError> {
    let places = run.ledger().places().await?;
    let control = places
        .iter()
        .find(|place| place.database == DatabaseName::Control);
    Ok(control.map(|place| place.run))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::tests::settings;
    use super::*;
    use crate::config::ClusterSettings;
    use crate::control::SCHEMA_VERSION;
    use svc_base::clock::{Clock, Timestamp};
    use svc_base::random::Random;
    use svc_ledger::{MemoryLedger, Node, answers_for};

    const SUSPECT_AFTER: Duration = Duration::from_secs(2);

    /// Joins a run that does not beat by itself.
    async fn other(ledger: &MemoryLedger) -> RunId {
        other_with_schema(ledger, 1).await
    }

    async fn other_with_schema(ledger: &MemoryLedger, schema: u32) -> RunId {
        // It is older than any other.
        let clock = Clock::manual(Timestamp(1));
        let run = RunId::new(&clock, &Random::system()).unwrap();
        let node = Node {
            run,
            name: "n1".to_owned(),
            suspect_after: SUSPECT_AFTER,
            peer_url: String::new(),
            peer_key: Vec::new(),
            version: String::new(),
            schema,
        };
        ledger.join(&node).await.unwrap();
        run
    }

    async fn joined(ledger: &Arc<MemoryLedger>) -> Arc<Run<MemoryLedger>> {
        let (clock, random) = (Clock::system(), Random::system());
        let settings = ClusterSettings {
            suspect_seconds: 2,
            ..settings("n2")
        };
        let joined = Run::join(Arc::clone(ledger), &settings, &clock, &random);
        joined.await.unwrap()
    }

    /// Begins a candidate that does not get control at once.
    async fn waiting(
        run: &Arc<Run<MemoryLedger>>,
        is_patient: bool,
    ) -> ControlCandidate<MemoryLedger> {
        let begun = ControlCandidate::begin(Arc::clone(run), is_patient).await;
        begun.unwrap().unwrap_err()
    }

    #[tokio::test]
    async fn control_that_nobody_has_is_claimed_at_once_but_by_a_patient_candidate() {
        let ledger = Arc::new(MemoryLedger::default());
        other(&ledger).await;
        let run = joined(&ledger).await;
        let waits = ControlCandidate::begin(Arc::clone(&run), true)
            .await
            .unwrap();
        assert!(waits.is_err());
        let claim = ControlCandidate::begin(Arc::clone(&run), false)
            .await
            .unwrap();
        let claim = claim.unwrap();
        assert_eq!((claim.place.run, claim.took_over), (run.id(), false));
    }

    #[tokio::test]
    async fn a_candidate_takes_control_when_the_owner_is_dead() {
        let ledger = Arc::new(MemoryLedger::default());
        let owner = other(&ledger).await;
        ledger.claim(owner, DatabaseName::Control).await.unwrap();
        let run = joined(&ledger).await;
        let candidate = waiting(&run, true).await;
        let (_wishes, mut promoted) = mpsc::channel(1);
        ledger.bury(owner, owner, None).await.unwrap();
        let claim = candidate.wait(&mut promoted).await.unwrap();
        assert_eq!((claim.place.run, claim.took_over), (run.id(), true));
    }

    #[tokio::test]
    async fn a_patient_candidate_leaves_control_to_who_serves_and_can_read_it() {
        for (schema, serves, leaves_it) in [
            (SCHEMA_VERSION, true, true),
            (SCHEMA_VERSION, false, false),
            (SCHEMA_VERSION - 1, true, false),
        ] {
            let ledger = Arc::new(MemoryLedger::default());
            let owner = other_with_schema(&ledger, SCHEMA_VERSION).await;
            ledger.claim(owner, DatabaseName::Control).await.unwrap();
            let follower = other_with_schema(&ledger, schema).await;
            if serves {
                ledger.note_serving(follower).await.unwrap();
            }
            let run = joined(&ledger).await;
            let mut candidate = waiting(&run, true).await;
            ledger.bury(owner, owner, None).await.unwrap();
            run.beat().await.unwrap();
            let mut nodes = run.nodes();
            let tried = candidate.try_once(&mut nodes, false).await.unwrap();
            assert_eq!(tried.is_none(), leaves_it, "{schema} {serves}");
            // Nobody else is left then.
            ledger.bury(follower, follower, None).await.unwrap();
            run.beat().await.unwrap();
            let tried = candidate.try_once(&mut nodes, false).await.unwrap();
            assert_eq!(tried.unwrap().run, run.id());
        }
    }

    #[tokio::test]
    async fn an_operator_has_a_candidate_bury_the_owner() {
        let ledger = Arc::new(MemoryLedger::default());
        let owner = other(&ledger).await;
        ledger.claim(owner, DatabaseName::Control).await.unwrap();
        let run = joined(&ledger).await;
        let candidate = waiting(&run, false).await;
        let (promotions, mut promoted) = mpsc::channel(1);
        promotions.send(()).await.unwrap();
        ledger.beat(owner).await.unwrap();
        let begun = run.clock().elapsed();
        let claim = candidate.wait(&mut promoted).await.unwrap();
        assert_eq!(claim.place.run, run.id());
        // The owner may have answered until now.
        let waited = run.clock().elapsed().saturating_sub(begun);
        assert!(waited >= answers_for(SUSPECT_AFTER), "{waited:?}");
        assert_eq!(ledger.beat(owner).await, Err(LedgerError::Fenced));
    }

    #[tokio::test]
    async fn an_older_program_takes_nothing_from_a_newer_one() {
        let ledger = Arc::new(MemoryLedger::default());
        let owner = other_with_schema(&ledger, SCHEMA_VERSION + 1).await;
        ledger.claim(owner, DatabaseName::Control).await.unwrap();
        let run = joined(&ledger).await;
        let mut candidate = waiting(&run, false).await;
        assert!(find_newer_owner(&run).await.unwrap().is_some());
        let mut nodes = run.nodes();
        let tried = candidate.try_once(&mut nodes, true).await;
        assert_eq!(tried, Ok(None));
        assert!(ledger.beat(owner).await.is_ok());
        // Nor when it is dead: what it has left cannot be read.
        ledger.bury(owner, owner, None).await.unwrap();
        run.beat().await.unwrap();
        for is_promoted in [false, true] {
            let tried = candidate.try_once(&mut nodes, is_promoted).await;
            assert_eq!(tried, Ok(None));
        }
    }

    #[tokio::test]
    async fn a_program_of_another_schema_does_not_follow() {
        for (schema, differs) in [
            (SCHEMA_VERSION - 1, true),
            (SCHEMA_VERSION, false),
            (SCHEMA_VERSION + 1, true),
        ] {
            let ledger = Arc::new(MemoryLedger::default());
            let owner = other_with_schema(&ledger, schema).await;
            let run = joined(&ledger).await;
            assert_eq!(is_of_other_schema(&run).await, Ok(false), "nobody has it");
            ledger.claim(owner, DatabaseName::Control).await.unwrap();
            assert_eq!(is_of_other_schema(&run).await, Ok(differs));
        }
    }

    #[tokio::test]
    async fn a_run_that_leaves_knows_whether_it_was_buried() {
        let ledger = Arc::new(MemoryLedger::default());
        let other = other(&ledger).await;
        for is_buried in [false, true] {
            let run = joined(&ledger).await;
            if is_buried {
                ledger.bury(other, run.id(), None).await.unwrap();
            }
            assert_eq!(run.leave().await, is_buried);
        }
    }
}
