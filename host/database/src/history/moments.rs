//! Looking back: which moments there are, and a database as it was at one.

use std::io;

use cap_std::fs::Dir;

use super::History;
use super::chain::{self, Chain, MomentLocation};
use super::retention::oldest_kept;
use svc_base::clock::Timestamp;

/// History of a database, as it is reported.
#[derive(Clone, Debug, Default)]
pub struct HistoryMoments {
    /// The first moment that can be gone back to.
    pub oldest: Option<Timestamp>,
    /// The last.
    pub newest: Option<Timestamp>,
    /// Size on the disk, in bytes.
    pub bytes: u64,
    /// Moments at which something was committed, newest first.
    pub moments: Vec<Timestamp>,
    /// Whether there are moments before them.
    pub has_more: bool,
}

/// A database as it was.
#[derive(Debug)]
pub(crate) struct DatabaseImage {
    /// When it was committed.
    pub(crate) at: Timestamp,
    /// Bytes of the database file.
    pub(crate) bytes: Vec<u8>,
}

/// Whether a database that may be closed has a history that is too old.
pub(crate) fn has_expired_moments(dir: &Dir, now: Timestamp) -> io::Result<bool> {
    let numbers = chain::list_numbers(dir)?;
    let newest = numbers.last().copied();
    for number in numbers {
        let chain = match Chain::open(dir, number) {
            // It went meanwhile.
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

/// Findings of a look at the history of a database: a line each.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct HistoryFindings {
    /// Faults that were found.
    pub(crate) faults: Vec<String>,
    /// Notes that are no faults.
    pub(crate) notes: Vec<String>,
}

/// Looks at the history of a database that may be in use.
pub(crate) fn verify(dir: &Dir) -> io::Result<HistoryFindings> {
    let mut found = HistoryFindings::default();
    let numbers = chain::list_numbers(dir)?;
    for number in &numbers {
        let chain = match Chain::open(dir, *number) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            chain => chain?,
        };
        // The newest may be just beginning.
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

impl History {
    /// Goes through all moments that can be gone back to, newest first, until `look` has seen enough.
    fn visit_moments(&self, mut look: impl FnMut(MomentLocation) -> bool) -> io::Result<()> {
        let floor = oldest_kept(self.now());
        let mut later = None;
        for number in chain::list_numbers(&self.dir)?.into_iter().rev() {
            let chain = Chain::open(&self.dir, number)?;
            for spot in chain.moment_locations()?.into_iter().rev() {
                let at = spot.moment.at;
                // Of commits at one time only the last can be named.
                if later == Some(at) {
                    continue;
                }
                later = Some(at);
                // What was committed then was there until the next, and that is too long ago for anything older.
                if look(spot) || at <= floor {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Lists moments before `before`, `limit` at most.
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
            past.bytes += chain::bytes(&self.dir, number)?;
        }
        Ok(past)
    }

    /// The database as it was at `at`; `None` if that is too long ago.
    pub(crate) fn image_at(&self, at: Timestamp) -> io::Result<Option<DatabaseImage>> {
        let mut found = None;
        self.visit_moments(|spot| {
            let is_it = spot.moment.at <= at;
            if is_it {
                found = Some(spot);
            }
            is_it
        })?;
        let Some(spot) = found else { return Ok(None) };
        let bytes = Chain::open(&self.dir, spot.chain)?.image(&spot)?;
        Ok(Some(DatabaseImage {
            at: spot.moment.at,
            bytes,
        }))
    }
}
