//! The routes of revisions and releases.

use std::num::NonZeroU32;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode, header};
use serde::Deserialize;

use super::requests::{ContentQuery, CreateRevision, ReleaseRequest, RevisionsQuery};
use super::sites::requests::{CreateRevisionRequest, CreateSiteRevision, RepublishRequest};
use super::views::{
    ContentView, ReleaseList, ReleaseView, RevisionCreated, RevisionList, RevisionView,
};
use super::{PreviewError, Revisions, operations, sites};
use crate::access::idempotency::{IdempotencyScope, IdempotentRequest};
use crate::access::{Editor, Viewer};
use crate::deployments::files::requests::names_site;
use crate::deployments::frontends::requests::explain_share_fields;
use crate::deployments::frontends::scope::AuthorizedFrontend;
use crate::deployments::frontends::views::FrontendView;
use crate::deployments::serving::PageLookupError;
use crate::deployments::serving::answer::{self, RequestOrigin, disabled_page};
use crate::deployments::serving::pages;
use crate::deployments::serving::site_answer::{SiteHttpRequest, site_response};
use crate::http::context::HttpRequestContext;
use crate::http::extract::{
    ApiQuery, NoQueryParams, PublicationBody, UnparsedQuery, UnreadBody, parse_json,
};
use crate::http::hosts::HostKind;
use crate::http::problem::Problem;
use crate::http::rate_limit::{RateLimitRule, RateLimits};
use svc_base::ids::RevisionId;

/// List revisions
///
/// Newest first. The first look begins the history: its baseline is what is live.
#[utoipa::path(
    operation_id = "list_revisions",
    get, path = "/api/v1/projects/{id}/frontends/{target}/revisions", tag = "revisions",
    params(
        ("id" = String, Path, description = "The project."),
        ("target" = String, Path, description = "The frontend's slug, or its id."),
        RevisionsQuery
    ),
    responses((status = 200, description = "A page of the history, without sources.", body = RevisionList)),
    extensions(("x-problems" = json!("owner forbidden not_found capacity_reached"))),
    security(("bearer" = []))
)]
pub async fn list(
    State(revisions): State<Arc<Revisions>>,
    at: AuthorizedFrontend<Viewer>,
    ApiQuery(query): ApiQuery<RevisionsQuery>,
) -> Result<Json<RevisionList>, Problem> {
    let page = query.checked()?;
    operations::list(revisions, at, page).await.map(Json)
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
    State(revisions): State<Arc<Revisions>>,
    at: AuthorizedFrontend<Viewer>,
    Path(path): Path<RevisionPath>,
    query: UnparsedQuery,
) -> Result<Json<RevisionView>, Problem> {
    let revision = operations::get(revisions, at, path.revision_id).await?;
    query.none()?;
    Ok(Json(revision))
}

