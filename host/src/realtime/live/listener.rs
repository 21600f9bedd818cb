//! One connection that listens to live queries: what it has subscribed to, what it is to be told, and how much of that may be
//! on its way.
//!
//! Nothing waits here but problems: a result goes out at once if there is room on the way, else its subscription is behind,
//! and once there is room, its query is asked for the newest. So however slow a client is, it costs one result, and it
//! never gets an older one than it must.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use super::board::Board;
use super::budget::AnswerBudget;
use super::connection::{ConnectionContext, StreamEvent, Transport};
use super::identity::SignIn;
use super::protocol;
use super::query::Answer;
use super::subscriber::Subscriber;
use crate::content::Digest;
use crate::http::problem::Problem;
use crate::http::websocket::{Close, frame};
use crate::realtime::problems;
use crate::realtime::room::{Liveness, Page};
use crate::visitors::Identity;
use svc_base::ids::BackendId;

/// How much may be on its way to a client before it waits for what is there to be taken, in bytes.
const MAX_IN_FLIGHT_BYTES: usize = 64 << 10;
/// Results of so many bytes are copied into their frame; larger ones are shared.
const MAX_COPIED_BYTES: usize = 4 << 10;
/// How long a client may take for a large result while others wait to be sent theirs.
const SLOW_CLIENT_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection.
#[derive(Debug)]
pub(super) struct Listener {
    /// Backend whose queries it listens to.
    pub(super) backend: BackendId,
    pub(super) life: Liveness,
    opened: ConnectionContext,
    pub(super) board: Arc<Board>,
    state: Mutex<State>,
}

#[derive(Debug)]
pub(super) struct State {
    /// `None` once it is closed.
    transport: Option<Transport>,
    pub(super) subscriptions: HashMap<Arc<str>, Subscription>,
    /// The next subscription's number.
    next: u64,
    /// Subscriptions that are behind, or have a problem to be told, oldest first.
    pub(super) late: VecDeque<(Arc<str>, u64)>,
    /// Bytes on their way.
    sent: usize,
    /// Whether a large one is among them, and since when that is known.
    large: Option<Option<Duration>>,
    next_ping: Duration,
    /// Bytes that the kernel had taken when they last changed, and the time of that change.
    progress: (u64, Duration),
}

/// A subscription.
#[derive(Debug)]
pub(super) struct Subscription {
    /// Tells it from an earlier one of the same id.
    pub(super) number: u64,
    /// The query; `None` while it is looked for.
    pub(super) query: Option<u64>,
    /// Whether its answer is the visitor's own.
    pub(super) is_own: bool,
    /// How many results were sent.
    pub(super) seq: u64,
    /// The last of them.
    pub(super) last: Option<Digest>,
    pub(super) late: LateState,
}

#[derive(Debug)]
pub(super) enum LateState {
    No,
    /// There is a newer result.
    Behind,
    /// It has ended.
    Ended(Arc<Problem>),
}

/// Why there is no new subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubscribeRefusal {
    /// There is one of this id.
    IdInUse,
    /// There are as many as there may be.
    TooMany,
}

