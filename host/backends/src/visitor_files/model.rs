//! Model of uploads.

use svc_base::random::RandomSourceError;

use super::quotas::UploadQuotaReached;
use crate::access::in_flight::KeyInFlight;
use crate::backends::BackendError;
use crate::content;
use crate::control;
use crate::deployments::files::FileError;
use crate::http::problem::Problem;

/// Reason why an upload failed.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// The request breaks a rule, or its body did not arrive.
    #[error("{}", .0.detail)]
    Request(Box<Problem>),
    /// The action takes no files of this media type.
    #[error("the action takes no {0}")]
    WrongType(String),
    /// The picture is broken, or has too many pixels: a sentence for the visitor.
    #[error("{0}")]
    BadPicture(String),
    /// No worker was free to look at the file.
    #[error("the workers are busy")]
    Busy,
    /// The serving renderer knows no files.
    #[error("the renderer knows no files")]
    Unsupported,
    /// Another request has this key.
    #[error("the key was used for another upload")]
    KeyUsed,
    /// A quota is reached.
    #[error(transparent)]
    Quota(#[from] UploadQuotaReached),
    /// The file cannot be stored.
    #[error(transparent)]
    File(#[from] FileError),
    /// The action refuses it, or failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// Another failure, for the log.
    #[error(transparent)]
    Internal(#[from] anyhow::Error),
}

impl From<Problem> for UploadError {
    fn from(problem: Problem) -> Self {
        Self::Request(Box::new(problem))
    }
}

impl From<KeyInFlight> for UploadError {
    fn from(error: KeyInFlight) -> Self {
        Problem::from(error).into()
    }
}

impl From<std::io::Error> for UploadError {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                Self::File(content::Error::Full.into())
            }
            _ => Self::Internal(error.into()),
        }
    }
}

impl From<control::Error> for UploadError {
    fn from(error: control::Error) -> Self {
        Self::File(error.into())
    }
}

impl From<RandomSourceError> for UploadError {
    fn from(error: RandomSourceError) -> Self {
        Self::Internal(error.into())
    }
}
