//! Model of a project's files.

use std::future::Future;

use bytes::Bytes;

use crate::control;
use crate::deployments::publication::PublishError;

/// Bytes of a file as they arrive.
pub trait FileBytes: Send {
    /// Reason why no more bytes come.
    type Error: From<FileError> + Send;

    /// Returns the next bytes; `None` after the last. `kept` of those before are still in memory.
    fn next(
        &mut self,
        kept: usize,
    ) -> impl Future<Output = Result<Option<Bytes>, Self::Error>> + Send;
}

/// Reason why a file was not stored.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The project has ended.
    #[error("the project is gone")]
    NotFound,
    /// The text is no SHA-256.
    #[error("this is no SHA-256")]
    InvalidDigest,
    /// The bytes are others than those that the digest names.
    #[error("the bytes are not those that the SHA-256 names")]
    DigestMismatch,
    /// The file is larger than the plan allows.
    #[error("a file has {0} bytes at most")]
    TooLarge(u64),
    /// The project's files would take more than the plan allows.
    #[error("the files take {used} bytes, and {limit} is the most")]
    StorageFull {
        /// Bytes of the files that the project has.
        used: u64,
        /// Most bytes that they may have.
        limit: u64,
    },
    /// The files of all projects would take more than the installation allows.
    #[error("the files of all projects take all room that they may")]
    InstallationFull,
    /// Another reason for which nothing is published.
    #[error(transparent)]
    Publish(#[from] PublishError),
}

impl From<control::Error> for FileError {
    fn from(error: control::Error) -> Self {
        Self::Publish(error.into())
    }
}

impl From<crate::content::Error> for FileError {
    fn from(error: crate::content::Error) -> Self {
        Self::Publish(error.into())
    }
}

/// Room for the files of an owner.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileRoom {
    /// Most bytes of the owner's files.
    pub(super) owner: u64,
    /// Most bytes of all owners' files.
    pub(super) all: u64,
}

/// Bytes that files take.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileUsage {
    /// Bytes of one owner's.
    pub(super) owner: u64,
    /// Bytes of all owners'.
    pub(super) all: u64,
}

impl FileRoom {
    /// Refuses more bytes than there is room for.
    pub(super) fn check(self, used: FileUsage, more: u64) -> Result<(), FileError> {
        if used.owner.saturating_add(more) > self.owner {
            return Err(FileError::StorageFull {
                used: used.owner,
                limit: self.owner,
            });
        }
        match used.all.saturating_add(more) > self.all {
            true => Err(FileError::InstallationFull),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_byte_fits_and_no_more() {
        let room = FileRoom { owner: 10, all: 20 };
        let used = |owner, all| FileUsage { owner, all };
        room.check(used(9, 9), 1).unwrap();
        let full = room.check(used(9, 9), 2);
        assert!(matches!(
            full,
            Err(FileError::StorageFull { used: 9, limit: 10 })
        ));
        let full = room.check(used(0, 20), 1);
        assert!(matches!(full, Err(FileError::InstallationFull)));
    }
}
