//! Places of databases, as the ledger had them a moment ago: by them a node knows whom to ask. Whoever is asked looks again.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use svc_base::sync::lock;
use svc_ledger::{DatabaseName, Ledger, LedgerError, NodeState, RunId};

use super::run::Run;

/// Time between two looks at the ledger.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Databases that a node may have however few others have.
const FEW: usize = 16;

/// Run that answers for a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatabaseLocation {
    /// This one, or none yet: this one may claim it.
    Here,
    /// Another one, which is believed to live.
    At(RunId),
    /// Not known: the run that had it is suspected or dead, or the ledger does not answer.
    Unknown,
}

/// Places of all databases.
pub struct KnownPlaces<L> {
    run: Arc<Run<L>>,
    seen: Mutex<SeenPlaces>,
    /// Held while the ledger is asked.
    asking: tokio::sync::Mutex<()>,
}

/// Places that the ledger had.
#[derive(Debug, Default)]
struct SeenPlaces {
    /// Time at which the ledger was asked; `None` before the first answer.
    asked: Option<Duration>,
    runs: HashMap<DatabaseName, RunId>,
    /// Times at which places were forgotten: what the ledger was asked before may be as wrong.
    forgotten: HashMap<DatabaseName, Duration>,
}

impl<L> fmt::Debug for KnownPlaces<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownPlaces")
            .field("seen", &self.seen)
            .finish_non_exhaustive()
    }
}

impl<L: Ledger> KnownPlaces<L> {
    /// Begins to follow the places, until the process ends.
    pub fn follow(run: Arc<Run<L>>) -> Arc<Self> {
        let places = Arc::new(Self::new(run));
        let following = Arc::clone(&places);
        tokio::spawn(async move {
            loop {
                // A ledger that does not answer is reported where this run beats.
                let _ = following.look(following.run.clock().elapsed()).await;
                tokio::time::sleep(LOOK_EVERY).await;
            }
        });
        places
    }

    pub(super) fn new(run: Arc<Run<L>>) -> Self {
        Self {
            run,
            seen: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
        }
    }

    /// Returns where a database is. One whose place is not known, or was a dead run's, is looked up, since it may be claimed by now.
    pub async fn locate(self: &Arc<Self>, database: DatabaseName) -> DatabaseLocation {
        let asked = self.run.clock().elapsed();
        let nodes = self.run.peers().known();
        let known = self.last_holder(database);
        let known = known.filter(|run| *run == self.run.id() || nodes.is_live(*run));
        if known.is_none() {
            let me = Arc::clone(self);
            // Nobody gives up a request to the ledger: all others of its connection would be lost, and each caller would open another.
            let looking = tokio::spawn(async move { me.look(asked).await });
            if !matches!(looking.await, Ok(Ok(()))) {
                return DatabaseLocation::Unknown;
            }
        }
        match known.or_else(|| self.last_holder(database)) {
            Some(run) if run == self.run.id() => DatabaseLocation::Here,
            Some(run) if nodes.is_trusted(run) => DatabaseLocation::At(run),
            Some(run) if nodes.is_live(run) => DatabaseLocation::Unknown,
            // A dead run's, or nobody's.
            _ if database != DatabaseName::Control => self.claimant(),
            _ => DatabaseLocation::Unknown,
        }
    }

    /// Returns where a database is, if that is known without a look at the ledger, and whoever has it is believed to live.
    pub fn known_location(&self, database: DatabaseName) -> Option<DatabaseLocation> {
        let run = self.last_holder(database)?;
        if run == self.run.id() {
            return Some(DatabaseLocation::Here);
        }
        let is_trusted = self.run.peers().known().is_trusted(run);
        is_trusted.then_some(DatabaseLocation::At(run))
    }

    /// Returns the run that is believed to have a database and to live, without a look at the ledger.
    pub(super) fn holder(&self, database: DatabaseName) -> Option<RunId> {
        self.last_holder(database).filter(|run| self.lives(*run))
    }

    /// Returns the run that had a database when the ledger was last looked at, whether it lives or not.
    pub(super) fn last_holder(&self, database: DatabaseName) -> Option<RunId> {
        lock(&self.seen).runs.get(&database).copied()
    }

    /// Returns where a database that nobody has is to be claimed.
    fn claimant(&self) -> DatabaseLocation {
        let me = self.run.id();
        let nodes = self.run.nodes().borrow().clone();
        let nodes = nodes.into_iter().map(|seen| seen.state);
        let living: Vec<NodeState> = nodes.filter(|state| self.lives(state.node.run)).collect();
        match choose_claimant(me, &living, lock(&self.seen).runs.values()) {
            run if run == me => DatabaseLocation::Here,
            run => DatabaseLocation::At(run),
        }
    }

