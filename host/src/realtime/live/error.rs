//! Errors of live queries: of a connection, a subscription or a frame.

use std::sync::Arc;

use crate::backends::BackendError;
use crate::http::rate_limit::BucketEmpty;
use crate::http::websocket::Close;
use crate::realtime::RoomError;
use crate::realtime::frames::FrameError;

/// Reason why there is no new subscription or connection, or why one ends.
#[derive(Debug, thiserror::Error)]
pub(super) enum LiveError {
    /// A bucket of calls is empty.
    #[error(transparent)]
    BucketEmpty(#[from] BucketEmpty),
    /// A quota of sockets is reached.
    #[error(transparent)]
    Quota(#[from] RoomError),
    /// A subscription of the connection has this id, which ends by that.
    #[error("{0} is in use")]
    IdInUse(Arc<str>),
    /// The connection has as many subscriptions as it may.
    #[error("there are {0} subscriptions")]
    Subscriptions(u64),
    /// As many frames of the connection wait as may.
    #[error("{0} frames wait")]
    Backlog(usize),
    /// The action cannot be listened to.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// A frame cannot be read, or is one too many.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The operator has disabled the page.
    #[error("the page is disabled")]
    Disabled,
    /// The page, its project or its backend was deleted or has expired.
    #[error("the page is gone")]
    Gone,
}

impl LiveError {
    /// Returns the error that a stream ends with where a socket has a close code; none at a stop, which is no fault of the stream's.
    pub(super) fn of_close(close: Close) -> Option<Self> {
        match close {
            Close::STOPPED => None,
            Close::DISABLED => Some(Self::Disabled),
            _ => Some(Self::Gone),
        }
    }
}
