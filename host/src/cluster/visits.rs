//! Views in the ledger. A node adds what it has counted, and an owner begins with the sums that are there.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use uuid::Uuid;

use crate::control::{DeploymentVisits, SharedVisits};
use svc_base::clock::Clock;
use svc_base::ids::{self, DeploymentId};
use svc_base::random::Random;
use svc_ledger::{Ledger, LedgerError, RunId};

/// Most deployments of a request that adds or deletes: commits of databases wait behind it.
const WRITTEN_AT_ONCE: usize = 1000;
/// Most deployments of a request that reads.
const READ_AT_ONCE: usize = 10_000;
/// Time after which a flush is given up for now: a server that stops waits for it.
const ANSWER_WAIT: Duration = Duration::from_secs(2);

/// Answer of the ledger, which is empty where something was deleted.
type Answer = Result<Vec<DeploymentVisits>, LedgerError>;

/// Views of an installation, which a run adds to in the ledger.
pub(super) struct LedgerVisits<L> {
    ledger: Arc<L>,
    run: RunId,
    /// Time for which the answer to a request is waited for.
    answer_wait: Duration,
    /// Request whose answer has not come yet. Nothing is taken back, so it is waited for before another is sent.
    under_way: Mutex<Option<JoinHandle<Answer>>>,
}

impl<L> fmt::Debug for LedgerVisits<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LedgerVisits").finish_non_exhaustive()
    }
}

impl<L: Ledger> LedgerVisits<L> {
    pub(super) fn new(ledger: Arc<L>, run: RunId) -> Self {
        Self {
            ledger,
            run,
            answer_wait: ANSWER_WAIT,
            under_way: Mutex::default(),
        }
    }

    /// Sends a request, which runs to its end however long that takes, and waits for its answer for a while.
    async fn send(
        &self,
        request: impl Future<Output = Answer> + Send + 'static,
    ) -> Result<Vec<DeploymentVisits>, String> {
        let no_answer = || Err("the ledger has not answered yet".to_owned());
        let mut under_way = self.under_way.lock().await;
        if let Some(earlier) = under_way.as_mut() {
            // Its caller asks again for the same.
            if timeout(self.answer_wait, earlier).await.is_err() {
                return no_answer();
            }
            *under_way = None;
        }
        let mut sent = tokio::spawn(request);
        match timeout(self.answer_wait, &mut sent).await {
            Ok(Ok(answer)) => answer.map_err(|error| error.to_string()),
            Ok(Err(panic)) => Err(panic.to_string()),
            Err(_) => {
                *under_way = Some(sent);
                no_answer()
            }
        }
    }

    async fn add_all(
        &self,
        flush: i64,
        counts: &[DeploymentVisits],
    ) -> Result<Vec<DeploymentVisits>, String> {
        let mut there = Vec::with_capacity(counts.len());
        // A flush that is sent again has the same parts.
        for (part, counts) in (0..).zip(counts.chunks(WRITTEN_AT_ONCE)) {
            let (ledger, run) = (Arc::clone(&self.ledger), self.run);
            let (flush, counts) = (part_id(flush, part), counts.to_vec());
            let sent = self.send(async move { ledger.add_visits(run, flush, &counts).await });
            there.extend(sent.await?);
        }
        Ok(there)
    }

    async fn forget_all(&self, gone: &[DeploymentId]) -> Result<(), String> {
        for gone in gone.chunks(WRITTEN_AT_ONCE) {
            let (ledger, run) = (Arc::clone(&self.ledger), self.run);
            let gone = gone.to_vec();
            let sent = self.send(async move {
                let forgotten = ledger.forget_visits(run, &gone).await;
                forgotten.map(|()| Vec::new())
            });
            sent.await?;
        }
        Ok(())
    }
}

/// Returns the id of a part of a flush: each part is added once.
fn part_id(flush: i64, part: u64) -> Uuid {
    Uuid::from_u64_pair(flush.cast_unsigned(), part)
}

impl<L: Ledger> SharedVisits for LedgerVisits<L> {
    fn add<'a>(
        &'a self,
        flush: i64,
        counts: &'a [DeploymentVisits],
    ) -> BoxFuture<'a, Result<Vec<DeploymentVisits>, String>> {
        Box::pin(self.add_all(flush, counts))
    }

    fn forget<'a>(&'a self, gone: &'a [DeploymentId]) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(self.forget_all(gone))
    }
}

