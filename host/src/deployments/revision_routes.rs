//! The routes of revisions and releases.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::frontend_routes::{FrontendView, TITLE, TargetPath, check_content, revision_id};
use super::releases::{NewRelease, ReleaseEntry};
use super::revisions::{DraftSource, Edit, NewDraft, Revision, RevisionKind, RevisionState};
use crate::app::SharedApp;
use crate::clock::Timestamp;
use crate::http::extract::{NoQuery, Query, UnreadBody, check_characters, invalid};
use crate::http::front::Context;
use crate::http::idempotency;
use crate::http::problem::Problem;
use crate::http::serve::to_the_end;
use crate::ids::RevisionId;
use crate::projects::scope::ProjectScope;

/// The longest message, in characters.
const MESSAGE: usize = 1_000;
/// Revisions on a page of the history, if the request does not say.
const PAGE: u32 = 50;
/// Revisions on a page of the history at most.
const PAGE_MOST: u32 = 200;

/// A draft to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateRevision {
    /// The active revision, which the draft is made from.
    #[schema(format = "uuid")]
    base_revision_id: String,
    /// The whole source. Send this or `edits`.
    content: Option<String>,
    /// Changes to the base revision's source, applied in order. An extension: send this or `content`.
    edits: Option<Vec<Edit>>,
    /// The page's title; the active revision's if absent.
    #[schema(max_length = 200)]
    title: Option<String>,
    /// Why it is made.
    #[schema(max_length = 1000)]
    message: Option<String>,
}

/// A release.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseRequest {
    /// What shall be live.
    #[schema(format = "uuid")]
    revision_id: String,
    /// What you believe is live now; if it is not, nothing happens.
    #[schema(format = "uuid")]
    expected_active_revision_id: String,
    /// Why.
    #[schema(max_length = 1000)]
    message: Option<String>,
}

/// A revision.
#[derive(Debug, Serialize, ToSchema)]
pub struct RevisionView {
    /// Its identity.
    #[schema(value_type = String, format = "uuid")]
    revision_id: RevisionId,
    /// SHA-256 of its source, in hexadecimal.
    content_sha256: String,
    /// The page's title.
    title: String,
    /// Why it was made.
    message: Option<String>,
    /// Its latest release.
    kind: RevisionKind,
    /// Where it is in its life.
    state: RevisionState,
    /// When it was made.
    #[schema(value_type = String, format = "date-time")]
    created_at: Timestamp,
    /// When it last became live.
    #[schema(value_type = Option<String>, format = "date-time")]
    promoted_at: Option<Timestamp>,
}

impl From<&Revision> for RevisionView {
    fn from(revision: &Revision) -> Self {
        Self {
            revision_id: revision.id,
            content_sha256: revision.source.to_string(),
            title: revision.title.clone(),
            message: revision.message.clone(),
            kind: revision.kind,
            state: revision.state,
            created_at: revision.created_at,
            promoted_at: revision.promoted_at,
        }
    }
}

/// A draft.
#[derive(Debug, Serialize, ToSchema)]
pub struct RevisionCreated {
    /// The revision.
    revision: RevisionView,
    /// Where to look at it.
    #[schema(format = "uri")]
    preview_url: String,
    /// Whether an older revision has the same content and title, and is answered instead.
    deduplicated: bool,
}

/// A page of a frontend's history.
#[derive(Debug, Serialize, ToSchema)]
pub struct RevisionList {
    /// What is live.
    #[schema(value_type = String, format = "uuid")]
    active_revision_id: RevisionId,
    /// Newest first.
    revisions: Vec<RevisionView>,
    /// The `cursor` of the next page, if there is one.
    next_cursor: Option<String>,
}

/// What a release did.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReleaseView {
    /// The frontend as it is now.
    frontend: FrontendView,
    /// What is live.
    revision: RevisionView,
}

/// Something that became live.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReleaseEntryView {
    /// What.
    #[schema(value_type = String, format = "uuid")]
    revision_id: RevisionId,
    /// How: baseline, publish, promote or rollback.
    kind: String,
    /// Why.
    message: Option<String>,
    /// When.
    #[schema(value_type = String, format = "date-time")]
    at: Timestamp,
}

/// All that ever was live.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReleaseList {
    /// Newest first.
    releases: Vec<ReleaseEntryView>,
}

/// Which part of the history.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WhichRevisions {
    /// How many; 50 if absent.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// List revisions
///
/// Newest first. The first look begins the history: its baseline is what is live.
#[utoipa::path(
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
    Query(query): Query<WhichRevisions>,
) -> Result<axum::Json<RevisionList>, Problem> {
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
        .history(&scope.project, &path.target(), limit, before)
        .await?;
    Ok(axum::Json(RevisionList {
        active_revision_id: history.active,
        revisions: history.revisions.iter().map(RevisionView::from).collect(),
        next_cursor: history.next.map(|number| number.to_string()),
    }))
}

/// Get a revision
#[utoipa::path(
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
    _: NoQuery,
) -> Result<axum::Json<RevisionView>, Problem> {
    let id = which
        .revision_id
        .parse()
        .map_err(|_| Problem::not_found())?;
    let revision = app
        .deployments
        .revision(&scope.project, &path.target(), id)
        .await?;
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
    let view = move |drafted: &super::revisions::Drafted| RevisionCreated {
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
    let base = revision_id("base_revision_id", &request.base_revision_id)?;
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
        base,
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
        revision: revision_id("revision_id", &request.revision_id)?,
        expected: revision_id(
            "expected_active_revision_id",
            &request.expected_active_revision_id,
        )?,
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
    _: NoQuery,
) -> Result<axum::Json<ReleaseList>, Problem> {
    let releases = app
        .deployments
        .releases(&scope.project, &path.target())
        .await?;
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
