//! Errors of uploads as problems.

use super::UploadError;
use super::quotas::UploadQuotaReached;
use crate::http::problem::{Problem, ProblemCode};

impl From<UploadError> for Problem {
    fn from(error: UploadError) -> Self {
        match error {
            UploadError::Request(problem) => *problem,
            UploadError::WrongType(media_type) => Self::new(
                ProblemCode::UnsupportedMediaType,
                format!("The file is recognised as {media_type}, which the action does not take. Nothing was kept."),
            )
            .with("media_type", media_type),
            UploadError::BadPicture(reason) => Self::new(
                ProblemCode::RenderFailed,
                format!("{reason} Nothing was kept: send a whole picture."),
            ),
            UploadError::Busy => Self::new(
                ProblemCode::CapacityReached,
                "No worker was free to look at the file. Try again in a minute.",
            ),
            UploadError::Unsupported => Self::new(
                ProblemCode::CapacityReached,
                "The renderer of this server knows no files of visitors. Its operator can install one that does.",
            ),
            UploadError::KeyUsed => Self::new(
                ProblemCode::IdempotencyConflict,
                "The Idempotency-Key was used for another upload. Use a new key for a new file.",
            ),
            UploadError::Quota(reached) => reached.into(),
            UploadError::File(error) => error.into(),
            UploadError::Backend(error) => error.into(),
            UploadError::Internal(error) => Self::internal(&format!("{error:#}")),
        }
    }
}

impl From<UploadQuotaReached> for Problem {
    fn from(reached: UploadQuotaReached) -> Self {
        let detail = match reached {
            UploadQuotaReached::AtOnce(most) => format!(
                "{most} uploads from this address are under way, which is the most. Wait until one has ended."
            ),
            UploadQuotaReached::Total => {
                "As many uploads are under way as the server takes. Try again in a moment."
                    .to_owned()
            }
            UploadQuotaReached::Day(most) => format!(
                "{most} bytes a day is all that one visitor may upload. Try again tomorrow."
            ),
        };
        Self::new(ProblemCode::RateLimited, detail)
    }
}
