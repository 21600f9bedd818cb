//! Going on with a history: whether what is in the log follows what the newest chain has.

use std::io;
use std::time::UNIX_EPOCH;

use rusqlite::Connection;

use super::chain::{self, Chain};
use super::log::{Frames, LogPosition, PAGE_SIZE, WalFile};
use super::page_hashes::PageHashes;
use super::record::{Record, RecordKind, damaged};
use super::{CurrentChain, History};
use crate::files::{DATABASE_FILE, LOG_FILE};

impl History {
    /// Finds the newest chain, and out whether what is in the log follows it.
    pub(super) fn resume(&mut self) -> io::Result<()> {
        let mut newest = None;
        for number in chain::list_numbers(&self.dir)?.into_iter().rev() {
            let chain = Chain::open(&self.dir, number)?.without_torn_end()?;
            // One without a beginning is what a crash left of it.
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
        let (Some((_, last)), Some(began)) = (chain.records.last(), chain.began()) else {
            return Ok(());
        };
        let log = WalFile::open(&self.dir, LOG_FILE)?;
        let held = match &log {
            Some(log) => log.contains(&last.end)?,
            None => false,
        };
        let follows = match (last.kind, &log) {
            (RecordKind::Seal, _) => chain.last_content()? == self.file_stamp()?,
            // The log was empty when this copy was made.
            (RecordKind::Base, _) if last.end == LogPosition::default() => true,
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

    /// The state that the newest chain leads to: read from the chain where it is not known.
    ///
    /// # Errors
    /// The disk's; damage, where the chain does not lead where it says.
    pub(super) fn take_page_hashes(&mut self) -> io::Result<PageHashes> {
        let chain = self.chain.as_mut().ok_or_else(damaged)?;
        match chain.state.take() {
            Some(state) => Ok(state),
            None => {
                let image = Chain::open(&self.dir, chain.number)?.last_image()?;
                Ok(PageHashes::of(&image))
            }
        }
    }

    /// Whether `state`, and then these frames, lead to the database as it is.
    pub(super) fn leads_to(
        &self,
        connection: &mut Connection,
        state: &PageHashes,
        frames: &Frames,
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

    /// Notes that the database is closed, with an empty log and nothing that is not here.
    ///
    /// # Errors
    /// The disk's; another chain begins when the database is opened again then.
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
        let record = Record::new(
            RecordKind::Seal,
            &[],
            &self.file_stamp()?,
            LogPosition::default(),
            end,
        )?;
        let length = record.header.length();
        self.make_room(length)?;
        if let Some(chain) = &mut self.chain {
            chain::append(&self.dir, chain.number, chain.end, &record)?;
            chain.end += length;
            chain.sealed = true;
        }
        Ok(())
    }

    /// Tells the database's file from one that somebody else has changed, by its length and the time of its last write.
    fn file_stamp(&self) -> io::Result<Vec<u8>> {
        let metadata = self.dir.metadata(DATABASE_FILE)?;
        let written = metadata.modified()?.into_std().duration_since(UNIX_EPOCH);
        let mut stamp = metadata.len().to_le_bytes().to_vec();
        stamp.extend(written.unwrap_or_default().as_nanos().to_le_bytes());
        Ok(stamp)
    }
}
