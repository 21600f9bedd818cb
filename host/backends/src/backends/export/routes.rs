//! The route of exports.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};

use super::{BackendExporter, MEDIA_TYPE, file_name};
use crate::access::Viewer;
use crate::backends::operations;
use crate::backends::scope::AuthorizedBackend;
use crate::http::NOSNIFF;
use crate::http::extract::NoQueryParams;
use crate::http::problem::Problem;

/// Export the database
///
/// An extension. The database as one SQLite file, as it was at one moment, while others go on writing to it: tables, indexes, views and
/// rows, and `svc_payments`. Other tables of the platform's are left out, and nothing that was deleted is in it. Few exports run
/// at once: of one backend two, until their receivers have them.
#[utoipa::path(
    operation_id = "export_backend",
    get, path = "/api/v1/projects/{id}/backend/export", tag = "backend",
    params(("id" = String, Path, description = "The project.")),
    responses((
        status = 200, description = "The file.", content_type = "application/vnd.sqlite3", body = Vec<u8>,
        headers(("Content-Disposition" = String, description = "A name for the file."))
    )),
    extensions(("x-problems" = json!("owner forbidden not_found query_timeout database_busy"))),
    security(("bearer" = []))
)]
pub async fn export(
    State(exporter): State<Arc<BackendExporter>>,
    at: AuthorizedBackend<Viewer>,
    _: NoQueryParams,
) -> Result<Response, Problem> {
    let disposition = format!("attachment; filename=\"{}\"", file_name(&at.at.project));
    let file = operations::export(exporter, at).await?;
    let disposition =
        HeaderValue::try_from(disposition).map_err(|error| Problem::internal(&error))?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE)),
        (header::CONTENT_DISPOSITION, disposition),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        NOSNIFF,
    ];
    Ok((headers, file).into_response())
}
