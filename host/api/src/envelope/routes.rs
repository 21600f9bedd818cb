//! The routes of a project with its contents.

use axum::Json;
use axum::extract::{Path, State};
use http::StatusCode;

use super::views::ProjectDetail;
use super::{ProjectLifecycle, operations};
use crate::access::{AuthenticatedCaller, Editor, Viewer};
use crate::http::extract::{CheckedBodyLength, NoQueryParams, UnparsedQuery, UnreadBody};
use crate::http::problem::Problem;
use crate::projects::requests::UpdateProject;
use crate::projects::scope::AuthorizedProject;
use crate::projects::views::ProjectView;

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
    State(envelope): State<ProjectLifecycle>,
    at: AuthorizedProject<Viewer>,
    _: NoQueryParams,
) -> Result<Json<ProjectDetail>, Problem> {
    operations::get(envelope, at).await.map(Json)
}

/// Change a project
#[utoipa::path(
    operation_id = "update_project",
    patch, path = "/api/v1/projects/{id}", tag = "projects",
    params(("id" = String, Path, description = "The project.")),
    request_body = UpdateProject,
    responses((status = 200, description = "The project as it is now.", body = ProjectView)),
    extensions(("x-problems" = json!("owner body forbidden not_found nothing_to_update"))),
    security(("bearer" = []))
)]
pub async fn update(
    State(envelope): State<ProjectLifecycle>,
    at: AuthorizedProject<Editor>,
    body: UnreadBody,
) -> Result<Json<ProjectView>, Problem> {
    let input = body.json().await?.value;
    operations::update(envelope, at, input).await.map(Json)
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
    State(envelope): State<ProjectLifecycle>,
    AuthenticatedCaller(caller): AuthenticatedCaller,
    _: CheckedBodyLength,
    Path(id): Path<String>,
    query: UnparsedQuery,
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
