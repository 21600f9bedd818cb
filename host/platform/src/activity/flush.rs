//! Writing counts down, once a minute, and reading them with what is not written down yet.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::counts::{HourCounts, RangeCounts};
use super::errand::SharedHours;
use super::registry::Activity;
use super::store::{self, HourOfProject, HourPlace};
use super::{KEPT_DAYS, hour_of};
use crate::control::Error;
use svc_base::ids::ProjectId;

/// Most hours of one message to the machine that writes the control database.
const SHARED_AT_ONCE: usize = 10;
/// Most hours of one transaction of the file of counters, which views wait for, too.
const OWN_AT_ONCE: usize = 1000;

/// Time for which a stop waits for the machine that writes the control database.
const STOP_WAIT: Duration = Duration::from_secs(2);

/// Counts on their way to where they are kept, with the id of their flush.
#[derive(Clone, Debug)]
pub(super) struct HourFlush {
    id: i64,
    hours: Vec<HourOfProject>,
}

impl Activity {
    /// Writes down what was counted; a flush that failed is tried again first, with its id.
    ///
    /// # Errors
    /// Those of the databases; no count is lost by one.
    pub async fn flush(&self) -> Result<(), Error> {
        let mut waiting = self.flushing.lock().await;
        if waiting.is_empty() {
            let mut hours: Vec<HourOfProject> = Vec::new();
            for project in self.all() {
                let taken = project.take().into_iter();
                hours.extend(taken.map(|(hour, counts)| (project.id, hour, counts)));
            }
            let most = match self.control.counters().is_shared() {
                true => SHARED_AT_ONCE,
                false => OWN_AT_ONCE,
            };
            waiting.extend(hours.chunks(most).map(|hours| HourFlush {
                id: self.flushed.fetch_add(1, Ordering::Relaxed),
                hours: hours.to_vec(),
            }));
        }
        while let Some(flush) = waiting.front() {
            self.store(flush.clone()).await?;
            waiting.pop_front();
        }
        Ok(())
    }

    /// Writes everything down, for the stop of the server, when nothing more is counted.
    ///
    /// # Errors
    /// As [`Activity::flush`].
    pub async fn flush_all(&self) -> Result<(), Error> {
        let all = async {
            // The first may only repeat what failed before.
            self.flush().await?;
            self.flush().await
        };
        if !self.control.counters().is_shared() {
            return all.await;
        }
        // Another machine has to answer, which may be gone.
        let answered = timeout(STOP_WAIT, all).await;
        if !matches!(answered, Ok(Ok(()))) {
            tracing::warn!("counts of the last minute are lost: nobody has taken them");
        }
        Ok(())
    }

    async fn store(&self, flush: HourFlush) -> Result<(), Error> {
        let counters = self.control.counters();
        if counters.is_shared() {
            let HourFlush { id, hours } = flush;
            let at = self.clock.now();
            let errand = SharedHours {
                flush: id,
                hours,
                at,
            };
            return self.control.run_errand(errand).await;
        }
        let work = move || counters.write_file(|tx| HourPlace::Own.add(tx, &flush.hours));
        spawn_blocking(work).await.unwrap_or(Err(Error::Panicked))
    }

    /// Sums up the counts of a project from one hour up to another, in points of `step` hours, with those that this machine has not
    /// written down.
    ///
    /// # Errors
    /// Those of the databases.
    pub async fn sums(
        &self,
        project: ProjectId,
        range: (i64, i64),
        step: i64,
    ) -> Result<RangeCounts, Error> {
        // Nothing moves from memory to a file meanwhile, so that each count is read once.
        let waiting = self.flushing.lock().await;
        let counters = self.control.counters();
        let own = move || counters.read_file(|c| HourPlace::Own.sums(c, &project, (range, step)));
        let mut sums = spawn_blocking(own).await.unwrap_or(Err(Error::Panicked))?;
        let shared = self
            .control
            .read(move |c| HourPlace::Shared.sums(c, &project, (range, step)))
            .await?;
        sums.merge(&shared);
        let mut add = |hour: i64, counts: &HourCounts| {
            if (range.0..range.1).contains(&hour) {
                sums.add(hour.div_euclid(step), counts);
            }
        };
        // Those of a flush that failed.
        let failed = waiting.iter().flat_map(|flush| &flush.hours);
        for (_, hour, counts) in failed.filter(|(of, _, _)| *of == project) {
            add(*hour, counts);
        }
        let unwritten = self.find(&project).map(|project| project.peek());
        for (hour, counts) in unwritten.unwrap_or_default() {
            add(hour, &counts);
        }
        Ok(sums)
    }

    /// Deletes the counts of a project that has ended.
    ///
    /// # Errors
    /// Those of the databases; calling again continues.
    pub async fn remove(&self, project: ProjectId) -> Result<(), Error> {
        self.end(&project);
        let mut waiting = self.flushing.lock().await;
        for flush in waiting.iter_mut() {
            flush.hours.retain(|(of, _, _)| *of != project);
        }
        let counters = self.control.counters();
        let own = move || counters.write_file(|tx| HourPlace::Own.forget(tx, &project));
        spawn_blocking(own).await.unwrap_or(Err(Error::Panicked))?;
        self.control
            .write(move |tx| Ok::<_, Error>(HourPlace::Shared.forget(tx, &project)?))
            .await
    }

    /// Deletes counts that are older than they are kept. `shared` are those of several machines, which one of them deletes.
    ///
    /// # Errors
    /// Those of the databases.
    pub async fn forget_old(&self, shared: bool) -> Result<(), Error> {
        let before = hour_of(self.clock.now()) - KEPT_DAYS * 24;
        if shared {
            // A machine alone has none, and is spared the write.
            let has_old = self.control.read(move |c| store::has_old_hours(c, before));
            if !has_old.await? {
                return Ok(());
            }
            let forget = self
                .control
                .write(move |tx| Ok::<_, Error>(HourPlace::Shared.expire(tx, before)?));
            return forget.await;
        }
        let counters = self.control.counters();
        let own = move || counters.write_file(|tx| HourPlace::Own.expire(tx, before));
        spawn_blocking(own).await.unwrap_or(Err(Error::Panicked))
    }
}
