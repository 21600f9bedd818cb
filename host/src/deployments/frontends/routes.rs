//! The routes of frontends.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Deserialize;

use super::requests::{CreateFrontend, Republish, WhichContent};
use super::views::{ContentView, FrontendList, FrontendView};
use super::{Frontend, FrontendError, Target};
use crate::app::SharedApp;
use crate::config::Config;
use crate::http::extract::{NoQuery, UnreadBody, UnreadQuery};
use crate::http::front::Context;
use crate::http::hosts::Host;
use crate::http::idempotency::Repeatable;
use crate::http::problem::{Code, Problem};
use crate::http::serve::to_the_end;
use crate::projects::Project;
use crate::projects::scope::ProjectScope;

fn body_of(frontend: &Frontend, project: &Project, config: &Config) -> String {
    // Plain data always has a JSON form.
    serde_json::to_string(&FrontendView::new(frontend, project, config)).unwrap_or_default()
}

/// The second part of a frontend's address.
#[derive(Debug, Deserialize)]
pub struct TargetPath {
    target: String,
}

impl TargetPath {
    /// What it names.
    pub fn target(&self) -> Target {
        Target::from(self.target.as_str())
    }
}

/// Publish a frontend
#[utoipa::path(
    operation_id = "create_frontend",
    post, path = "/api/v1/projects/{id}/frontends", tag = "frontends",
    params(
        ("id" = String, Path, description = "The project."),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes a repeated request answer what the first did, for 24 hours.")
    ),
    request_body = CreateFrontend,
    responses((status = 201, description = "Published, and durable.", body = FrontendView)),
    extensions(("x-problems" = json!("owner body idempotency_conflict forbidden not_found render_failed capacity_reached"))),
    security(("bearer" = []))
)]
pub async fn create(
    State(app): State<SharedApp>,
    request: Repeatable,
    scope: ProjectScope,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let body = body.json::<CreateFrontend>().await?;
    let (by, parent) = (Some(&scope.principal), scope.project.id.to_string());
    let project = scope.project;
    let work = |key| async move {
        let new = body.value.checked()?;
        let creating = app
            .deployments
            .create_frontend(project.clone(), new, key, body_of);
        let frontend = Box::pin(creating).await?;
        let view = FrontendView::new(&frontend, &project, &app.config);
        let location = HeaderValue::try_from(&view.url).map_err(|e| Problem::internal(&e))?;
        let headers = [(header::LOCATION, location)];
        Ok((StatusCode::CREATED, headers, axum::Json(view)).into_response())
    };
    request
        .once(by, "frontends", &parent, &body.raw, work)
        .await
}

/// List frontends
#[utoipa::path(
    operation_id = "list_frontends",
    get, path = "/api/v1/projects/{id}/frontends", tag = "frontends",
    params(("id" = String, Path, description = "The project.")),
    responses((status = 200, description = "All of them, whatever their state.", body = FrontendList)),
    extensions(("x-problems" = json!("owner forbidden not_found"))),
    security(("bearer" = []))
)]
pub async fn list(
    State(app): State<SharedApp>,
    scope: ProjectScope,
    _: NoQuery,
) -> Result<axum::Json<FrontendList>, Problem> {
    let frontends = app.deployments.frontends(scope.project.id).await?;
    let view = |frontend| FrontendView::new(frontend, &scope.project, &app.config);
    Ok(axum::Json(FrontendList {
        frontends: frontends.iter().map(view).collect(),
    }))
}

/// Get a frontend
#[utoipa::path(
    operation_id = "get_frontend",
    get, path = "/api/v1/projects/{id}/frontends/{target}", tag = "frontends",
    params(
        ("id" = String, Path, description = "The project."),
        ("target" = String, Path, description = "The frontend's slug, or its id.")
    ),
    responses((status = 200, description = "The frontend.", body = FrontendView)),
    extensions(("x-problems" = json!("owner forbidden not_found"))),
    security(("bearer" = []))
)]
pub async fn get(
    State(app): State<SharedApp>,
    scope: ProjectScope,
    Path(path): Path<TargetPath>,
    query: UnreadQuery,
) -> Result<axum::Json<FrontendView>, Problem> {
    let frontend = app
        .deployments
        .frontend(scope.project.id, &path.target())
        .await?;
    query.none()?;
    Ok(axum::Json(FrontendView::new(
        &frontend,
        &scope.project,
        &app.config,
    )))
}