/// Delete a revision
///
/// One that is not live, with its preview; one that is gone already is answered alike.
#[utoipa::path(
    operation_id = "delete_revision",
    delete, path = "/api/v1/projects/{id}/frontends/{target}/revisions/{revision_id}", tag = "revisions",
    params(
        ("id" = String, Path, description = "The project."),
        ("target" = String, Path, description = "The frontend's slug, or its id."),
        ("revision_id" = String, Path, description = "The revision.")
    ),
    responses((status = 204, description = "Gone.")),
    extensions(("x-problems" = json!("owner forbidden not_found revision_conflict"))),
    security(("bearer" = []))
)]
pub async fn delete(
    State(revisions): State<Arc<Revisions>>,
    at: AuthorizedFrontend<Editor>,
    Path(path): Path<RevisionPath>,
    _: NoQueryParams,
) -> Result<StatusCode, Problem> {
    operations::delete(revisions, at, path.revision_id).await?;
    Ok(StatusCode::NO_CONTENT)
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
    request_body = CreateRevisionRequest,
    responses((status = 200, description = "The draft.", body = RevisionCreated)),
    extensions(("x-problems" = json!("owner body idempotency_conflict forbidden not_found revision_conflict render_failed capacity_reached path_refused rules_refused plan_limit files_missing digest_mismatch immutable_changed storage_full"))),
    security(("bearer" = []))
)]
pub async fn create(
    State(revisions): State<Arc<Revisions>>,
    request: IdempotentRequest,
    at: AuthorizedFrontend<Editor>,
    body: PublicationBody,
) -> Result<Response, Problem> {
    let (caller, parent) = (at.at.authority.caller.clone(), at.frontend.id.to_string());
    let route = IdempotencyScope {
        name: "revisions",
        parent: &parent,
    };
    if at.frontend.content_type.is_site() {
        let body = body.0.json::<CreateSiteRevision>().await?;
        let work = |keep| sites::operations::create(revisions, at, body.value, keep);
        return request
            .run_once(Some(&caller), route, &body.raw, StatusCode::OK, work)
            .await;
    }
    let body = body.0.with_limit(revisions.config().limits.body_bytes)?;
    let body = body.json::<CreateRevision>().await?;
    let work = |keep| operations::create(revisions, at, body.value, keep);
    request
        .run_once(Some(&caller), route, &body.raw, StatusCode::OK, work)
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
    extensions(("x-problems" = json!("owner body forbidden not_found revision_conflict immutable_changed render_failed capacity_reached"))),
    security(("bearer" = []))
)]
pub async fn promote(
    State(revisions): State<Arc<Revisions>>,
    at: AuthorizedFrontend<Editor>,
    body: UnreadBody,
) -> Result<Json<ReleaseView>, Problem> {
    let input = body.json().await?.value;
    operations::promote(revisions, at, input).await.map(Json)
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
    State(revisions): State<Arc<Revisions>>,
    at: AuthorizedFrontend<Editor>,
    body: UnreadBody,
) -> Result<Json<ReleaseView>, Problem> {
    let input = body.json().await?.value;
    operations::rollback(revisions, at, input).await.map(Json)
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
    State(revisions): State<Arc<Revisions>>,
    at: AuthorizedFrontend<Viewer>,
    _: NoQueryParams,
) -> Result<Json<ReleaseList>, Problem> {
    operations::releases(revisions, at).await.map(Json)
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
    request_body = RepublishRequest,
    responses((status = 200, description = "Live, and durable.", body = FrontendView)),
    extensions(("x-problems" = json!("owner body forbidden not_found type_mismatch render_failed capacity_reached path_refused rules_refused plan_limit files_missing digest_mismatch immutable_changed storage_full"))),
    security(("bearer" = []))
)]
pub async fn republish(
    State(revisions): State<Arc<Revisions>>,
    at: AuthorizedFrontend<Editor>,
    body: PublicationBody,
) -> Result<Json<FrontendView>, Problem> {
    if at.frontend.content_type.is_site() {
        let input = body.0.json().await?.value;
        let published = sites::operations::republish(revisions, at, input).await;
        return published.map(Json);
    }
    let body = body.0.with_limit(revisions.config().limits.body_bytes)?;
    let body = body.bytes().await?;
    operations::check_is_no_site(&at.frontend, names_site(&body))?;
    let input = parse_json(&body).map_err(explain_share_fields)?;
    operations::republish(revisions, at, input).await.map(Json)
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
        ContentQuery
    ),
    responses((status = 200, description = "The source, or that it has not changed.", body = ContentView)),
    extensions(("x-problems" = json!("owner forbidden not_found disabled capacity_reached"))),
    security(("bearer" = []))
)]
pub async fn content(
    State(revisions): State<Arc<Revisions>>,
    at: AuthorizedFrontend<Viewer>,
    ApiQuery(query): ApiQuery<ContentQuery>,
) -> Result<Json<ContentView>, Problem> {
    operations::content(revisions, at, query).await.map(Json)
}

/// Look at a revision
///
/// Unlisted, immutable and static: a preview has no runtime. The first look at a revision that was never a draft renders it, which takes
/// a token of the client's for previews.
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
    extensions(("x-problems" = json!("disabled not_found range_not_satisfiable render_failed rate_limited capacity_reached")))
)]
pub async fn preview(
    State(revisions): State<Arc<Revisions>>,
    State(limits): State<Arc<RateLimits>>,
    Path((deployment, revision)): Path<(String, String)>,
    context: HttpRequestContext,
    request: Parts,
) -> Result<Response, Problem> {
    let asked = (deployment.as_str(), revision.as_str());
    unlisted(show_preview(&revisions, &limits, asked, (&context, &request)).await)
}

/// Address of a preview, without the path of a file below it.
#[derive(Debug, Deserialize)]
pub struct PreviewPath {
    deployment_id: String,
    revision_id: String,
}

/// Look at a file of a revision
///
/// A file of a revision of a site, below its preview. Unlisted, immutable and static.
#[utoipa::path(
    operation_id = "preview_file",
    get, path = "/_preview/{deployment_id}/{revision_id}/{*path}", tag = "pages",
    params(
        ("deployment_id" = String, Path, description = "The frontend's id."),
        ("revision_id" = String, Path, description = "The revision."),
        ("path" = String, Path, description = "Path of the file.")
    ),
    responses(
        (status = 200, description = "The file, with the media type of its ending.", content_type = "application/octet-stream", body = String),
        (status = 206, description = "The range that was asked for.", content_type = "application/octet-stream", body = String),
        (status = 304, description = "It never changes."),
        (status = 308, description = "To the address of the page or the folder.")
    ),
    extensions(("x-problems" = json!("disabled not_found range_not_satisfiable render_failed rate_limited capacity_reached")))
)]
pub async fn preview_file(
    State(revisions): State<Arc<Revisions>>,
    State(limits): State<Arc<RateLimits>>,
    Path(path): Path<PreviewPath>,
    context: HttpRequestContext,
    request: Parts,
) -> Result<Response, Problem> {
    let asked = (path.deployment_id.as_str(), path.revision_id.as_str());
    unlisted(show_preview(&revisions, &limits, asked, (&context, &request)).await)
}

