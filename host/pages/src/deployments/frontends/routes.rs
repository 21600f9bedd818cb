//! The routes of frontends.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};

use super::requests::{CreateFrontend, CreateFrontendRequest, CreateSite, explain_share_fields};
use super::scope::{AuthorizedFrontend, FrontendPath};
use super::views::{FrontendList, FrontendView};
use super::{Frontends, operations};
use crate::access::idempotency::{IdempotencyScope, IdempotentRequest};
use crate::access::{Editor, Viewer};
use crate::deployments::files::requests::names_site;
use crate::deployments::serving::PageService;
use crate::http::context::HttpRequestContext;
use crate::http::extract::{
    NoQueryParams, PublicationBody, body_too_large, parse_json, read_document,
};
use crate::http::problem::{Problem, ProblemCode};
use crate::projects::scope::AuthorizedProject;

/// Publish a frontend
///
/// A page of one source, or a site of files. A site's file is sent with the request, or named by its SHA-256 if the project has it: a digest
/// that it does not have is a 409 that lists all of them.
#[utoipa::path(
    operation_id = "create_frontend",
    post, path = "/api/v1/projects/{id}/frontends", tag = "frontends",
    params(
        ("id" = String, Path, description = "The project."),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes a repeated request answer what the first did, for 24 hours.")
    ),
    request_body = CreateFrontendRequest,
    responses((status = 201, description = "Published, and durable.", body = FrontendView)),
    extensions(("x-problems" = json!("owner body idempotency_conflict forbidden not_found render_failed capacity_reached path_refused rules_refused plan_limit files_missing digest_mismatch storage_full"))),
    security(("bearer" = []))
)]
pub async fn create(
    State(frontends): State<Arc<Frontends>>,
    request: IdempotentRequest,
    at: AuthorizedProject<Editor>,
    body: PublicationBody,
) -> Result<Response, Problem> {
    let body = body.0.bytes().await?;
    let (caller, parent) = (at.authority.caller.clone(), at.project.id.to_string());
    let route = IdempotencyScope {
        name: "frontends",
        parent: &parent,
    };
    if read_document(&body, names_site).await? {
        let input = read_document(&body, parse_json::<CreateSite>).await??;
        let work = |keep| operations::create_site(frontends, at, input, keep);
        return request
            .run_once(Some(&caller), route, &body, StatusCode::CREATED, work)
            .await;
    }
    let most = frontends.config().limits.body_bytes;
    if body.len() as u64 > most {
        return Err(body_too_large(most));
    }
    let input = parse_json::<CreateFrontend>(&body).map_err(explain_share_fields)?;
    let work = |keep| operations::create(frontends, at, input, keep);
    request
        .run_once(Some(&caller), route, &body, StatusCode::CREATED, work)
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
    State(frontends): State<Arc<Frontends>>,
    at: AuthorizedProject<Viewer>,
    _: NoQueryParams,
) -> Result<Json<FrontendList>, Problem> {
    operations::list(frontends, at).await.map(Json)
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
    State(frontends): State<Arc<Frontends>>,
    at: AuthorizedFrontend<Viewer>,
    _: NoQueryParams,
) -> Result<Json<FrontendView>, Problem> {
    operations::get(frontends, at).await.map(Json)
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
    State(frontends): State<Arc<Frontends>>,
    at: AuthorizedProject<Editor>,
    Path(path): Path<FrontendPath>,
    _: NoQueryParams,
) -> Result<StatusCode, Problem> {
    operations::delete(frontends, at, path.target()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A project's origin leads to its home, else to its oldest frontend. A site that is there answers without this.
pub async fn home(
    State(serving): State<Arc<PageService>>,
    context: HttpRequestContext,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let Some(label) = context.host.project_label() else {
        return Err(Problem::not_found());
    };
    let origin = serving.origin(label).await?;
    let slug = origin
        .home()
        .ok_or_else(|| Problem::new(ProblemCode::NotFound, "Nothing is published here yet."))?;
    let query = query.map_or_else(String::new, |query| format!("?{query}"));
    let headers = [
        (header::LOCATION, format!("/{slug}{query}")),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    Ok((StatusCode::FOUND, headers).into_response())
}
