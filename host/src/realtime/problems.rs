//! Errors of rooms, and ends of streams, as problems.

use super::RoomError;
use crate::deployments::serving::LookupError;
use crate::http::problem::{Code, Problem};
use crate::http::websocket::Close;

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

/// Returns the problem that a stream ends with where a socket has a close code; none at a stop, which is no fault of the stream's.
pub(super) fn stream_end_problem(close: Close) -> Option<Problem> {
    match close {
        Close::STOPPED => None,
        Close::DISABLED => Some(LookupError::Disabled.into()),
        _ => Some(Problem::new(
            Code::NotFound,
            "The page, its project or its backend was deleted or has expired, and the stream has ended with it.",
        )),
    }
}
