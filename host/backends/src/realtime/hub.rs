//! All rooms of the server, by backend, in shards with separate locks.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::client::RoomClient;
use super::metrics::RoomMetrics;
use super::page::SocketPage;
use super::protocol::ClientMessage;
use super::quotas::{SocketLimits, SocketPermit, SocketQuotaReached, SocketQuotas};
use super::room::{
    ClientLiveness, CurrentTime, DeliveryCounts, NeedsPresenceUpdate, Room, RoomSocket, RoomSummary,
};
use super::rounds;
use crate::config::Limits;
use crate::http::websocket::{CloseReason, Outbox};
use svc_base::clock::Clock;
use svc_base::ids::BackendId;

const ROOM_SHARDS: usize = 16;

/// All rooms of the server.
#[derive(Debug)]
pub(super) struct RoomHub {
    clock: Clock,
    pub(super) limits: Limits,
    shards: [Mutex<HashMap<BackendId, Arc<BackendRooms>>>; ROOM_SHARDS],
    quotas: Arc<SocketQuotas>,
    pub(super) metrics: Arc<RoomMetrics>,
    /// Rooms whose members must be told about joins and leaves later.
    due_rooms: Mutex<Vec<Arc<Room>>>,
    /// Pages whose sockets may have to be closed, since the last check.
    pages_to_check: Mutex<HashSet<Arc<str>>>,
    /// Number of sockets of each page.
    pages: Mutex<HashMap<Arc<str>, u64>>,
    /// Number of times that the rooms of any backend were closed.
    ends: AtomicU64,
    stopped: AtomicBool,
}

/// Rooms of one backend.
#[derive(Debug)]
struct BackendRooms {
    backend: BackendId,
    rooms: Mutex<HashMap<Arc<str>, CountedRoom>>,
}

/// Room, with the number of sockets that have joined or are about to.
type CountedRoom = (Arc<Room>, u64);

/// Registers a page for checks as long as a socket or stream of it exists.
#[derive(Debug)]
pub(super) struct PageCheckRegistration {
    hub: Arc<RoomHub>,
    slug: Arc<str>,
}

/// Membership of a socket in a room, from before the upgrade until the socket is closed.
#[derive(Debug)]
pub(super) struct RoomMembership {
    hub: Arc<RoomHub>,
    rooms: Arc<BackendRooms>,
    pub(super) room: Arc<Room>,
    pub(super) page: SocketPage,
    _hold: PageCheckRegistration,
    _permit: SocketPermit,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RoomHub {
    pub(super) fn new(clock: Clock, limits: Limits) -> Self {
        let most = SocketLimits::new(&limits);
        Self {
            clock,
            limits,
            shards: Default::default(),
            quotas: Arc::new(SocketQuotas::new(most)),
            metrics: Arc::default(),
            due_rooms: Mutex::default(),
            pages_to_check: Mutex::default(),
            pages: Mutex::default(),
            ends: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
        }
    }

    pub(super) fn now(&self) -> CurrentTime {
        CurrentTime {
            elapsed: self.clock.elapsed(),
            at: self.clock.now(),
        }
    }

    fn lock_shard(
        &self,
        backend: &BackendId,
    ) -> MutexGuard<'_, HashMap<BackendId, Arc<BackendRooms>>> {
        let mut hasher = DefaultHasher::new();
        backend.hash(&mut hasher);
        let shard = usize::try_from(hasher.finish() % ROOM_SHARDS as u64).unwrap_or(0);
        lock(&self.shards[shard])
    }

    /// Admits a socket to a room before its upgrade. From now on the socket is closed when the backend or the page ends.
    ///
    /// # Errors
    /// The quota that is exhausted.
    pub(super) fn admit(
        self: &Arc<Self>,
        backend: BackendId,
        client: IpAddr,
        room: &str,
        page: SocketPage,
    ) -> Result<RoomMembership, SocketQuotaReached> {
        let permit = self.quotas.acquire(client, backend, false)?;
        let mut shard = self.lock_shard(&backend);
        let rooms = shard.entry(backend).or_insert_with(|| {
            Arc::new(BackendRooms {
                backend,
                rooms: Mutex::default(),
            })
        });
        let rooms = Arc::clone(rooms);
        let mut open = lock(&rooms.rooms);
        let most = self.limits.rooms_per_backend;
        if !open.contains_key(room) && open.len() as u64 >= most {
            return Err(SocketQuotaReached::Rooms(most));
        }
        let (found, sockets) = open
            .entry(room.into())
            .or_insert_with(|| (Arc::new(Room::new(room)), 0));
        *sockets += 1;
        let room = Arc::clone(found);
        drop(open);
        drop(shard);
        Ok(RoomMembership {
            hub: Arc::clone(self),
            rooms,
            room,
            _hold: self.watch_page(&page.slug),
            page,
            _permit: permit,
        })
    }

