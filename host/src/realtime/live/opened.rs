//! How a connection was opened, and how it is written to.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::error::LiveError;
use super::identity::SignIn;
use super::problems;
use crate::http::websocket::Outbox;
use crate::realtime::room::Page;

/// Event of a stream.
#[derive(Debug)]
pub(super) enum Event {
    /// A result, with its number.
    Result(u64, Bytes),
    /// An error: the last event.
    Error(Arc<LiveError>),
    /// Nothing, so that everybody between knows that the stream lives.
    Comment,
}

/// How a connection is written to.
#[derive(Debug)]
pub(super) enum Way {
    /// A WebSocket.
    Socket(Arc<Outbox>),
    /// Server-sent events.
    Stream(mpsc::UnboundedSender<Event>),
}

/// How a connection was opened.
#[derive(Debug)]
pub(super) struct Opened {
    /// The page that it was opened from.
    pub(super) page: Page,
    /// The id of the request.
    pub(super) request: Arc<str>,
    /// Where problems are explained.
    pub(super) base_url: String,
    /// Sign-in of the listener.
    pub(super) sign_in: Option<SignIn>,
}

impl Opened {
    /// Returns an error as it is told.
    pub(super) fn document(&self, error: &LiveError) -> String {
        problems::document(error, &self.base_url, &self.request)
    }
}
