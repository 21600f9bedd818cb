//! The routes of a backend's history.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use super::BackendHistoryService;
use super::requests::{MomentsQuery, RestoreBackend};
use super::views::{HistoryView, RestoredView};
use crate::access::{Editor, Viewer};
use crate::backends::operations;
use crate::backends::scope::AuthorizedBackend;
use crate::http::extract::{ApiQuery, UnreadBody};
use crate::http::problem::Problem;

/// List the moments that the backend can be restored to
///
/// An extension. Newest first: every commit of the last seven days, as far as `history_bytes` reaches.
#[utoipa::path(
    operation_id = "list_backend_history",
    get, path = "/api/v1/projects/{id}/backend/history", tag = "backend",
    params(("id" = String, Path, description = "The project."), MomentsQuery),
    responses((status = 200, description = "The moments, newest first.", body = HistoryView)),
    extensions(("x-problems" = json!("owner forbidden not_found database_busy capacity_reached"))),
    security(("bearer" = []))
)]
pub async fn list(
    State(histories): State<Arc<BackendHistoryService>>,
    at: AuthorizedBackend<Viewer>,
    ApiQuery(query): ApiQuery<MomentsQuery>,
) -> Result<Json<HistoryView>, Problem> {
    operations::history(histories, at, query).await.map(Json)
}

/// Restore the backend
///
/// An extension. The rows become what they were at a moment, under the schema as it is now: migrations made since are
/// applied again, without their INSERTs, and actions stay as they are. It is an entry of the ledger, and can be undone
/// by restoring `previous`.
#[utoipa::path(
    operation_id = "restore_backend",
    post, path = "/api/v1/projects/{id}/backend/restore", tag = "backend",
    params(("id" = String, Path, description = "The project.")),
    request_body = RestoreBackend,
    responses((status = 200, description = "Restored, and durable.", body = RestoredView)),
    extensions(("x-problems" = json!("owner body forbidden not_found ddl_refused query_timeout constraint_violation database_full database_busy capacity_reached"))),
    security(("bearer" = []))
)]
pub async fn restore(
    State(histories): State<Arc<BackendHistoryService>>,
    at: AuthorizedBackend<Editor>,
    body: UnreadBody,
) -> Result<Json<RestoredView>, Problem> {
    let input = body.json().await?.value;
    operations::restore(histories, at, input).await.map(Json)
}
