//! The routes of revisions and releases.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;

use super::model::RevisionKind;
use super::requests::{CreateRevision, ReleaseRequest, WhichRevisions};
use super::views::{ReleaseList, ReleaseView, RevisionCreated, RevisionList, RevisionView};
use crate::app::SharedApp;
use crate::deployments::answer::{self, Place};
use crate::deployments::frontends::routes::TargetPath;
use crate::deployments::routes::disabled_page;
use crate::deployments::serve::LookupError;
use crate::http::extract::{UnreadBody, UnreadQuery};
use crate::http::idempotency::Repeatable;
use crate::http::problem::Problem;
use crate::http::serve::to_the_end;
use crate::projects::scope::ProjectScope;

/// List revisions
///
/// Newest first. The first look begins the history: its baseline is what is live.
#[utoipa::path(
    operation_id = "list_revisions",
    get, path = "/api/v1/projects/{id}/frontends/{target}/revisions", tag = "revisions",
    params(
        ("id" = String, Path, description = "The project."),
        ("target" = String, Path, description = "The frontend's slug, or its id."),
        WhichRevisions
    ),
    responses((status = 200, description = "A page of the history, without sources.", body = RevisionList)),
    extensions(("x-problems" = json!("owner forbidden not_found capacity_reached"))),
    security(("bearer" = []))
)]
pub async fn list(
    State(app): State<SharedApp>,
    scope: ProjectScope,
    Path(path): Path<TargetPath>,
    query: UnreadQuery,
) -> Result<axum::Json<RevisionList>, Problem> {
    let target = path.target();
    app.deployments.frontend(scope.project.id, &target).await?;
    let page = query.read::<WhichRevisions>()?.checked()?;
    let history = app
        .deployments
        .history(&scope.project, &target, page)
        .await?;
    Ok(axum::Json(history.into()))
}

/// Get a revision
#[utoipa::path(
    operation_id = "get_revision",
    get, path = "/api/v1/projects/{id}/frontends/{target}/revisions/{revision_id}", tag = "revisions",
    params(
        ("id" = String, Path, description = "The project."),
        ("target" = String, Path, description = "The frontend's slug, or its id."),
        ("revision_id" = String, Path, description = "The revision.")
    ),
    responses((status = 200, description = "The revision, without its source.", body = RevisionView)),
    extensions(("x-problems" = json!("owner forbidden not_found"))),
    security(("bearer" = []))
)]
pub async fn get(
    State(app): State<SharedApp>,
    scope: ProjectScope,
    Path(path): Path<TargetPath>,
    Path(which): Path<RevisionPath>,
    query: UnreadQuery,
) -> Result<axum::Json<RevisionView>, Problem> {
    let id = which
        .revision_id
        .parse()
        .map_err(|_| Problem::not_found())?;
    let revision = app
        .deployments
        .revision(&scope.project, &path.target(), id)
        .await?;
    query.none()?;
    Ok(axum::Json(RevisionView::from(&revision)))
}

/// The last part of a revision's address.
#[derive(Debug, Deserialize)]
pub struct RevisionPath {
    revision_id: String,
}

/// Make a draft
///
/// It has an unlisted preview, and nobody else sees it until it is promoted. The same content and title make
/// no second revision.
#[utoipa::path(
    operation_id = "create_revision",
    post, path = "/api/v1/projects/{id}/frontends/{target}/revisions", tag = "revisions",
    params(
        ("id" = String, Path, description = "The project."),
        ("target" = String, Path, description = "The frontend's slug, or its id."),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes a repeated request answer what the first did, for 24 hours.")
    ),
    request_body = CreateRevision,
    responses((status = 200, description = "The draft.", body = RevisionCreated)),
    extensions(("x-problems" = json!("owner body idempotency_conflict forbidden not_found revision_conflict render_failed capacity_reached"))),
    security(("bearer" = []))
)]
pub async fn create(
    State(app): State<SharedApp>,
    request: Repeatable,
    scope: ProjectScope,
    Path(path): Path<TargetPath>,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let target = path.target();
    let frontend = app.deployments.frontend(scope.project.id, &target).await?;
    let body = body.json::<CreateRevision>().await?;
    let (by, parent) = (Some(&scope.principal), frontend.id.to_string());
    let project = scope.project;
    let work = |key| async move {
        let new = body.value.checked()?;
        let answered = Arc::clone(&app.deployments);
        // Plain data always has a JSON form.
        let kept = move |drafted: &_| {
            let view = RevisionCreated::new(drafted, &answered);
            serde_json::to_string(&view).unwrap_or_default()
        };
        let drafted = app
            .deployments
            .create_draft(project, target, new, key, kept)
            .await?;
        let view = RevisionCreated::new(&drafted, &app.deployments);
        Ok(axum::Json(view).into_response())
    };
    request
        .once(by, "revisions", &parent, &body.raw, work)
        .await
}

/// Promote a revision
///
/// Makes it live, if what you expect to be live is. A draft that was made from an older revision has none of what became live
/// since: `note` names that, and what to roll back to.
#[utoipa::path(
    operation_id = "promote_revision",
    post, path = "/api/v1/projects/{id}/frontends/{target}/promote", tag = "revisions",
    params(
        ("id" = String, Path, description = "The project."),
        ("target" = String, Path, description = "The frontend's slug, or its id.")
    ),
    request_body = ReleaseRequest,
    responses((status = 200, description = "Live, and durable.", body = ReleaseView)),
    extensions(("x-problems" = json!("owner body forbidden not_found revision_conflict render_failed capacity_reached"))),
    security(("bearer" = []))
)]
pub async fn promote(
    State(app): State<SharedApp>,
    scope: ProjectScope,
    Path(path): Path<TargetPath>,
    body: UnreadBody,
) -> Result<axum::Json<ReleaseView>, Problem> {
    release(app, scope, path, body, RevisionKind::Promote).await
}

