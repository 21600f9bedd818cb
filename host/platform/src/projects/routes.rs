//! The routes of projects.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;

use super::requests::{CreateProject, ListProjects};
use super::views::{ProjectList, ProjectView};
use super::{Projects, operations};
use crate::access::idempotency::{IdempotencyScope, IdempotentRequest};
use crate::access::{CallerChoosingWorkspace, Editor, Viewer};
use crate::http::extract::{ApiQuery, CheckedBodyLength, UnreadBody};
use crate::http::problem::Problem;
use crate::workspaces::WorkspaceError;

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
    State(projects): State<Projects>,
    request: IdempotentRequest,
    by: CallerChoosingWorkspace<Editor>,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let body = body.json::<CreateProject>().await?;
    let (caller, route) = (
        by.caller().clone(),
        IdempotencyScope {
            name: "projects",
            parent: "",
        },
    );
    // Every request checks the role, a repeated one too.
    let named = body.value.workspace.as_deref();
    match by.workspace(projects.workspaces(), named).await {
        Ok(_) | Err(WorkspaceError::Ambiguous(_)) => {}
        Err(error) => return Err(error.into()),
    }
    let work = |keep| operations::create(projects, by, body.value, keep);
    request
        .run_once(Some(&caller), route, &body.raw, StatusCode::CREATED, work)
        .await
}

/// List projects
#[utoipa::path(
    operation_id = "list_projects",
    get, path = "/api/v1/projects", tag = "projects",
    params(ListProjects),
    responses((status = 200, description = "The workspace's projects, oldest first.", body = ProjectList)),
    extensions(("x-problems" = json!("owner forbidden not_found"))),
    security(("bearer" = []))
)]
pub async fn list(
    State(projects): State<Projects>,
    by: CallerChoosingWorkspace<Viewer>,
    _: CheckedBodyLength,
    ApiQuery(query): ApiQuery<ListProjects>,
) -> Result<Json<ProjectList>, Problem> {
    operations::list(projects, by, query).await.map(Json)
}