/// Reads the views of all deployments. `reader` is as for [`Ledger::tail`].
///
/// # Errors
/// The ledger's.
pub async fn load<L: Ledger>(
    ledger: &L,
    reader: Option<RunId>,
) -> Result<Vec<DeploymentVisits>, LedgerError> {
    let mut all: Vec<DeploymentVisits> = Vec::new();
    loop {
        let last = all.last().map(|(id, _)| *id);
        let more = ledger.visits(reader, last, READ_AT_ONCE).await?;
        let is_end = more.len() < READ_AT_ONCE;
        all.extend(more);
        if is_end {
            return Ok(all);
        }
    }
}

/// Brings the views of an installation that is founded, in place of those that a founding before has brought.
pub(super) async fn bring<L: Ledger>(
    ledger: &L,
    run: RunId,
    counts: &[DeploymentVisits],
    clock: &Clock,
    random: &Random,
) -> anyhow::Result<()> {
    let before = load(ledger, Some(run)).await?;
    for before in before.chunks(WRITTEN_AT_ONCE) {
        let ids: Vec<_> = before.iter().map(|(id, _)| *id).collect();
        ledger.forget_visits(run, &ids).await?;
    }
    for counts in counts.chunks(WRITTEN_AT_ONCE) {
        let flush = ids::uuid_v7(clock, random)?;
        ledger.add_visits(run, flush, counts).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::joined_run;
    use super::*;
    use svc_ledger::MemoryLedger;

    /// Joins a run that adds views, more of them than a request may have.
    async fn begun() -> (
        Arc<MemoryLedger>,
        LedgerVisits<MemoryLedger>,
        Vec<DeploymentVisits>,
    ) {
        let (clock, random) = (Clock::system(), Random::system());
        let ledger = Arc::new(MemoryLedger::default());
        let run = joined_run(&ledger).await;
        let visits = LedgerVisits::new(Arc::clone(&ledger), run);
        let id = || DeploymentId::new(&clock, &random).unwrap();
        let mut counts: Vec<_> = (0..2500).map(|count| (id(), count + 1)).collect();
        counts.sort_unstable();
        (ledger, visits, counts)
    }

    #[tokio::test]
    async fn a_flush_of_many_parts_is_counted_once() {
        let (ledger, visits, counts) = begun().await;
        // What was added before its answer was lost: the first part.
        for (answers, there) in [(1, WRITTEN_AT_ONCE), (0, counts.len()), (0, counts.len())] {
            ledger.lose_answers(answers);
            let added = visits.add(7, &counts).await;
            assert_eq!(added.is_ok(), answers == 0, "{added:?}");
            assert_eq!(load(&*ledger, None).await.unwrap(), counts[..there]);
        }
        let (id, count) = counts[0];
        let added = visits.add(8, &counts[..1]).await;
        assert_eq!(added.unwrap(), [(id, 2 * count)]);
        let ids: Vec<_> = counts.iter().map(|(id, _)| *id).collect();
        visits.forget(&ids[1..]).await.unwrap();
        let there = load(&*ledger, None).await.unwrap();
        assert_eq!(there, [(id, 2 * count)]);
    }

    #[tokio::test]
    async fn a_ledger_that_does_not_answer_is_not_waited_for() {
        let (ledger, mut visits, counts) = begun().await;
        visits.answer_wait = Duration::from_millis(1);
        ledger.stop_standby();
        for _ in 0..2 {
            visits.add(7, &counts).await.unwrap_err();
        }
        ledger.start_standby();
        visits.answer_wait = ANSWER_WAIT;
        let there = visits.add(7, &counts).await.unwrap();
        assert_eq!(there, counts);
        assert_eq!(load(&*ledger, None).await.unwrap(), counts);
    }

    #[tokio::test]
    async fn a_founding_that_is_repeated_brings_what_is_there_now() {
        let (ledger, visits, counts) = begun().await;
        let (clock, random) = (Clock::system(), Random::system());
        for brought in [&counts[..1500], &counts[1..], &counts[..0]] {
            bring(&*ledger, visits.run, brought, &clock, &random)
                .await
                .unwrap();
            assert_eq!(load(&*ledger, None).await.unwrap(), brought);
        }
    }
}
