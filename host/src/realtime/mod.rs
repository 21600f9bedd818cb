//! Rooms: pages of one backend talk to each other over WebSockets, for as long as they are open. Live queries stand beside
//! them, in a folder of their own.
//!
//! Nothing is kept. A room is there while somebody is in it, on the server that has its backend. What happens elsewhere and
//! ends sockets (a backend deleted, realtime switched off, a page disabled) arrives as a change that its transaction noted.

mod client;
mod frames;
mod hub;
mod identified;
pub mod live;
mod meter;
mod metrics;
pub mod operations;
mod problems;
pub mod protocol;
mod quotas;
pub mod requests;
mod room;
mod rounds;
pub mod routes;
pub mod scope;
mod service;
mod socket;
pub mod views;

pub use room::RoomSummary;
pub use service::{Realtime, RoomError};

/// The longest id of a room and the longest type of a message, in characters.
const MAX_NAME_CHARS: usize = 64;

/// Whether a text can be a room's id: `^[A-Za-z0-9][A-Za-z0-9._~-]{0,63}$`.
pub fn is_room_id(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphanumeric()) && is_name(text)
}

/// Whether a text can be a message's type: `^[A-Za-z0-9._~-]{1,64}$`.
pub fn is_message_type(text: &str) -> bool {
    !text.is_empty() && is_name(text)
}

fn is_name(text: &str) -> bool {
    let may = |byte: u8| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte);
    text.len() <= MAX_NAME_CHARS && text.bytes().all(may)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_and_types_have_names() {
        let longest = "x".repeat(64);
        let longer = "x".repeat(65);
        for (text, room, kind) in [
            ("a", true, true),
            ("Z9._~-", true, true),
            (longest.as_str(), true, true),
            (longer.as_str(), false, false),
            ("", false, false),
            (".a", false, true),
            ("-", false, true),
            ("a b", false, false),
            ("a/b", false, false),
            ("svc:join", false, false),
            ("é", false, false),
            ("a\n", false, false),
        ] {
            assert_eq!(is_room_id(text), room, "{text:?}");
            assert_eq!(is_message_type(text), kind, "{text:?}");
        }
    }
}
