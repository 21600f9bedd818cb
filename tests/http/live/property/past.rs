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
    pub(super) fn of(row: &Value) -> Option<Self> {
        Some(Self {
            epoch: row["epoch"].as_u64()?,
            tick: row["tick"].as_u64()?,
        })
    }

    /// The first of an epoch.
    fn first(epoch: u64) -> Self {
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
struct Noted {
    /// Ticks that were answered, and when.
    ticks: Vec<(Instant, Label)>,
    restores: Vec<Restore>,
    /// The longest that a call took: what the machine itself keeps anybody waiting.
    slowest: Duration,
}

/// Commits so far.
#[derive(Default)]
pub(super) struct Past {
    noted: Mutex<Noted>,
    turn: RwLock<()>,
}

impl Past {
    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap()
    }

    /// A turn beside other writers.
    pub(super) async fn shared(&self) -> RwLockReadGuard<'_, ()> {
        self.turn.read().await
    }

    /// A turn while no other writer has one.
    pub(super) async fn alone(&self) -> RwLockWriteGuard<'_, ()> {
        self.turn.write().await
    }

    /// Notes how long a call took.
    pub(super) fn took(&self, time: Duration) {
        let mut noted = self.noted();
        noted.slowest = noted.slowest.max(time);
    }

    /// Notes a tick that was answered just now.
    pub(super) fn ticked(&self, result: &Value) {
        let label = Label::of(&result["rows"][0]).unwrap();
        self.noted().ticks.push((Instant::now(), label));
    }

    /// Notes that a restore brought a label back, and began an epoch.
    pub(super) fn restored(&self, result: &Value, epoch: u64) {
        let label = Label::of(&result["rows"][0]).unwrap();
        self.noted().restores.push(Restore { label, epoch });
    }

    /// How many ticks there were.
    pub(super) fn ticks(&self) -> usize {
        self.noted().ticks.len()
    }

    /// Checks that no label is older than one before; answers how far each of them is.
    pub(super) fn in_order(
        &self,
        heard: &[(Instant, Label)],
    ) -> Result<Vec<(Instant, Label)>, String> {
        let noted = self.noted();
        let mut least = Label::first(0);
        let far = heard.iter().map(|(at, label)| {
            if *label >= least {
                least = *label;
                return Ok((*at, least));
            }
            // Something that was there before is there again if a restore since then has brought it back.
            let mut restores = noted.restores.iter();
            let restore = restores.find(|r| r.label == *label && r.epoch > least.epoch);
            let restore = restore.ok_or_else(|| format!("{label:?} came after {least:?}"))?;
            least = Label::first(restore.epoch);
            Ok((*at, least))
        });
        far.collect()
    }

    /// Checks that what was answered was told within `soon`, and what a call took at the same time.
    #[track_caller]
    pub(super) fn is_told(&self, far: &[(Instant, Label)], soon: Duration) {
        let noted = self.noted();
        for (answered, label) in &noted.ticks {
            let told = far.iter().find(|(_, far)| far >= label);
            let (told, _) = told.unwrap_or_else(|| panic!("{label:?} was never told"));
            let waited = told.saturating_duration_since(*answered);
            assert!(waited <= soon + noted.slowest, "{label:?} took {waited:?}");
        }
    }
}