    fn lives(&self, run: RunId) -> bool {
        run == self.run.id() || self.run.peers().known().is_trusted(run)
    }

    /// Forgets the place of a database, which was wrong.
    pub fn forget(&self, database: DatabaseName) {
        let now = self.run.clock().elapsed();
        let mut seen = lock(&self.seen);
        seen.runs.remove(&database);
        seen.forgotten.insert(database, now);
    }

    /// Asks the ledger, unless it was asked after `since` already.
    async fn look(&self, since: Duration) -> Result<(), LedgerError> {
        let _turn = self.asking.lock().await;
        if lock(&self.seen).asked.is_some_and(|asked| asked > since) {
            return Ok(());
        }
        let asked = self.run.clock().elapsed();
        let places = self.run.ledger().places().await?;
        let places = places.iter().map(|place| (place.database, place.run));
        let mut runs: HashMap<DatabaseName, RunId> = places.collect();
        // Every request takes this lock, so that no list of all places is made or dropped under it.
        let mut seen = lock(&self.seen);
        seen.forgotten.retain(|_, at| *at >= asked);
        for database in seen.forgotten.keys() {
            runs.remove(database);
        }
        seen.asked = Some(asked);
        std::mem::swap(&mut seen.runs, &mut runs);
        drop(seen);
        Ok(())
    }
}

/// Returns the run that is to claim a database which nobody has: this one, unless it leaves, or has twice the average of all that serve.
/// Another one that leaves is not asked. `holders` has the run of each database that somebody has.
fn choose_claimant<'a>(
    me: RunId,
    living: &[NodeState],
    holders: impl Iterator<Item = &'a RunId>,
) -> RunId {
    let others = living.iter().filter(|state| state.serves && !state.leaving);
    let mut counts: HashMap<RunId, usize> = others.map(|state| (state.node.run, 0)).collect();
    counts.entry(me).or_default();
    for run in holders {
        if let Some(count) = counts.get_mut(run) {
            *count += 1;
        }
    }
    let (mine, total) = (counts[&me], counts.values().sum::<usize>());
    let leaves = |state: &NodeState| state.node.run == me && state.leaving;
    if (mine <= FEW || mine * counts.len() < 2 * total) && !living.iter().any(leaves) {
        return me;
    }
    let others = counts.into_iter().filter(|(run, _)| *run != me);
    let least = others.min_by_key(|(run, count)| (*count, *run));
    least.map_or(me, |(run, _)| run)
}

#[cfg(test)]
mod tests {
    use svc_base::clock::Clock;
    use svc_base::ids::BackendId;
    use svc_base::random::Random;
    use svc_ledger::{BeatCount, ClaimOutcome, MemoryLedger};
    use uuid::Uuid;

    use super::super::found::passing_node;
    use super::super::tests::settings;
    use super::*;

    #[tokio::test]
    async fn a_database_is_where_the_ledger_says() {
        let (clock, random) = (Clock::system(), Random::system());
        let ledger = Arc::new(MemoryLedger::default());
        let join = async |name| {
            let settings = settings(name);
            let run = Run::join(Arc::clone(&ledger), &settings, &clock, &random);
            run.await.unwrap()
        };
        let (here, there) = (join("n1").await, join("n2").await);
        here.beat().await.unwrap();
        let places = Arc::new(KnownPlaces::new(Arc::clone(&here)));
        let control = DatabaseName::Control;
        let tenant = DatabaseName::Backend(BackendId::new(&clock, &random).unwrap());
        assert_eq!(places.known_location(control), None);
        assert_eq!(places.locate(control).await, DatabaseLocation::Unknown);
        assert_eq!(places.locate(tenant).await, DatabaseLocation::Here);
        ledger.claim(here.id(), control).await.unwrap();
        let claimed = ledger.claim(there.id(), tenant).await.unwrap();
        assert_eq!(places.locate(control).await, DatabaseLocation::Here);
        let there_now = DatabaseLocation::At(there.id());
        assert_eq!(places.locate(tenant).await, there_now);
        for (database, known) in [(control, DatabaseLocation::Here), (tenant, there_now)] {
            assert_eq!(places.known_location(database), Some(known));
        }

        // What was seen is believed until it turns out to be wrong.
        let ClaimOutcome::Claimed(place) = claimed else {
            panic!("it was nobody's")
        };
        ledger.release(place).await.unwrap();
        assert_eq!(places.locate(tenant).await, there_now);
        places.forget(tenant);
        assert_eq!(places.known_location(tenant), None);
        assert_eq!(places.locate(tenant).await, DatabaseLocation::Here);

        ledger.claim(there.id(), tenant).await.unwrap();
        assert_eq!(places.locate(tenant).await, there_now);
        there.leave().await;
        here.beat().await.unwrap();
        assert_eq!(places.known_location(tenant), None, "a dead run's");
        assert_eq!(places.locate(tenant).await, DatabaseLocation::Here);
    }

