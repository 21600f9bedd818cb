//! One room: who is in it, what they are told, and in which order.
//!
//! A message is put into the queue of every member at once; what waits in the queues is written in rounds (`rounds.rs`). Who came and who went is told in pieces: at once in a small room, at most once a second
//! in a large one. Everything that happened in between goes to each member as one piece of shared bytes with one count
//! at its end, and whoever came is a member from that telling on. So a thousand people who reload within a second cost each of
//! them a welcome and one piece, instead of a thousand joins and leaves each as they happen.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::sync::Notify;

use super::client::Client;
use super::protocol::{self, Message};
use crate::http::websocket::{Close, Outbox, frame};
use svc_base::clock::Timestamp;
use svc_base::ids::DeploymentId;

/// A room of so many members is told at once.
const SMALL: usize = 32;
/// How much longer each member of a larger room lets it wait.
const WAIT: Duration = Duration::from_millis(1);
/// The longest wait; what is right "within two seconds" has one more for the rest of the way.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Size of an event, about, in bytes.
const EVENT: usize = 128;

/// Now: on the clock that never runs backwards, and on the wall.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
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
pub(super) struct Life(AtomicU64);

impl Life {
    pub(super) fn new(now: Duration) -> Self {
        let life = Self(AtomicU64::new(0));
        life.shown(now);
        life
    }

    /// Notes a pong.
    pub(super) fn shown(&self, now: Duration) {
        let millis = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        self.0.store(millis, Ordering::Relaxed);
    }

    pub(super) fn last(&self) -> Duration {
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
    pub(super) life: Arc<Life>,
    /// When it is pinged next.
    pub(super) next_ping: Duration,
}

/// A room as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Identifier of the room.
    pub id: Arc<str>,
    /// How many sockets are in it.
    pub members: usize,
    /// The number of its last message.
    pub seq: u64,
}

/// Tally of telling members, for the numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
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
    /// Told when a queue becomes nearly full.
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
    rounds: Rounds,
}

/// State of the rounds in which queues are written.
#[derive(Debug, Default)]
struct Rounds {
    /// Whether something was queued since the last round began.
    due: bool,
    /// Whether a task makes rounds.
    under_way: bool,
    /// Pieces in a queue that do not wait for the end of a pause.
    nearly_full: usize,
    /// Whether a queue has become as long as that.
    is_urgent: bool,
}

/// Whether members are yet to be told, by whoever looks after that.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Awaited(pub(super) bool);

