//! Errors of files as problems.

use super::FileError;
use crate::deployments::sites::PathFault;
use crate::http::extract::{body_too_large, invalid_request};
use crate::http::problem::{Problem, ProblemCode};

impl From<PathFault> for Problem {
    fn from(fault: PathFault) -> Self {
        let PathFault { path, reason } = fault;
        Self::new(
            ProblemCode::PathRefused,
            format!("The path `{path}` {reason}. Nothing was changed."),
        )
        .with("path", path)
        .with("reason", reason)
    }
}

/// Refuses other bytes at immutable paths.
fn immutable_changed(paths: &[String]) -> Problem {
    Problem::new(
        ProblemCode::ImmutableChanged,
        format!("The site has other bytes at {} of its immutable paths, which were live: `paths` lists them. Browsers keep such files for a year: give each another name, or take its pattern out of `options.immutable`. Nothing was changed.", paths.len()),
    )
    .with("paths", paths.to_vec())
}

impl From<FileError> for Problem {
    fn from(error: FileError) -> Self {
        match error {
            FileError::NotFound => Self::new(
                ProblemCode::NotFound,
                "The project was deleted or has expired meanwhile. Nothing was kept.",
            ),
            FileError::InvalidDigest => invalid_request(
                "The path does not end with a SHA-256: write it as 64 hexadecimal digits.",
            ),
            FileError::DigestMismatch => Self::new(
                ProblemCode::DigestMismatch,
                "The body has another SHA-256 than the path. Nothing was kept: compute it of the bytes that you send.",
            ),
            FileError::TooLarge(most) => body_too_large(most),
            FileError::StorageFull { used, limit } => Self::new(
                ProblemCode::StorageFull,
                format!("The project's files take {used} bytes of {limit}, and there is no room for this. Delete revisions or frontends that are not needed any more: their files go within a minute, as uploads that failed do."),
            )
            .with("used_bytes", used)
            .with("limit_bytes", limit),
            FileError::Missing(missing) => {
                let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
                Self::new(
                    ProblemCode::FilesMissing,
                    format!("The project does not have {} of the files that are named by their SHA-256: `missing` lists them. Send each with PUT …/blobs/{{sha256}}, then this request again. Nothing was changed.", missing.len()),
                )
                .with("missing", missing)
            }
            FileError::SizeMismatch(path) => Self::new(
                ProblemCode::DigestMismatch,
                format!("The file `{path}` has another length than its `size` says. Nothing was changed."),
            ),
            FileError::TooManyFiles(most) => Self::new(
                ProblemCode::PlanLimit,
                format!("The plan of this workspace allows {most} files in a site. Leave some out, or ask for a larger plan."),
            ),
            FileError::SiteTooLarge(most) => Self::new(
                ProblemCode::PayloadTooLarge,
                format!("The files of the site have more than {most} bytes together, which is all that the plan of this workspace allows."),
            ),
            FileError::NoFiles => invalid_request("A site has one file at least."),
            FileError::NoSuchFallback(path) => invalid_request(format!(
                "In `options`: the site has no file `{path}`, which `fallback` names."
            )),
            FileError::ImmutableChanged(paths) => immutable_changed(&paths),
            FileError::ImmutablesMoved => Self::new(
                ProblemCode::CapacityReached,
                "Others publish immutable files of the site at the same time, again and again. Nothing was changed: try again in a moment.",
            ),
            FileError::InstallationFull => Self::new(
                ProblemCode::CapacityReached,
                "The files of all projects take all room that this server has for them. The operator can raise it: `storage_total_bytes` in `[limits]` of the settings.",
            ),
            FileError::Disabled => Self::new(
                ProblemCode::Disabled,
                "The operator of this server has blocked these bytes. Read the site's `content` to see what it names, and leave them out of the next revision.",
            ),
            FileError::Publish(error) => error.into(),
        }
    }
}
