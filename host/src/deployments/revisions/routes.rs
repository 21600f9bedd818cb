//! The routes of revisions and releases.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;

use super::model::{DraftSource, Drafted, Edit, NewDraft, RevisionKind};
use super::releases::{NewRelease, ReleaseEntry};
use super::views::{
    CreateRevision, ReleaseEntryView, ReleaseList, ReleaseRequest, ReleaseView, RevisionCreated,
    RevisionList, RevisionView, WhichRevisions,
};
use crate::app::SharedApp;
use crate::deployments::answer::{self, Place};
use crate::deployments::frontends::routes::{TITLE, TargetPath, check_content};
use crate::deployments::frontends::views::FrontendView;
use crate::deployments::routes::disabled_page;
use crate::deployments::serve::LookupError;
use crate::http::extract::{UnreadBody, UnreadQuery, check_characters, invalid};
use crate::http::front::Context;
use crate::http::idempotency;
use crate::http::problem::Problem;
use crate::http::serve::to_the_end;
use crate::projects::scope::ProjectScope;

/// The longest message, in characters.
const MESSAGE: usize = 1_000;
/// The most edits of a draft. With the bound of a source's length it bounds the work that a request may cause.
const EDITS: usize = 100;
/// Revisions on a page of the history, if the request does not say.
const PAGE: u32 = 50;
/// Revisions on a page of the history at most.
const PAGE_MOST: u32 = 200;

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
    let query: WhichRevisions = query.read()?;
    let limit = query.limit.unwrap_or(PAGE);
    if !(1..=PAGE_MOST).contains(&limit) {
        return Err(invalid(format!("`limit` must be from 1 to {PAGE_MOST}.")));
    }
    let before = match query.cursor.as_deref() {
        Some(cursor) => Some(cursor.parse().map_err(|_| {
            invalid("`cursor` is none: send the `next_cursor` of the page before, or leave it out.")
        })?),
        None => None,
    };
    let history = app
        .deployments
        .history(&scope.project, &target, limit, before)
        .await?;
    Ok(axum::Json(RevisionList {
        active_revision_id: history.active,
        revisions: history.revisions.iter().map(RevisionView::from).collect(),
        next_cursor: history.next.map(|number| number.to_string()),
    }))
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
    context: Context,
    scope: ProjectScope,
    Path(path): Path<TargetPath>,
    headers: HeaderMap,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let target = path.target();
    let frontend = app.deployments.frontend(scope.project.id, &target).await?;
    let body = body.json::<CreateRevision>().await?;
    let by = Some(&scope.principal);
    let attempt = idempotency::begin_in(
        &app,
        &context,
        by,
        "revisions",
        &frontend.id.to_string(),
        &headers,
        &body.raw,
    )
    .await?;
    let running = match attempt {
        idempotency::Attempt::Replay(response) => return Ok(response),
        idempotency::Attempt::Run(running) => running,
    };
    let new = new_draft(body.value)?;
    let key = running.as_ref().map(idempotency::Running::key);
    let deployments = Arc::clone(&app.deployments);
    let answered = Arc::clone(&app.deployments);
    let view = move |drafted: &Drafted| RevisionCreated {
        revision: RevisionView::from(&drafted.revision),
        preview_url: answered.preview_url(drafted.deployment, drafted.revision.id),
        deduplicated: drafted.deduplicated,
    };
    let kept = view.clone();
    let drafted = to_the_end(async move {
        let _running = running;
        // Plain data always has a JSON form.
        let body = move |drafted: &_| serde_json::to_string(&kept(drafted)).unwrap_or_default();
        deployments
            .create_draft(scope.project, target, new, key, body)
            .await
    })
    .await??;
    Ok(axum::Json(view(&drafted)).into_response())
}

fn new_draft(request: CreateRevision) -> Result<NewDraft, Problem> {
    check_characters("title", request.title.as_deref(), TITLE)?;
    check_characters("message", request.message.as_deref(), MESSAGE)?;
    let source = match (request.content, request.edits) {
        (Some(content), None) => {
            check_content(&content)?;
            DraftSource::Content(content)
        }
        (None, Some(edits)) => {
            check_edits(&edits)?;
            DraftSource::Edits(edits)
        }
        (None, None) => {
            return Err(invalid(
                "missing field `content`: send the source, or `edits`.",
            ));
        }
        (Some(_), Some(_)) => return Err(invalid("Send `content` or `edits`, not both.")),
    };
    let title = request.title.filter(|title| !title.is_empty());
    Ok(NewDraft {
        base: request.base_revision_id.parse().ok(),
        source,
        title,
        message: request.message,
    })
}

fn check_edits(edits: &[Edit]) -> Result<(), Problem> {
    if edits.is_empty() {
        return Err(invalid(
            "`edits` is empty: send at least one, or `content`.",
        ));
    }
    if edits.len() > EDITS {
        return Err(invalid(format!(
            "`edits` has {} entries; {EDITS} is the most. Send `content` instead.",
            edits.len()
        )));
    }
    for (index, edit) in edits.iter().enumerate() {
        if edit.find.is_empty() {
            return Err(invalid(format!(
                "`edits[{index}].find` is empty: it must occur in the source."
            )));
        }
        if edit.count == Some(0) {
            return Err(invalid(format!(
                "`edits[{index}].count` must be at least 1."
            )));
        }
    }
    Ok(())
}

/// Promote a revision
///
/// Makes it live, if what you expect to be live is.
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
    let request = body.json::<ReleaseRequest>().await?.value;
    check_characters("message", request.message.as_deref(), MESSAGE)?;
    let new = NewRelease {
        revision: request.revision_id.parse().ok(),
        expected: request.expected_active_revision_id.parse().ok(),
        message: request.message,
        kind,
    };
    let (deployments, project) = (Arc::clone(&app.deployments), scope.project.clone());
    let (frontend, revision) =
        to_the_end(async move { deployments.release(project, target, new).await }).await??;
    Ok(axum::Json(ReleaseView {
        frontend: FrontendView::new(&frontend, &scope.project, &app.config),
        revision: RevisionView::from(&revision),
    }))
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
    Ok(axum::Json(ReleaseList {
        releases: releases.into_iter().map(ReleaseEntryView::from).collect(),
    }))
}

impl From<ReleaseEntry> for ReleaseEntryView {
    fn from(entry: ReleaseEntry) -> Self {
        Self {
            revision_id: entry.revision,
            kind: entry.kind,
            message: entry.message,
            at: entry.at,
        }
    }
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
    extensions(("x-problems" = json!("disabled not_found range_not_satisfiable render_failed internal capacity_reached")))
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
    extensions(("x-problems" = json!("disabled not_found internal")))
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
