//! Parts of a cleaned file, in their order.

use std::ops::Range;

use super::{Fault, Piece, Span, broken};

/// Most parts of a cleaned file. Ordinary pictures have a few dozen; animations one or two a frame.
const MAX_PIECES: usize = 200_000;

/// Parts of a cleaned file. Neighbours that are kept are one part.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    list: Vec<Piece>,
    is_full: bool,
}

impl Pieces {
    /// Keeps bytes of the file.
    pub(super) fn keep(&mut self, range: Range<usize>) {
        let bound = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let (start, end) = (bound(range.start), bound(range.end));
        if start >= end {
            return;
        }
        match self.list.last_mut() {
            Some(Piece::Kept(last)) if last.end == start => last.end = end,
            _ => self.push(Piece::Kept(Span { start, end })),
        }
    }

    /// Adds new bytes.
    pub(super) fn add(&mut self, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.push(Piece::Added(bytes));
        }
    }

    /// Adds zero bytes.
    pub(super) fn zeros(&mut self, count: usize) {
        if count > 0 {
            self.push(Piece::Zeros(u32::try_from(count).unwrap_or(u32::MAX)));
        }
    }

    fn push(&mut self, piece: Piece) {
        match self.list.len() < MAX_PIECES {
            true => self.list.push(piece),
            false => self.is_full = true,
        }
    }

    /// Returns the length of all parts.
    pub(super) fn bytes(&self) -> u64 {
        let lengths = self.list.iter().map(|piece| match piece {
            Piece::Kept(span) => u64::from(span.end - span.start),
            Piece::Added(bytes) => bytes.len() as u64,
            Piece::Zeros(count) => u64::from(*count),
        });
        lengths.sum()
    }

    /// Returns the parts in front of which `first` stands.
    pub(super) fn behind(self, first: Vec<u8>) -> Self {
        let mut list = vec![Piece::Added(first)];
        list.extend(self.list);
        Self { list, ..self }
    }

    /// Returns the parts, if they are not too many.
    pub(super) fn finish(self) -> Result<Vec<Piece>, Fault> {
        match self.is_full {
            true => Err(broken("The picture consists of too many parts.")),
            false => Ok(self.list),
        }
    }
}
