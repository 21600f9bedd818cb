//! The routes of projects.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Serialize;
use utoipa::ToSchema;

use super::model::{DESCRIPTION, OwnerRef, Project, ProjectChanges, ProjectError};
use super::requests::{CreateProject, ListProjects, UpdateProject, check_name, new_project};
use super::scope::ProjectScope;
use crate::app::{App, SharedApp};
use crate::clock::Timestamp;
use crate::config::Config;
use crate::deployments::frontends::{FrontendState, MemberSummary};
use crate::http::extract::{
    DeclaredLength, NoQuery, Owner, Query, UnreadBody, UnreadQuery, check_characters,
};
use crate::http::front::Context;
use crate::http::idempotency;
use crate::http::problem::{Code, Problem};
use crate::http::serve::to_the_end;
use crate::ids::{BackendId, DeploymentId, ProjectId};
use crate::sandbox::ContentType;

/// A project.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProjectView {
    /// Its identity.
    #[schema(value_type = String, format = "uuid")]
    id: ProjectId,
    /// Its name for people.
    name: String,
    /// What it is about.
    description: Option<String>,
    /// The name of its origin.
    host_label: String,
    /// Its origin.
    #[schema(format = "uri")]
    url: String,
    /// Whose it is.
    workspace: OwnerRef,
    /// Whether it lives for good.
    permanent: bool,
    /// When it was made.
    #[schema(value_type = String, format = "date-time")]
    created_at: Timestamp,
    /// When its fields last changed.
    #[schema(value_type = String, format = "date-time")]
    updated_at: Timestamp,
    /// When it ends, with all that is in it.
    #[schema(value_type = Option<String>, format = "date-time")]
    expires_at: Option<Timestamp>,
    /// Sign-in providers that its frontends may offer; all, if null.
    allowed_providers: Option<Vec<String>>,
    /// Its backend, if it has one.
    backend: Option<BackendRef>,
}

/// The backend of a project.
#[derive(Debug, Serialize, ToSchema)]
pub struct BackendRef {
    /// Its identity.
    #[schema(value_type = String, format = "uuid")]
    id: BackendId,
}

/// A project with what is in it.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProjectDetail {
    #[serde(flatten)]
    project: ProjectView,
    /// Views of all members.
    visits: VisitTotal,
    /// Its frontends, oldest first.
    members: Vec<Member>,
}

/// Views.
#[derive(Debug, Serialize, ToSchema)]
pub struct VisitTotal {
    /// All of them; those of the last seconds may be missing.
    total: u64,
}

/// A frontend, in short.
#[derive(Debug, Serialize, ToSchema)]
pub struct Member {
    /// Its identity.
    #[schema(value_type = String, format = "uuid")]
    id: DeploymentId,
    /// Where it answers.
    slug: String,
    /// What its source is written in.
    #[serde(rename = "type")]
    content_type: ContentType,
    /// Where it is in its life.
    state: FrontendState,
    /// Its views.
    visits: u64,
}

/// All projects of a workspace.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProjectList {
    /// Oldest first.
    projects: Vec<ProjectView>,
}

impl ProjectView {
    /// A project as it is answered.
    pub fn new(project: &Project, config: &Config) -> Self {
        Self {
            id: project.id,
            name: project.name.clone(),
            description: project.description.clone(),
            host_label: project.host_label.clone(),
            url: config.project_origin(&project.host_label),
            workspace: project.workspace.clone(),
            permanent: project.expires_at.is_none(),
            created_at: project.created_at,
            updated_at: project.updated_at,
            expires_at: project.expires_at,
            allowed_providers: project.allowed_providers.clone(),
            backend: project.backend.map(|id| BackendRef { id }),
        }
    }
}

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
    context: Context,
    Owner(principal): Owner,
    headers: HeaderMap,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let body = body.json::<CreateProject>().await?;
    let by = Some(principal.clone());
    let running =
        match idempotency::begin(&app, &context, by.as_ref(), "projects", &headers, &body.raw)
            .await?
        {
            idempotency::Attempt::Replay(response) => return Ok(response),
            idempotency::Attempt::Run(running) => running,
        };
    let workspace = app
        .workspaces
        .chosen(&principal, body.value.workspace.as_deref())
        .await?;
    let new = new_project(body.value)?;
    let key = running.as_ref().map(idempotency::Running::key);
    let projects = app.projects.clone();
    let project = to_the_end(async move {
        let _running = running;
        projects.create(workspace, new, key, body_of).await
    })
    .await??;
    let view = ProjectView::new(&project, &app.config);
    let location = HeaderValue::try_from(&view.url).map_err(|e| Problem::internal(&e))?;
    Ok((
        StatusCode::CREATED,
        [(header::LOCATION, location)],
        axum::Json(view),
    )
        .into_response())
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
    let projects = projects
        .iter()
        .map(|project| ProjectView::new(project, &app.config))
        .collect();
    Ok(axum::Json(ProjectList { projects }))
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
    let members: Vec<Member> = members.into_iter().map(Member::from).collect();
    let total = members.iter().map(|member| member.visits).sum();
    Ok(axum::Json(ProjectDetail {
        project: ProjectView::new(&scope.project, &app.config),
        visits: VisitTotal { total },
        members,
    }))
}

impl From<MemberSummary> for Member {
    fn from(member: MemberSummary) -> Self {
        Self {
            id: member.id,
            slug: member.slug,
            content_type: member.content_type,
            state: member.state,
            visits: member.visits,
        }
    }
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
    let request = body.json::<UpdateProject>().await?.value;
    if request.name.is_none()
        && request.description.is_none()
        && request.allowed_providers.is_none()
    {
        return Err(Problem::new(
            Code::NothingToUpdate,
            "Nothing to update: send `name`, `description` or `allowed_providers`.",
        ));
    }
    if let Some(name) = &request.name {
        check_name(name)?;
    }
    check_characters("description", request.description.as_deref(), DESCRIPTION)?;
    let changes = ProjectChanges {
        name: request.name,
        description: request.description,
        allowed_providers: request.allowed_providers,
    };
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
    let Ok(id) = id.parse::<ProjectId>() else {
        return Ok(StatusCode::NO_CONTENT);
    };
    match app.projects.owned(&principal, id).await {
        Ok(project) => {
            query.none()?;
            begin_teardown(&app, project.id).await?;
        }
        Err(ProjectError::NotFound) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Makes a project unreachable now, and lets the rest of its end follow behind the answer.
async fn begin_teardown(app: &Arc<App>, id: ProjectId) -> Result<(), Problem> {
    app.teardown
        .begin(id)
        .await
        .map_err(|error| Problem::internal(&format!("{error:#}")))?;
    let app = Arc::clone(app);
    tokio::spawn(async move {
        if let Err(error) = app.teardown.finish(id).await {
            // The background task goes on with it.
            tracing::warn!(project = %id, error = format!("{error:#}"), "a teardown was interrupted");
        }
    });
    Ok(())
}
