//! When a database gets another base: by the bytes of its commits since the last one, and by the time.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use svc_base::clock::Clock;
use svc_base::sync;
use svc_ledger::DatabaseName;

/// A tail that is no larger than this needs no other base, however small the base is.
const MIN_TAIL_BYTES: u64 = 1 << 20;
/// Control gets a base after so many bytes, or so much time: every node loads it before it does anything.
const CONTROL_TAIL_BYTES: u64 = 16 << 20;
const CONTROL_AGE: Duration = Duration::from_secs(15 * 60);
/// Any other database that has changed gets one after so much time.
const AGE: Duration = Duration::from_secs(24 * 3600);
/// A database that is released gets one if its tail is larger.
const RELEASE_TAIL_BYTES: u64 = 64 << 10;

/// A database that is to get a base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DueBase {
    /// The database.
    pub(super) database: DatabaseName,
    /// Bytes of its commits that the base will have.
    tail_bytes: u64,
}

/// Tails of the databases that a run owns.
#[derive(Debug)]
pub(super) struct BaseSchedule {
    clock: Clock,
    tails: Mutex<HashMap<DatabaseName, Tail>>,
}

/// Commits of a database after its base.
#[derive(Debug, Default)]
struct Tail {
    bytes: u64,
    base_bytes: u64,
    /// Age of the base when it was noted here, and the time of that.
    age: Duration,
    since: Duration,
    /// Whether the run does not have the place of the database now.
    is_released: bool,
    /// Whether the newest base does not load.
    is_base_damaged: bool,
}

impl Tail {
    fn is_due(&self, database: DatabaseName, now: Duration) -> bool {
        let (most, age) = match database {
            DatabaseName::Control => (CONTROL_TAIL_BYTES, CONTROL_AGE),
            DatabaseName::Backend(_) => (self.base_bytes.max(MIN_TAIL_BYTES), AGE),
        };
        let is_old = self.bytes > 0 && self.age + now.saturating_sub(self.since) >= age;
        !self.is_released && (self.bytes > most || is_old || self.is_base_damaged)
    }
}

