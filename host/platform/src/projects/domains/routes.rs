//! The routes of domains.

use axum::Json;
use axum::extract::{Path, State};
use http::StatusCode;
use serde::Deserialize;

use super::requests::{CreateDomain, UpdateDomain, VerifyDomain};
use super::views::{DomainList, DomainView};
use super::{Domains, operations};
use crate::access::{Editor, Viewer};
use crate::http::extract::{NoQueryParams, UnparsedQuery, UnreadBody};
use crate::http::problem::Problem;
use crate::projects::scope::AuthorizedProject;

#[derive(Debug, Deserialize)]
pub struct DomainPath {
    name: String,
}

/// Add a domain
///
/// It is pending until DNS proves it: set one of `records`, then verify it. It is also checked by itself after 1, 5, 15 and 60 minutes,
/// then every hour for 7 days. A domain that the project has already is answered as it is.
#[utoipa::path(
    operation_id = "add_domain",
    post, path = "/api/v1/projects/{id}/domains", tag = "domains",
    params(("id" = String, Path, description = "The project.")),
    request_body = CreateDomain,
    responses((status = 201, description = "Added.", body = DomainView)),
    extensions(("x-problems" = json!("owner body disabled forbidden not_found plan_limit domains_unconfigured"))),
    security(("bearer" = []))
)]
pub async fn create(
    State(domains): State<Domains>,
    at: AuthorizedProject<Editor>,
    body: UnreadBody,
) -> Result<(StatusCode, Json<DomainView>), Problem> {
    let input = body.json::<CreateDomain>().await?.value;
    let added = operations::create(domains, at, input).await?;
    Ok((StatusCode::CREATED, Json(added)))
}

/// List domains
#[utoipa::path(
    operation_id = "list_domains",
    get, path = "/api/v1/projects/{id}/domains", tag = "domains",
    params(("id" = String, Path, description = "The project.")),
    responses((status = 200, description = "The project's domains, oldest first.", body = DomainList)),
    extensions(("x-problems" = json!("owner forbidden not_found domains_unconfigured"))),
    security(("bearer" = []))
)]
pub async fn list(
    State(domains): State<Domains>,
    at: AuthorizedProject<Viewer>,
    _: NoQueryParams,
) -> Result<Json<DomainList>, Problem> {
    operations::list(domains, at).await.map(Json)
}

/// Read a domain
#[utoipa::path(
    operation_id = "get_domain",
    get, path = "/api/v1/projects/{id}/domains/{name}", tag = "domains",
    params(
        ("id" = String, Path, description = "The project."),
        ("name" = String, Path, description = "The domain.")
    ),
    responses((status = 200, description = "The domain.", body = DomainView)),
    extensions(("x-problems" = json!("owner forbidden not_found domains_unconfigured"))),
    security(("bearer" = []))
)]
pub async fn get(
    State(domains): State<Domains>,
    at: AuthorizedProject<Viewer>,
    Path(path): Path<DomainPath>,
    query: UnparsedQuery,
) -> Result<Json<DomainView>, Problem> {
    let found = operations::get(domains, at, path.name).await?;
    query.none()?;
    Ok(Json(found))
}

/// Change a domain
///
/// Where its requests are sent, by a 308 that keeps path and query.
#[utoipa::path(
    operation_id = "update_domain",
    patch, path = "/api/v1/projects/{id}/domains/{name}", tag = "domains",
    params(
        ("id" = String, Path, description = "The project."),
        ("name" = String, Path, description = "The domain.")
    ),
    request_body = UpdateDomain,
    responses((status = 200, description = "Changed.", body = DomainView)),
    extensions(("x-problems" = json!("owner body nothing_to_update forbidden not_found domains_unconfigured"))),
    security(("bearer" = []))
)]
pub async fn update(
    State(domains): State<Domains>,
    at: AuthorizedProject<Editor>,
    Path(path): Path<DomainPath>,
    body: UnreadBody,
) -> Result<Json<DomainView>, Problem> {
    domains.find(&at.project, &path.name).await?;
    let input = body.json::<UpdateDomain>().await?.value;
    operations::update(domains, at, (path.name, input))
        .await
        .map(Json)
}

/// Remove a domain
///
/// It is served no more before this is answered, and its certificate is deleted.
#[utoipa::path(
    operation_id = "remove_domain",
    delete, path = "/api/v1/projects/{id}/domains/{name}", tag = "domains",
    params(
        ("id" = String, Path, description = "The project."),
        ("name" = String, Path, description = "The domain.")
    ),
    responses((status = 204, description = "Gone.")),
    extensions(("x-problems" = json!("owner forbidden not_found domains_unconfigured"))),
    security(("bearer" = []))
)]
pub async fn delete(
    State(domains): State<Domains>,
    at: AuthorizedProject<Editor>,
    Path(path): Path<DomainPath>,
    _: NoQueryParams,
) -> Result<StatusCode, Problem> {
    operations::delete(domains, at, path.name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Verify a domain
///
/// Looks in DNS now. Ten times an hour are allowed.
#[utoipa::path(
    operation_id = "verify_domain",
    post, path = "/api/v1/projects/{id}/domains/{name}/verify", tag = "domains",
    params(
        ("id" = String, Path, description = "The project."),
        ("name" = String, Path, description = "The domain.")
    ),
    request_body(content = VerifyDomain, description = "Nothing, or an empty object."),
    responses((status = 200, description = "Proven, and served.", body = DomainView)),
    extensions(("x-problems" = json!("owner body disabled forbidden not_found domain_taken domain_unproven dns_unavailable domains_unconfigured capacity_reached"))),
    security(("bearer" = []))
)]
pub async fn verify(
    State(domains): State<Domains>,
    at: AuthorizedProject<Editor>,
    Path(path): Path<DomainPath>,
    body: UnreadBody,
) -> Result<Json<DomainView>, Problem> {
    domains.find(&at.project, &path.name).await?;
    body.json_or_nothing::<VerifyDomain>().await?;
    operations::verify(domains, at, path.name).await.map(Json)
}
