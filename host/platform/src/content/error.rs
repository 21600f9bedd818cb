//! Errors of the content store.

use super::Digest;

/// An error of the content store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The disk is full: nothing was stored.
    #[error("the disk is full")]
    Full,
    /// A remote store, or a directory that nodes share, does not answer as it should, for the log.
    #[error("the store of content is not reached: {0}")]
    Unreachable(String),
    /// The store returned other bytes than those that were put.
    #[error("object {0} is damaged: the store gave other bytes than those that were put")]
    Damaged(Digest),
    /// Other errors, for the log.
    #[error("content store: {0}")]
    Store(object_store::Error),
}

impl From<object_store::Error> for Error {
    fn from(error: object_store::Error) -> Self {
        let mut source: Option<&(dyn std::error::Error + 'static)> = Some(&error);
        while let Some(cause) = source {
            let io = cause.downcast_ref::<std::io::Error>();
            match io.map(std::io::Error::kind) {
                Some(std::io::ErrorKind::StorageFull) => return Self::Full,
                // A directory that hangs is unavailable for a while, as a remote store is.
                Some(std::io::ErrorKind::TimedOut) => return Self::Unreachable(error.to_string()),
                _ => {}
            }
            source = cause.source();
        }
        Self::Store(error)
    }
}
