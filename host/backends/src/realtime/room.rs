//! One room: its members, its messages, and their order.
//!
//! Messages are gathered in one shared buffer, which is put into the queues of all members and
//! written in a round (`rounds.rs`). Joins and leaves are sent at once in a small room, and at most once a second
//! in a large one: all of them in one shared buffer with one member count
//! at its end. A new client becomes a member with the next such update. So if a thousand people reload within a second, each of
//! them gets a welcome and one update, instead of a thousand joins and leaves.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::sync::Notify;

use super::client::RoomClient;
use super::page::SocketPage;
use super::protocol::{self, ClientMessage};
use crate::http::websocket::{CloseReason, Outbox, OutboxClosed, frame};
use svc_base::clock::Timestamp;

/// Rooms up to this number of members get presence updates at once.
const SMALL_ROOM: usize = 32;
/// Delay of presence updates per member of a larger room.
const UPDATE_DELAY_PER_MEMBER: Duration = Duration::from_millis(1);
/// Maximum delay; the specification allows two seconds, and the delivery takes a part of that.
const MAX_UPDATE_DELAY: Duration = Duration::from_secs(1);
/// Approximate size of an event, in bytes.
const EVENT_BYTES: usize = 128;
/// Number of messages that ends the pause between two rounds. With more, messages wait longer and a delivery costs less: 64 take 0.4 of a
/// plain relay's processor time at 8,000 messages a second, and 1.2 to 1.5 of its p99; 10 take 0.6 and 0.9.
const URGENT_MESSAGES: usize = 10;
/// Number of bytes that ends the pause.
const URGENT_BYTES: usize = 32 << 10;
/// Maximum number of messages in a buffer, and of bytes without the last message. Beyond it the next sender queues the buffer, if no round
/// has done so.
const MAX_GATHERED: (usize, usize) = (256, 4 * URGENT_BYTES);

/// Current time, on the monotonic clock and on the wall clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct CurrentTime {
    pub(super) elapsed: Duration,
    pub(super) at: Timestamp,
}

/// Last sign of life of a client, in milliseconds of the monotonic clock.
#[derive(Debug)]
pub(super) struct ClientLiveness(AtomicU64);

impl ClientLiveness {
    pub(super) fn new(now: Duration) -> Self {
        let life = Self(AtomicU64::new(0));
        life.record_alive(now);
        life
    }

    /// Records a sign of life, such as a pong.
    pub(super) fn record_alive(&self, now: Duration) {
        let millis = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        self.0.store(millis, Ordering::Relaxed);
    }

    pub(super) fn last_alive(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
}

/// Socket in a room.
#[derive(Debug)]
pub(super) struct RoomSocket {
    /// Client as the other members see it.
    pub(super) id: Arc<RoomClient>,
    pub(super) outbox: Arc<Outbox>,
    pub(super) page: SocketPage,
    pub(super) life: Arc<ClientLiveness>,
    /// Time of the next ping.
    pub(super) next_ping: Duration,
}

/// Room as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomSummary {
    pub id: Arc<str>,
    /// Number of sockets in the room.
    pub members: usize,
    /// Number of the last message.
    pub seq: u64,
}

/// Deliveries of an operation, for the metrics.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeliveryCounts {
    /// Messages that were queued.
    pub(super) delivered: u64,
    /// Messages that were dropped because a queue was full.
    pub(super) dropped: u64,
    /// Length of the longest queue.
    pub(super) longest: usize,
}

/// Room, which exists while a socket is in it or about to join.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) id: Arc<str>,
    state: Mutex<RoomContents>,
    /// Notified when many messages are gathered.
    pub(super) urgent: Notify,
}

#[derive(Debug, Default)]
struct RoomContents {
    /// Close code, once the room has ended.
    ended: Option<CloseReason>,
    /// Number of the last message.
    seq: u64,
    /// Members in the order of joining, which all lists of them have.
    members: Vec<RoomSocket>,
    /// New clients that the next presence update makes members.
    coming: Vec<RoomSocket>,
    /// Members that have left since the last presence update.
    gone: Vec<Arc<RoomClient>>,
    /// Time of the last presence update.
    told: Duration,
    /// Number of members at that time, so that a large room that empties quickly still counts as large.
    size: usize,
    /// Whether a presence update is scheduled.
    awaited: bool,
    gathered: MessageBuffer,
    rounds: WriteRounds,
}

