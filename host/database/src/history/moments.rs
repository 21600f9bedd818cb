//! Look-ups in the history: the moments that can be restored, and the database at one of them.

use std::io;

use cap_std::fs::Dir;

use super::DatabaseHistory;
use super::chain::{self, HistoryChainFile, MomentLocation};
use super::retention::oldest_kept;
use svc_base::clock::Timestamp;

/// Moments of a database's history, with its size.
#[derive(Clone, Debug, Default)]
pub struct HistoryMoments {
    /// The oldest moment that can be restored.
    pub oldest: Option<Timestamp>,
    /// The newest moment.
    pub newest: Option<Timestamp>,
    /// Size on disk, in bytes.
    pub bytes: u64,
    /// Times of commits, newest first.
    pub moments: Vec<Timestamp>,
    /// Whether there are older moments than those listed.
    pub has_more: bool,
}

/// A past state of a database.
#[derive(Debug)]
pub(crate) struct PastDatabaseImage {
    /// Time of the commit.
    pub(crate) at: Timestamp,
    /// Bytes of the database file.
    pub(crate) bytes: Vec<u8>,
}

/// Whether the history of a database, open or closed, has expired moments.
pub(crate) fn has_expired_moments(dir: &Dir, now: Timestamp) -> io::Result<bool> {
    let numbers = chain::list_numbers(dir)?;
    let newest = numbers.last().copied();
    for number in numbers {
        let chain = match HistoryChainFile::open(dir, number) {
            // The chain was removed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            chain => chain?,
        };
        let changed = Some(number) != newest || chain.has_frames();
        if changed && chain.last() < Some(oldest_kept(now)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Findings of a check of a history, a line each.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct HistoryFindings {
    /// Damage that was found.
    pub(crate) faults: Vec<String>,
    /// Notes that are no damage.
    pub(crate) notes: Vec<String>,
}

/// Checks the history of a database that may be in use.
pub(crate) fn verify(dir: &Dir) -> io::Result<HistoryFindings> {
    let mut found = HistoryFindings::default();
    let numbers = chain::list_numbers(dir)?;
    for number in &numbers {
        let chain = match HistoryChainFile::open(dir, *number) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            chain => chain?,
        };
        // The newest chain may be just beginning.
        let begins = chain.records.is_empty() && numbers.last() == Some(number);
        if let Some(what) = chain.verify()?.filter(|_| !begins) {
            found.faults.push(format!("history {number} {what}"));
        }
        if chain.has_old_format() {
            found.notes.push(format!(
                "history {number} is of an earlier format: its moments can be restored, and new ones go into another"
            ));
        }
    }
    Ok(found)
}

impl DatabaseHistory {
    /// Visits all moments that can be restored, newest first, until `look` returns true.
    fn visit_moments(&self, mut look: impl FnMut(MomentLocation) -> bool) -> io::Result<()> {
        let floor = oldest_kept(self.now());
        let mut later = None;
        for number in chain::list_numbers(&self.dir)?.into_iter().rev() {
            let chain = HistoryChainFile::open(&self.dir, number)?;
            for spot in chain.moment_locations()?.into_iter().rev() {
                let at = spot.moment.at;
                // Of commits at the same time only the last can be named.
                if later == Some(at) {
                    continue;
                }
                later = Some(at);
                // This state lasted until the next commit; anything older has expired.
                if look(spot) || at <= floor {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Lists at most `limit` moments before `before`.
    pub(crate) fn list_moments(
        &self,
        before: Option<Timestamp>,
        limit: usize,
    ) -> io::Result<HistoryMoments> {
        let mut past = HistoryMoments::default();
        self.visit_moments(|spot| {
            let at = spot.moment.at;
            past.newest.get_or_insert(at);
            past.oldest = Some(at);
            if before.is_none_or(|before| at < before) {
                if past.moments.len() < limit {
                    past.moments.push(at);
                } else {
                    past.has_more = true;
                }
            }
            false
        })?;
        for number in chain::list_numbers(&self.dir)? {
            past.bytes += chain::chain_file_bytes(&self.dir, number)?;
        }
        Ok(past)
    }

    /// Reads the database as it was at `at`; `None` if that has expired.
    pub(crate) fn image_at(&self, at: Timestamp) -> io::Result<Option<PastDatabaseImage>> {
        let mut found = None;
        self.visit_moments(|spot| {
            let is_it = spot.moment.at <= at;
            if is_it {
                found = Some(spot);
            }
            is_it
        })?;
        let Some(spot) = found else { return Ok(None) };
        let bytes = HistoryChainFile::open(&self.dir, spot.chain)?.image(&spot)?;
        Ok(Some(PastDatabaseImage {
            at: spot.moment.at,
            bytes,
        }))
    }
}
