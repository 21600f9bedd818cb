//! The routes of a project as a whole.

use axum::Json;
use axum::extract::{Path, State};
use http::StatusCode;

use super::views::ProjectDetail;
use super::{Teardown, operations};
use crate::access::{Authenticated, Viewer};
use crate::http::extract::{DeclaredLength, NoQuery, UnreadQuery};
use crate::http::problem::Problem;
use crate::projects::scope::ProjectScope;

/// Get a project
///
/// With its frontends and their views.
#[utoipa::path(
    operation_id = "get_project",
    get, path = "/api/v1/projects/{id}", tag = "projects",
    params(("id" = String, Path, description = "The project.")),
    responses((status = 200, description = "The project.", body = ProjectDetail)),
    extensions(("x-problems" = json!("owner forbidden not_found"))),
    security(("bearer" = []))
)]
pub async fn get(
    State(envelope): State<Teardown>,
    at: ProjectScope<Viewer>,
    _: NoQuery,
) -> Result<Json<ProjectDetail>, Problem> {
    operations::get(envelope, at).await.map(Json)
}

/// Delete a project
///
/// With all that is in it. Its addresses stop resolving before this is answered; a project that is gone
/// already is answered alike. What its visitors subscribe to ends at the close of the month that is paid for.
#[utoipa::path(
    operation_id = "delete_project",
    delete, path = "/api/v1/projects/{id}", tag = "projects",
    params(("id" = String, Path, description = "The project.")),
    responses((status = 204, description = "Gone.")),
    extensions(("x-problems" = json!("owner forbidden"))),
    security(("bearer" = []))
)]
pub async fn delete(
    State(envelope): State<Teardown>,
    Authenticated(caller): Authenticated,
    _: DeclaredLength,
    Path(id): Path<String>,
    query: UnreadQuery,
) -> Result<StatusCode, Problem> {
    let at = envelope
        .projects()
        .scoped_for_deletion(&caller, &id)
        .await?;
    if at.is_some() {
        query.none()?;
    }
    operations::delete(envelope, at).await?;
    Ok(StatusCode::NO_CONTENT)
}