/// Roll back to a revision
///
/// Puts one back that was live before, if what you expect to be live is.
#[utoipa::path(
    operation_id = "rollback_revision",
    post, path = "/api/v1/projects/{id}/frontends/{target}/rollback", tag = "revisions",
    params(
        ("id" = String, Path, description = "The project."),
        ("target" = String, Path, description = "The frontend's slug, or its id.")
    ),
    request_body = ReleaseRequest,
    responses((status = 200, description = "Live again, and durable.", body = ReleaseView)),
    extensions(("x-problems" = json!("owner body forbidden not_found revision_conflict render_failed capacity_reached"))),
    security(("bearer" = []))
)]
pub async fn rollback(
    State(app): State<SharedApp>,
    scope: ProjectScope,
    Path(path): Path<TargetPath>,
    body: UnreadBody,
) -> Result<axum::Json<ReleaseView>, Problem> {
    release(app, scope, path, body, RevisionKind::Rollback).await
}

async fn release(
    app: SharedApp,
    scope: ProjectScope,
    path: TargetPath,
    body: UnreadBody,
    kind: RevisionKind,
) -> Result<axum::Json<ReleaseView>, Problem> {
    let target = path.target();
    app.deployments.frontend(scope.project.id, &target).await?;
    let new = body.json::<ReleaseRequest>().await?.value.checked(kind)?;
    let (deployments, project) = (Arc::clone(&app.deployments), scope.project.clone());
    let done = to_the_end(async move { deployments.release(project, target, new).await }).await??;
    Ok(axum::Json(ReleaseView::new(
        &done,
        &scope.project,
        &app.config,
    )))
}

/// List releases
///
/// Everything that ever was live, newest first.
#[utoipa::path(
    operation_id = "list_releases",
    get, path = "/api/v1/projects/{id}/frontends/{target}/releases", tag = "revisions",
    params(
        ("id" = String, Path, description = "The project."),
        ("target" = String, Path, description = "The frontend's slug, or its id.")
    ),
    responses((status = 200, description = "The releases.", body = ReleaseList)),
    extensions(("x-problems" = json!("owner forbidden not_found capacity_reached"))),
    security(("bearer" = []))
)]
pub async fn releases(
    State(app): State<SharedApp>,
    scope: ProjectScope,
    Path(path): Path<TargetPath>,
    query: UnreadQuery,
) -> Result<axum::Json<ReleaseList>, Problem> {
    let target = path.target();
    app.deployments.frontend(scope.project.id, &target).await?;
    query.none()?;
    let releases = app.deployments.releases(&scope.project, &target).await?;
    Ok(axum::Json(releases.into()))
}

/// Look at a revision
///
/// Unlisted, immutable and static: a preview has no runtime.
#[utoipa::path(
    operation_id = "preview_revision",
    get, path = "/_preview/{deployment_id}/{revision_id}/", tag = "pages",
    params(
        ("deployment_id" = String, Path, description = "The frontend's id."),
        ("revision_id" = String, Path, description = "The revision.")
    ),
    responses(
        (status = 200, description = "The page.", content_type = "text/html", body = String),
        (status = 206, description = "The range that was asked for.", content_type = "text/html", body = String),
        (status = 304, description = "It never changes.")
    ),
    extensions(("x-problems" = json!("disabled not_found range_not_satisfiable render_failed capacity_reached")))
)]
pub async fn preview(
    State(app): State<SharedApp>,
    Path((deployment, revision)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (Ok(deployment), Ok(revision)) = (deployment.parse(), revision.parse()) else {
        return Err(Problem::not_found());
    };
    let page = match app.deployments.preview(deployment, revision).await {
        Ok(page) => page,
        Err(LookupError::Disabled) => return Ok(disabled_page()),
        Err(error) => return Err(error.into()),
    };
    answer::page(&page, Place::Elsewhere, app.clock.now(), &headers)
}

/// Add the slash
///
/// The address of a preview ends with a slash.
#[utoipa::path(
    operation_id = "preview_with_slash",
    get, path = "/_preview/{deployment_id}/{revision_id}", tag = "pages",
    params(
        ("deployment_id" = String, Path, description = "The frontend's id."),
        ("revision_id" = String, Path, description = "The revision.")
    ),
    responses((status = 308, description = "To the preview.")),
    extensions(("x-problems" = json!("disabled not_found")))
)]
pub async fn preview_with_slash(
    State(app): State<SharedApp>,
    Path((deployment, revision)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let (Ok(deployment), Ok(revision)) = (deployment.parse(), revision.parse()) else {
        return Err(Problem::not_found());
    };
    match app.deployments.previewed(deployment, revision).await {
        Ok(_) => {}
        Err(LookupError::Disabled) => return Ok(disabled_page()),
        Err(error) => return Err(error.into()),
    }
    let headers = [
        (
            header::LOCATION,
            format!("/_preview/{deployment}/{revision}/"),
        ),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    Ok((StatusCode::PERMANENT_REDIRECT, headers).into_response())
}
