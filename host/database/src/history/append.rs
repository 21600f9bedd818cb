//! Appends to a chain: the new commits of the log, each with its number and state checksum.

use std::io;

use rusqlite::Connection;

use super::DatabaseHistory;
use super::chain;
use super::page_hashes::PageHashes;
use super::record::{CommitFingerprint, Moment, NewHistoryRecord, RecordKind};
use crate::wal::{CommittedFrames, PAGE_SIZE, WalPosition};
use svc_base::clock::Timestamp;

impl DatabaseHistory {
    /// Whether the frames continue the chain. If that is in doubt, compares the state that they lead to with the database. Keeps
    /// the state if there is something to append.
    pub(super) fn check_continuation(
        &mut self,
        connection: &mut Connection,
        frames: &CommittedFrames,
        doubtful: bool,
    ) -> io::Result<bool> {
        if !doubtful && frames.pages.is_empty() {
            return Ok(true);
        }
        let state = self.take_page_hashes()?;
        let follows = !doubtful || self.leads_to(connection, &state, frames)?;
        if let Some(chain) = &mut self.chain {
            chain.state = Some(state);
        }
        Ok(follows)
    }

    /// Appends frames to the chain; returns the time of their last commit.
    pub(super) fn append(
        &mut self,
        from: &WalPosition,
        frames: &CommittedFrames,
        written: Timestamp,
    ) -> io::Result<Timestamp> {
        let (moments, state) = self.moments(from, frames, written)?;
        let Some((last, point)) = moments.last().and_then(|end| Some((end.at, end.point?))) else {
            return Err(io::Error::other("there is no commit"));
        };
        let content = chain::pack_frames(&frames.pages, &frames.data);
        let end = (last, point);
        let record =
            NewHistoryRecord::new(RecordKind::Frames, &moments, &content, frames.end, end)?;
        let length = record.header.length();
        self.make_room(length)?;
        let Some(chain) = &mut self.chain else {
            return Err(io::Error::other("there is no chain"));
        };
        chain::append_record(&self.dir, chain.number, chain.end, &record)?;
        chain.end += length;
        chain.unpacked += content.len() as u64;
        chain.position = frames.end;
        chain.point = point;
        chain.state = Some(state);
        chain.copied = false;
        chain.sealed = false;
        Ok(last)
    }

    /// Estimates the time of a commit that was not noted before a crash: the last write of the log, within possible bounds.
    fn estimate_commit_time(&self, written: Timestamp) -> Timestamp {
        let at = written.min(self.now());
        let after = self.last.map(|last| Timestamp(last.0 + 1));
        after.map_or(at, |after| after.max(at))
    }

    /// Builds the moments of commits, of those at the same time only the last; also returns the state after the last.
    fn moments(
        &mut self,
        from: &WalPosition,
        frames: &CommittedFrames,
        written: Timestamp,
    ) -> io::Result<(Vec<Moment>, PageHashes)> {
        let before = self.last_commit_number();
        let mut moments: Vec<Moment> = Vec::new();
        let mut notes = self.unrecorded.iter().peekable();
        for (commit, number) in frames.commits.iter().zip(before + 1..) {
            let ends = from.frames + commit.frames;
            while notes.next_if(|note| note.frames < ends).is_some() {}
            let noted = notes.next_if(|note| note.frames == ends);
            let at = match noted {
                Some(note) => note.at,
                None if ends == frames.end.frames => self.estimate_commit_time(written),
                None => continue,
            };
            moments.pop_if(|before| before.at == at);
            moments.push(Moment {
                at,
                frames: commit.frames,
                pages: commit.pages,
                point: Some(CommitFingerprint {
                    commit: number,
                    state: 0,
                }),
            });
        }
        let mut state = self.take_page_hashes()?;
        let mut written = frames.pages.iter().zip(frames.data.chunks_exact(PAGE_SIZE));
        let mut from = 0;
        for moment in &mut moments {
            let more = usize::try_from(moment.frames - from).unwrap_or(usize::MAX);
            for (page, data) in written.by_ref().take(more) {
                state.set_page(*page, data)?;
            }
            from = moment.frames;
            state.resize(usize::try_from(moment.pages).unwrap_or(usize::MAX))?;
            if let Some(point) = &mut moment.point {
                point.state = state.checksum();
            }
        }
        Ok((moments, state))
    }
}
