//! Numbers of rooms and sockets of a backend, as the rooms' service counts them.

use std::sync::OnceLock;

use svc_base::ids::BackendId;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Rooms that have members.
    pub rooms: u64,
    /// Sockets in these rooms.
    pub sockets: u64,
}

type CountFn = Box<dyn Fn(BackendId) -> Occupancy + Send + Sync>;

/// Slot for the counting function, which is set once.
#[derive(Default)]
pub(super) struct OccupancyCounter(OnceLock<CountFn>);

impl OccupancyCounter {
    pub(super) fn set(&self, count: impl Fn(BackendId) -> Occupancy + Send + Sync + 'static) {
        // The first function stays, because there is only one rooms' service.
        let _ = self.0.set(Box::new(count));
    }

    pub(super) fn count(&self, backend: BackendId) -> Occupancy {
        self.0
            .get()
            .map_or_else(Occupancy::default, |count| count(backend))
    }
}

impl std::fmt::Debug for OccupancyCounter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Counter").finish_non_exhaustive()
    }
}
