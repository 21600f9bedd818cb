//! The routes of a backend's history.

use std::sync::Arc;

use axum::extract::State;

use super::requests::{RestoreBackend, WhichMoments};
use super::views::{HistoryView, RestoredView};
use crate::app::SharedApp;
use crate::backends::BackendError;
use crate::http::extract::{UnreadBody, UnreadQuery};
use crate::http::problem::Problem;
use crate::http::serve::to_the_end;
use crate::projects::scope::ProjectScope;

/// List the moments that the backend can be restored to
///
/// An extension. Newest first: every commit of the last seven days, as far as `history_bytes` reaches.
#[utoipa::path(
    operation_id = "list_backend_history",
    get, path = "/api/v1/projects/{id}/backend/history", tag = "backend",
    params(("id" = String, Path, description = "The project."), WhichMoments),
    responses((status = 200, description = "The moments, newest first.", body = HistoryView)),
    extensions(("x-problems" = json!("owner forbidden not_found database_busy capacity_reached"))),
    security(("bearer" = []))
)]
pub async fn list(
    State(app): State<SharedApp>,
    scope: ProjectScope,
    query: UnreadQuery,
) -> Result<axum::Json<HistoryView>, Problem> {
    let project = scope.project.id;
    if app.backends.of_project(project).await?.is_none() {
        return Err(BackendError::NotFound.into());
    }
    let part = query.read::<WhichMoments>()?.checked()?;
    let past = app.backends.history(project, part).await?;
    Ok(axum::Json(past.into()))
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
    State(app): State<SharedApp>,
    scope: ProjectScope,
    body: UnreadBody,
) -> Result<axum::Json<RestoredView>, Problem> {
    let project = scope.project.id;
    if app.backends.of_project(project).await?.is_none() {
        return Err(BackendError::NotFound.into());
    }
    let at = body.json::<RestoreBackend>().await?.value.checked()?;
    let backends = Arc::clone(&app.backends);
    let restored = to_the_end(async move { backends.restore(project, at).await });
    Ok(axum::Json(restored.await??.into()))
}
