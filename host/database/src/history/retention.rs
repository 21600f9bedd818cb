//! Bounds of the history: how many bytes it may take, and for how long it reaches back.

use std::io;

use rusqlite::Connection;

use super::chain::{self, Chain};
use super::log::{ALL_FRAMES, WalFile};
use super::{History, HistoryLimitExceeded};
use crate::files::LOG_FILE;
use svc_base::clock::Timestamp;
use svc_base::disk;

/// How long a commit can be gone back to, in seconds.
const RETENTION_SECONDS: i64 = 7 * 24 * 3600;
/// A chain is followed by another after a day, so that what is too old can go, in milliseconds.
const MAX_CHAIN_MILLIS: i64 = 24 * 3600 * 1000;
/// A chain is followed by another once it has this share of what history may take,
const MAX_CHAIN_FRACTION: u64 = 8;
/// or this many bytes of pages, all of which a restore may have to look at.
const MAX_CHAIN_UNPACKED_BYTES: u64 = 32 << 20;

/// Since when what is there no more is too old, if it is `now`.
pub(super) fn oldest_kept(now: Timestamp) -> Timestamp {
    now.plus_seconds(-RETENTION_SECONDS)
}

impl History {
    /// Whether another chain is to follow the one that is added to.
    pub(super) fn needs_new_chain(&self) -> bool {
        let now = self.now();
        self.chain.as_ref().is_some_and(|chain| {
            chain.end - chain.base > self.history_settings.max_bytes / MAX_CHAIN_FRACTION
                || chain.unpacked > MAX_CHAIN_UNPACKED_BYTES
                || now.0 - chain.began.0 > MAX_CHAIN_MILLIS
        })
    }

    /// Whether the newest chain survives when a new chain is started with a whole copy of `bytes` bytes.
    pub(crate) fn survives_new_chain(&self, bytes: u64) -> bool {
        self.chain.as_ref().is_some_and(|chain| {
            chain.end.saturating_add(bytes.saturating_mul(2)) <= self.history_settings.max_bytes
        })
    }

    /// Removes the oldest chains, but for the one that is added to, until there is room for `bytes` more.
    pub(super) fn make_room(&self, bytes: u64) -> io::Result<()> {
        let most = self.history_settings.max_bytes;
        let (current, old): (Vec<u32>, Vec<u32>) = chain::list_numbers(&self.dir)?
            .into_iter()
            .partition(|number| self.is_current(*number));
        let mut taken = bytes;
        for number in current {
            taken += chain::bytes(&self.dir, number)?;
        }
        if taken > most {
            return Err(HistoryLimitExceeded.into());
        }
        for number in old.into_iter().rev() {
            taken += chain::bytes(&self.dir, number)?;
            if taken > most {
                chain::remove(&self.dir, number)?;
            }
        }
        Ok(())
    }

    /// Removes chains that are too old, and what a crash left of the beginning of one.
    pub(super) fn remove_expired(&self) -> io::Result<()> {
        let floor = Some(oldest_kept(self.now()));
        for number in chain::list_numbers(&self.dir)? {
            if !self.is_current(number) && Chain::open(&self.dir, number)?.last() < floor {
                chain::remove(&self.dir, number)?;
            }
        }
        Ok(())
    }

    fn is_current(&self, number: u32) -> bool {
        self.chain
            .as_ref()
            .is_some_and(|chain| chain.number == number)
    }

    /// Makes sure that nothing is kept that is too old. The log has nothing new.
    pub(crate) fn prune(&mut self, connection: &mut Connection) -> io::Result<()> {
        let Some(chain) = &self.chain else {
            return self.remove_expired();
        };
        let chain = Chain::open(&self.dir, chain.number)?;
        if chain.has_frames() && chain.last() < Some(oldest_kept(self.now())) {
            self.begin_chain(
                connection,
                WalFile::open(&self.dir, LOG_FILE)?.as_ref(),
                ALL_FRAMES,
            )?;
        }
        self.remove_expired()
    }

    /// With little disk left, none of it is for history.
    pub(super) fn check_disk(&self) -> io::Result<()> {
        if disk::free_bytes_in(&self.dir)? < self.history_settings.min_free_bytes {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }
}
