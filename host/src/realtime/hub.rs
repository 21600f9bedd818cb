//! All rooms of the server, by backend, in shards with separate locks.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::client::Client;
use super::numbers::Numbers;
use super::protocol::Message;
use super::quotas::{Most, Permit, Quotas, Reached};
use super::room::{Awaited, Life, Member, Moment, Page, Room, Summary, Tally};
use super::rounds;
use crate::config::Limits;
use crate::http::websocket::{Close, Outbox};
use svc_base::clock::Clock;
use svc_base::ids::BackendId;

const SHARDS: usize = 16;

/// All rooms of the server.
#[derive(Debug)]
pub(super) struct Hub {
    clock: Clock,
    pub(super) limits: Limits,
    shards: [Mutex<HashMap<BackendId, Arc<Rooms>>>; SHARDS],
    quotas: Arc<Quotas>,
    pub(super) numbers: Arc<Numbers>,
    /// Rooms whose members must be told about joins and leaves later.
    awaited: Mutex<Vec<Arc<Room>>>,
    /// Pages whose sockets may have to be closed, since the last check.
    suspects: Mutex<HashSet<Arc<str>>>,
    /// Number of sockets of each page.
    pages: Mutex<HashMap<Arc<str>, u64>>,
    /// Number of times that the rooms of any backend were closed.
    ends: AtomicU64,
    stopped: AtomicBool,
}

/// Rooms of one backend.
#[derive(Debug)]
struct Rooms {
    backend: BackendId,
    rooms: Mutex<HashMap<Arc<str>, Counted>>,
}

/// Room, with the number of sockets that have joined or are about to.
type Counted = (Arc<Room>, u64);

/// Registers a page for checks as long as a socket or stream of it exists.
#[derive(Debug)]
pub(super) struct PageHold {
    hub: Arc<Hub>,
    slug: Arc<str>,
}

/// Membership of a socket in a room, from before the upgrade until the socket is closed.
#[derive(Debug)]
pub(super) struct Ticket {
    hub: Arc<Hub>,
    rooms: Arc<Rooms>,
    pub(super) room: Arc<Room>,
    pub(super) page: Page,
    _hold: PageHold,
    _permit: Permit,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hub {
    pub(super) fn new(clock: Clock, limits: Limits) -> Self {
        let most = Most::new(&limits);
        Self {
            clock,
            limits,
            shards: Default::default(),
            quotas: Arc::new(Quotas::new(most)),
            numbers: Arc::default(),
            awaited: Mutex::default(),
            suspects: Mutex::default(),
            pages: Mutex::default(),
            ends: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
        }
    }

    pub(super) fn now(&self) -> Moment {
        Moment {
            elapsed: self.clock.elapsed(),
            at: self.clock.now(),
        }
    }

    fn shard(&self, backend: &BackendId) -> MutexGuard<'_, HashMap<BackendId, Arc<Rooms>>> {
        let mut hasher = DefaultHasher::new();
        backend.hash(&mut hasher);
        let shard = usize::try_from(hasher.finish() % SHARDS as u64).unwrap_or(0);
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
        page: Page,
    ) -> Result<Ticket, Reached> {
        let permit = self.quotas.take(client, backend, false)?;
        let mut shard = self.shard(&backend);
        let rooms = shard.entry(backend).or_insert_with(|| {
            Arc::new(Rooms {
                backend,
                rooms: Mutex::default(),
            })
        });
        let rooms = Arc::clone(rooms);
        let mut open = lock(&rooms.rooms);
        let most = self.limits.rooms_per_backend;
        if !open.contains_key(room) && open.len() as u64 >= most {
            return Err(Reached::Rooms(most));
        }
        let (found, sockets) = open
            .entry(room.into())
            .or_insert_with(|| (Arc::new(Room::new(room)), 0));
        *sockets += 1;
        let room = Arc::clone(found);
        drop(open);
        drop(shard);
        Ok(Ticket {
            hub: Arc::clone(self),
            rooms,
            room,
            _hold: self.hold(&page.slug),
            page,
            _permit: permit,
        })
    }

    /// Registers a page for checks.
    pub(super) fn hold(self: &Arc<Self>, slug: &Arc<str>) -> PageHold {
        *lock(&self.pages).entry(Arc::clone(slug)).or_default() += 1;
        PageHold {
            hub: Arc::clone(self),
            slug: Arc::clone(slug),
        }
    }

    /// Admits a connection that joins no room. A server stop does not wait for streams.
    ///
    /// # Errors
    /// The quota that is exhausted.
    pub(super) fn place(
        self: &Arc<Self>,
        backend: BackendId,
        client: IpAddr,
        slug: &Arc<str>,
        is_stream: bool,
    ) -> Result<(Permit, PageHold), Reached> {
        let permit = self.quotas.take(client, backend, is_stream)?;
        Ok((permit, self.hold(slug)))
    }

    /// Schedules a room's presence update.
    fn await_telling(&self, room: &Arc<Room>, Awaited(awaited): Awaited) {
        if awaited {
            lock(&self.awaited).push(Arc::clone(room));
        }
    }

    /// Runs an operation on a room, schedules its presence update if needed, and adds to the metrics.
    pub(super) fn with_room<T>(
        self: &Arc<Self>,
        room: &Arc<Room>,
        work: impl FnOnce(Moment, &mut Tally) -> (T, Awaited),
    ) -> T {
        let mut tally = Tally::default();
        let (done, awaited) = work(self.now(), &mut tally);
        self.await_telling(room, awaited);
        self.numbers.add(tally);
        rounds::start(self, room);
        done
    }

