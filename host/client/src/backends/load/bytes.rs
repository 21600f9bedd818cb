//! Bytes of a file, read piece by piece, with the number of the line.

use std::io::{self, Read};

/// Bytes that are read at once.
const PIECE_BYTES: usize = 64 << 10;
/// Mark with which some programs begin a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reader that counts lines and bytes.
pub(super) struct ByteReader<R> {
    from: R,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    line: u64,
    taken: u64,
}

impl<R: Read> ByteReader<R> {
    pub(super) fn new(from: R) -> Self {
        Self {
            from,
            buffer: vec![0; PIECE_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            line: 1,
            taken: 0,
        }
    }

    /// Line of the next byte, from 1.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// Number of bytes that were taken.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Returns bytes that were not taken yet; none at the end of the file.
    pub(super) fn peek(&mut self) -> io::Result<&[u8]> {
        while self.start == self.end {
            match self.from.read(&mut self.buffer) {
                Ok(0) => break,
                Ok(read) => (self.start, self.end) = (0, read),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(&self.buffer[self.start..self.end])
    }

    /// Takes so many bytes of those that `peek` returned.
    pub(super) fn take(&mut self, count: usize) {
        let taken = &self.buffer[self.start..self.end.min(self.start + count)];
        let lines = taken.iter().filter(|byte| **byte == b'\n').count();
        self.line += u64::try_from(lines).unwrap_or(u64::MAX);
        self.taken += u64::try_from(taken.len()).unwrap_or(u64::MAX);
        self.start += taken.len();
    }

    /// Takes bytes as long as they are of this kind; returns the next one, or `None` at the end of the file.
    pub(super) fn skip(&mut self, is_skipped: impl Fn(u8) -> bool) -> io::Result<Option<u8>> {
        loop {
            let bytes = self.peek()?;
            if bytes.is_empty() {
                return Ok(None);
            }
            let kept = bytes.iter().position(|byte| !is_skipped(*byte));
            let next = kept.map(|at| bytes[at]);
            let count = kept.unwrap_or(bytes.len());
            self.take(count);
            if next.is_some() {
                return Ok(next);
            }
        }
    }

    /// Takes the mark at the beginning of a text, if there is one.
    pub(super) fn skip_byte_order_mark(&mut self) -> io::Result<()> {
        if self.peek()?.starts_with(BYTE_ORDER_MARK) {
            self.take(BYTE_ORDER_MARK.len());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_bytes_are_counted() {
        let mut bytes = ByteReader::new(&b"\xef\xbb\xbf\n \nab"[..]);
        bytes.skip_byte_order_mark().unwrap();
        assert_eq!(
            bytes.skip(|byte| byte.is_ascii_whitespace()).unwrap(),
            Some(b'a')
        );
        assert_eq!((bytes.line(), bytes.taken()), (3, 6));
        bytes.take(2);
        assert_eq!(bytes.skip(|_| false).unwrap(), None);
        assert_eq!((bytes.line(), bytes.taken()), (3, 8));
    }
}
