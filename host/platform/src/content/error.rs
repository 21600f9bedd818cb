//! Errors of the content store.

use super::Digest;

/// An error of the content store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The disk is full: nothing was stored.
    #[error("the disk is full")]
    Full,
    /// A remote store does not answer as it should, for the log.
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
            if io.is_some_and(|io| io.kind() == std::io::ErrorKind::StorageFull) {
                return Self::Full;
            }
            source = cause.source();
        }
        Self::Store(error)
    }
}
