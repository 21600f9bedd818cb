//! The routes of files.

use std::sync::Arc;

use axum::extract::{Path, State};
use http::StatusCode;
use serde::Deserialize;

use super::ProjectFiles;
use super::operations::{self, FileUpload};
use crate::access::Editor;
use crate::http::extract::{NoQueryParams, RequiredBodyLength, StreamedBody};
use crate::http::problem::Problem;
use crate::projects::scope::AuthorizedProject;

/// The last part of a file's address.
#[derive(Debug, Deserialize)]
pub struct BlobPath {
    sha256: String,
}

/// Send a file
///
/// Ahead of a publication that names it by its SHA-256. It waits there for a day; once a revision names it, it stays as long as that. Sending
/// a file again does no harm.
#[utoipa::path(
    operation_id = "put_blob",
    put, path = "/api/v1/projects/{id}/blobs/{sha256}", tag = "files",
    params(
        ("id" = String, Path, description = "The project."),
        ("sha256" = String, Path, pattern = "^[0-9a-fA-F]{64}$", description = "SHA-256 of the file, in hexadecimal.")
    ),
    request_body(content = String, content_type = "application/octet-stream", description = "The file's bytes, with a `Content-Length`."),
    responses((status = 204, description = "Stored, and durable.")),
    extensions(("x-problems" = json!("owner digest_mismatch forbidden not_found timeout length_required storage_full"))),
    security(("bearer" = []))
)]
pub async fn put_blob(
    State(files): State<Arc<ProjectFiles>>,
    at: AuthorizedProject<Editor>,
    Path(path): Path<BlobPath>,
    _: RequiredBodyLength,
    _: NoQueryParams,
    body: StreamedBody,
) -> Result<StatusCode, Problem> {
    let input = FileUpload {
        sha256: path.sha256,
        body,
    };
    operations::put(files, at, input).await?;
    Ok(StatusCode::NO_CONTENT)
}
