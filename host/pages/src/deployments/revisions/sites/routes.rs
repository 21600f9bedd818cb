//! The routes of sites' files.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Deserialize;

use super::model::StoredSiteFile;
use super::operations::{self, SiteFileUpload};
use super::requests::SiteQuery;
use crate::access::{Editor, Viewer};
use crate::deployments::frontends::scope::AuthorizedFrontend;
use crate::deployments::frontends::views::FrontendView;
use crate::deployments::revisions::Revisions;
use crate::http::NOSNIFF;
use crate::http::extract::{ApiQuery, NoQueryParams, RequiredBodyLength, StreamedBody};
use crate::http::negotiate;
use crate::http::problem::Problem;

/// The last part of a file's address.
#[derive(Debug, Deserialize)]
pub struct FilePath {
    path: String,
}

/// Publish one file of a site
///
/// At once: a new file, or other bytes of one that is there. What others publish at the same time stays.
#[utoipa::path(
    operation_id = "put_file",
    put, path = "/api/v1/projects/{id}/frontends/{target}/files/{*path}", tag = "frontends",
    params(
        ("id" = String, Path, description = "The project."),
        ("target" = String, Path, description = "The frontend's slug, or its id."),
        ("path" = String, Path, description = "Path of the file.")
    ),
    request_body(content = String, content_type = "application/octet-stream", description = "The file's bytes, with a `Content-Length`."),
    responses((status = 200, description = "Live, and durable.", body = FrontendView)),
    extensions(("x-problems" = json!("owner forbidden not_found timeout length_required path_refused rules_refused plan_limit immutable_changed storage_full revision_conflict"))),
    security(("bearer" = []))
)]
pub async fn put_file(
    State(revisions): State<Arc<Revisions>>,
    at: AuthorizedFrontend<Editor>,
    Path(path): Path<FilePath>,
    _: RequiredBodyLength,
    _: NoQueryParams,
    body: StreamedBody,
) -> Result<Json<FrontendView>, Problem> {
    let input = SiteFileUpload {
        path: path.path,
        body,
    };
    operations::put_file(revisions, at, input).await.map(Json)
}

/// Delete one file of a site
///
/// At once. What others publish at the same time stays.
#[utoipa::path(
    operation_id = "delete_file",
    delete, path = "/api/v1/projects/{id}/frontends/{target}/files/{*path}", tag = "frontends",
    params(
        ("id" = String, Path, description = "The project."),
        ("target" = String, Path, description = "The frontend's slug, or its id."),
        ("path" = String, Path, description = "Path of the file.")
    ),
    responses((status = 200, description = "Live without the file, and durable.", body = FrontendView)),
    extensions(("x-problems" = json!("owner forbidden not_found content_blocked revision_conflict"))),
    security(("bearer" = []))
)]
pub async fn delete_file(
    State(revisions): State<Arc<Revisions>>,
    at: AuthorizedFrontend<Editor>,
    Path(path): Path<FilePath>,
    _: NoQueryParams,
) -> Result<Json<FrontendView>, Problem> {
    let deleted = operations::delete_file(revisions, at, path.path).await;
    deleted.map(Json)
}

/// Get one file of a site
///
/// Its bytes, of what is live or of a revision, to be saved: never shown by a browser.
#[utoipa::path(
    operation_id = "get_file",
    get, path = "/api/v1/projects/{id}/frontends/{target}/files/{*path}", tag = "frontends",
    params(
        ("id" = String, Path, description = "The project."),
        ("target" = String, Path, description = "The frontend's slug, or its id."),
        ("path" = String, Path, description = "Path of the file."),
        SiteQuery
    ),
    responses(
        (status = 200, description = "The file's bytes.", content_type = "application/octet-stream", body = String),
        (status = 304, description = "The file has not changed.")
    ),
    extensions(("x-problems" = json!("owner forbidden not_found disabled capacity_reached"))),
    security(("bearer" = []))
)]
pub async fn get_file(
    State(revisions): State<Arc<Revisions>>,
    at: AuthorizedFrontend<Viewer>,
    Path(path): Path<FilePath>,
    ApiQuery(query): ApiQuery<SiteQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let found = operations::get_file(Arc::clone(&revisions), at, (path.path, query)).await?;
    let StoredSiteFile { reader, .. } = found;
    let etag = format!("\"{}\"", reader.digest());
    let is_known = headers.contains_key(header::IF_NONE_MATCH)
        && negotiate::if_none_match_has(&headers, &etag);
    let bytes = reader.bytes();
    let mut response = match is_known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => {
            let held = revisions.serving.hold_stream(reader.bytes_in_memory())?;
            let body = Body::from_stream(held.attach(reader.read(0..bytes)));
            download(body, HeaderValue::from_static("attachment"), bytes)
        }
    };
    let etag = HeaderValue::try_from(etag)?;
    response.headers_mut().insert(header::ETAG, etag);
    Ok(response)
}

/// Get a site as one archive
///
/// All files of what is live, or of a revision, as a tar.
#[utoipa::path(
    operation_id = "get_archive",
    get, path = "/api/v1/projects/{id}/frontends/{target}/archive", tag = "frontends",
    params(
        ("id" = String, Path, description = "The project."),
        ("target" = String, Path, description = "The frontend's slug, or its id."),
        SiteQuery
    ),
    responses((status = 200, description = "The archive.", content_type = "application/x-tar", body = String)),
    extensions(("x-problems" = json!("owner forbidden not_found disabled capacity_reached"))),
    security(("bearer" = []))
)]
pub async fn get_archive(
    State(revisions): State<Arc<Revisions>>,
    at: AuthorizedFrontend<Viewer>,
    ApiQuery(query): ApiQuery<SiteQuery>,
) -> Result<Response, Problem> {
    let archive = operations::get_archive(Arc::clone(&revisions), at, query).await?;
    let name = HeaderValue::try_from(format!("attachment; filename=\"{}\"", archive.name))?;
    let held = revisions.serving.hold_stream(archive.bytes_in_memory())?;
    let mut response = Response::new(Body::from_stream(held.attach(archive.write())));
    let headers = response.headers_mut();
    let media_type = HeaderValue::from_static("application/x-tar");
    headers.insert(header::CONTENT_TYPE, media_type);
    headers.insert(header::CONTENT_DISPOSITION, name);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(NOSNIFF.0, NOSNIFF.1);
    Ok(response)
}

/// Answers bytes that a browser saves and never shows.
fn download(body: Body, disposition: HeaderValue, bytes: u64) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    let media_type = HeaderValue::from_static("application/octet-stream");
    headers.insert(header::CONTENT_TYPE, media_type);
    headers.insert(header::CONTENT_DISPOSITION, disposition);
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(bytes));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(NOSNIFF.0, NOSNIFF.1);
    response
}
