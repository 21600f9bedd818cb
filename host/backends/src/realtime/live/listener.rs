//! Connection that subscribes to live queries: its subscriptions, its pending results, and how many bytes may be
//! in flight.
//!
//! Only problems are queued. A result is sent at once if there is room; otherwise its subscription is behind,
//! and once there is room, the query is asked for its latest answer. So a slow client costs the memory of one result, and it
//! never gets an older result than necessary.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use super::board::LiveQueryBoard;
use super::budget::AnswerBudget;
use super::connection::{ConnectionContext, LiveTransport, StreamEvent};
use super::error::LiveError;
use super::identity::ConnectionSession;
use super::opening::LiveQueryOpening;
use super::protocol;
use super::query::LiveQueryAnswer;
use super::subscriber::QuerySubscriber;
use crate::content::Digest;
use crate::http::websocket::{CloseReason, frame};
use crate::realtime::page::SocketPage;
use crate::realtime::room::ClientLiveness;
use crate::visitors::ActionCallerIdentity;
use svc_base::ids::BackendId;

/// Maximum number of bytes in flight to a client.
const MAX_IN_FLIGHT_BYTES: usize = 64 << 10;
/// Results up to this size are copied into their frame; larger ones are shared.
const MAX_COPIED_BYTES: usize = 4 << 10;
/// Time limit of a client for a large result while other large results wait.
const SLOW_CLIENT_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct LiveConnection {
    /// Backend whose queries the connection may subscribe to.
    pub(super) backend: BackendId,
    pub(super) life: ClientLiveness,
    opened: ConnectionContext,
    pub(super) board: Arc<LiveQueryBoard>,
    state: Mutex<LiveConnectionState>,
}

#[derive(Debug)]
pub(super) struct LiveConnectionState {
    /// `None` once the connection is closed.
    transport: Option<LiveTransport>,
    pub(super) subscriptions: HashMap<Arc<str>, LiveSubscription>,
    /// Number of the latest subscription.
    next: u64,
    /// Subscriptions that are behind or have a problem to send, oldest first.
    pub(super) late: VecDeque<(Arc<str>, u64)>,
    /// Bytes in flight.
    sent: usize,
    /// Whether a large result is in flight, and when that was first noticed.
    large: Option<Option<Duration>>,
    next_ping: Duration,
    /// Number of bytes that the kernel had accepted at its latest change, and the time of that change.
    progress: (u64, Duration),
}

#[derive(Debug)]
pub(super) struct LiveSubscription {
    /// Distinguishes the subscription from earlier ones of the same id.
    pub(super) number: u64,
    /// Number of the query; `None` while it is looked up.
    pub(super) query: Option<u64>,
    /// Whether the answer depends on the visitor.
    pub(super) is_own: bool,
    /// Number of results that were sent.
    pub(super) seq: u64,
    /// Digest of the latest result.
    pub(super) last: Option<Digest>,
    pub(super) late: PendingDelivery,
    /// Beginning of the subscription, until it is answered.
    pub(super) opening: Option<LiveQueryOpening>,
}

#[derive(Debug)]
pub(super) enum PendingDelivery {
    No,
    /// A newer result exists.
    Behind,
    /// It has ended.
    Ended(Arc<LiveError>),
}

/// Reason why a subscription cannot begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubscribeRefusal {
    /// The id is in use.
    IdInUse,
    /// The connection has the maximum number of subscriptions.
    TooMany,
}

