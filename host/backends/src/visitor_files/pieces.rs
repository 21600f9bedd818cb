//! Bytes of a file to store, as its parts say.

use std::collections::VecDeque;

use bytes::Bytes;

use super::UploadError;
use super::spool::SpooledBody;
use crate::deployments::files::FileBytes;
use svc_sandbox::FilePiece;

/// Most bytes that are handed on at once.
const STEP_BYTES: u64 = 256 << 10;
/// Zero bytes that are handed on at once.
const ZEROS: &[u8] = &[0; 4096];

/// A body of which some parts are stored, and others in their place.
#[derive(Debug)]
pub(super) struct PieceBytes {
    body: SpooledBody,
    pieces: VecDeque<FilePiece>,
}

/// Bytes that are in memory.
#[derive(Debug)]
pub(super) struct WholeBytes(pub(super) Option<Bytes>);

impl PieceBytes {
    /// Reads these parts.
    pub(super) fn new(body: SpooledBody, pieces: Vec<FilePiece>) -> Self {
        Self {
            body,
            pieces: pieces.into(),
        }
    }

    /// Reads the whole body.
    pub(super) fn whole(body: SpooledBody) -> Self {
        let end = usize::try_from(body.bytes).unwrap_or(usize::MAX);
        Self::new(body, vec![FilePiece::Kept(0..end)])
    }
}

impl FileBytes for PieceBytes {
    type Error = UploadError;

    async fn next(&mut self, _: usize) -> Result<Option<Bytes>, UploadError> {
        let bytes = match self.pieces.pop_front() {
            None => return Ok(None),
            Some(FilePiece::Added(bytes)) => bytes.into(),
            Some(FilePiece::Zeros(count)) => {
                let now = count.min(ZEROS.len());
                if count > now {
                    self.pieces.push_front(FilePiece::Zeros(count - now));
                }
                Bytes::from_static(&ZEROS[..now])
            }
            Some(FilePiece::Kept(range)) => {
                let (start, end) = (range.start as u64, range.end as u64);
                let until = end.min(start.saturating_add(STEP_BYTES));
                if until < end {
                    let rest = usize::try_from(until).unwrap_or(range.end)..range.end;
                    self.pieces.push_front(FilePiece::Kept(rest));
                }
                self.body.part(start..until).await?
            }
        };
        Ok(Some(bytes))
    }
}

impl FileBytes for WholeBytes {
    type Error = UploadError;

    async fn next(&mut self, _: usize) -> Result<Option<Bytes>, UploadError> {
        Ok(self.0.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::visitor_files::spool::Spool;

    #[tokio::test]
    async fn parts_come_in_their_order() {
        let directory = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(directory.path());
        let sent = vec![7; 600_000];
        spool.write(sent.clone().into()).await.unwrap();
        let body = spool.finish().await.unwrap();
        let pieces = vec![
            FilePiece::Added(b"begin".to_vec()),
            FilePiece::Kept(1..600_000),
            FilePiece::Zeros(5000),
        ];
        let mut bytes = PieceBytes::new(body, pieces);
        let mut read = Vec::new();
        while let Some(part) = bytes.next(0).await.unwrap() {
            assert!(part.len() as u64 <= STEP_BYTES);
            read.extend_from_slice(&part);
        }
        let expected = [&b"begin"[..], &sent[1..], &[0; 5000]].concat();
        assert!(read == expected);
    }
}
