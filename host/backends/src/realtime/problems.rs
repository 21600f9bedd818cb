//! Errors of rooms, and of frames, as problems.

use super::RoomError;
use super::frames::ClientFrameError;
use crate::backends::calls::requests::ParamsError;
use crate::http::problem::{Problem, ProblemCode};

impl From<RoomError> for Problem {
    fn from(error: RoomError) -> Self {
        match error {
            RoomError::Closed => Self::new(
                ProblemCode::NotFound,
                "The backend has no rooms: its owner can open them, by changing `realtime` to true.",
            ),
            RoomError::Full(why) => Self::new(ProblemCode::RateLimited, why),
        }
    }
}

impl From<&ClientFrameError> for Problem {
    fn from(error: &ClientFrameError) -> Self {
        Self::new(code_of(error), error.to_string())
    }
}

/// Returns the code of a frame's error.
pub(super) fn code_of(error: &ClientFrameError) -> ProblemCode {
    match error {
        ClientFrameError::NotJson(_) | ClientFrameError::Params(ParamsError::NotJson(_)) => {
            ProblemCode::InvalidJson
        }
        ClientFrameError::Invalid(_) | ClientFrameError::Params(ParamsError::Invalid(_)) => {
            ProblemCode::InvalidRequest
        }
        ClientFrameError::TooMany(_) => ProblemCode::RateLimited,
    }
}