impl Listener {
    pub(super) fn new(
        board: Arc<Board>,
        opened: ConnectionContext,
        transport: Transport,
        (now, ping): (Duration, Duration),
    ) -> Self {
        Self {
            backend: board.backend(),
            opened,
            life: Liveness::new(now),
            board,
            state: Mutex::new(State {
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

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a subscription that has no query yet.
    pub(super) fn begin_subscription(
        self: &Arc<Self>,
        id: &Arc<str>,
        most: usize,
    ) -> Result<Subscriber, SubscribeRefusal> {
        let mut state = self.state();
        if state.subscriptions.contains_key(id) {
            return Err(SubscribeRefusal::IdInUse);
        }
        if state.subscriptions.len() >= most {
            return Err(SubscribeRefusal::TooMany);
        }
        state.next += 1;
        let number = state.next;
        let subscription = Subscription {
            number,
            query: None,
            is_own: false,
            seq: 0,
            last: None,
            late: LateState::No,
        };
        state.subscriptions.insert(Arc::clone(id), subscription);
        Ok(Subscriber {
            listener: Arc::clone(self),
            id: Arc::clone(id),
            number,
        })
    }

    /// Ends a subscription without a word.
    pub(super) fn end(&self, id: &str) {
        let ended = self.state().subscriptions.remove(id);
        if let Some((query, number)) = ended.and_then(|one| Some((one.query?, one.number))) {
            self.board.leave(query, self, number);
        }
    }

    /// Ends all subscriptions, and takes no more.
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

    /// How it was opened.
    pub(super) fn opened(&self) -> &ConnectionContext {
        &self.opened
    }

    /// The page that it was opened from.
    pub(super) fn page(&self) -> &Page {
        &self.opened.page
    }

    /// Returns the board of the backend whose queries it listens to.
    pub(super) fn board(&self) -> &Arc<Board> {
        &self.board
    }

    /// The sign-in that it was opened with.
    pub(super) fn sign_in(&self) -> Option<&SignIn> {
        self.opened.sign_in.as_ref()
    }

    /// Returns the visitor who is signed in.
    pub(super) fn visitor(&self) -> Option<Arc<Identity>> {
        self.sign_in().and_then(SignIn::visitor)
    }

    /// Says that a frame is refused; a subscription of its id ends by it.
    pub(super) fn refuse(&self, id: Option<&Arc<str>>, problem: &Problem) {
        if let Some(id) = id {
            self.end(id);
        }
        let frame = protocol::error(id.map(AsRef::as_ref), &self.opened.document(problem));
        if let Some(Transport::Socket(outbox)) = &self.state().transport {
            // One that is closed is told nothing more.
            let _ = outbox.push(frame);
        }
    }

    /// Ends the subscriptions whose answers are the visitor's own.
    pub(super) fn end_visitor_subscriptions(self: &Arc<Self>, problem: &Arc<Problem>) {
        let own: Vec<Subscriber> = {
            let state = self.state();
            let own = state.subscriptions.iter().filter(|(_, one)| one.is_own);
            own.map(|(id, one)| Subscriber {
                listener: Arc::clone(self),
                id: Arc::clone(id),
                number: one.number,
            })
            .collect()
        };
        for subscriber in own {
            let query = subscriber.query();
            subscriber.fail(Arc::clone(problem));
            if let Some(query) = query {
                self.board.leave(query, self, subscriber.number);
            }
        }
    }

    /// Notes that everything is on its way.
    pub(super) fn drained(&self) {
        let mut state = self.state();
        state.sent = 0;
        state.large = None;
        self.send_late(&mut state);
    }

    /// Sends what is late, as far as there is room: problems by itself, results by asking their queries.
    pub(super) fn send_late(&self, state: &mut State) {
        while state.sent < MAX_IN_FLIGHT_BYTES {
            let Some((id, number)) = state.late.front().cloned() else {
                return;
            };
            let found = state.subscriptions.get(&id);
            match found.filter(|one| one.number == number) {
                Some(one) if matches!(one.late, LateState::Behind) => {
                    if let Some(query) = one.query {
                        self.board.request_latest(query);
                    }
                    return;
                }
                Some(Subscription {
                    late: LateState::Ended(problem),
                    ..
                }) => {
                    let problem = Arc::clone(problem);
                    state.subscriptions.remove(&id);
                    state.send_end(&id, problem, &self.opened);
                }
                Some(_) | None => {}
            }
            state.late.pop_front();
        }
    }

    /// Pings if it is time, and lets go who does not answer or takes nothing.
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
            Some(Transport::Socket(outbox)) => {
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
                    outbox.close_now(Close::SLOW);
                } else if now.saturating_sub(self.life.last_alive().max(state.last_read(waits)))
                    >= within
                {
                    outbox.close(Close::SILENT);
                } else if due {
                    let _ = outbox.push(frame::ping());
                }
            }
            // What is on its way says as much.
            Some(Transport::Stream(events)) if due && !busy => {
                let _ = events.send(StreamEvent::Comment);
            }
            Some(Transport::Stream(_)) | None => {}
        }
        self.send_late(&mut state);
    }

    /// Closes the connection.
    pub(super) fn close(&self, close: Close) {
        let mut state = self.state();
        match &state.transport {
            Some(Transport::Socket(outbox)) => outbox.close(close),
            Some(Transport::Stream(events)) => {
                if let Some(problem) = problems::stream_end_problem(close) {
                    // One that nobody reads any more has ended already.
                    let _ = events.send(StreamEvent::Error(Arc::new(problem)));
                }
                // A stream ends with its sender.
                state.transport = None;
            }
            None => {}
        }
    }
}

impl State {
    /// When the client last took something of what waits: a ping is answered only behind that.
    fn last_read(&self, waits: bool) -> Duration {
        if waits {
            self.progress.1
        } else {
            Duration::ZERO
        }
    }

    /// Sends the last word about a subscription.
    fn send_end(&mut self, id: &str, problem: Arc<Problem>, opened: &ConnectionContext) {
        match &self.transport {
            Some(Transport::Socket(outbox)) => {
                let frame = protocol::error(Some(id), &opened.document(&problem));
                self.sent += frame.len();
                let _ = outbox.push(frame);
            }
            Some(Transport::Stream(events)) => {
                let _ = events.send(StreamEvent::Error(problem));
                self.transport = None;
            }
            None => {}
        }
    }

    /// Sends a result; returns whether there was room.
    pub(super) fn send(
        &mut self,
        (id, seq): (&str, u64),
        answer: &Answer,
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
            Some(Transport::Socket(outbox)) => {
                let parts = protocol::result(id, seq, &answer.json);
                let _ = if bytes <= MAX_COPIED_BYTES {
                    let mut whole = BytesMut::with_capacity(parts.iter().map(Bytes::len).sum());
                    parts.iter().for_each(|part| whole.extend_from_slice(part));
                    outbox.push(whole.freeze())
                } else {
                    outbox.push_parts(parts)
                };
            }
            Some(Transport::Stream(events)) => {
                let _ = events.send(StreamEvent::Result(seq, answer.json.clone()));
            }
            None => {}
        }
        true
    }
}
