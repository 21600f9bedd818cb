//! Body of an upload as it arrives: a small one in memory, a larger one in a temporary file without a name, of which nothing is left
//! after a crash.

use std::fs::File;
use std::io::{self, Write as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use crate::content::{Digest, DigestBuilder};

/// Bytes that are kept in memory before they are written.
const MEMORY_BYTES: usize = 1 << 20;
/// Bytes that are hashed at once: more would keep other requests of the thread waiting.
const HASHED_BYTES: usize = 256 << 10;

/// A body that arrives.
#[derive(Debug)]
pub(super) struct Spool {
    directory: PathBuf,
    digest: DigestBuilder,
    in_memory: BytesMut,
    file: Option<File>,
    bytes: u64,
}

/// A body that has arrived. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct SpooledBody {
    /// Digest of the bytes.
    pub(super) digest: Digest,
    /// Length of the body.
    pub(super) bytes: u64,
    place: SpooledPlace,
}

#[derive(Clone, Debug)]
enum SpooledPlace {
    Memory(Bytes),
    File(Arc<File>),
}

impl Spool {
    /// Begins a body, whose temporary file is made in `directory` if it needs one.
    pub(super) fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            digest: DigestBuilder::new(),
            in_memory: BytesMut::new(),
            file: None,
            bytes: 0,
        }
    }

    /// Returns the number of bytes that are in memory.
    pub(super) fn bytes_in_memory(&self) -> usize {
        self.in_memory.len()
    }

    /// Returns the number of bytes that have arrived.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds the next bytes.
    pub(super) async fn write(&mut self, bytes: Bytes) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        for part in bytes.chunks(HASHED_BYTES) {
            self.digest.update(part);
            self.in_memory.extend_from_slice(part);
            tokio::task::yield_now().await;
        }
        match self.in_memory.len() > MEMORY_BYTES {
            true => self.flush().await,
            false => Ok(()),
        }
    }

    /// Writes what is in memory to the file.
    async fn flush(&mut self) -> io::Result<()> {
        let part = self.in_memory.split().freeze();
        let (file, directory) = (self.file.take(), self.directory.clone());
        let write = move || {
            let mut file = match file {
                Some(file) => file,
                None => tempfile::tempfile_in(directory)?,
            };
            file.write_all(&part)?;
            io::Result::Ok(file)
        };
        let written = tokio::task::spawn_blocking(write).await;
        self.file = Some(written.map_err(io::Error::other)??);
        Ok(())
    }

    /// Ends the body.
    pub(super) async fn finish(mut self) -> io::Result<SpooledBody> {
        if self.file.is_some() {
            self.flush().await?;
        }
        Ok(SpooledBody {
            digest: self.digest.finish(),
            bytes: self.bytes,
            place: match self.file {
                Some(file) => SpooledPlace::File(Arc::new(file)),
                None => SpooledPlace::Memory(self.in_memory.freeze()),
            },
        })
    }
}

impl SpooledBody {
    /// Reads a part of the body.
    pub(super) async fn part(&self, range: Range<u64>) -> io::Result<Bytes> {
        let range = range.start.min(self.bytes)..range.end.min(self.bytes);
        let bound = |at: u64| usize::try_from(at).map_err(io::Error::other);
        match &self.place {
            SpooledPlace::Memory(bytes) => Ok(bytes.slice(bound(range.start)?..bound(range.end)?)),
            SpooledPlace::File(file) => {
                let file = Arc::clone(file);
                let length = bound(range.end - range.start)?;
                let read = move || {
                    let mut bytes = vec![0; length];
                    file.read_exact_at(&mut bytes, range.start)?;
                    io::Result::Ok(Bytes::from(bytes))
                };
                let read = tokio::task::spawn_blocking(read).await;
                read.map_err(io::Error::other)?
            }
        }
    }

    /// Reads all of the body.
    pub(super) async fn all(&self) -> io::Result<Bytes> {
        self.part(0..self.bytes).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_is_read_as_it_came() {
        let directory = tempfile::tempdir().unwrap();
        for length in [0, 10, MEMORY_BYTES, 3 * MEMORY_BYTES + 7] {
            let sent: Vec<u8> = (0..length).map(|at| (at / 251).to_le_bytes()[0]).collect();
            let mut spool = Spool::new(directory.path());
            for part in sent.chunks(300_000) {
                spool.write(Bytes::copy_from_slice(part)).await.unwrap();
                assert!(spool.bytes_in_memory() <= MEMORY_BYTES);
            }
            let body = spool.finish().await.unwrap();
            assert_eq!(body.bytes, length as u64);
            assert_eq!(body.digest, Digest::of(&sent));
            assert!(body.all().await.unwrap() == sent);
            let middle = body
                .part(length as u64 / 3..length as u64 / 2)
                .await
                .unwrap();
            assert!(middle == sent[length / 3..length / 2]);
        }
        // The file has no name.
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
