//! Numbers of rooms and sockets of a backend, as the rooms' service counts them.

use svc_base::ids::BackendId;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoomOccupancy {
    /// Rooms that have members.
    pub rooms: u64,
    /// Sockets in these rooms.
    pub sockets: u64,
}

/// Keeper of rooms, for the descriptions of their backends.
pub trait RoomOccupancySource: std::fmt::Debug + Send + Sync {
    /// Counts the rooms and sockets of a backend.
    fn occupancy(&self, backend: &BackendId) -> RoomOccupancy;
}
