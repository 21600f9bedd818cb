//! Views of rooms.

use serde::Serialize;
use utoipa::ToSchema;

use super::RoomSummary;

/// The rooms of a backend.
#[derive(Debug, Serialize, ToSchema)]
pub struct RoomList {
    /// Those that somebody is in, by id.
    pub rooms: Vec<RoomView>,
}

/// A room.
#[derive(Debug, Serialize, ToSchema)]
pub struct RoomView {
    /// Identifier by which its members joined the room.
    #[schema(example = "lobby")]
    id: String,
    /// How many sockets are in it.
    members: usize,
    /// The number of its last message.
    seq: u64,
}

/// A message that was sent.
#[derive(Debug, Serialize, ToSchema)]
pub struct SentView {
    /// Number of the message in the room; 0 if nobody is there.
    pub seq: u64,
}

impl From<Vec<RoomSummary>> for RoomList {
    fn from(rooms: Vec<RoomSummary>) -> Self {
        let rooms = rooms.into_iter().map(|room| RoomView {
            id: room.id.to_string(),
            members: room.members,
            seq: room.seq,
        });
        Self {
            rooms: rooms.collect(),
        }
    }
}
