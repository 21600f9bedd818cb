//! Context and transport of a connection.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::error::LiveError;
use super::identity::ConnectionSession;
use super::opening::LiveQueryLog;
use super::problems;
use crate::http::websocket::Outbox;
use crate::realtime::page::SocketPage;

/// Event of a stream.
#[derive(Debug)]
pub(super) enum StreamEvent {
    /// Result, with its number.
    Result(u64, Bytes),
    /// An error: the last event.
    Error(Arc<LiveError>),
    /// Comment that keeps the connection alive through proxies.
    Comment,
}

/// Transport of a connection.
#[derive(Debug)]
pub(super) enum LiveTransport {
    /// WebSocket connection.
    Socket(Arc<Outbox>),
    /// Server-sent events.
    Stream(mpsc::UnboundedSender<StreamEvent>),
}

/// Context in which a connection was opened.
#[derive(Debug)]
pub(super) struct ConnectionContext {
    /// Page that opened the connection.
    pub(super) page: SocketPage,
    /// Id of the request.
    pub(super) request: Arc<str>,
    /// Base URL of the documentation of problems.
    pub(super) base_url: String,
    /// Session of the visitor, if signed in.
    pub(super) sign_in: Option<ConnectionSession>,
    /// Log of the page's project, if the page has one.
    pub(super) log: Option<LiveQueryLog>,
}

impl ConnectionContext {
    /// Returns the document of an error, for the client.
    pub(super) fn document(&self, error: &LiveError) -> String {
        problems::problem_document(error, &self.base_url, &self.request)
    }
}
