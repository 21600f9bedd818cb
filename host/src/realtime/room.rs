//! One room: who is in it, what they are told, and in which order.
//!
//! A message goes to everybody at once: messages are gathered as one piece of shared bytes, which is put into the queues of all members and
//! written in a round (`rounds.rs`). Who came and who went is told in pieces: at once in a small room, at most once a second
//! in a large one. Everything that happened in between goes to each member as one piece of shared bytes with one count
//! at its end, and a client that came is a member from that telling on. So a thousand people who reload within a second cost each of
//! them a welcome and one piece, instead of a thousand joins and leaves each as they happen.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::sync::Notify;

use super::client::Client;
use super::protocol::{self, Message};
use crate::http::websocket::{Close, Outbox, OutboxClosed, frame};
use svc_base::clock::Timestamp;
use svc_base::ids::DeploymentId;

/// A room of so many members is told at once.
const SMALL_ROOM: usize = 32;
/// How much longer each member of a larger room lets it wait.
const UPDATE_DELAY_PER_MEMBER: Duration = Duration::from_millis(1);
/// The longest wait; what is right "within two seconds" has one more for the rest of the way.
const MAX_UPDATE_DELAY: Duration = Duration::from_secs(1);
/// Size of an event, about, in bytes.
const EVENT_BYTES: usize = 128;
/// Messages that end the pause between two rounds.
const URGENT_MESSAGES: usize = 64;
/// Bytes that end it.
const URGENT_BYTES: usize = 32 << 10;
/// Most messages in a piece, and most bytes but for its last message: what waits is put into the queues by the next sender where no round
/// has got its turn.
const MAX_GATHERED: (usize, usize) = (4 * URGENT_MESSAGES, 4 * URGENT_BYTES);

/// Now: on the clock that never runs backwards, and on the wall.
#[derive(Clone, Copy, Debug)]
pub(super) struct CurrentTime {
    pub(super) elapsed: Duration,
    pub(super) at: Timestamp,
}

/// The page that a socket was opened from.
#[derive(Clone, Debug)]
pub(super) struct Page {
    pub(super) slug: Arc<str>,
    pub(super) id: DeploymentId,
}

/// When a client last showed that it lives, in milliseconds of the clock that never runs backwards.
#[derive(Debug)]
pub(super) struct Liveness(AtomicU64);

impl Liveness {
    pub(super) fn new(now: Duration) -> Self {
        let life = Self(AtomicU64::new(0));
        life.record_alive(now);
        life
    }

    /// Notes a pong.
    pub(super) fn record_alive(&self, now: Duration) {
        let millis = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        self.0.store(millis, Ordering::Relaxed);
    }

    pub(super) fn last_alive(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
}

/// A socket in a room.
#[derive(Debug)]
pub(super) struct Member {
    /// Member as the others see it.
    pub(super) id: Arc<Client>,
    pub(super) outbox: Arc<Outbox>,
    pub(super) page: Page,
    pub(super) life: Arc<Liveness>,
    /// When it is pinged next.
    pub(super) next_ping: Duration,
}

/// A room as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomSummary {
    /// Identifier of the room.
    pub id: Arc<str>,
    /// How many sockets are in it.
    pub members: usize,
    /// The number of its last message.
    pub seq: u64,
}

/// Tally of telling members, for the numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeliveryTally {
    /// Messages that were put into a queue.
    pub(super) delivered: u64,
    /// Number of messages that were thrown away because a queue was full.
    pub(super) dropped: u64,
    /// The longest queue.
    pub(super) longest: usize,
}

/// A room; it is there while a socket is in it, or on its way in.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) id: Arc<str>,
    state: Mutex<State>,
    /// Told when much is gathered.
    pub(super) urgent: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Why nobody comes in any more.
    ended: Option<Close>,
    /// The number of the last message.
    seq: u64,
    members: Vec<Member>,
    /// Members that have come, and of whom nobody is told yet: they themselves neither.
    coming: Vec<Member>,
    /// Members that have gone, and of whose coming the others were told.
    gone: Vec<Arc<Client>>,
    /// When the members were last told.
    told: Duration,
    /// How many there were then: a large room that everybody leaves to come back is large until it is told of that.
    size: usize,
    /// Whether somebody will come and tell them.
    awaited: bool,
    gathered: GatheredMessages,
    rounds: Rounds,
}

