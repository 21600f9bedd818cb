//! Operations on rooms.

use std::sync::Arc;

use super::Realtime;
use super::requests::{SendMessage, room_id};
use super::scope::AuthorizedRooms;
use super::views::{RoomList, SentView};
use crate::access::{Editor, Viewer};
use crate::http::extract::body_too_large;
use crate::http::problem::Problem;

/// Lists the rooms that have members.
///
/// # Errors
/// None: every caller with this scope may see them.
pub async fn list(
    realtime: Arc<Realtime>,
    at: AuthorizedRooms<Viewer>,
) -> Result<RoomList, Problem> {
    Ok(realtime.rooms(&at.at.backend.id).into())
}

/// Sends a message into a room, in the name of the backend's owner.
///
/// # Errors
/// `payload_too_large`, `invalid_room`, `invalid_request`.
pub async fn send(
    realtime: Arc<Realtime>,
    at: AuthorizedRooms<Editor>,
    (room, input): (String, SendMessage),
) -> Result<SentView, Problem> {
    let most = realtime.frame_bytes();
    if input.body_len() > most {
        return Err(body_too_large(most));
    }
    let room = room_id(&room)?;
    let seq = realtime.send(&at.at.backend.id, room, &input.checked()?);
    Ok(SentView { seq })
}
