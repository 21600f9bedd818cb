//! How a connection was opened, and how it is written to.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::identity::SignIn;
use crate::http::problem::Problem;
use crate::http::websocket::Outbox;
use crate::realtime::room::Page;

/// Event of a stream.
#[derive(Debug)]
pub(super) enum StreamEvent {
    /// A result, with its number.
    Result(u64, Bytes),
    /// A problem: the last event.
    Error(Arc<Problem>),
    /// Nothing, so that everybody between knows that the stream lives.
    Comment,
}

/// How a connection is written to.
#[derive(Debug)]
pub(super) enum Transport {
    /// A WebSocket.
    Socket(Arc<Outbox>),
    /// Server-sent events.
    Stream(mpsc::UnboundedSender<StreamEvent>),
}

/// How a connection was opened.
#[derive(Debug)]
pub(super) struct ConnectionContext {
    /// The page that it was opened from.
    pub(super) page: Page,
    /// The id of the request.
    pub(super) request: Arc<str>,
    /// Where problems are explained.
    pub(super) base_url: String,
    /// Sign-in of the listener.
    pub(super) sign_in: Option<SignIn>,
}

impl ConnectionContext {
    /// A problem as it is told.
    pub(super) fn document(&self, problem: &Problem) -> String {
        problem.document(&self.base_url, &self.request).to_string()
    }
}
