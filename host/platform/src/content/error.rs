//! Errors of the content store.

use std::io::{self, ErrorKind};

use rustix::io::Errno;

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

/// Whether a directory is unavailable for a while, as a remote store is: it hangs, is not mounted, or its disk is not reached.
fn is_away(error: &io::Error) -> bool {
    let by_kind = matches!(
        error.kind(),
        ErrorKind::TimedOut
            | ErrorKind::NotConnected
            | ErrorKind::StaleNetworkFileHandle
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::NetworkDown
    );
    by_kind || error.raw_os_error() == Some(Errno::IO.raw_os_error())
}

impl From<object_store::Error> for Error {
    fn from(error: object_store::Error) -> Self {
        let mut source: Option<&(dyn std::error::Error + 'static)> = Some(&error);
        while let Some(cause) = source {
            if let Some(io) = cause.downcast_ref::<io::Error>() {
                if io.kind() == ErrorKind::StorageFull {
                    return Self::Full;
                }
                if is_away(io) {
                    return Self::Unreachable(error.to_string());
                }
            }
            source = cause.source();
        }
        Self::Store(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content_error(io: io::Error) -> Error {
        let inner = object_store::Error::Generic {
            store: "LocalFileSystem",
            source: Box::new(io),
        };
        inner.into()
    }

    #[test]
    fn a_directory_that_is_away_is_told_from_one_that_fails() {
        for kind in [ErrorKind::TimedOut, ErrorKind::NotConnected] {
            let away = content_error(kind.into());
            assert!(matches!(away, Error::Unreachable(_)), "{away}");
        }
        let disk = content_error(io::Error::from(Errno::IO));
        assert!(matches!(disk, Error::Unreachable(_)), "{disk}");
        let full = content_error(ErrorKind::StorageFull.into());
        assert!(matches!(full, Error::Full), "{full}");
        let refused = content_error(ErrorKind::PermissionDenied.into());
        assert!(matches!(refused, Error::Store(_)), "{refused}");
    }
}