    /// Relays a message; returns its number, or 0 if the room is empty.
    pub(super) fn publish(
        self: &Arc<Self>,
        room: &Arc<Room>,
        message: &Message<'_>,
        sender: Option<&Arc<Client>>,
    ) -> u64 {
        self.numbers.messages.inc();
        self.with_room(room, |now, tally| room.publish(message, sender, now, tally))
    }

    /// Returns a room of a backend, if it exists.
    pub(super) fn room(&self, backend: &BackendId, room: &str) -> Option<Arc<Room>> {
        let rooms = self.shard(backend).get(backend).map(Arc::clone)?;
        let rooms = lock(&rooms.rooms);
        rooms.get(room).map(|(room, _)| Arc::clone(room))
    }

    /// Lists the rooms of a backend that have members, by id.
    pub(super) fn rooms(&self, backend: &BackendId) -> Vec<Summary> {
        let Some(rooms) = self.shard(backend).get(backend).map(Arc::clone) else {
            return Vec::new();
        };
        let rooms = lock(&rooms.rooms);
        let summaries = rooms.values().map(|(room, _)| room.summary());
        let mut summaries: Vec<_> = summaries.filter(|room| room.members > 0).collect();
        summaries.sort_by(|a, b| a.id.cmp(&b.id));
        summaries
    }

    /// Closes all sockets of a backend.
    pub(super) fn end(&self, backend: &BackendId, close: Close) {
        self.ends.fetch_add(1, Ordering::SeqCst);
        let Some(rooms) = self.shard(backend).remove(backend) else {
            return;
        };
        let rooms = lock(&rooms.rooms);
        rooms.values().for_each(|(room, _)| room.end(close));
    }

    /// Returns the number of times that the rooms of any backend were closed.
    pub(super) fn ends(&self) -> u64 {
        self.ends.load(Ordering::SeqCst)
    }

    /// Schedules a check whether a page's sockets must be closed.
    pub(super) fn suspect(&self, slug: &str) {
        let pages = lock(&self.pages);
        if let Some((slug, _)) = pages.get_key_value(slug) {
            lock(&self.suspects).insert(Arc::clone(slug));
        }
    }

    /// Takes the pages to check.
    pub(super) fn suspects(&self) -> HashSet<Arc<str>> {
        std::mem::take(&mut *lock(&self.suspects))
    }

    /// Closes the sockets of a page for which `why` returns a close code.
    pub(super) fn close_page(self: &Arc<Self>, slug: &str, why: &dyn Fn(&Page) -> Option<Close>) {
        for room in self.all() {
            self.with_room(&room, |now, tally| {
                ((), room.close_page(slug, why, now, tally))
            });
        }
    }

    /// Lists all rooms.
    fn all(&self) -> Vec<Arc<Room>> {
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
    pub(super) fn tell(self: &Arc<Self>) {
        let awaited = std::mem::take(&mut *lock(&self.awaited));
        for room in awaited {
            self.with_room(&room, |now, tally| ((), room.tell(now, tally)));
        }
    }

    /// Pings the members that are due, and removes those that have not answered.
    pub(super) fn ping(self: &Arc<Self>) {
        let every = Duration::from_secs(self.limits.ping_seconds);
        let within = Duration::from_secs(self.limits.pong_seconds);
        for room in self.all() {
            self.with_room(&room, |now, tally| {
                ((), room.ping(now, every, within, tally))
            });
        }
    }

    /// Updates the gauges of sockets and rooms.
    pub(super) fn count(&self) {
        let rooms = self.all();
        let open = rooms.iter().filter(|room| room.summary().members > 0);
        self.numbers.set(self.quotas.total(), open.count() as u64);
    }

    /// Closes all sockets, present and future; waits until they are gone.
    pub(super) async fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        for room in self.all() {
            room.end(Close::STOPPED);
        }
        self.quotas.none_left().await;
    }
}

impl Ticket {
    /// Joins the room.
    ///
    /// # Errors
    /// The close code, if the room has ended meanwhile.
    pub(super) fn join(
        &self,
        id: Arc<Client>,
        outbox: &Arc<Outbox>,
        life: &Arc<Life>,
    ) -> Result<(), Close> {
        let hub = &self.hub;
        let ping = Duration::from_secs(hub.limits.ping_seconds);
        let member = Member {
            id,
            outbox: Arc::clone(outbox),
            page: self.page.clone(),
            life: Arc::clone(life),
            next_ping: hub.clock.elapsed() + ping,
        };
        let joined = hub.with_room(&self.room, |now, tally| {
            match self.room.join(member, now, tally) {
                Ok(awaited) => (Ok(()), awaited),
                Err(close) => (Err(close), Awaited(false)),
            }
        });
        joined?;
        hub.numbers.opened.inc();
        // A stop that had visited this room before could not see this socket.
        if hub.stopped.load(Ordering::SeqCst) {
            return Err(Close::STOPPED);
        }
        // This check finds a page that ended while the connection was upgraded.
        hub.suspect(&self.page.slug);
        Ok(())
    }

    /// Leaves the room.
    pub(super) fn leave(&self, id: &Arc<Client>) {
        self.hub.with_room(&self.room, |now, tally| {
            ((), self.room.leave(id, now, tally))
        });
    }

    pub(super) fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut shard = self.hub.shard(&self.rooms.backend);
        let mut rooms = lock(&self.rooms.rooms);
        if let Some((_, sockets)) = rooms.get_mut(&self.room.id) {
            *sockets -= 1;
            if *sockets == 0 {
                rooms.remove(&self.room.id);
            }
        }
        let backend = &self.rooms.backend;
        let ours = |found: &Arc<Rooms>| Arc::ptr_eq(found, &self.rooms);
        if rooms.is_empty() && shard.get(backend).is_some_and(ours) {
            shard.remove(backend);
        }
    }
}

impl Drop for PageHold {
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
