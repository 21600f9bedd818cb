//! The routes of projects.

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};

use super::model::Project;
use super::requests::{CreateProject, ListProjects, UpdateProject};
use super::scope::ProjectScope;
use super::views::{ProjectDetail, ProjectList, ProjectView};
use crate::app::SharedApp;
use crate::config::Config;
use crate::http::extract::{DeclaredLength, NoQuery, Owner, Query, UnreadBody, UnreadQuery};
use crate::http::idempotency::Repeatable;
use crate::http::problem::Problem;

fn body_of(project: &Project, config: &Config) -> String {
    // Plain data always has a JSON form.
    serde_json::to_string(&ProjectView::new(project, config)).unwrap_or_default()
}

/// Make a project
#[utoipa::path(
    operation_id = "create_project",
    post, path = "/api/v1/projects", tag = "projects",
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repeated request answer what the first did, for 24 hours.")),
    request_body = CreateProject,
    responses((status = 201, description = "Made.", body = ProjectView)),
    extensions(("x-problems" = json!("owner body idempotency_conflict contradictory_expiry forbidden plan_limit not_found"))),
    security(("bearer" = []))
)]
pub async fn create(
    State(app): State<SharedApp>,
    request: Repeatable,
    Owner(principal): Owner,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let body = body.json::<CreateProject>().await?;
    let by = principal.clone();
    let work = move |key| async move {
        let wanted = body.value.workspace.as_deref();
        let workspace = app.workspaces.chosen(&principal, wanted).await?;
        let new = body.value.checked()?;
        let project = app.projects.create(workspace, new, key, body_of).await?;
        let view = ProjectView::new(&project, &app.config);
        let location = HeaderValue::try_from(&view.url).map_err(|e| Problem::internal(&e))?;
        let headers = [(header::LOCATION, location)];
        Ok((StatusCode::CREATED, headers, axum::Json(view)).into_response())
    };
    request
        .once(Some(&by), "projects", "", &body.raw, work)
        .await
}

/// List projects
#[utoipa::path(
    operation_id = "list_projects",
    get, path = "/api/v1/projects", tag = "projects",
    params(ListProjects),
    responses((status = 200, description = "The namespace's projects, oldest first.", body = ProjectList)),
    extensions(("x-problems" = json!("owner forbidden not_found"))),
    security(("bearer" = []))
)]
pub async fn list(
    State(app): State<SharedApp>,
    Owner(principal): Owner,
    _: DeclaredLength,
    Query(query): Query<ListProjects>,
) -> Result<axum::Json<ProjectList>, Problem> {
    let workspace = app
        .workspaces
        .chosen(&principal, query.workspace.as_deref())
        .await?;
    let projects = app.projects.list(workspace).await?;
    Ok(axum::Json(ProjectList::new(&projects, &app.config)))
}

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
    State(app): State<SharedApp>,
    scope: ProjectScope,
    _: NoQuery,
) -> Result<axum::Json<ProjectDetail>, Problem> {
    let members = app.deployments.members(scope.project.id).await?;
    Ok(axum::Json(ProjectDetail::new(
        &scope.project,
        members,
        &app.config,
    )))
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
    State(app): State<SharedApp>,
    scope: ProjectScope,
    body: UnreadBody,
) -> Result<axum::Json<ProjectView>, Problem> {
    let changes = body.json::<UpdateProject>().await?.value.checked()?;
    let project = app.projects.update(scope.project.id, changes).await?;
    Ok(axum::Json(ProjectView::new(&project, &app.config)))
}

/// Delete a project
///
/// With all that is in it. Its addresses stop to resolve before this is answered; a project that is gone
/// already is answered alike.
#[utoipa::path(
    operation_id = "delete_project",
    delete, path = "/api/v1/projects/{id}", tag = "projects",
    params(("id" = String, Path, description = "The project.")),
    responses((status = 204, description = "Gone.")),
    extensions(("x-problems" = json!("owner forbidden"))),
    security(("bearer" = []))
)]
pub async fn delete(
    State(app): State<SharedApp>,
    Owner(principal): Owner,
    _: DeclaredLength,
    Path(id): Path<String>,
    query: UnreadQuery,
) -> Result<StatusCode, Problem> {
    if let Some(project) = app.projects.to_delete(&principal, &id).await? {
        query.none()?;
        app.teardown.end(project.id).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}