impl Room {
    /// Makes a room whose members have queues of so many pieces.
    pub(super) fn new(id: &str, queue: u64) -> Self {
        let queue = usize::try_from(queue).unwrap_or(usize::MAX);
        let rounds = Rounds {
            nearly_full: queue - queue / 4,
            ..Rounds::default()
        };
        Self {
            id: id.into(),
            state: Mutex::new(State {
                rounds,
                ..State::default()
            }),
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
        now: Moment,
        tally: &mut Tally,
    ) -> Result<Awaited, Close> {
        let mut state = self.state();
        if let Some(close) = state.ended {
            return Err(close);
        }
        state.coming.push(member);
        Ok(state.changed(&self.id, now, tally))
    }

    /// Lets a socket go, if it is there still.
    pub(super) fn leave(&self, id: &Arc<Client>, now: Moment, tally: &mut Tally) -> Awaited {
        let mut state = self.state();
        let is = |member: &Member| Arc::ptr_eq(&member.id, id);
        if let Some(at) = state.coming.iter().position(is) {
            // Nobody knows that it came, so nobody needs to know that it went.
            state.coming.swap_remove(at);
        } else if let Some(at) = state.members.iter().position(is) {
            state.members.swap_remove(at);
            state.gone.push(Arc::clone(id));
        }
        state.changed(&self.id, now, tally)
    }

    /// Relays a message to everybody but its sender; returns its number, 0 if nobody is there.
    pub(super) fn publish(
        &self,
        message: &Message<'_>,
        sender: Option<&Arc<Client>>,
        now: Moment,
        tally: &mut Tally,
    ) -> (u64, Awaited) {
        let mut state = self.state();
        if state.members.is_empty() {
            return (0, Awaited(false));
        }
        state.seq += 1;
        let seq = state.seq;
        let parts = (message.kind.as_ref(), message.data);
        let text = protocol::message(parts, sender.map(|id| &**id), &self.id, now.at, seq);
        let frame = frame::text_frame(&text);
        let is_sender = |member: &Member| sender.is_some_and(|id| Arc::ptr_eq(&member.id, id));
        state.send(&frame, is_sender, tally);
        if state.gone.is_empty() {
            return (seq, Awaited(false));
        }
        (seq, state.changed(&self.id, now, tally))
    }

    /// Tells the members what they have not been told, if it is time; returns whether it is still to come.
    pub(super) fn tell(&self, now: Moment, tally: &mut Tally) -> Awaited {
        let mut state = self.state();
        state.awaited = false;
        state.changed(&self.id, now, tally)
    }

    /// Pings those whose turn it is, and lets go those who have not answered.
    pub(super) fn ping(
        &self,
        now: Moment,
        every: Duration,
        within: Duration,
        tally: &mut Tally,
    ) -> Awaited {
        let mut state = self.state();
        let state = &mut *state;
        let gone = &mut state.gone;
        state.members.retain_mut(|member| {
            if now.elapsed.saturating_sub(member.life.last()) >= within {
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
        if state.gone.is_empty() {
            return Awaited(false);
        }
        state.changed(&self.id, now, tally)
    }

    /// Ends the room: closes all its sockets, and lets nobody in any more.
    pub(super) fn end(&self, close: Close) {
        let mut state = self.state();
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
        now: Moment,
        tally: &mut Tally,
    ) -> Awaited {
        let mut state = self.state();
        let state = &mut *state;
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
        state.changed(&self.id, now, tally)
    }

    /// Whether something is queued for which nobody makes rounds yet: the caller must.
    pub(super) fn starts_rounds(&self) -> bool {
        let rounds = &mut self.state().rounds;
        if std::mem::take(&mut rounds.is_urgent) {
            self.urgent.notify_one();
        }
        rounds.due && !std::mem::replace(&mut rounds.under_way, true)
    }

    /// Begins a round: returns the outboxes to write, or `None` if nothing was queued, by which rounds end.
    pub(super) fn begin_round(&self) -> Option<Vec<Arc<Outbox>>> {
        let mut state = self.state();
        if !std::mem::take(&mut state.rounds.due) {
            state.rounds.under_way = false;
            return None;
        }
        let outboxes = state.members.iter().map(|member| &member.outbox);
        Some(outboxes.map(Arc::clone).collect())
    }

    /// The room as its owner sees it.
    pub(super) fn summary(&self) -> Summary {
        let state = self.state();
        Summary {
            id: Arc::clone(&self.id),
            members: state.members.len() + state.coming.len(),
            seq: state.seq,
        }
    }
}

impl State {
    /// Tells the members who came and who went, or has that wait for others.
    fn changed(&mut self, room: &str, now: Moment, tally: &mut Tally) -> Awaited {
        while !(self.coming.is_empty() && self.gone.is_empty()) {
            if self.members.is_empty() && self.coming.is_empty() {
                // Its last member has gone, and the room and its numbers with it.
                self.gone.clear();
                self.size = 0;
                break;
            }
            if now.elapsed < self.told + self.wait() {
                // Whoever was told before looks after it.
                return Awaited(!std::mem::replace(&mut self.awaited, true));
            }
            self.told = now.elapsed;
            self.tell(room, now.at, tally);
        }
        if self.members.is_empty() {
            self.seq = 0;
        }
        Awaited(false)
    }

    /// How long after a telling the next may come.
    fn wait(&self) -> Duration {
        let members = self.members.len() + self.coming.len();
        match u32::try_from(members.max(self.size)) {
            Ok(members) if members as usize > SMALL => (WAIT * members).min(LONGEST_WAIT),
            Ok(_) => Duration::ZERO,
            Err(_) => LONGEST_WAIT,
        }
    }

    /// Tells everybody what has happened; whoever cannot be told goes, too.
    fn tell(&mut self, room: &str, ts: Timestamp, tally: &mut Tally) {
        let (coming, gone) = (
            std::mem::take(&mut self.coming),
            std::mem::take(&mut self.gone),
        );
        let count = self.members.len() + coming.len();
        self.size = count;
        let presence = protocol::presence(count, room, ts);
        let mut news = BytesMut::with_capacity((coming.len() + gone.len() + 1) * EVENT);
        for id in &gone {
            frame::append_text(&mut news, &protocol::leave(id, room, ts));
        }
        for member in &coming {
            frame::append_text(&mut news, &protocol::join(&member.id, room, ts));
        }
        frame::append_text(&mut news, &presence);
        let delivered = tally.delivered;
        self.send(&news.freeze(), |_| false, tally);
        for member in coming {
            let mut hello = BytesMut::with_capacity(2 * EVENT);
            let welcome = protocol::welcome(&member.id, room, count, self.seq, ts);
            frame::append_text(&mut hello, &welcome);
            frame::append_text(&mut hello, &presence);
            match member.outbox.push(hello.freeze()) {
                Ok(_) => self.members.push(member),
                Err(_) => self.gone.push(member.id),
            }
        }
        // Only messages count.
        tally.delivered = delivered;
    }

    /// Puts shared bytes into the queue of everybody but those left out; whose queue is full has gone.
    fn send(&mut self, piece: &Bytes, is_left_out: impl Fn(&Member) -> bool, tally: &mut Tally) {
        let (gone, rounds) = (&mut self.gone, &mut self.rounds);
        self.members.retain(|member| {
            if is_left_out(member) {
                return true;
            }
            match member.outbox.queue(piece.clone()) {
                Ok(length) => {
                    rounds.due = true;
                    rounds.is_urgent |= length == rounds.nearly_full;
                    tally.delivered += 1;
                    tally.longest = tally.longest.max(length);
                    true
                }
                Err(full) => {
                    tally.dropped += full.dropped as u64;
                    gone.push(Arc::clone(&member.id));
                    false
                }
            }
        });
    }
}
