//! Resuming a history: checks whether the log continues the newest chain.

use std::io;
use std::time::UNIX_EPOCH;

use rusqlite::Connection;

use super::chain::{self, HistoryChainFile};
use super::page_hashes::PageHashes;
use super::record::{NewHistoryRecord, RecordKind, damaged_record_error};
use super::{CurrentChain, DatabaseHistory};
use crate::files::{DATABASE_FILE, LOG_FILE};
use crate::wal::{CommittedFrames, PAGE_SIZE, WalFile, WalPosition};

impl DatabaseHistory {
    /// Finds the newest chain, and whether the log continues it.
    pub(super) fn resume(&mut self) -> io::Result<()> {
        let mut newest = None;
        for number in chain::list_numbers(&self.dir)?.into_iter().rev() {
            let chain = HistoryChainFile::open(&self.dir, number)?.without_torn_end()?;
            // A file without a base is the rest of a crash.
            if !chain.records.is_empty() {
                newest = Some(chain);
                break;
            }
        }
        let Some(chain) = newest else { return Ok(()) };
        self.last = chain.last();
        if chain.has_old_format() {
            tracing::info!(
                "a database's history is of an earlier format and begins anew: what it has can be restored as before"
            );
            return Ok(());
        }
        let Some(point) = chain.point() else {
            return Ok(());
        };
        let (Some((_, last)), Some(began)) = (chain.records.last(), chain.first_moment_at()) else {
            return Ok(());
        };
        let log = WalFile::open(&self.dir, LOG_FILE)?;
        let held = match &log {
            Some(log) => log.contains(&last.end)?,
            None => false,
        };
        let follows = match (last.kind, &log) {
            (RecordKind::Seal, _) => chain.last_content()? == self.file_stamp()?,
            // The log was empty when this base was written.
            (RecordKind::Base, _) if last.end == WalPosition::default() => true,
            (_, Some(log)) => held || last.end.is_followed_by(log.start().salts),
            (_, None) => false,
        };
        self.chain = follows.then(|| CurrentChain {
            number: chain.number,
            began,
            base: chain.records[0].1.length(),
            end: chain.end,
            unpacked: chain.unpacked(),
            position: last.end,
            point,
            state: None,
            copied: !held,
            sealed: last.kind == RecordKind::Seal,
            doubtful: !held && last.kind != RecordKind::Seal,
        });
        Ok(())
    }

    /// Takes the page hashes at the end of the newest chain; reads the chain if they are not known.
    ///
    /// # Errors
    /// Errors of the disk; damage, if the chain leads to another state than it names.
    pub(super) fn take_page_hashes(&mut self) -> io::Result<PageHashes> {
        let chain = self.chain.as_mut().ok_or_else(damaged_record_error)?;
        match chain.state.take() {
            Some(state) => Ok(state),
            None => {
                let image = HistoryChainFile::open(&self.dir, chain.number)?.last_image()?;
                Ok(PageHashes::of(&image))
            }
        }
    }

    /// Whether `state` and these frames lead to the present database.
    pub(super) fn leads_to(
        &self,
        connection: &mut Connection,
        state: &PageHashes,
        frames: &CommittedFrames,
    ) -> io::Result<bool> {
        let mut led_to = state.clone();
        for (page, data) in frames.pages.iter().zip(frames.data.chunks_exact(PAGE_SIZE)) {
            led_to.set_page(*page, data)?;
        }
        let is = self.image(connection)?;
        if !frames.pages.is_empty() {
            led_to.resize(is.len() / PAGE_SIZE)?;
        }
        Ok(led_to == PageHashes::of(&is))
    }

    /// Seals the chain: the database is closed, with an empty log and all commits recorded.
    ///
    /// # Errors
    /// Errors of the disk; another chain then begins when the database is opened again.
    pub(crate) fn append_seal(&mut self) -> io::Result<()> {
        let Some(last) = self.last else { return Ok(()) };
        let unsealed = |chain: &&CurrentChain| !chain.sealed;
        let Some(point) = self
            .chain
            .as_ref()
            .filter(unsealed)
            .map(|chain| chain.point)
        else {
            return Ok(());
        };
        let end = (last, point);
        let record = NewHistoryRecord::new(
            RecordKind::Seal,
            &[],
            &self.file_stamp()?,
            WalPosition::default(),
            end,
        )?;
        let length = record.header.length();
        self.make_room(length)?;
        if let Some(chain) = &mut self.chain {
            chain::append_record(&self.dir, chain.number, chain.end, &record)?;
            chain.end += length;
            chain.sealed = true;
        }
        Ok(())
    }

    /// Length and modification time of the database file, to notice changes by others.
    fn file_stamp(&self) -> io::Result<Vec<u8>> {
        let metadata = self.dir.metadata(DATABASE_FILE)?;
        let written = metadata.modified()?.into_std().duration_since(UNIX_EPOCH);
        let mut stamp = metadata.len().to_le_bytes().to_vec();
        stamp.extend(written.unwrap_or_default().as_nanos().to_le_bytes());
        Ok(stamp)
    }
}