/// Keeps whatever is answered at the address of a preview out of search engines.
fn unlisted(answer: Result<Response, Problem>) -> Result<Response, Problem> {
    let (name, value) = pages::UNLISTED;
    match answer {
        Ok(mut response) => {
            response.headers_mut().entry(name).or_insert(value);
            Ok(response)
        }
        Err(problem) => Err(problem.header(name, value)),
    }
}

/// Answers the page of a revision, or a file of a site's.
async fn show_preview(
    revisions: &Revisions,
    limits: &RateLimits,
    (deployment, revision): (&str, &str),
    (context, request): (&HttpRequestContext, &Parts),
) -> Result<Response, Problem> {
    let mount = format!("/_preview/{deployment}/{revision}/");
    let (Ok(deployment), Ok(revision)) = (deployment.parse(), revision.parse()) else {
        return Err(Problem::not_found());
    };
    let admit = || {
        let looks = limits.by_client(RateLimitRule::Preview);
        let taken = looks.take_many(&context.client.bucket(), NonZeroU32::MIN);
        taken.map(|_| ())
    };
    let page = match revisions.preview(deployment, revision, admit).await {
        Ok(page) => page,
        Err(PreviewError::Lookup(PageLookupError::Disabled)) => {
            return Ok(disabled_page(revisions.config()));
        }
        Err(error) => return Err(error.into()),
    };
    let (headers, origin) = (&request.headers, RequestOrigin::Unpurged);
    let Some(site) = &page.site else {
        return match request.uri.path() == mount {
            true => answer::page_response(&page, origin, revisions.now(), headers),
            false => Err(Problem::not_found()),
        };
    };
    let asked = SiteHttpRequest::new(&mount, &request.uri, headers, origin)?;
    let answered = site_response(&revisions.serving, (&page, site), &asked).await?;
    Ok(answered.response)
}

/// Answers a file of a site's revision at the root of the revision's own origin.
///
/// # Errors
/// `not_found`, `method_not_allowed`, `range_not_satisfiable`, `capacity_reached`.
pub async fn preview_on_origin(
    State(revisions): State<Arc<Revisions>>,
    context: HttpRequestContext,
    request: Parts,
) -> Result<Response, Problem> {
    let HostKind::Preview(revision) = context.host else {
        return Err(Problem::not_found());
    };
    unlisted(show_at_root(&revisions, revision, &request).await)
}

/// Answers a file of a site's revision.
async fn show_at_root(
    revisions: &Revisions,
    revision: RevisionId,
    request: &Parts,
) -> Result<Response, Problem> {
    let page = match revisions.site_preview(revision).await {
        Ok(page) => page,
        Err(PageLookupError::Disabled) => return Ok(disabled_page(revisions.config())),
        Err(error) => return Err(error.into()),
    };
    let site = page.site.as_ref().ok_or_else(Problem::not_found)?;
    let (method, headers) = (&request.method, &request.headers);
    if ![Method::GET, Method::HEAD].contains(method) {
        let allowed = HeaderValue::from_static("GET,HEAD");
        return Err(Problem::method_not_allowed().header(header::ALLOW, allowed));
    }
    let origin = RequestOrigin::Preview;
    let asked = SiteHttpRequest::new("/", &request.uri, headers, origin)?;
    let answered = site_response(&revisions.serving, (&page, site), &asked).await?;
    Ok(answered.response)
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
    State(revisions): State<Arc<Revisions>>,
    Path((deployment, revision)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let asked = (deployment.as_str(), revision.as_str());
    unlisted(add_slash(&revisions, asked).await)
}

/// Redirects to the address of a preview that is there.
async fn add_slash(
    revisions: &Revisions,
    (deployment, revision): (&str, &str),
) -> Result<Response, Problem> {
    let (Ok(deployment), Ok(revision)) = (deployment.parse(), revision.parse()) else {
        return Err(Problem::not_found());
    };
    match revisions.find_previewable(deployment, revision).await {
        Ok(_) => {}
        Err(PageLookupError::Disabled) => return Ok(disabled_page(revisions.config())),
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
