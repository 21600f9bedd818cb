//! Errors of files as problems.

use super::FileError;
use crate::http::extract::body_too_large;
use crate::http::problem::{Problem, ProblemCode};

impl From<FileError> for Problem {
    fn from(error: FileError) -> Self {
        match error {
            FileError::NotFound => Self::new(
                ProblemCode::NotFound,
                "The project was deleted or has expired meanwhile. Nothing was kept.",
            ),
            FileError::InvalidDigest => Self::new(
                ProblemCode::InvalidRequest,
                "The path does not end with a SHA-256: write it as 64 hexadecimal digits, in lower case.",
            ),
            FileError::DigestMismatch => Self::new(
                ProblemCode::DigestMismatch,
                "The body has another SHA-256 than the path. Nothing was kept: compute it of the bytes that you send.",
            ),
            FileError::TooLarge(most) => body_too_large(most),
            FileError::StorageFull { used, limit } => Self::new(
                ProblemCode::StorageFull,
                format!("The project's files take {used} bytes of {limit}, and there is no room for this. Delete revisions or frontends that are not needed any more: their files go within a minute."),
            )
            .with("used_bytes", used)
            .with("limit_bytes", limit),
            FileError::InstallationFull => Self::new(
                ProblemCode::CapacityReached,
                "The files of all projects take all room that this server has for them. The operator can raise it: `storage_total_bytes` in `[limits]` of the settings.",
            ),
            FileError::Publish(error) => error.into(),
        }
    }
}
