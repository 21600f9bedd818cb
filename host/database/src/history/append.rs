//! Adding to a chain: what the log has since, each commit with its number and the state that it led to.

use std::io;

use rusqlite::Connection;

use super::History;
use super::chain;
use super::log::{Frames, LogPosition, PAGE_SIZE};
use super::page_hashes::PageHashes;
use super::record::{CommitPoint, Moment, Record, RecordKind};
use svc_base::clock::Timestamp;

impl History {
    /// Whether the chain can be gone on with: where that is in doubt, whether it leads to what is there. Its state is known
    /// afterwards if there is something to add to it.
    pub(super) fn check_continuation(
        &mut self,
        connection: &mut Connection,
        frames: &Frames,
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

    /// Appends frames to the chain; answers when the last of their commits was.
    pub(super) fn append(
        &mut self,
        from: &LogPosition,
        frames: &Frames,
        written: Timestamp,
    ) -> io::Result<Timestamp> {
        let (moments, state) = self.moments(from, frames, written)?;
        let Some((last, point)) = moments.last().and_then(|end| Some((end.at, end.point?))) else {
            return Err(io::Error::other("there is no commit"));
        };
        let content = chain::pack_frames(&frames.pages, &frames.data);
        let end = (last, point);
        let record = Record::new(RecordKind::Frames, &moments, &content, frames.end, end)?;
        let length = record.header.length();
        self.make_room(length)?;
        let Some(chain) = &mut self.chain else {
            return Err(io::Error::other("there is no chain"));
        };
        chain::append(&self.dir, chain.number, chain.end, &record)?;
        chain.end += length;
        chain.unpacked += content.len() as u64;
        chain.position = frames.end;
        chain.point = point;
        chain.state = Some(state);
        chain.copied = false;
        chain.sealed = false;
        Ok(last)
    }

    /// When a commit was that nobody noted, for a crash came: when its log was `written` to last, as far as that can be.
    fn estimate_commit_time(&self, written: Timestamp) -> Timestamp {
        let at = written.min(self.now());
        let after = self.last.map(|last| Timestamp(last.0 + 1));
        after.map_or(at, |after| after.max(at))
    }

    /// The moments of commits: of those at one time the last. With them, the state that the last leads to.
    fn moments(
        &mut self,
        from: &LogPosition,
        frames: &Frames,
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
                point: Some(CommitPoint {
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