impl BaseSchedule {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            clock,
            tails: Mutex::default(),
        }
    }

    /// Notes the base of a database, by its bytes and its age, and the bytes of the commits after it.
    pub(super) fn note_base(
        &self,
        database: DatabaseName,
        (base_bytes, age): (u64, Duration),
        tail_bytes: u64,
    ) {
        let tail = Tail {
            bytes: tail_bytes,
            base_bytes,
            age,
            since: self.clock.elapsed(),
            is_released: false,
            is_base_damaged: false,
        };
        sync::lock(&self.tails).insert(database, tail);
    }

    /// Notes that the newest base of a database does not load: it needs another one, however short its tail is.
    pub(super) fn note_damaged_base(&self, database: DatabaseName) {
        if let Some(tail) = sync::lock(&self.tails).get_mut(&database) {
            tail.is_base_damaged = true;
        }
    }

    /// Notes whether the place of a database is released. Meanwhile it gets no base.
    pub(super) fn note_released(&self, database: DatabaseName, is_released: bool) {
        if let Some(tail) = sync::lock(&self.tails).get_mut(&database) {
            tail.is_released = is_released;
        }
    }

    /// Notes a commit by the bytes of its body.
    pub(super) fn note_commit(&self, database: DatabaseName, bytes: u64) {
        // A commit without pages is one, too.
        let bytes = bytes.max(1);
        let mut tails = sync::lock(&self.tails);
        tails.entry(database).or_default().bytes += bytes;
    }

    /// Notes that a base was made: its commits are not part of the tail any more.
    pub(super) fn note_made(&self, made: DueBase, base_bytes: u64) {
        let since = self.clock.elapsed();
        if let Some(tail) = sync::lock(&self.tails).get_mut(&made.database) {
            tail.bytes = tail.bytes.saturating_sub(made.tail_bytes);
            tail.base_bytes = base_bytes;
            tail.age = Duration::ZERO;
            tail.since = since;
            tail.is_base_damaged = false;
        }
    }

    /// Forgets a database.
    pub(super) fn note_closed(&self, database: DatabaseName) {
        sync::lock(&self.tails).remove(&database);
    }

    /// Returns the bytes of all commits after their bases.
    pub(super) fn tail_bytes(&self) -> u64 {
        let tails = sync::lock(&self.tails);
        tails.values().map(|tail| tail.bytes).sum()
    }

    /// Lists the databases that are to get a base.
    pub(super) fn due(&self) -> Vec<DueBase> {
        let now = self.clock.elapsed();
        let tails = sync::lock(&self.tails);
        let due = tails.iter().filter(|(name, tail)| tail.is_due(**name, now));
        let due = due.map(|(database, tail)| DueBase {
            database: *database,
            tail_bytes: tail.bytes,
        });
        due.collect()
    }

    /// Returns a database that is about to be released, if it is to get a base.
    pub(super) fn due_on_release(&self, database: DatabaseName) -> Option<DueBase> {
        let tails = sync::lock(&self.tails);
        let tail = tails.get(&database)?;
        let tail_bytes = tail.bytes;
        let is_due = tail_bytes > RELEASE_TAIL_BYTES || tail.is_due(database, self.clock.elapsed());
        is_due.then_some(DueBase {
            database,
            tail_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use svc_base::clock::Timestamp;

    use super::*;

    #[test]
    fn a_base_is_due_by_bytes_and_by_time() {
        let clock = Clock::manual(Timestamp(0));
        let schedule = BaseSchedule::new(clock.clone());
        let control = DatabaseName::Control;
        let tenant: DatabaseName = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
        let due = || -> Vec<DatabaseName> {
            let mut due: Vec<_> = schedule.due().iter().map(|due| due.database).collect();
            due.sort_unstable();
            due
        };
        // By bytes: more than the base has, and more than the least.
        let new = |bytes| (bytes, Duration::ZERO);
        schedule.note_base(tenant, new(2 * MIN_TAIL_BYTES), MIN_TAIL_BYTES + 1);
        schedule.note_base(control, new(1), CONTROL_TAIL_BYTES);
        assert!(due().is_empty());
        schedule.note_commit(control, 1);
        schedule.note_commit(tenant, MIN_TAIL_BYTES);
        assert_eq!(due(), [control, tenant]);
        let tails = CONTROL_TAIL_BYTES + 1 + 2 * MIN_TAIL_BYTES + 1;
        assert_eq!(schedule.tail_bytes(), tails);

        // A commit that comes while a base is made stays in the tail.
        for made in schedule.due() {
            schedule.note_commit(made.database, 5);
            schedule.note_made(made, 7);
        }
        assert!(due().is_empty());
        // By time: only what has changed.
        clock.advance(CONTROL_AGE);
        assert_eq!(due(), [control]);
        clock.advance(AGE);
        assert_eq!(due(), [control, tenant]);
        for made in schedule.due() {
            schedule.note_made(made, 7);
        }
        clock.advance(AGE);
        assert!(due().is_empty());

        schedule.note_base(tenant, new(1), RELEASE_TAIL_BYTES);
        assert_eq!(schedule.due_on_release(tenant), None);
        schedule.note_commit(tenant, 1);
        assert!(schedule.due_on_release(tenant).is_some());
        // One that is released waits until it is used again.
        schedule.note_released(tenant, true);
        clock.advance(AGE);
        assert!(due().is_empty());
        schedule.note_released(tenant, false);
        assert_eq!(due(), [tenant]);
        // One whose base is damaged waits for nothing.
        schedule.note_base(tenant, new(1), 0);
        assert!(due().is_empty());
        schedule.note_damaged_base(tenant);
        assert_eq!(due(), [tenant]);
        schedule.note_closed(tenant);
        assert_eq!(schedule.due_on_release(tenant), None);
    }

    #[test]
    fn the_age_of_a_base_is_counted_over_loads_and_takeovers() {
        let clock = Clock::manual(Timestamp(0));
        let schedule = BaseSchedule::new(clock.clone());
        let tenant: DatabaseName = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
        let hour = Duration::from_secs(3600);
        schedule.note_base(tenant, (1, AGE - hour), 1);
        assert_eq!(
            (schedule.due(), schedule.due_on_release(tenant)),
            (Vec::new(), None)
        );
        clock.advance(hour);
        assert_eq!(schedule.due().len(), 1);
        assert!(schedule.due_on_release(tenant).is_some());
        // One that has not changed since needs none.
        schedule.note_base(tenant, (1, 2 * AGE), 0);
        assert_eq!(
            (schedule.due(), schedule.due_on_release(tenant)),
            (Vec::new(), None)
        );
    }
}
