//! How many rooms and sockets a backend has just now, as the part that keeps rooms counts them.

use svc_base::ids::BackendId;

/// The rooms and sockets of a backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Rooms that somebody is in.
    pub rooms: u64,
    /// Sockets in them.
    pub sockets: u64,
}

/// Keeper of rooms, for the descriptions of their backends.
pub trait RoomKeeper: std::fmt::Debug + Send + Sync {
    /// Counts the rooms and sockets of a backend.
    fn occupancy(&self, backend: &BackendId) -> Occupancy;
}
