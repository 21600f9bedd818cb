//! Server-sent events: one subscription as an answer that goes on.

use std::collections::VecDeque;
use std::convert::Infallible;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::unfold;
use tokio::sync::mpsc;

use super::connection::{ConnectionContext, StreamEvent};
use super::listeners::Registration;

/// Source of a stream.
#[derive(Debug)]
pub(super) struct EventStream {
    pub(super) registration: Registration,
    pub(super) receiver: mpsc::UnboundedReceiver<StreamEvent>,
    /// Pieces that are ready.
    pub(super) ready: VecDeque<Bytes>,
    /// Whether nothing comes after them.
    pub(super) ends: bool,
}

impl EventStream {
    /// Puts an event into its form.
    pub(super) fn put(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::Result(seq, json) => {
                let head = format!("event: result\nid: {seq}\ndata: ");
                self.ready
                    .extend([head.into(), json, Bytes::from_static(b"\n\n")]);
            }
            StreamEvent::Error(problem) => {
                let opened: &ConnectionContext = self.registration.listener.opened();
                let document = opened.document(&problem);
                let text = format!("event: error\ndata: {document}\n\n");
                self.ready.push_back(text.into());
                self.ends = true;
            }
            StreamEvent::Comment => self
                .ready
                .push_back(Bytes::from_static(b": still here\n\n")),
        }
    }

    /// The bytes, as they come.
    pub(super) fn stream(self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        unfold(self, |mut events| async move {
            loop {
                if let Some(piece) = events.ready.pop_front() {
                    return Some((Ok(piece), events));
                }
                if events.ends {
                    return None;
                }
                // Whoever asks for more has taken what was there.
                events.registration.listener.drained();
                let event = events.receiver.recv().await?;
                events.put(event);
            }
        })
    }
}