/// Republish a frontend
///
/// At once, whatever is live: the last write wins. Use revisions to look before, and not to overwrite others.
#[utoipa::path(
    operation_id = "republish_frontend",
    put, path = "/api/v1/projects/{id}/frontends/{target}", tag = "frontends",
    params(
        ("id" = String, Path, description = "The project."),
        ("target" = String, Path, description = "The frontend's slug, or its id.")
    ),
    request_body = Republish,
    responses((status = 200, description = "Live, and durable.", body = FrontendView)),
    extensions(("x-problems" = json!("owner body forbidden not_found type_mismatch render_failed capacity_reached"))),
    security(("bearer" = []))
)]
pub async fn republish(
    State(app): State<SharedApp>,
    scope: ProjectScope,
    Path(path): Path<TargetPath>,
    body: UnreadBody,
) -> Result<axum::Json<FrontendView>, Problem> {
    let target = path.target();
    app.deployments.frontend(scope.project.id, &target).await?;
    let new = body.json::<Republish>().await?.value.checked()?;
    let (deployments, project) = (Arc::clone(&app.deployments), scope.project.clone());
    let frontend =
        to_the_end(async move { deployments.republish(project, target, new).await }).await??;
    Ok(axum::Json(FrontendView::new(
        &frontend,
        &scope.project,
        &app.config,
    )))
}

/// Delete a frontend
///
/// With its history. Its slug is free when this is answered; one that is gone already is answered alike.
#[utoipa::path(
    operation_id = "delete_frontend",
    delete, path = "/api/v1/projects/{id}/frontends/{target}", tag = "frontends",
    params(
        ("id" = String, Path, description = "The project."),
        ("target" = String, Path, description = "The frontend's slug, or its id.")
    ),
    responses((status = 204, description = "Gone.")),
    extensions(("x-problems" = json!("owner forbidden not_found"))),
    security(("bearer" = []))
)]
pub async fn delete(
    State(app): State<SharedApp>,
    scope: ProjectScope,
    Path(path): Path<TargetPath>,
    _: NoQuery,
) -> Result<StatusCode, Problem> {
    let (deployments, target) = (Arc::clone(&app.deployments), path.target());
    to_the_end(async move { deployments.delete_frontend(scope.project, target).await }).await??;
    Ok(StatusCode::NO_CONTENT)
}

/// Get the source
///
/// Exactly as it was published, of what is live or of a revision; never the rendered page.
#[utoipa::path(
    operation_id = "get_content",
    get, path = "/api/v1/projects/{id}/frontends/{target}/content", tag = "frontends",
    params(
        ("id" = String, Path, description = "The project."),
        ("target" = String, Path, description = "The frontend's slug, or its id."),
        WhichContent
    ),
    responses((status = 200, description = "The source, or that it has not changed.", body = ContentView)),
    extensions(("x-problems" = json!("owner forbidden not_found"))),
    security(("bearer" = []))
)]
pub async fn content(
    State(app): State<SharedApp>,
    scope: ProjectScope,
    Path(path): Path<TargetPath>,
    query: UnreadQuery,
) -> Result<axum::Json<ContentView>, Problem> {
    let target = path.target();
    app.deployments.frontend(scope.project.id, &target).await?;
    let wanted = query.read::<WhichContent>()?.checked()?;
    let source = app
        .deployments
        .source(&scope.project, &target, wanted)
        .await?;
    Ok(axum::Json(source.into()))
}

/// A project's origin leads to its only frontend, if it has just one.
pub async fn only(State(app): State<SharedApp>, context: Context) -> Result<Response, Problem> {
    let Host::Project(label) = &context.host else {
        return Err(Problem::not_found());
    };
    let project = app
        .projects
        .by_label(label)
        .await?
        .ok_or_else(Problem::not_found)?;
    let slug = app
        .deployments
        .only_frontend(project.id)
        .await?
        .ok_or_else(Problem::not_found)?;
    let headers = [
        (header::LOCATION, format!("/{slug}")),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    Ok((StatusCode::FOUND, headers).into_response())
}

impl From<FrontendError> for Problem {
    fn from(error: FrontendError) -> Self {
        let detail = error.to_string();
        match error {
            FrontendError::NotFound => Self::new(
                Code::NotFound,
                "The project has no such active frontend. List them to see what it has.",
            ),
            FrontendError::NoRevision => Self::new(
                Code::NotFound,
                "The frontend has no such revision. List its revisions to see what it has.",
            ),
            FrontendError::Conflict(active) => Self::new(
                Code::RevisionConflict,
                format!("Another revision is active: {active}. Read it, make your change on top of it, and send that."),
            )
            .with("active_revision_id", active.to_string()),
            FrontendError::NeverReleased | FrontendError::Edit(_) => {
                Self::new(Code::InvalidRequest, detail)
            }
            FrontendError::TypeMismatch(_) => Self::new(
                Code::TypeMismatch,
                format!("{detail}, and keeps it. Leave `type` out, or make a new frontend."),
            ),
            FrontendError::TooLarge(_) => Self::new(
                Code::PayloadTooLarge,
                format!("{detail}, which is more than a source may have."),
            ),
            FrontendError::Publish(error) => error.into(),
        }
    }
}
