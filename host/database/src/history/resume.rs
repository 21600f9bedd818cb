//! Going on with a history: whether what is in the log follows what the newest chain has.

use std::io;
use std::time::UNIX_EPOCH;

use rusqlite::Connection;

use super::chain::{self, Chain};
use super::log::{Frames, Log, PAGE, Position};
use super::record::{Kind, Record};
use super::{Current, History};
use crate::files::{FILE, LOG};

impl History {
    /// Finds the newest chain, and out whether what is in the log follows it.
    pub(super) fn resume(&mut self) -> io::Result<()> {
        let mut newest = None;
        for number in chain::numbers(&self.dir)?.into_iter().rev() {
            let chain = Chain::open(&self.dir, number)?.without_torn_end()?;
            // One without a beginning is what a crash left of it.
            if !chain.records.is_empty() {
                newest = Some(chain);
                break;
            }
        }
        let Some(chain) = newest else { return Ok(()) };
        self.last = chain.last();
        let (Some((_, last)), Some(began)) = (chain.records.last(), chain.began()) else {
            return Ok(());
        };
        let log = Log::open(&self.dir, LOG)?;
        let held = match &log {
            Some(log) => log.holds(&last.end)?,
            None => false,
        };
        let follows = match (last.kind, &log) {
            (Kind::Seal, _) => chain.last_content()? == self.stamp()?,
            // The log was empty when this copy was made.
            (Kind::Base, _) if last.end == Position::default() => true,
            (_, Some(log)) => held || last.end.is_followed_by(log.start().salts),
            (_, None) => false,
        };
        self.chain = follows.then(|| Current {
            number: chain.number,
            began,
            base: chain.records[0].1.length(),
            end: chain.end,
            unpacked: chain.unpacked(),
            position: last.end,
            copied: !held,
            sealed: last.kind == Kind::Seal,
            doubtful: !held && last.kind != Kind::Seal,
        });
        Ok(())
    }

    /// Whether the chain, and then these frames, lead to the database as it is.
    pub(super) fn is_true(&self, connection: &mut Connection, frames: &Frames) -> io::Result<bool> {
        let Some(chain) = &self.chain else {
            return Ok(false);
        };
        let mut led_to = Chain::open(&self.dir, chain.number)?.last_image()?;
        for (page, data) in frames.pages.iter().zip(frames.data.chunks_exact(PAGE)) {
            chain::put(&mut led_to, *page, data)?;
        }
        let mut is = self.image(connection)?;
        if !frames.pages.is_empty() {
            led_to.resize(is.len(), 0);
        }
        chain::leave_no_log(&mut led_to);
        chain::leave_no_log(&mut is);
        Ok(led_to == is)
    }

    /// Notes that the database is closed, with an empty log and nothing that is not here.
    ///
    /// # Errors
    /// The disk's; another chain begins when the database is opened again then.
    pub(in super::super) fn seal(&mut self) -> io::Result<()> {
        let Some(last) = self.last else { return Ok(()) };
        let record = Record::new(Kind::Seal, &[], &self.stamp()?, Position::default(), last)?;
        let length = record.header.length();
        self.make_room(length)?;
        if let Some(chain) = self.chain.as_mut().filter(|chain| !chain.sealed) {
            chain::append(&self.dir, chain.number, chain.end, &record)?;
            chain.end += length;
            chain.sealed = true;
        }
        Ok(())
    }

    /// Tells the database's file from one that somebody else has changed, by its length and the time of its last write.
    fn stamp(&self) -> io::Result<Vec<u8>> {
        let metadata = self.dir.metadata(FILE)?;
        let written = metadata.modified()?.into_std().duration_since(UNIX_EPOCH);
        let mut stamp = metadata.len().to_le_bytes().to_vec();
        stamp.extend(written.unwrap_or_default().as_nanos().to_le_bytes());
        Ok(stamp)
    }
}