/// Messages that are not queued yet.
#[derive(Debug, Default)]
struct MessageBuffer {
    /// Encoded frames, in order.
    frames: BytesMut,
    messages: usize,
    /// Messages of clients, which do not get their own.
    own: Vec<BufferedClientMessage>,
}

/// Message of a client in the buffer.
#[derive(Debug)]
struct BufferedClientMessage {
    client: Arc<RoomClient>,
    /// Number of messages before it.
    number: usize,
    /// Byte range of its frame.
    frame: Range<usize>,
}

/// State of the rounds in which queues are written.
#[derive(Debug, Default)]
struct WriteRounds {
    /// Whether something was queued since the last round began.
    due: bool,
    /// Whether a task runs rounds.
    under_way: bool,
}

/// Whether the caller must schedule a presence update.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NeedsPresenceUpdate(pub(super) bool);

impl Room {
    pub(super) fn new(id: &str) -> Self {
        Self {
            id: id.into(),
            state: Mutex::default(),
            urgent: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, RoomContents> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a socket.
    ///
    /// # Errors
    /// The close code, if the room has ended.
    pub(super) fn join(
        &self,
        member: RoomSocket,
        now: CurrentTime,
        tally: &mut DeliveryCounts,
    ) -> Result<NeedsPresenceUpdate, CloseReason> {
        let mut state = self.state();
        if let Some(close) = state.ended {
            return Err(close);
        }
        state.coming.push(member);
        Ok(state.update_or_schedule(&self.id, now, tally))
    }

    /// Removes a socket, if it is still in the room.
    pub(super) fn leave(
        &self,
        id: &Arc<RoomClient>,
        now: CurrentTime,
        tally: &mut DeliveryCounts,
    ) -> NeedsPresenceUpdate {
        let mut state = self.state();
        let is = |member: &RoomSocket| Arc::ptr_eq(&member.id, id);
        if let Some(at) = state.coming.iter().position(is) {
            // The other members were not told of the client, so they are not told that it left.
            state.coming.remove(at);
        } else if let Some(at) = state.members.iter().position(is) {
            state.members.remove(at);
            state.gone.push(Arc::clone(id));
        }
        state.update_or_schedule(&self.id, now, tally)
    }

    /// Relays a message to all members except the sender; returns its number, or 0 if the room is empty.
    pub(super) fn publish(
        &self,
        message: &ClientMessage<'_>,
        sender: Option<&Arc<RoomClient>>,
        now: CurrentTime,
        tally: &mut DeliveryCounts,
    ) -> (u64, NeedsPresenceUpdate) {
        let mut state = self.state();
        if state.members.is_empty() {
            return (0, NeedsPresenceUpdate(false));
        }
        state.seq += 1;
        let seq = state.seq;
        let parts = (message.kind.as_ref(), message.data);
        let text = protocol::message_event(parts, sender.map(|id| &**id), &self.id, now.at, seq);
        if state.buffer_message(&text, sender) {
            self.urgent.notify_one();
        }
        let MessageBuffer {
            messages, frames, ..
        } = &state.gathered;
        if *messages < MAX_GATHERED.0 && frames.len() < MAX_GATHERED.1 {
            return (seq, NeedsPresenceUpdate(false));
        }
        state.queue_buffered(tally);
        (seq, state.send_departures(&self.id, now, tally))
    }

    /// Sends the scheduled presence update, if it is due; returns whether it must be scheduled again.
    pub(super) fn send_updates(
        &self,
        now: CurrentTime,
        tally: &mut DeliveryCounts,
    ) -> NeedsPresenceUpdate {
        let mut state = self.state();
        state.awaited = false;
        state.update_or_schedule(&self.id, now, tally)
    }

    /// Pings the members that are due, and removes those that have not answered.
    pub(super) fn ping(
        &self,
        now: CurrentTime,
        every: Duration,
        within: Duration,
        tally: &mut DeliveryCounts,
    ) -> NeedsPresenceUpdate {
        let mut state = self.state();
        let state = &mut *state;
        state.queue_buffered(tally);
        let gone = &mut state.gone;
        state.members.retain_mut(|member| {
            if now.elapsed.saturating_sub(member.life.last_alive()) >= within {
                member.outbox.close(CloseReason::SILENT);
                gone.push(Arc::clone(&member.id));
                return false;
            }
            if now.elapsed >= member.next_ping {
                member.next_ping = now.elapsed + every;
                // A closed outbox drops the frame.
                let _ = member.outbox.push(frame::ping_frame());
            }
            true
        });
        state.send_departures(&self.id, now, tally)
    }

    /// Ends the room: closes all sockets, and refuses new ones.
    pub(super) fn end(&self, close: CloseReason) {
        let mut state = self.state();
        // Messages that were sent before the end are still delivered.
        state.queue_buffered(&mut DeliveryCounts::default());
        state.ended = Some(close);
        state.gone.clear();
        let members = std::mem::take(&mut state.members).into_iter();
        let coming = std::mem::take(&mut state.coming);
        drop(state);
        members.chain(coming).for_each(|m| m.outbox.close(close));
    }

    /// Closes the sockets for whose page `why` returns a close code.
    pub(super) fn close_pages(
        &self,
        why: &dyn Fn(&SocketPage) -> Option<CloseReason>,
        now: CurrentTime,
        tally: &mut DeliveryCounts,
    ) -> NeedsPresenceUpdate {
        let mut state = self.state();
        let state = &mut *state;
        state.queue_buffered(tally);
        let gone = &mut state.gone;
        let close = |member: &RoomSocket| {
            let close = why(&member.page);
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

    /// Whether the caller must start rounds, because something was queued and no task runs.
    pub(super) fn try_start_rounds(&self) -> bool {
        let rounds = &mut self.state().rounds;
        rounds.due && !std::mem::replace(&mut rounds.under_way, true)
    }

    /// Begins a round: returns the outboxes to write, or `None` if nothing was queued, which ends the rounds.
    pub(super) fn begin_round(
        &self,
        now: CurrentTime,
        tally: &mut DeliveryCounts,
    ) -> (Option<Vec<Arc<Outbox>>>, NeedsPresenceUpdate) {
        let mut state = self.state();
        // This round writes what is queued here: that asks for no other.
        state.queue_buffered(tally);
        let awaited = state.send_departures(&self.id, now, tally);
        if !std::mem::take(&mut state.rounds.due) {
            state.rounds.under_way = false;
            return (None, awaited);
        }
        let outboxes = state.members.iter().map(|member| &member.outbox);
        (Some(outboxes.map(Arc::clone).collect()), awaited)
    }

    /// Returns the room as its owner sees it.
    pub(super) fn summary(&self) -> RoomSummary {
        let state = self.state();
        RoomSummary {
            id: Arc::clone(&self.id),
            members: state.members.len() + state.coming.len(),
            seq: state.seq,
        }
    }
}

impl RoomContents {
    /// Sends a presence update, or schedules it.
    fn update_or_schedule(
        &mut self,
        room: &str,
        now: CurrentTime,
        tally: &mut DeliveryCounts,
    ) -> NeedsPresenceUpdate {
        while !(self.coming.is_empty() && self.gone.is_empty()) {
            if self.members.is_empty() && self.coming.is_empty() {
                // The last member has left, and the room starts over.
                self.gone.clear();
                self.size = 0;
                break;
            }
            if now.elapsed < self.told + self.update_delay() {
                // An update that is scheduled already will send this.
                return NeedsPresenceUpdate(!std::mem::replace(&mut self.awaited, true));
            }
            self.told = now.elapsed;
            self.send_update(room, now.at, tally);
        }
        if self.members.is_empty() {
            self.seq = 0;
        }
        NeedsPresenceUpdate(false)
    }

    /// Returns the least time between two presence updates.
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

    /// Sends a presence update to all members; removes members whose queue is full.
    fn send_update(&mut self, room: &str, ts: Timestamp, tally: &mut DeliveryCounts) {
        // Earlier messages go only to the members at that time.
        self.queue_buffered(tally);
        let (coming, gone) = (
            std::mem::take(&mut self.coming),
            std::mem::take(&mut self.gone),
        );
        let count = self.members.len() + coming.len();
        self.size = count;
        let presence = frame::text_frame(&protocol::presence_event(count, room, ts));
        let rest = self.welcome_rest(&coming, room, ts);
        let mut news = BytesMut::with_capacity((coming.len() + gone.len() + 1) * EVENT_BYTES);
        for id in &gone {
            frame::append_text(&mut news, &protocol::leave_event(id, room, ts));
        }
        for member in &coming {
            frame::append_text(&mut news, &protocol::join_event(&member.id, room, ts));
        }
        news.extend_from_slice(&presence);
        let news = news.freeze();
        self.queue(tally, |outbox, _| outbox.queue(news.clone(), 1).map(|()| 0));
        for member in coming {
            let start = protocol::welcome_start(&member.id);
            let [start, rest, end] = frame::text_frame_parts(&start, &rest, protocol::WELCOME_END);
            let hello = [start, rest, end, presence.clone()];
            match member.outbox.push_parts(hello) {
                Ok(()) => self.members.push(member),
                Err(_) => self.gone.push(member.id),
            }
        }
    }

    /// Returns what is the same in the welcomes of all new members, with the list of all members.
    fn welcome_rest(&self, coming: &[RoomSocket], room: &str, ts: Timestamp) -> Bytes {
        if coming.is_empty() {
            return Bytes::new();
        }
        let all = self.members.iter().chain(coming);
        let list = protocol::member_list(all.clone().map(|member| &*member.id));
        protocol::welcome_rest((all.count(), &list), room, self.seq, ts).into()
    }

    /// Appends a message to the buffer; returns whether the buffer has just reached the size that ends a pause.
    fn buffer_message(&mut self, text: &str, sender: Option<&Arc<RoomClient>>) -> bool {
        let gathered = &mut self.gathered;
        let (messages, start) = (gathered.messages, gathered.frames.len());
        frame::append_text(&mut gathered.frames, text);
        let end = gathered.frames.len();
        if let Some(sender) = sender {
            gathered.own.push(BufferedClientMessage {
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

    /// Queues the gathered messages for all members, without each member's own.
    fn queue_buffered(&mut self, tally: &mut DeliveryCounts) {
        let MessageBuffer {
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

    /// Runs `put` for the queue of every member; it returns the number of queued messages. Removes members whose queue is full.
    fn queue(
        &mut self,
        tally: &mut DeliveryCounts,
        put: impl Fn(&Outbox, &Arc<RoomClient>) -> Result<usize, OutboxClosed>,
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

    /// Sends a presence update if members have left.
    fn send_departures(
        &mut self,
        room: &str,
        now: CurrentTime,
        tally: &mut DeliveryCounts,
    ) -> NeedsPresenceUpdate {
        if self.gone.is_empty() {
            return NeedsPresenceUpdate(false);
        }
        self.update_or_schedule(room, now, tally)
    }
}

/// Queues messages without a client's own, which are in order; returns how many were queued.
fn queue_others<'a>(
    outbox: &Outbox,
    frames: &Bytes,
    messages: usize,
    own: impl Iterator<Item = &'a BufferedClientMessage>,
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

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    /// Opens a connection on loopback; returns its outbox and the client's end.
    async fn outbox_on_loopback(most: usize) -> (Outbox, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let client = TcpStream::connect(address).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        (Outbox::over_tcp(server, most), client)
    }

    #[tokio::test]
    async fn a_message_takes_one_round() {
        let now = CurrentTime {
            elapsed: Duration::ZERO,
            at: Timestamp::parse("2026-11-20T12:00:00Z").unwrap(),
        };
        let (outbox, _client) = outbox_on_loopback(32).await;
        let member = RoomSocket {
            id: Arc::new(RoomClient::anonymous("ada")),
            outbox: Arc::new(outbox),
            page: SocketPage {
                slug: "page".into(),
                id: "00000000-0000-7000-8000-000000000001".parse().unwrap(),
                domain: None,
            },
            life: Arc::new(ClientLiveness::new(now.elapsed)),
            next_ping: Duration::MAX,
        };
        let (room, mut tally) = (Room::new("lobby"), DeliveryCounts::default());
        assert_eq!(
            room.join(member, now, &mut tally),
            Ok(NeedsPresenceUpdate(false))
        );
        assert!(!room.try_start_rounds(), "a welcome is written by itself");
        let message = ClientMessage {
            kind: Cow::Borrowed("chat"),
            data: "1",
            client_message_id: None,
        };
        for seq in 1..=2 {
            let sent = room.publish(&message, None, now, &mut tally);
            assert_eq!(sent, (seq, NeedsPresenceUpdate(false)));
            assert!(room.try_start_rounds());
            let (outboxes, _) = room.begin_round(now, &mut tally);
            assert_eq!(outboxes.map(|all| all.len()), Some(1));
            assert_eq!(tally.delivered, seq);
            let (outboxes, _) = room.begin_round(now, &mut tally);
            assert!(outboxes.is_none(), "nothing was sent since");
        }
    }
}