    #[tokio::test]
    async fn a_look_at_the_ledger_goes_on_without_the_one_who_waited_for_it() {
        let (clock, random) = (Clock::system(), Random::system());
        let ledger = Arc::new(MemoryLedger::default());
        let settings = settings("n1");
        let run = Run::join(ledger, &settings, &clock, &random);
        let places = Arc::new(KnownPlaces::new(run.await.unwrap()));
        let tenant = DatabaseName::Backend(BackendId::new(&clock, &random).unwrap());
        let turn = places.asking.lock().await;
        let given_up = tokio::time::timeout(Duration::ZERO, places.locate(tenant));
        assert!(given_up.await.is_err());
        drop(turn);
        while lock(&places.seen).asked.is_none() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_node_with_twice_the_average_claims_no_more() {
        let (clock, random) = (Clock::system(), Random::system());
        let ledger = Arc::new(MemoryLedger::default());
        let join = async |name| {
            let settings = settings(name);
            let run = Run::join(Arc::clone(&ledger), &settings, &clock, &random);
            run.await.unwrap()
        };
        let runs = [join("n1").await, join("n2").await, join("n3").await];
        let [here, other, least] = &runs;
        for run in [other, least] {
            ledger.note_serving(run.id()).await.unwrap();
        }
        here.beat().await.unwrap();
        let free = DatabaseName::Backend(BackendId::new(&clock, &random).unwrap());
        let claim = async |run: &Arc<Run<MemoryLedger>>, databases: usize| {
            for _ in 0..databases {
                let id = BackendId::new(&clock, &random).unwrap();
                let name = DatabaseName::Backend(id);
                ledger.claim(run.id(), name).await.unwrap();
            }
        };
        claim(here, FEW).await;
        let places = Arc::new(KnownPlaces::new(Arc::clone(here)));
        assert_eq!(places.locate(free).await, DatabaseLocation::Here, "few");
        claim(here, 1).await;
        claim(other, 1).await;
        let places = Arc::new(KnownPlaces::new(Arc::clone(here)));
        assert_eq!(places.locate(free).await, DatabaseLocation::At(least.id()));
        // Who has its share takes it.
        claim(other, 20).await;
        let places = Arc::new(KnownPlaces::new(Arc::clone(here)));
        assert_eq!(places.locate(free).await, DatabaseLocation::Here);
        assert_eq!(places.holder(free), None);
    }

    #[test]
    fn a_node_that_leaves_or_does_not_serve_takes_no_database() {
        let runs = [1, 2, 3].map(|number| RunId::from(Uuid::from_u128(number)));
        let [me, two, three] = runs;
        let state = |run: RunId, serves: bool, leaving: bool| NodeState {
            node: passing_node(run, "n"),
            live: true,
            beat: BeatCount(1),
            leaving,
            serves,
            removed: false,
        };
        let full = [me; FEW + 1];
        for (living, holders, claimant) in [
            // Whoever is about to say that it serves has room.
            (
                [state(me, false, false), state(two, true, false)],
                &full[..1],
                me,
            ),
            (
                [state(me, true, true), state(two, true, false)],
                &full[..1],
                two,
            ),
            (
                [state(me, true, true), state(two, true, true)],
                &full[..1],
                me,
            ),
            (
                [state(me, true, true), state(two, false, false)],
                &full[..1],
                me,
            ),
            (
                [state(me, true, false), state(two, true, false)],
                &full[..],
                two,
            ),
            (
                [state(me, true, false), state(two, true, true)],
                &full[..],
                me,
            ),
        ] {
            let chosen = choose_claimant(me, &living, holders.iter());
            assert_eq!(chosen, claimant, "{living:?}");
        }
        // Of two, the one with fewer.
        let three_nodes = runs.map(|run| state(run, true, false));
        let holders: Vec<RunId> = full.into_iter().chain([two]).collect();
        assert_eq!(choose_claimant(me, &three_nodes, holders.iter()), three);
    }
}
