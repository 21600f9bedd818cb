//! Answers of the feed, as they travel: numbers of eight bytes, the largest byte first, and bodies behind their lengths.

use std::sync::Arc;

use svc_base::clock::Timestamp;
use svc_base::positions::{Checksum, CommitPosition, Entry};
use svc_ledger::RunId;
use uuid::Uuid;

/// Answer to a poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FeedAnswer {
    /// Last commit that the ledger has acknowledged.
    pub(super) last: CommitPosition,
    /// Commits that each follower lacks.
    pub(super) lags: Vec<(RunId, u64)>,
    /// Commits that come next: not all of them if they are many, and none if the feed does not have the next one any more.
    pub(super) entries: Vec<Entry>,
}

impl FeedAnswer {
    /// Writes the answer.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put(&mut bytes, self.last.0);
        put(&mut bytes, self.lags.len() as u64);
        for (run, lag) in &self.lags {
            bytes.extend_from_slice(Uuid::from(*run).as_bytes());
            put(&mut bytes, *lag);
        }
        for entry in &self.entries {
            put(&mut bytes, entry.position.0);
            put(&mut bytes, entry.at.0.cast_unsigned());
            put(&mut bytes, entry.before.0);
            put(&mut bytes, entry.after.0);
            for part in [&entry.body, &entry.changes] {
                put(&mut bytes, part.len() as u64);
                bytes.extend_from_slice(part);
            }
        }
        bytes
    }

    /// Reads an answer; `None` if it is none.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let last = CommitPosition(take_number(&mut rest)?);
        let mut lags = Vec::new();
        for _ in 0..take_number(&mut rest)? {
            let (run, after) = rest.split_first_chunk()?;
            rest = after;
            lags.push((Uuid::from_bytes(*run).into(), take_number(&mut rest)?));
        }
        let mut entries = Vec::new();
        while !rest.is_empty() {
            entries.push(Entry {
                position: CommitPosition(take_number(&mut rest)?),
                at: Timestamp(take_number(&mut rest)?.cast_signed()),
                before: Checksum(take_number(&mut rest)?),
                after: Checksum(take_number(&mut rest)?),
                body: take_part(&mut rest)?,
                changes: take_part(&mut rest)?,
            });
        }
        Some(Self {
            last,
            lags,
            entries,
        })
    }
}

fn put(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend_from_slice(&number.to_be_bytes());
}

fn take_number(rest: &mut &[u8]) -> Option<u64> {
    let (number, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u64::from_be_bytes(*number))
}

fn take_part(rest: &mut &[u8]) -> Option<Arc<[u8]>> {
    let length = usize::try_from(take_number(rest)?).ok()?;
    let (part, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(Arc::from(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_arrives_as_it_was_sent() {
        let entry = |position: u64, body: &[u8], changes: &[u8]| Entry {
            position: CommitPosition(position),
            at: Timestamp(-5),
            before: Checksum(u64::MAX),
            after: Checksum(position),
            body: Arc::from(body),
            changes: Arc::from(changes),
        };
        let answer = FeedAnswer {
            last: CommitPosition(9),
            lags: vec![
                (Uuid::from_u128(1).into(), 3),
                (Uuid::from_u128(2).into(), 0),
            ],
            entries: vec![entry(8, b"pages", b"[1]"), entry(9, b"", b"")],
        };
        let sent = answer.to_bytes();
        assert_eq!(FeedAnswer::from_bytes(&sent), Some(answer.clone()));
        let nothing = FeedAnswer {
            lags: Vec::new(),
            entries: Vec::new(),
            ..answer
        };
        let bytes = nothing.to_bytes();
        assert_eq!(FeedAnswer::from_bytes(&bytes), Some(nothing));
        // One that was cut is none, wherever it was: but after a whole commit.
        for length in 0..sent.len() {
            let whole = [bytes.len() + 48, sent.len() - 48].contains(&length);
            let read = FeedAnswer::from_bytes(&sent[..length]);
            assert_eq!(read.is_some(), whole, "{length}");
        }
        let much = [0, 0, 0, 0, 0, 0, u64::MAX].map(u64::to_be_bytes).concat();
        assert_eq!(FeedAnswer::from_bytes(&much), None);
    }
}
