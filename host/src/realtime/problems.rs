//! Errors of rooms, and of frames, as problems.

use super::RoomError;
use super::frames::FrameError;
use crate::backends::calls::requests::ParamsError;
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

impl From<&FrameError> for Problem {
    fn from(error: &FrameError) -> Self {
        Self::new(code_of(error), error.to_string())
    }
}

/// Returns the code of a frame's error.
pub(super) fn code_of(error: &FrameError) -> Code {
    match error {
        FrameError::NotJson(_) | FrameError::Params(ParamsError::NotJson(_)) => Code::InvalidJson,
        FrameError::Invalid(_) | FrameError::Params(ParamsError::Invalid(_)) => {
            Code::InvalidRequest
        }
        FrameError::TooMany(_) => Code::RateLimited,
    }
}