    /// Registers a page for checks.
    pub(super) fn watch_page(self: &Arc<Self>, slug: &Arc<str>) -> PageCheckRegistration {
        *lock(&self.pages).entry(Arc::clone(slug)).or_default() += 1;
        PageCheckRegistration {
            hub: Arc::clone(self),
            slug: Arc::clone(slug),
        }
    }

    /// Admits a connection that joins no room. A server stop does not wait for streams.
    ///
    /// # Errors
    /// The quota that is exhausted.
    pub(super) fn admit_connection(
        self: &Arc<Self>,
        backend: BackendId,
        client: IpAddr,
        slug: &Arc<str>,
        is_stream: bool,
    ) -> Result<(SocketPermit, PageCheckRegistration), SocketQuotaReached> {
        let permit = self.quotas.acquire(client, backend, is_stream)?;
        Ok((permit, self.watch_page(slug)))
    }

    /// Schedules a room's presence update.
    fn schedule_update(&self, room: &Arc<Room>, NeedsPresenceUpdate(awaited): NeedsPresenceUpdate) {
        if awaited {
            lock(&self.due_rooms).push(Arc::clone(room));
        }
    }

    /// Runs an operation on a room, schedules its presence update if needed, and adds to the metrics.
    pub(super) fn with_room<T>(
        self: &Arc<Self>,
        room: &Arc<Room>,
        work: impl FnOnce(CurrentTime, &mut DeliveryCounts) -> (T, NeedsPresenceUpdate),
    ) -> T {
        let mut tally = DeliveryCounts::default();
        let (done, awaited) = work(self.now(), &mut tally);
        self.schedule_update(room, awaited);
        self.metrics.add(tally);
        rounds::start_rounds(self, room);
        done
    }

    /// Relays a message; returns its number, or 0 if the room is empty.
    pub(super) fn publish(
        self: &Arc<Self>,
        room: &Arc<Room>,
        message: &ClientMessage<'_>,
        sender: Option<&Arc<RoomClient>>,
    ) -> u64 {
        self.metrics.messages.inc();
        self.with_room(room, |now, tally| room.publish(message, sender, now, tally))
    }

    /// Returns a room of a backend, if it exists.
    pub(super) fn room(&self, backend: &BackendId, room: &str) -> Option<Arc<Room>> {
        let rooms = self.lock_shard(backend).get(backend).map(Arc::clone)?;
        let rooms = lock(&rooms.rooms);
        rooms.get(room).map(|(room, _)| Arc::clone(room))
    }

    /// Lists the rooms of a backend that have members, by id.
    pub(super) fn rooms(&self, backend: &BackendId) -> Vec<RoomSummary> {
        let Some(rooms) = self.lock_shard(backend).get(backend).map(Arc::clone) else {
            return Vec::new();
        };
        let rooms = lock(&rooms.rooms);
        let summaries = rooms.values().map(|(room, _)| room.summary());
        let mut summaries: Vec<_> = summaries.filter(|room| room.members > 0).collect();
        summaries.sort_by(|a, b| a.id.cmp(&b.id));
        summaries
    }

    /// Closes all sockets of a backend.
    pub(super) fn end(&self, backend: &BackendId, close: CloseReason) {
        self.ends.fetch_add(1, Ordering::SeqCst);
        let Some(rooms) = self.lock_shard(backend).remove(backend) else {
            return;
        };
        let rooms = lock(&rooms.rooms);
        rooms.values().for_each(|(room, _)| room.end(close));
    }

    /// Closes all sockets. Others may come.
    pub(super) fn end_all(&self, close: CloseReason) {
        for shard in &self.shards {
            let backends: Vec<BackendId> = lock(shard).keys().copied().collect();
            for backend in &backends {
                self.end(backend, close);
            }
        }
    }

    /// Returns the number of times that the rooms of any backend were closed.
    pub(super) fn room_close_count(&self) -> u64 {
        self.ends.load(Ordering::SeqCst)
    }

    /// Schedules a check whether a page's sockets must be closed.
    pub(super) fn schedule_check(&self, slug: &str) {
        let pages = lock(&self.pages);
        if let Some((slug, _)) = pages.get_key_value(slug) {
            lock(&self.pages_to_check).insert(Arc::clone(slug));
        }
    }

