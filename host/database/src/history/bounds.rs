//! Bounds of the history: how many bytes it may take, and for how long it reaches back.

use std::io;

use rusqlite::Connection;

use super::chain::{self, Chain};
use super::log::{ALL, Log};
use super::{History, TooSmall};
use crate::files::LOG;
use svc_base::clock::Timestamp;
use svc_base::disk;

/// How long a commit can be gone back to, in seconds.
const KEPT: i64 = 7 * 24 * 3600;
/// A chain is followed by another after a day, so that what is too old can go, in milliseconds.
const DAY: i64 = 24 * 3600 * 1000;
/// A chain is followed by another once it has this share of what history may take,
const SHARE: u64 = 8;
/// or this many bytes of pages, all of which a restore may have to look at.
const UNPACKED: u64 = 32 << 20;

/// Since when what is there no more is too old, if it is `now`.
pub(super) fn floor(now: Timestamp) -> Timestamp {
    now.plus_seconds(-KEPT)
}

impl History {
    /// Whether another chain is to follow the one that is added to.
    pub(super) fn is_chain_long(&self) -> bool {
        let now = self.now();
        self.chain.as_ref().is_some_and(|chain| {
            chain.end - chain.base > self.terms.most_bytes / SHARE
                || chain.unpacked > UNPACKED
                || now.0 - chain.began.0 > DAY
        })
    }

    /// Whether the newest chain survives when a new chain is started with a whole copy of `bytes` bytes.
    pub(crate) fn outlives(&self, bytes: u64) -> bool {
        self.chain.as_ref().is_some_and(|chain| {
            chain.end.saturating_add(bytes.saturating_mul(2)) <= self.terms.most_bytes
        })
    }

    /// Removes the oldest chains, but for the one that is added to, until there is room for `bytes` more.
    pub(super) fn make_room(&self, bytes: u64) -> io::Result<()> {
        let most = self.terms.most_bytes;
        let (current, old): (Vec<u32>, Vec<u32>) = chain::numbers(&self.dir)?
            .into_iter()
            .partition(|number| self.is_current(*number));
        let mut taken = bytes;
        for number in current {
            taken += chain::bytes(&self.dir, number)?;
        }
        if taken > most {
            return Err(TooSmall.into());
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
    pub(super) fn remove_old(&self) -> io::Result<()> {
        let floor = Some(floor(self.now()));
        for number in chain::numbers(&self.dir)? {
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
    pub(crate) fn forget_old(&mut self, connection: &mut Connection) -> io::Result<()> {
        let Some(chain) = &self.chain else {
            return self.remove_old();
        };
        let chain = Chain::open(&self.dir, chain.number)?;
        if chain.has_frames() && chain.last() < Some(floor(self.now())) {
            self.begin(connection, Log::open(&self.dir, LOG)?.as_ref(), ALL)?;
        }
        self.remove_old()
    }

    /// With little disk left, none of it is for history.
    pub(super) fn check_disk(&self) -> io::Result<()> {
        if disk::free_bytes_in(&self.dir)? < self.terms.free_disk {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }
}
