//! Server-sent events: one subscription as a response that continues.

use std::collections::VecDeque;
use std::convert::Infallible;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::unfold;
use tokio::sync::mpsc;

use super::connection::{ConnectionContext, StreamEvent};
use super::listeners::ConnectionRegistration;

/// Source of a stream.
#[derive(Debug)]
pub(super) struct LiveEventStream {
    pub(super) registration: ConnectionRegistration,
    pub(super) receiver: mpsc::UnboundedReceiver<StreamEvent>,
    /// Encoded chunks that are ready to be sent.
    pub(super) ready: VecDeque<Bytes>,
    /// Whether the stream ends after them.
    pub(super) ends: bool,
}

impl LiveEventStream {
    /// Encodes an event.
    pub(super) fn put(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::Result(seq, json) => {
                let head = format!("event: result\nid: {seq}\ndata: ");
                self.ready
                    .extend([head.into(), json, Bytes::from_static(b"\n\n")]);
            }
            StreamEvent::Error(error) => {
                let opened: &ConnectionContext = self.registration.listener.opened();
                let document = opened.document(&error);
                let text = format!("event: error\ndata: {document}\n\n");
                self.ready.push_back(text.into());
                self.ends = true;
            }
            StreamEvent::Comment => self
                .ready
                .push_back(Bytes::from_static(b": still here\n\n")),
        }
    }

    /// Returns the stream of chunks.
    pub(super) fn stream(self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        unfold(self, |mut events| async move {
            loop {
                if let Some(piece) = events.ready.pop_front() {
                    return Some((Ok(piece), events));
                }
                if events.ends {
                    return None;
                }
                // A request for more means that all chunks were taken.
                events.registration.listener.record_drained();
                let event = events.receiver.recv().await?;
                events.put(event);
            }
        })
    }
}
