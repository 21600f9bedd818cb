//! Places of databases, as the ledger had them a moment ago: by them a node knows whom to ask. Whoever is asked looks again.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use svc_base::sync::lock;
use svc_ledger::{DatabaseName, Ledger, LedgerError, RunId};

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

    /// Returns where a database is. One whose place is not known is looked up, since it may be claimed by now.
    pub async fn locate(self: &Arc<Self>, database: DatabaseName) -> DatabaseLocation {
        let asked = self.run.clock().elapsed();
        let known = self.known(database);
        if known.is_none() {
            let me = Arc::clone(self);
            // Nobody gives up a request to the ledger: all others of its connection would be lost, and each caller would open another.
            let looking = tokio::spawn(async move { me.look(asked).await });
            if !matches!(looking.await, Ok(Ok(()))) {
                return DatabaseLocation::Unknown;
            }
        }
        match known.or_else(|| self.known(database)) {
            Some(run) if run == self.run.id() => DatabaseLocation::Here,
            Some(run) if self.run.peers().known().is_trusted(run) => DatabaseLocation::At(run),
            Some(run) if self.run.peers().known().is_live(run) => DatabaseLocation::Unknown,
            // A dead run's, or nobody's.
            _ if database != DatabaseName::Control => self.claimant(),
            _ => DatabaseLocation::Unknown,
        }
    }

    /// Returns the run that had a database a moment ago, whether it lives or not, without a look at the ledger.
    pub(super) fn last_holder(&self, database: DatabaseName) -> Option<RunId> {
        self.known(database)
    }

    /// Returns the run that is believed to have a database and to live, without a look at the ledger.
    pub(super) fn holder(&self, database: DatabaseName) -> Option<RunId> {
        self.known(database).filter(|run| self.lives(*run))
    }

    /// Returns where a database that nobody has is to be claimed: here, unless this node has twice the average of those that have any.
    fn claimant(&self) -> DatabaseLocation {
        let me = self.run.id();
        let mut counts = HashMap::from([(me, 0_usize)]);
        for run in lock(&self.seen).runs.values() {
            if self.lives(*run) {
                *counts.entry(*run).or_default() += 1;
            }
        }
        let (mine, total) = (counts[&me], counts.values().sum::<usize>());
        if mine <= FEW || mine * counts.len() < 2 * total {
            return DatabaseLocation::Here;
        }
        let others = counts.iter().filter(|(run, _)| **run != me);
        let least = others.min_by_key(|(run, count)| (**count, **run));
        least.map_or(DatabaseLocation::Here, |(run, _)| {
            DatabaseLocation::At(*run)
        })
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

    fn known(&self, database: DatabaseName) -> Option<RunId> {
        lock(&self.seen).runs.get(&database).copied()
    }

    /// Asks the ledger, unless it was asked after `since` already.
    async fn look(&self, since: Duration) -> Result<(), LedgerError> {
        let _turn = self.asking.lock().await;
        if lock(&self.seen).asked.is_some_and(|asked| asked > since) {
            return Ok(());
        }
        let asked = self.run.clock().elapsed();
        let places = self.run.ledger().places().await?;
        let mut seen = lock(&self.seen);
        seen.forgotten.retain(|_, at| *at >= asked);
        let places = places.iter().map(|place| (place.database, place.run));
        let runs = places.filter(|(database, _)| !seen.forgotten.contains_key(database));
        let runs: HashMap<DatabaseName, RunId> = runs.collect();
        seen.asked = Some(asked);
        seen.runs = runs;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use svc_base::clock::Clock;
    use svc_base::ids::BackendId;
    use svc_base::random::Random;
    use svc_ledger::{ClaimOutcome, MemoryLedger};

    use super::*;
    use crate::config::{ClusterSettings, LedgerUrl};

    fn settings(name: &str) -> ClusterSettings {
        ClusterSettings {
            name: name.to_owned(),
            ledger: LedgerUrl::from("postgresql://pg/svc".to_owned()),
            bucket: "file:///srv/shared".parse().unwrap(),
            peer_listen: ([127, 0, 0, 1], 0).into(),
            peer_url: None,
            synced_standbys: 1,
            suspect_seconds: 5,
            stale_pages_seconds: 600,
            standby: false,
        }
    }

    #[tokio::test]
    async fn a_database_is_where_the_ledger_says() {
        let (clock, random) = (Clock::system(), Random::system());
        let ledger = Arc::new(MemoryLedger::default());
        let join = async |name| {
            let run = Run::join(Arc::clone(&ledger), &settings(name), &clock, &random);
            run.await.unwrap()
        };
        let (here, there) = (join("n1").await, join("n2").await);
        here.beat().await.unwrap();
        let places = Arc::new(KnownPlaces::new(Arc::clone(&here)));
        let control = DatabaseName::Control;
        let tenant = DatabaseName::Backend(BackendId::new(&clock, &random).unwrap());
        assert_eq!(places.locate(control).await, DatabaseLocation::Unknown);
        assert_eq!(places.locate(tenant).await, DatabaseLocation::Here);
        ledger.claim(here.id(), control).await.unwrap();
        let claimed = ledger.claim(there.id(), tenant).await.unwrap();
        assert_eq!(places.locate(control).await, DatabaseLocation::Here);
        let there_now = DatabaseLocation::At(there.id());
        assert_eq!(places.locate(tenant).await, there_now);

        // What was seen is believed until it turns out to be wrong.
        let ClaimOutcome::Claimed(place) = claimed else {
            panic!("it was nobody's")
        };
        ledger.release(place).await.unwrap();
        assert_eq!(places.locate(tenant).await, there_now);
        places.forget(tenant);
        assert_eq!(places.locate(tenant).await, DatabaseLocation::Here);

        ledger.claim(there.id(), tenant).await.unwrap();
        assert_eq!(places.locate(tenant).await, there_now);
        there.leave().await;
        here.beat().await.unwrap();
        assert_eq!(places.locate(tenant).await, DatabaseLocation::Here);
    }

    #[tokio::test]
    async fn a_look_at_the_ledger_goes_on_without_the_one_who_waited_for_it() {
        let (clock, random) = (Clock::system(), Random::system());
        let ledger = Arc::new(MemoryLedger::default());
        let run = Run::join(ledger, &settings("n1"), &clock, &random);
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
            let run = Run::join(Arc::clone(&ledger), &settings(name), &clock, &random);
            run.await.unwrap()
        };
        let runs = [join("n1").await, join("n2").await, join("n3").await];
        let [here, other, least] = &runs;
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
        claim(other, 2).await;
        claim(least, 1).await;
        let places = Arc::new(KnownPlaces::new(Arc::clone(here)));
        assert_eq!(places.locate(free).await, DatabaseLocation::At(least.id()));
        // Who has its share takes it.
        claim(other, 20).await;
        let places = Arc::new(KnownPlaces::new(Arc::clone(here)));
        assert_eq!(places.locate(free).await, DatabaseLocation::Here);
        assert_eq!(places.holder(free), None);
    }
}
