//! Bytes of files that are stored and that no row counts: of those that arrive, and of those that were given up, until the collector may
//! have removed them. So nobody fills the disk with files that fail.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::model::{FileError, FileOwner, FileRoom, FileUsage};
use crate::content::Digest;
use crate::content::StoredFile;
use svc_base::clock::Clock;

/// Part of the room for all files that one owner's given up bytes take at the most: one in so many.
const GIVEN_UP_SHARE: u64 = 20;
/// Bytes that were given up within this time end together, so that few numbers are kept.
const STEP: Duration = Duration::from_secs(10);

/// Bytes that are stored and that no row counts, by the owner that they are for.
#[derive(Debug)]
pub(super) struct UncountedBytes {
    clock: Clock,
    /// Time after which what was given up is gone.
    grace: Duration,
    held: Mutex<HashMap<FileOwner, OwnersBytes>>,
}

/// Bytes that are for one owner.
#[derive(Debug, Default)]
struct OwnersBytes {
    arriving: u64,
    /// Bytes that were given up, with the time at which they are gone.
    given_up: VecDeque<(Duration, u64)>,
}

/// Bytes of a file that is stored and that no row counts yet. They are free when this is dropped, because a row has the file then, or
/// after the grace if it was given up.
#[derive(Debug)]
pub(super) struct HeldBytes {
    all: Arc<UncountedBytes>,
    owner: FileOwner,
    room: FileRoom,
    bytes: AtomicU64,
    is_given_up: AtomicBool,
}

/// A file that was stored for a publication, of which no row has it yet.
#[derive(Debug)]
pub struct ReceivedFile {
    pub(super) file: StoredFile,
    pub(super) held: HeldBytes,
}

impl ReceivedFile {
    /// Returns the digest of the file.
    pub(in crate::deployments) fn digest(&self) -> Digest {
        self.file.digest
    }
}

impl OwnersBytes {
    fn given_up(&self) -> u64 {
        let given_up = self.given_up.iter().map(|(_, bytes)| bytes);
        given_up.fold(0, |all, bytes| all.saturating_add(*bytes))
    }

    fn all(&self) -> u64 {
        self.arriving.saturating_add(self.given_up())
    }
}

impl UncountedBytes {
    /// Counts nothing yet.
    pub(super) fn new(clock: Clock, grace: Duration) -> Arc<Self> {
        Arc::new(Self {
            clock,
            grace,
            held: Mutex::default(),
        })
    }

    /// Begins a file for an owner. All that is not counted takes as much as there is room for files at most.
    pub(super) fn begin(self: &Arc<Self>, owner: FileOwner, room: FileRoom) -> HeldBytes {
        HeldBytes {
            all: Arc::clone(self),
            owner,
            room,
            bytes: AtomicU64::new(0),
            is_given_up: AtomicBool::new(false),
        }
    }

    /// Locks the bytes, without those that are gone.
    fn lock(&self) -> MutexGuard<'_, HashMap<FileOwner, OwnersBytes>> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.elapsed();
        held.retain(|_, owner| {
            while owner.given_up.front().is_some_and(|(end, _)| *end <= now) {
                owner.given_up.pop_front();
            }
            owner.arriving > 0 || !owner.given_up.is_empty()
        });
        held
    }
}

impl HeldBytes {
    /// Counts all bytes of the file that are stored by now, or are about to be. What was given up takes none of the owner's room, as it
    /// is no file of theirs: it has room of its own.
    ///
    /// # Errors
    /// `StorageFull`, `InstallationFull`.
    pub(super) fn grow(&self, bytes: u64) -> Result<(), FileError> {
        let mut held = self.all.lock();
        let before = self.bytes.load(Ordering::Relaxed);
        let more = bytes.saturating_sub(before);
        if more == 0 {
            return Ok(());
        }
        let all = held.values().map(OwnersBytes::all);
        let (arriving, given_up) = held
            .get(&self.owner)
            .map_or((0, 0), |owner| (owner.arriving, owner.given_up()));
        let used = FileUsage {
            owner: arriving,
            all: all.fold(0, u64::saturating_add),
        };
        self.room.check(used, more)?;
        let most = self.room.owner.max(self.room.all / GIVEN_UP_SHARE);
        if given_up.saturating_add(bytes) > most {
            return Err(FileError::InstallationFull);
        }
        held.entry(self.owner.clone()).or_default().arriving += more;
        self.bytes.store(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Says that no row will have the file.
    pub(super) fn give_up(&self) {
        self.is_given_up.store(true, Ordering::Relaxed);
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        let bytes = *self.bytes.get_mut();
        if bytes == 0 {
            return;
        }
        let mut held = self.all.lock();
        let Some(owner) = held.get_mut(&self.owner) else {
            return;
        };
        owner.arriving = owner.arriving.saturating_sub(bytes);
        if *self.is_given_up.get_mut() {
            let gone = self.all.clock.elapsed() + self.all.grace;
            match owner.given_up.back_mut() {
                Some((end, together)) if gone <= *end => {
                    *together = together.saturating_add(bytes);
                }
                _ => owner.given_up.push_back((gone + STEP, bytes)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_base::clock::Timestamp;

    #[test]
    fn what_was_given_up_counts_until_it_is_gone() {
        let (clock, grace) = (Clock::manual(Timestamp(0)), Duration::from_secs(60));
        let all = UncountedBytes::new(clock.clone(), grace);
        let room = FileRoom { owner: 10, all: 15 };
        let begin = |owner: &str| all.begin(FileOwner::from_row(owner.to_owned()), room);
        let one = begin("a");
        one.grow(4).unwrap();
        one.grow(6).unwrap();
        let two = begin("a");
        assert!(matches!(two.grow(5), Err(FileError::StorageFull { .. })));
        two.grow(4).unwrap();
        let three = begin("b");
        assert!(matches!(three.grow(6), Err(FileError::InstallationFull)));
        three.grow(5).unwrap();
        // A row has the second by now; the first has failed.
        drop((two, three));
        one.give_up();
        drop(one);
        // It takes none of the owner's room, and some of all owners'.
        let next = begin("a");
        assert!(matches!(next.grow(10), Err(FileError::InstallationFull)));
        assert!(matches!(
            begin("b").grow(10),
            Err(FileError::InstallationFull)
        ));
        next.grow(4).unwrap();
        clock.advance(grace);
        assert!(next.grow(10).is_err());
        clock.advance(STEP);
        next.grow(10).unwrap();
        drop(next);
        assert!(all.lock().is_empty());
    }
}