impl LiveConnection {
    pub(super) fn new(
        board: Arc<LiveQueryBoard>,
        opened: ConnectionContext,
        transport: LiveTransport,
        (now, ping): (Duration, Duration),
    ) -> Self {
        Self {
            backend: board.backend(),
            opened,
            life: ClientLiveness::new(now),
            board,
            state: Mutex::new(LiveConnectionState {
                transport: Some(transport),
                subscriptions: HashMap::new(),
                next: 0,
                late: VecDeque::new(),
                sent: 0,
                large: None,
                next_ping: now + ping,
                progress: (0, now),
            }),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, LiveConnectionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a subscription that has no query yet.
    pub(super) fn begin_subscription(
        self: &Arc<Self>,
        id: &Arc<str>,
        most: usize,
    ) -> Result<QuerySubscriber, SubscribeRefusal> {
        let mut state = self.state();
        if state.subscriptions.contains_key(id) {
            return Err(SubscribeRefusal::IdInUse);
        }
        if state.subscriptions.len() >= most {
            return Err(SubscribeRefusal::TooMany);
        }
        state.next += 1;
        let number = state.next;
        let subscription = LiveSubscription {
            number,
            query: None,
            is_own: false,
            seq: 0,
            last: None,
            late: PendingDelivery::No,
            opening: None,
        };
        state.subscriptions.insert(Arc::clone(id), subscription);
        Ok(QuerySubscriber {
            listener: Arc::clone(self),
            id: Arc::clone(id),
            number,
        })
    }

    /// Ends a subscription without a message.
    pub(super) fn end(&self, id: &str) {
        let ended = self.state().subscriptions.remove(id);
        if let Some((query, number)) = ended.and_then(|one| Some((one.query?, one.number))) {
            self.board.leave(query, self, number);
        }
    }

    /// Ends all subscriptions, and accepts no more.
    pub(super) fn end_all(&self) {
        let ended = {
            let mut state = self.state();
            state.transport = None;
            state.late.clear();
            std::mem::take(&mut state.subscriptions)
        };
        for one in ended.into_values() {
            if let Some(query) = one.query {
                self.board.leave(query, self, one.number);
            }
        }
    }

    /// Returns the context in which the connection was opened.
    pub(super) fn opened(&self) -> &ConnectionContext {
        &self.opened
    }

    /// Returns the page that the connection was opened from.
    pub(super) fn page(&self) -> &SocketPage {
        &self.opened.page
    }

    pub(super) fn board(&self) -> &Arc<LiveQueryBoard> {
        &self.board
    }

    /// Returns the session that the connection was opened with.
    pub(super) fn sign_in(&self) -> Option<&ConnectionSession> {
        self.opened.sign_in.as_ref()
    }

    /// Returns the identity of the signed-in visitor.
    pub(super) fn visitor(&self) -> Option<Arc<ActionCallerIdentity>> {
        self.sign_in().and_then(ConnectionSession::visitor)
    }

    /// Reports a refused frame; this ends the subscription with its id.
    pub(super) fn refuse(&self, id: Option<&Arc<str>>, error: &LiveError) {
        if let Some(id) = id {
            self.end(id);
        }
        let frame = protocol::error_frame(id.map(AsRef::as_ref), &self.opened.document(error));
        if let Some(LiveTransport::Socket(outbox)) = &self.state().transport {
            // A closed connection gets no more messages.
            let _ = outbox.push(frame);
        }
    }

    /// Ends the subscriptions whose answers are the visitor's own.
    pub(super) fn end_visitor_subscriptions(self: &Arc<Self>, error: &Arc<LiveError>) {
        let own: Vec<QuerySubscriber> = {
            let state = self.state();
            let own = state.subscriptions.iter().filter(|(_, one)| one.is_own);
            own.map(|(id, one)| QuerySubscriber {
                listener: Arc::clone(self),
                id: Arc::clone(id),
                number: one.number,
            })
            .collect()
        };
        for subscriber in own {
            let query = subscriber.query();
            subscriber.fail(Arc::clone(error));
            if let Some(query) = query {
                self.board.leave(query, self, subscriber.number);
            }
        }
    }

    /// Records that all bytes were sent.
    pub(super) fn record_drained(&self) {
        let mut state = self.state();
        state.sent = 0;
        state.large = None;
        self.send_pending(&mut state);
    }

    /// Sends late problems and requests late results, as long as there is room.
    pub(super) fn send_pending(&self, state: &mut LiveConnectionState) {
        while state.sent < MAX_IN_FLIGHT_BYTES {
            let Some((id, number)) = state.late.front().cloned() else {
                return;
            };
            let found = state.subscriptions.get(&id);
            match found.filter(|one| one.number == number) {
                Some(one) if matches!(one.late, PendingDelivery::Behind) => {
                    if let Some(query) = one.query {
                        self.board.request_latest(query);
                    }
                    return;
                }
                Some(LiveSubscription {
                    late: PendingDelivery::Ended(error),
                    ..
                }) => {
                    let error = Arc::clone(error);
                    state.subscriptions.remove(&id);
                    state.send_end(&id, error, &self.opened);
                }
                Some(_) | None => {}
            }
            state.late.pop_front();
        }
    }

    /// Pings if a ping is due, and closes the connection of a client that does not answer or does not read.
    pub(super) fn tick(&self, now: Duration, every: Duration, within: Duration) {
        let mut state = self.state();
        let starved = self.board.budget().has_waiter();
        let due = now >= state.next_ping;
        if due {
            state.next_ping = now + every;
        }
        let busy = state.sent > 0;
        let large = state.large.as_mut().map(|since| *since.get_or_insert(now));
        match &state.transport {
            Some(LiveTransport::Socket(outbox)) => {
                let (written, waits) = outbox.progress();
                let outbox = Arc::clone(outbox);
                if !waits || written != state.progress.0 {
                    state.progress = (written, now);
                }
                let slow = now.saturating_sub(state.progress.1) >= within
                    || starved
                        && large
                            .is_some_and(|since| now.saturating_sub(since) >= SLOW_CLIENT_TIMEOUT);
                if slow {
                    outbox.close_now(CloseReason::SLOW);
                } else if now.saturating_sub(self.life.last_alive().max(state.last_read(waits)))
                    >= within
                {
                    outbox.close(CloseReason::SILENT);
                } else if due {
                    let _ = outbox.push(frame::ping_frame());
                }
            }
            // Data in flight keeps the connection alive as well as a comment.
            Some(LiveTransport::Stream(events)) if due && !busy => {
                let _ = events.send(StreamEvent::Comment);
            }
            Some(LiveTransport::Stream(_)) | None => {}
        }
        self.send_pending(&mut state);
    }

    /// Closes the connection.
    pub(super) fn close(&self, close: CloseReason) {
        let mut state = self.state();
        match &state.transport {
            Some(LiveTransport::Socket(outbox)) => outbox.close(close),
            Some(LiveTransport::Stream(events)) => {
                if let Some(error) = LiveError::from_close(close) {
                    // A stream without a receiver has ended already.
                    let _ = events.send(StreamEvent::Error(Arc::new(error)));
                }
                // Dropping the sender ends the stream.
                state.transport = None;
            }
            None => {}
        }
    }
}

impl LiveConnectionState {
    /// Returns when the client last read pending data, because a ping is answered only after that.
    fn last_read(&self, waits: bool) -> Duration {
        if waits {
            self.progress.1
        } else {
            Duration::ZERO
        }
    }

    /// Sends the final message of a subscription.
    fn send_end(&mut self, id: &str, error: Arc<LiveError>, opened: &ConnectionContext) {
        match &self.transport {
            Some(LiveTransport::Socket(outbox)) => {
                let frame = protocol::error_frame(Some(id), &opened.document(&error));
                self.sent += frame.len();
                let _ = outbox.push(frame);
            }
            Some(LiveTransport::Stream(events)) => {
                let _ = events.send(StreamEvent::Error(error));
                self.transport = None;
            }
            None => {}
        }
    }

    /// Sends a result; returns whether there was room.
    pub(super) fn send(
        &mut self,
        (id, seq): (&str, u64),
        answer: &LiveQueryAnswer,
        budget: &AnswerBudget,
    ) -> bool {
        let bytes = answer.json.len();
        if self.sent > 0 && self.sent + bytes > MAX_IN_FLIGHT_BYTES {
            return false;
        }
        if bytes > MAX_IN_FLIGHT_BYTES {
            if !budget.has_room() {
                return false;
            }
            self.large = Some(None);
        }
        self.sent += bytes.max(1);
        match &self.transport {
            Some(LiveTransport::Socket(outbox)) => {
                let parts = protocol::result_frame_parts(id, seq, &answer.json);
                let _ = if bytes <= MAX_COPIED_BYTES {
                    let mut whole = BytesMut::with_capacity(parts.iter().map(Bytes::len).sum());
                    parts.iter().for_each(|part| whole.extend_from_slice(part));
                    outbox.push(whole.freeze())
                } else {
                    outbox.push_parts(parts)
                };
            }
            Some(LiveTransport::Stream(events)) => {
                let _ = events.send(StreamEvent::Result(seq, answer.json.clone()));
            }
            None => {}
        }
        true
    }
}
