//! Rooms: pages of one backend exchange messages over WebSockets. Live queries are in a folder
//! of their own.
//!
//! Nothing is stored. A room exists while it has members, on the server that has its backend. Events elsewhere that
//! end sockets (a backend is deleted, realtime is switched off, a page is disabled) arrive as changes that their transactions note.

mod client;
mod frames;
mod hub;
mod identified;
pub mod live;
mod meter;
mod metrics;
pub mod operations;
mod page;
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

/// Maximum length of a room's id and of a message's type, in characters.
const MAX_NAME_CHARS: usize = 64;

/// Whether a text is a valid room id: `^[A-Za-z0-9][A-Za-z0-9._~-]{0,63}$`.
pub fn is_room_id(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphanumeric()) && is_name(text)
}

/// Whether a text is a valid message type: `^[A-Za-z0-9._~-]{1,64}$`.
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
