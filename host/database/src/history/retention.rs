//! Bounds of the history: its size, and how far it reaches back.

use std::io;

use rusqlite::Connection;

use super::chain::{self, HistoryChainFile};
use super::{DatabaseHistory, HistoryLimitExceeded};
use crate::files::LOG_FILE;
use crate::wal::{ALL_FRAMES, WalFile};
use svc_base::clock::Timestamp;
use svc_base::disk;

/// Time for which a commit can be restored, in seconds.
const RETENTION_SECONDS: i64 = 7 * 24 * 3600;
/// Longest time of a chain, in milliseconds, so that expired chains can be removed.
const MAX_CHAIN_MILLIS: i64 = 24 * 3600 * 1000;
/// A new chain begins when one has this fraction of the history's size limit,
const MAX_CHAIN_FRACTION: u64 = 8;
/// or this many bytes of unpacked pages, all of which a restore may have to read.
const MAX_CHAIN_UNPACKED_BYTES: u64 = 32 << 20;

/// Returns the time before which moments have expired.
pub(super) fn oldest_kept(now: Timestamp) -> Timestamp {
    now.plus_seconds(-RETENTION_SECONDS)
}

impl DatabaseHistory {
    /// Whether the current chain must be followed by a new one.
    pub(super) fn needs_new_chain(&self) -> bool {
        let now = self.now();
        self.chain.as_ref().is_some_and(|chain| {
            chain.end - chain.base > self.history_settings.max_bytes / MAX_CHAIN_FRACTION
                || chain.unpacked > MAX_CHAIN_UNPACKED_BYTES
                || now.0 - chain.began.0 > MAX_CHAIN_MILLIS
        })
    }

    /// Whether the current chain is kept when a new chain begins with a copy of `bytes` bytes.
    pub(crate) fn survives_new_chain(&self, bytes: u64) -> bool {
        self.chain.as_ref().is_some_and(|chain| {
            chain.end.saturating_add(bytes.saturating_mul(2)) <= self.history_settings.max_bytes
        })
    }

    /// Removes the oldest chains, but not the current one, until `bytes` more are allowed.
    pub(super) fn make_room(&self, bytes: u64) -> io::Result<()> {
        let most = self.history_settings.max_bytes;
        let (current, old): (Vec<u32>, Vec<u32>) = chain::list_numbers(&self.dir)?
            .into_iter()
            .partition(|number| self.is_current(*number));
        let mut taken = bytes;
        for number in current {
            taken += chain::chain_file_bytes(&self.dir, number)?;
        }
        if taken > most {
            return Err(HistoryLimitExceeded.into());
        }
        for number in old.into_iter().rev() {
            taken += chain::chain_file_bytes(&self.dir, number)?;
            if taken > most {
                chain::remove_chain_file(&self.dir, number)?;
            }
        }
        Ok(())
    }

    /// Removes expired chains, and incomplete files of a crash.
    pub(super) fn remove_expired(&self) -> io::Result<()> {
        let floor = Some(oldest_kept(self.now()));
        for number in chain::list_numbers(&self.dir)? {
            if !self.is_current(number) && HistoryChainFile::open(&self.dir, number)?.last() < floor
            {
                chain::remove_chain_file(&self.dir, number)?;
            }
        }
        Ok(())
    }

    fn is_current(&self, number: u32) -> bool {
        self.chain
            .as_ref()
            .is_some_and(|chain| chain.number == number)
    }

    /// Removes expired history. The log must be recorded before.
    pub(crate) fn prune(&mut self, connection: &mut Connection) -> io::Result<()> {
        let Some(chain) = &self.chain else {
            return self.remove_expired();
        };
        let chain = HistoryChainFile::open(&self.dir, chain.number)?;
        if chain.has_frames() && chain.last() < Some(oldest_kept(self.now())) {
            self.begin_chain(
                connection,
                WalFile::open(&self.dir, LOG_FILE)?.as_ref(),
                ALL_FRAMES,
            )?;
        }
        self.remove_expired()
    }

    /// Fails if the disk has too little free space for the history.
    pub(super) fn check_disk(&self) -> io::Result<()> {
        if disk::free_bytes_in(&self.dir)? < self.history_settings.min_free_bytes {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }
}
