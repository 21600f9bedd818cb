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

    fn new(run: Arc<Run<L>>) -> Self {
        Self {
            run,
            seen: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
        }
    }

    /// Returns where a database is. One whose place is not known is looked up, since it may be claimed by now.
    pub async fn locate(&self, database: DatabaseName) -> DatabaseLocation {
        let asked = self.run.clock().elapsed();
        let known = self.known(database);
        if known.is_none() && self.look(asked).await.is_err() {
            return DatabaseLocation::Unknown;
        }
        match known.or_else(|| self.known(database)) {
            Some(run) if run == self.run.id() => DatabaseLocation::Here,
            Some(run) if self.run.peers().known().is_trusted(run) => DatabaseLocation::At(run),
            Some(run) if self.run.peers().known().is_live(run) => DatabaseLocation::Unknown,
            // A dead run's, or nobody's.
            _ if database != DatabaseName::Control => DatabaseLocation::Here,
            _ => DatabaseLocation::Unknown,
        }
    }

    /// Forgets the place of a database, which was wrong.
    pub fn forget(&self, database: DatabaseName) {
        lock(&self.seen).runs.remove(&database);
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
        let runs = places.iter().map(|place| (place.database, place.run));
        *lock(&self.seen) = SeenPlaces {
            asked: Some(asked),
            runs: runs.collect(),
        };
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
        let places = KnownPlaces::new(Arc::clone(&here));
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
}
