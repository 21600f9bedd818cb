//! Errors of rooms as problems.

use super::RoomError;
use crate::http::problem::{Code, Problem};

impl From<RoomError> for Problem {
    fn from(error: RoomError) -> Self {
        match error {
            RoomError::Closed => Self::new(
                Code::NotFound,
                "The backend has no rooms: its owner can open them, by changing `realtime` to true.",
            ),
            RoomError::Full(why) => Self::new(Code::RateLimited, why),
        }
    }
}