    /// Takes the pages to check.
    pub(super) fn take_scheduled_checks(&self) -> HashSet<Arc<str>> {
        std::mem::take(&mut *lock(&self.pages_to_check))
    }

    /// Closes the sockets for whose page `why` returns a close code.
    pub(super) fn close_pages(self: &Arc<Self>, why: &dyn Fn(&SocketPage) -> Option<CloseReason>) {
        for room in self.all_rooms() {
            self.with_room(&room, |now, tally| ((), room.close_pages(why, now, tally)));
        }
    }

    /// Lists all rooms.
    fn all_rooms(&self) -> Vec<Arc<Room>> {
        let mut all = Vec::new();
        for shard in &self.shards {
            for rooms in lock(shard).values() {
                all.extend(
                    lock(&rooms.rooms)
                        .values()
                        .map(|(room, _)| Arc::clone(room)),
                );
            }
        }
        all
    }

    /// Sends the presence updates that are due.
    pub(super) fn send_updates(self: &Arc<Self>) {
        let awaited = std::mem::take(&mut *lock(&self.due_rooms));
        for room in awaited {
            self.with_room(&room, |now, tally| ((), room.send_updates(now, tally)));
        }
    }

    /// Pings the members that are due, and removes those that have not answered.
    pub(super) fn ping(self: &Arc<Self>) {
        let every = Duration::from_secs(self.limits.ping_seconds);
        let within = Duration::from_secs(self.limits.pong_seconds);
        for room in self.all_rooms() {
            self.with_room(&room, |now, tally| {
                ((), room.ping(now, every, within, tally))
            });
        }
    }

    /// Updates the gauges of sockets and rooms.
    pub(super) fn count(&self) {
        let rooms = self.all_rooms();
        let open = rooms.iter().filter(|room| room.summary().members > 0);
        self.metrics
            .set_gauges(self.quotas.total(), open.count() as u64);
    }

    /// Closes all sockets, present and future; waits until they are gone.
    pub(super) async fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        for room in self.all_rooms() {
            room.end(CloseReason::STOPPED);
        }
        self.quotas.wait_until_none().await;
    }
}

impl RoomMembership {
    /// Joins the room.
    ///
    /// # Errors
    /// The close code, if the room has ended meanwhile.
    pub(super) fn join(
        &self,
        id: Arc<RoomClient>,
        outbox: &Arc<Outbox>,
        life: &Arc<ClientLiveness>,
    ) -> Result<(), CloseReason> {
        let hub = &self.hub;
        let ping = Duration::from_secs(hub.limits.ping_seconds);
        let member = RoomSocket {
            id,
            outbox: Arc::clone(outbox),
            page: self.page.clone(),
            life: Arc::clone(life),
            next_ping: hub.clock.elapsed() + ping,
        };
        let joined = hub.with_room(&self.room, |now, tally| {
            match self.room.join(member, now, tally) {
                Ok(awaited) => (Ok(()), awaited),
                Err(close) => (Err(close), NeedsPresenceUpdate(false)),
            }
        });
        joined?;
        hub.metrics.opened.inc();
        // A stop that had visited this room before could not see this socket.
        if hub.stopped.load(Ordering::SeqCst) {
            return Err(CloseReason::STOPPED);
        }
        // This check finds a page that ended while the connection was upgraded.
        hub.schedule_check(&self.page.slug);
        Ok(())
    }

    /// Leaves the room.
    pub(super) fn leave(&self, id: &Arc<RoomClient>) {
        self.hub.with_room(&self.room, |now, tally| {
            ((), self.room.leave(id, now, tally))
        });
    }

    pub(super) fn hub(&self) -> &Arc<RoomHub> {
        &self.hub
    }
}

impl Drop for RoomMembership {
    fn drop(&mut self) {
        let mut shard = self.hub.lock_shard(&self.rooms.backend);
        let mut rooms = lock(&self.rooms.rooms);
        if let Some((_, sockets)) = rooms.get_mut(&self.room.id) {
            *sockets -= 1;
            if *sockets == 0 {
                rooms.remove(&self.room.id);
            }
        }
        let backend = &self.rooms.backend;
        let ours = |found: &Arc<BackendRooms>| Arc::ptr_eq(found, &self.rooms);
        if rooms.is_empty() && shard.get(backend).is_some_and(ours) {
            shard.remove(backend);
        }
    }
}

impl Drop for PageCheckRegistration {
    fn drop(&mut self) {
        let mut pages = lock(&self.hub.pages);
        if let Some(count) = pages.get_mut(&self.slug) {
            *count -= 1;
            if *count == 0 {
                pages.remove(&self.slug);
            }
        }
    }
}
