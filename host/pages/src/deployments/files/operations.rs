//! Operations on files.

use std::sync::Arc;

use bytes::Bytes;

use super::{FileBytes, FileError, ProjectFiles};
use crate::access::Editor;
use crate::content::Digest;
use crate::http::extract::StreamedBody;
use crate::http::problem::Problem;
use crate::projects::scope::AuthorizedProject;

/// File that is sent ahead of a publication.
#[derive(Debug)]
pub struct FileUpload {
    /// SHA-256 of the file, as the caller wrote it.
    pub sha256: String,
    /// Bytes of the file, which are not read yet.
    pub body: StreamedBody,
}

impl FileBytes for StreamedBody {
    type Error = Problem;

    async fn next(&mut self, kept: usize) -> Result<Option<Bytes>, Problem> {
        StreamedBody::next(self, kept).await
    }
}

/// Stores a file that a publication is about to name. Durable when it returns; the same file again is stored once.
///
/// # Errors
/// `invalid_request`, `digest_mismatch`, `payload_too_large`, `storage_full`, `capacity_reached`; nothing is kept then.
pub async fn put(
    files: Arc<ProjectFiles>,
    at: AuthorizedProject<Editor>,
    input: FileUpload,
) -> Result<(), Problem> {
    let digest = Digest::from_hex(&input.sha256.to_ascii_lowercase());
    let digest = digest.ok_or(FileError::InvalidDigest)?;
    let declared = input.body.declared_bytes();
    files
        .receive(&at.project, (digest, declared), input.body)
        .await
}
