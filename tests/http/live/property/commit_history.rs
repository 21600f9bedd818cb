//! Order of commits, told by labels: a tick that each commit counts on, and an epoch that each restore begins.

use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The label of a state: later ones are greater, but for those that a restore brings back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Label {
    epoch: u64,
    tick: u64,
}

impl Label {
    /// That of a row, if it has one.
    pub(super) fn from_row(row: &Value) -> Option<Self> {
        Some(Self {
            epoch: row["epoch"].as_u64()?,
            tick: row["tick"].as_u64()?,
        })
    }

    /// The first of an epoch.
    fn start_of_epoch(epoch: u64) -> Self {
        Self { epoch, tick: 0 }
    }
}

/// A label that a restore brought back, and the epoch that began with it.
#[derive(Clone, Copy, Debug)]
struct Restore {
    label: Label,
    epoch: u64,
}

#[derive(Default)]
struct CommitLog {
    /// Ticks that were answered, and when.
    ticks: Vec<(Instant, Label)>,
    restores: Vec<Restore>,
    /// The longest that a call took: what the machine itself keeps anybody waiting.
    slowest: Duration,
}

/// Commits so far.
#[derive(Default)]
pub(super) struct CommitHistory {
    log: Mutex<CommitLog>,
    turn: RwLock<()>,
}

impl CommitHistory {
    fn lock_log(&self) -> MutexGuard<'_, CommitLog> {
        self.log.lock().unwrap()
    }

    /// A turn beside other writers.
    pub(super) async fn lock_shared(&self) -> RwLockReadGuard<'_, ()> {
        self.turn.read().await
    }

    /// A turn while no other writer has one.
    pub(super) async fn lock_exclusive(&self) -> RwLockWriteGuard<'_, ()> {
        self.turn.write().await
    }

    /// Notes how long a call took.
    pub(super) fn record_call_time(&self, time: Duration) {
        let mut noted = self.lock_log();
        noted.slowest = noted.slowest.max(time);
    }

    /// Notes a tick that was answered just now.
    pub(super) fn record_tick(&self, result: &Value) {
        let label = Label::from_row(&result["rows"][0]).unwrap();
        self.lock_log().ticks.push((Instant::now(), label));
    }

    /// Notes that a restore brought a label back, and began an epoch.
    pub(super) fn record_restore(&self, result: &Value, epoch: u64) {
        let label = Label::from_row(&result["rows"][0]).unwrap();
        self.lock_log().restores.push(Restore { label, epoch });
    }

    /// How many ticks there were.
    pub(super) fn tick_count(&self) -> usize {
        self.lock_log().ticks.len()
    }

    /// Checks that no label is older than one before; answers how far each of them is.
    pub(super) fn check_order(
        &self,
        heard: &[(Instant, Label)],
    ) -> Result<Vec<(Instant, Label)>, String> {
        let noted = self.lock_log();
        let mut least = Label::start_of_epoch(0);
        let far = heard.iter().map(|(at, label)| {
            if *label >= least {
                least = *label;
                return Ok((*at, least));
            }
            // Something that was there before is there again if a restore since then has brought it back.
            let mut restores = noted.restores.iter();
            let restore = restores.find(|r| r.label == *label && r.epoch > least.epoch);
            let restore = restore.ok_or_else(|| format!("{label:?} came after {least:?}"))?;
            least = Label::start_of_epoch(restore.epoch);
            Ok((*at, least))
        });
        far.collect()
    }

    /// Checks that what was answered was told within `soon`, and what a call took at the same time.
    #[track_caller]
    pub(super) fn assert_delivered_within(&self, far: &[(Instant, Label)], soon: Duration) {
        let noted = self.lock_log();
        for (answered, label) in &noted.ticks {
            let told = far.iter().find(|(_, far)| far >= label);
            let (told, _) = told.unwrap_or_else(|| panic!("{label:?} was never told"));
            let waited = told.saturating_duration_since(*answered);
            assert!(waited <= soon + noted.slowest, "{label:?} took {waited:?}");
        }
    }
}
