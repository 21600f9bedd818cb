//! How many rooms and sockets a backend has just now, as the part that keeps rooms counts them.

use std::sync::OnceLock;

use svc_base::ids::BackendId;

/// The rooms and sockets of a backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Rooms that somebody is in.
    pub rooms: u64,
    /// Sockets in them.
    pub sockets: u64,
}

type CountFn = Box<dyn Fn(BackendId) -> Occupancy + Send + Sync>;

/// The way to count, which is told once.
#[derive(Default)]
pub(super) struct OccupancyCounter(OnceLock<CountFn>);

impl OccupancyCounter {
    pub(super) fn set(&self, count: impl Fn(BackendId) -> Occupancy + Send + Sync + 'static) {
        // The first stays: there is one keeper of rooms.
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