/// Messages that no queue has yet.
#[derive(Debug, Default)]
struct GatheredMessages {
    /// Frames of the messages, one behind another.
    frames: BytesMut,
    messages: usize,
    /// Those of clients, which do not get their own.
    own: Vec<OwnMessage>,
}

/// A client's message among those that are gathered.
#[derive(Debug)]
struct OwnMessage {
    client: Arc<Client>,
    /// How many messages are before it.
    number: usize,
    /// Place of its frame.
    frame: Range<usize>,
}

/// State of the rounds in which queues are written.
#[derive(Debug, Default)]
struct Rounds {
    /// Whether something was sent since the last round began.
    due: bool,
    /// Whether a task makes rounds.
    under_way: bool,
}

/// Whether members are yet to be told, by whoever looks after that.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NeedsUpdate(pub(super) bool);

impl Room {
    pub(super) fn new(id: &str) -> Self {
        Self {
            id: id.into(),
            state: Mutex::default(),
            urgent: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a socket in.
    ///
    /// # Errors
    /// Why the room has ended.
    pub(super) fn join(
        &self,
        member: Member,
        now: CurrentTime,
        tally: &mut DeliveryTally,
    ) -> Result<NeedsUpdate, Close> {
        let mut state = self.state();
        if let Some(close) = state.ended {
            return Err(close);
        }
        state.coming.push(member);
        Ok(state.update_or_schedule(&self.id, now, tally))
    }

    /// Lets a socket go, if it is there still.
    pub(super) fn leave(
        &self,
        id: &Arc<Client>,
        now: CurrentTime,
        tally: &mut DeliveryTally,
    ) -> NeedsUpdate {
        let mut state = self.state();
        let is = |member: &Member| Arc::ptr_eq(&member.id, id);
        if let Some(at) = state.coming.iter().position(is) {
            // Nobody knows that it came, so nobody needs to know that it went.
            state.coming.swap_remove(at);
        } else if let Some(at) = state.members.iter().position(is) {
            state.members.swap_remove(at);
            state.gone.push(Arc::clone(id));
        }
        state.update_or_schedule(&self.id, now, tally)
    }

    /// Relays a message to everybody but its sender; returns its number, 0 if nobody is there.
    pub(super) fn publish(
        &self,
        message: &Message<'_>,
        sender: Option<&Arc<Client>>,
        now: CurrentTime,
        tally: &mut DeliveryTally,
    ) -> (u64, NeedsUpdate) {
        let mut state = self.state();
        if state.members.is_empty() {
            return (0, NeedsUpdate(false));
        }
        state.seq += 1;
        let seq = state.seq;
        let parts = (message.kind.as_ref(), message.data);
        let text = protocol::message(parts, sender.map(|id| &**id), &self.id, now.at, seq);
        if state.gather(&text, sender) {
            self.urgent.notify_one();
        }
        let GatheredMessages {
            messages, frames, ..
        } = &state.gathered;
        if *messages < MAX_GATHERED.0 && frames.len() < MAX_GATHERED.1 {
            return (seq, NeedsUpdate(false));
        }
        state.queue_gathered(tally);
        (seq, state.send_departures(&self.id, now, tally))
    }

    /// Tells the members what they have not been told, if it is time; returns whether it is still to come.
    pub(super) fn send_updates(&self, now: CurrentTime, tally: &mut DeliveryTally) -> NeedsUpdate {
        let mut state = self.state();
        state.awaited = false;
        state.update_or_schedule(&self.id, now, tally)
    }

    /// Pings those whose turn it is, and lets go those who have not answered.
    pub(super) fn ping(
        &self,
        now: CurrentTime,
        every: Duration,
        within: Duration,
        tally: &mut DeliveryTally,
    ) -> NeedsUpdate {
        let mut state = self.state();
        let state = &mut *state;
        state.queue_gathered(tally);
        let gone = &mut state.gone;
        state.members.retain_mut(|member| {
            if now.elapsed.saturating_sub(member.life.last_alive()) >= within {
                member.outbox.close(Close::SILENT);
                gone.push(Arc::clone(&member.id));
                return false;
            }
            if now.elapsed >= member.next_ping {
                member.next_ping = now.elapsed + every;
                // One that is closed is on its way out.
                let _ = member.outbox.push(frame::ping());
            }
            true
        });
        state.send_departures(&self.id, now, tally)
    }

    /// Ends the room: closes all its sockets, and lets nobody in any more.
    pub(super) fn end(&self, close: Close) {
        let mut state = self.state();
        // What was sent before the end is on its way before it.
        state.queue_gathered(&mut DeliveryTally::default());
        state.ended = Some(close);
        state.gone.clear();
        let members = std::mem::take(&mut state.members).into_iter();
        let coming = std::mem::take(&mut state.coming);
        drop(state);
        members.chain(coming).for_each(|m| m.outbox.close(close));
    }

    /// Closes the sockets of a page for which `why` has a reason.
    pub(super) fn close_page(
        &self,
        slug: &str,
        why: &dyn Fn(&Page) -> Option<Close>,
        now: CurrentTime,
        tally: &mut DeliveryTally,
    ) -> NeedsUpdate {
        let mut state = self.state();
        let state = &mut *state;
        state.queue_gathered(tally);
        let gone = &mut state.gone;
        let close = |member: &Member| {
            let here = *member.page.slug == *slug;
            let close = here.then(|| why(&member.page)).flatten();
            close.map(|close| member.outbox.close(close)).is_some()
        };
        state.coming.retain(|member| !close(member));
        state.members.retain(|member| {
            let closed = close(member);
            if closed {
                gone.push(Arc::clone(&member.id));
            }
            !closed
        });
        state.update_or_schedule(&self.id, now, tally)
    }

    /// Whether something was sent for which nobody makes rounds yet: the caller must.
    pub(super) fn try_start_rounds(&self) -> bool {
        let rounds = &mut self.state().rounds;
        rounds.due && !std::mem::replace(&mut rounds.under_way, true)
    }

    /// Begins a round: returns the outboxes to write, or `None` if nothing was sent, by which rounds end.
    pub(super) fn begin_round(
        &self,
        now: CurrentTime,
        tally: &mut DeliveryTally,
    ) -> (Option<Vec<Arc<Outbox>>>, NeedsUpdate) {
        let mut state = self.state();
        if !std::mem::take(&mut state.rounds.due) {
            state.rounds.under_way = false;
            return (None, NeedsUpdate(false));
        }
        state.queue_gathered(tally);
        let awaited = state.send_departures(&self.id, now, tally);
        let outboxes = state.members.iter().map(|member| &member.outbox);
        (Some(outboxes.map(Arc::clone).collect()), awaited)
    }

    /// The room as its owner sees it.
    pub(super) fn summary(&self) -> RoomSummary {
        let state = self.state();
        RoomSummary {
            id: Arc::clone(&self.id),
            members: state.members.len() + state.coming.len(),
            seq: state.seq,
        }
    }
}

impl State {
    /// Tells the members who came and who went, or has that wait for others.
    fn update_or_schedule(
        &mut self,
        room: &str,
        now: CurrentTime,
        tally: &mut DeliveryTally,
    ) -> NeedsUpdate {
        while !(self.coming.is_empty() && self.gone.is_empty()) {
            if self.members.is_empty() && self.coming.is_empty() {
                // Its last member has gone, and the room and its numbers with it.
                self.gone.clear();
                self.size = 0;
                break;
            }
            if now.elapsed < self.told + self.update_delay() {
                // Whoever was told before looks after it.
                return NeedsUpdate(!std::mem::replace(&mut self.awaited, true));
            }
            self.told = now.elapsed;
            self.send_update(room, now.at, tally);
        }
        if self.members.is_empty() {
            self.seq = 0;
        }
        NeedsUpdate(false)
    }

    /// How long after a telling the next may come.
    fn update_delay(&self) -> Duration {
        let members = self.members.len() + self.coming.len();
        match u32::try_from(members.max(self.size)) {
            Ok(members) if members as usize > SMALL_ROOM => {
                (UPDATE_DELAY_PER_MEMBER * members).min(MAX_UPDATE_DELAY)
            }
            Ok(_) => Duration::ZERO,
            Err(_) => MAX_UPDATE_DELAY,
        }
    }

    /// Tells everybody what has happened; whoever cannot be told goes, too.
    fn send_update(&mut self, room: &str, ts: Timestamp, tally: &mut DeliveryTally) {
        // What was sent before is for those who were there.
        self.queue_gathered(tally);
        let (coming, gone) = (
            std::mem::take(&mut self.coming),
            std::mem::take(&mut self.gone),
        );
        let count = self.members.len() + coming.len();
        self.size = count;
        let presence = protocol::presence(count, room, ts);
        let mut news = BytesMut::with_capacity((coming.len() + gone.len() + 1) * EVENT_BYTES);
        for id in &gone {
            frame::append_text(&mut news, &protocol::leave(id, room, ts));
        }
        for member in &coming {
            frame::append_text(&mut news, &protocol::join(&member.id, room, ts));
        }
        frame::append_text(&mut news, &presence);
        let news = news.freeze();
        self.queue(tally, |outbox, _| outbox.queue(news.clone(), 1).map(|()| 0));
        for member in coming {
            let mut hello = BytesMut::with_capacity(2 * EVENT_BYTES);
            let welcome = protocol::welcome(&member.id, room, count, self.seq, ts);
            frame::append_text(&mut hello, &welcome);
            frame::append_text(&mut hello, &presence);
            match member.outbox.push(hello.freeze()) {
                Ok(()) => self.members.push(member),
                Err(_) => self.gone.push(member.id),
            }
        }
    }

    /// Encodes a message behind those that are gathered; returns whether they have become many by it.
    fn gather(&mut self, text: &str, sender: Option<&Arc<Client>>) -> bool {
        let gathered = &mut self.gathered;
        let (messages, start) = (gathered.messages, gathered.frames.len());
        frame::append_text(&mut gathered.frames, text);
        let end = gathered.frames.len();
        if let Some(sender) = sender {
            gathered.own.push(OwnMessage {
                client: Arc::clone(sender),
                number: messages,
                frame: start..end,
            });
        }
        gathered.messages += 1;
        self.rounds.due = true;
        let is_much =
            |messages: usize, bytes: usize| messages >= URGENT_MESSAGES || bytes >= URGENT_BYTES;
        !is_much(messages, start) && is_much(gathered.messages, end)
    }

    /// Puts the gathered messages into the queues of all members, but for each member's own.
    fn queue_gathered(&mut self, tally: &mut DeliveryTally) {
        let GatheredMessages {
            frames,
            messages,
            own,
        } = std::mem::take(&mut self.gathered);
        if messages == 0 {
            return;
        }
        let frames = frames.freeze();
        self.queue(tally, |outbox, client| {
            let own = own.iter().filter(|own| Arc::ptr_eq(&own.client, client));
            queue_others(outbox, &frames, messages, own)
        });
    }

    /// Has something put into the queue of every member by `put`, which returns how many messages that were; a member whose queue is full has gone.
    fn queue(
        &mut self,
        tally: &mut DeliveryTally,
        put: impl Fn(&Outbox, &Arc<Client>) -> Result<usize, OutboxClosed>,
    ) {
        let gone = &mut self.gone;
        self.members
            .retain(|member| match put(&member.outbox, &member.id) {
                Ok(messages) => {
                    tally.delivered += messages as u64;
                    true
                }
                Err(full) => {
                    tally.dropped += full.dropped as u64;
                    gone.push(Arc::clone(&member.id));
                    false
                }
            });
        self.rounds.due |= !self.members.is_empty();
    }

    /// Tells the members who has gone, if anybody has.
    fn send_departures(
        &mut self,
        room: &str,
        now: CurrentTime,
        tally: &mut DeliveryTally,
    ) -> NeedsUpdate {
        if self.gone.is_empty() {
            return NeedsUpdate(false);
        }
        self.update_or_schedule(room, now, tally)
    }
}

/// Queues messages but for a client's own, which are in their order; returns how many were queued.
fn queue_others<'a>(
    outbox: &Outbox,
    frames: &Bytes,
    messages: usize,
    own: impl Iterator<Item = &'a OwnMessage>,
) -> Result<usize, OutboxClosed> {
    let (mut start, mut number, mut queued) = (0, 0, 0);
    for own in own {
        if start < own.frame.start {
            outbox.queue(frames.slice(start..own.frame.start), own.number - number)?;
            queued += own.number - number;
        }
        (start, number) = (own.frame.end, own.number + 1);
    }
    if start < frames.len() {
        outbox.queue(frames.slice(start..), messages - number)?;
        queued += messages - number;
    }
    Ok(queued)
}
