//! Errors of live queries: of a connection, a subscription or a frame.

use std::sync::Arc;

use crate::backends::BackendError;
use crate::http::rate_limit::RateLimitExceeded;
use crate::http::websocket::CloseReason;
use crate::realtime::RoomError;
use crate::realtime::frames::ClientFrameError;

/// Reason why a subscription or connection is refused or ends.
#[derive(Debug, thiserror::Error)]
pub(super) enum LiveError {
    /// A bucket of calls is empty.
    #[error(transparent)]
    BucketEmpty(#[from] RateLimitExceeded),
    /// A quota of sockets is reached.
    #[error(transparent)]
    Quota(#[from] RoomError),
    /// The connection has a subscription with this id, which ends because of that.
    #[error("{0} is in use")]
    IdInUse(Arc<str>),
    /// The connection has the maximum number of subscriptions.
    #[error("there are {0} subscriptions")]
    Subscriptions(u64),
    /// The backlog of the connection is full.
    #[error("{0} frames wait")]
    Backlog(usize),
    /// The action cannot be called or subscribed to.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// A frame cannot be read, or exceeds the rate limit.
    #[error(transparent)]
    Frame(#[from] ClientFrameError),
    /// The operator has disabled the page.
    #[error("the page is disabled")]
    Disabled,
    /// The page, its project, its backend or its domain has ended.
    #[error("the page is gone")]
    Gone,
}

impl LiveError {
    /// Returns the error that ends a stream, for the close code of a socket; `None` if the server stops or another one
    /// may answer, which is not an error.
    pub(super) fn from_close(close: CloseReason) -> Option<Self> {
        match close {
            CloseReason::STOPPED | CloseReason::MOVED => None,
            CloseReason::DISABLED => Some(Self::Disabled),
            _ => Some(Self::Gone),
        }
    }
}
