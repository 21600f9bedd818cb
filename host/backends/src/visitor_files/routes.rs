//! Routes of visitors' files: uploads and downloads below a page's address, and what owners do with them.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::{FromRequest as _, Path, Request, State};
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use super::downloads::AllowedFile;
use super::form::is_form;
use super::requests::{DownloadQuery, ForgetVisitor, ListFiles, UploadQuery};
use super::uploads::{UploadAnswerJson, UploadRequest};
use super::views::{UploadAnswer, VisitorFileList};
use super::{VisitorFiles, operations};
use crate::access::idempotency::{IDEMPOTENCY_HEADER, REPLAYED_HEADER, read_key};
use crate::access::{Editor, Viewer};
use crate::activity::LoggedOutcome;
use crate::backends::BackendError;
use crate::backends::calls::routes::{CallServices, bound_backend};
use crate::backends::model::CallableAction;
use crate::deployments::serving::pages::{PageKind, ServedPage, UNLISTED};
use crate::deployments::serving::request_log::LogNote;
use crate::http::NOSNIFF;
use crate::http::client_ip::ClientIp;
use crate::http::context::HttpRequestContext;
use crate::http::extract::{NoQueryParams, StreamedBody};
use crate::http::hosts::HostKind;
use crate::http::problem::Problem;
use crate::http::query::ApiQuery;
use crate::http::rate_limit::{RateLimitRule, TokenDraw};
use crate::projects::Project;
use crate::projects::scope::AuthorizedProject;
use crate::visitors::ActionCallerIdentity;
use crate::visitors::scope::VisitorPath;
use svc_base::flow::CallerFlow;
use svc_base::ids::BackendId;

/// Policy of a file: nothing in it runs, and nothing is loaded by it.
const FILE_POLICY: HeaderValue = HeaderValue::from_static(
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; media-src 'self'",
);
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
/// Characters of a name that a header may have as they are.
const NAME_CHARACTERS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'.')
    .remove(b'-')
    .remove(b'_')
    .remove(b'~');

/// Services that the routes of visitors' files need.
#[derive(Clone, Debug)]
pub struct VisitorFileRouteServices {
    /// The files.
    pub files: Arc<VisitorFiles>,
    /// Services of calls.
    pub calls: CallServices,
}

/// Address of an upload.
#[derive(Debug, Deserialize)]
pub struct UploadPath {
    slug: String,
    action: String,
}

/// Address of a download.
#[derive(Debug, Deserialize)]
pub struct DownloadPath {
    slug: String,
    action: String,
    file_id: String,
}

/// Address of a file, for its owner.
#[derive(Debug, Deserialize)]
pub struct FilePath {
    file_id: String,
}

/// Upload a file
///
/// By an action with `:svc_file`, as anybody who visits the page may. What the file is, its bytes say; pictures lose what does not draw. The
/// row of `svc_files` and the action's statement are one transaction: where the statement writes no row, the file is refused. Both are
/// durable when they are answered.
#[utoipa::path(
    operation_id = "upload_file",
    post, path = "/{slug}/api/files/{action}", tag = "visitors",
    params(
        ("slug" = String, Path, description = "A project's frontend."),
        ("action" = String, Path, description = "The action that takes the file."),
        ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 128, description = "Makes an upload safe to repeat: the first answer is kept for a day, and is that of each further one."),
        UploadQuery
    ),
    request_body(
        content(
            (String = "application/octet-stream"),
            (String = "multipart/form-data")
        ),
        description = "The file, with a `Content-Length`; or a form with one part `file`, and at most one part `params`."
    ),
    responses((status = 201, description = "The file, and what the action's statement answers.", body = UploadAnswer)),
    extensions(("x-problems" = json!("rate_limited not_found disabled invalid_request invalid_json length_required payload_too_large storage_full timeout unsupported_media_type render_failed content_blocked upload_refused params_mismatch reserved_param identity_required statement_refused statement_failed query_timeout constraint_violation idempotency_conflict database_full database_busy capacity_reached"))),
    security(())
)]
pub async fn upload(
    State(services): State<VisitorFileRouteServices>,
    context: HttpRequestContext,
    Path(path): Path<UploadPath>,
    request: Request,
) -> Response {
    let began = services.calls.serving.clock().elapsed();
    let mut note = UploadNote::default();
    let answer = answer_upload(&services, &context, &path, (request, &mut note)).await;
    let mut response = answer.unwrap_or_else(IntoResponse::into_response);
    if let Some(draw) = note.draw {
        let buckets = &services.calls.rate_limits.upload_deployment;
        buckets.add_headers(draw, response.headers_mut());
    }
    note.count(&services.calls, began, response)
}

/// An upload, as far as it is known, for the owner of its page.
#[derive(Debug, Default)]
struct UploadNote {
    page: Option<Arc<ServedPage>>,
    action: Option<Arc<CallableAction>>,
    /// Token of the page's bucket.
    draw: Option<TokenDraw>,
    /// Id of the visitor, if signed in.
    user_id: Option<String>,
    /// Number of rows that the action's statement answers.
    rows: u64,
}

impl UploadNote {
    /// Counts the upload as a call of its action, and tells the log whose it is.
    fn count(self, calls: &CallServices, began: Duration, mut response: Response) -> Response {
        let outcome = LoggedOutcome::of(&response);
        let activity = self.page.as_ref().and_then(|page| page.activity.as_ref());
        if let Some(activity) = activity
            && outcome.status != StatusCode::TOO_MANY_REQUESTS.as_u16()
        {
            let (clock, project) = (calls.serving.clock(), activity.project());
            let action = self.action.as_ref();
            let counters = action.and_then(|action| action.activity(project));
            let took = clock.elapsed().saturating_sub(began);
            let answered = match outcome.is_failure() {
                true => Err(()),
                false => Ok(self.rows),
            };
            project.count_call(counters, clock.now(), took, answered);
        }
        response.extensions_mut().insert(LogNote {
            user_id: self.user_id,
            ..LogNote::default()
        });
        response
    }
}

/// Receives a file, and commits it; what is known of the upload comes into the note.
async fn answer_upload(
    services: &VisitorFileRouteServices,
    context: &HttpRequestContext,
    path: &UploadPath,
    (request, note): (Request, &mut UploadNote),
) -> Result<Response, Problem> {
    let calls = &services.calls;
    let page = calls
        .serving
        .page_on_host(&context.host, &path.slug)
        .await?;
    note.page = Some(Arc::clone(&page));
    let buckets = &calls.rate_limits.upload_deployment;
    let draw = buckets.take(&page.id);
    note.draw = Some(draw);
    if draw == TokenDraw::Empty {
        return Err(buckets.empty_error().into());
    }
    let (parts, body) = request.into_parts();
    let by = caller_of(calls, (&context.host, &page), &parts.headers).await?;
    let backend = bound_backend(&page)?;
    note.user_id = by.as_ref().map(|by| by.user_id.clone());
    let actions = &calls.actions;
    let action = actions
        .upload_action(backend, &path.action, by.as_ref())
        .await?;
    note.action = Some(Arc::clone(&action));
    let project = project_of(calls, &page).await?;
    let most_bytes = services.files.most_bytes(&project).await?;
    let bounds = services.files.bounds(&action, most_bytes);
    let (query, content_type) = (ApiQuery::<UploadQuery>::of(&parts), content_type(&parts));
    let key = parts.headers.get(IDEMPOTENCY_HEADER).map(read_key);
    // The length is judged before query and key.
    let headers = parts.headers.clone();
    let request = Request::from_parts(parts, body);
    let body = StreamedBody::from_request(request, &()).await?;
    bounds.check(body.declared_bytes(), is_form(content_type.as_deref()))?;
    let (query, key) = (query?, key.transpose()?);
    let still_allowed = {
        let (by, headers) = (by.clone(), &headers);
        async move || check_again(calls, (context, path), (backend, by), headers).await
    };
    let upload = UploadRequest {
        page: page.id,
        bounds,
        project,
        backend,
        action,
        by,
        client: context.client.bucket(),
        key,
        query,
        content_type,
        body,
    };
    let flow = CallerFlow::stranger(context.client.0);
    let answer = Box::pin(flow.scope(services.files.upload(upload, still_allowed))).await?;
    note.rows = answer.rows;
    Ok(created_response(answer))
}

/// Returns who calls a page's action, if signed in.
async fn caller_of(
    calls: &CallServices,
    (host, page): (&HostKind, &ServedPage),
    headers: &HeaderMap,
) -> Result<Option<ActionCallerIdentity>, Problem> {
    let session = calls.visitors.caller_session(host, page, headers).await?;
    Ok(session.map(|session| session.identity()))
}

/// Checks that an upload is allowed still once its body is there: a client may send that for minutes.
///
/// # Errors
/// Those of an upload that begins; `identity_required` where the session has ended.
async fn check_again(
    calls: &CallServices,
    (context, path): (&HttpRequestContext, &UploadPath),
    (backend, by): (BackendId, Option<ActionCallerIdentity>),
    headers: &HeaderMap,
) -> Result<(), Problem> {
    let page = calls
        .serving
        .page_on_host(&context.host, &path.slug)
        .await?;
    if bound_backend(&page)? != backend {
        return Err(Problem::not_found());
    }
    let now = caller_of(calls, (&context.host, &page), headers).await?;
    let id = |by: &Option<ActionCallerIdentity>| by.as_ref().map(|by| by.user_id.clone());
    if id(&now) != id(&by) {
        return Err(BackendError::IdentityRequired.into());
    }
    let actions = &calls.actions;
    actions
        .upload_action(backend, &path.action, now.as_ref())
        .await?;
    Ok(())
}

/// Answers what an upload has made.
fn created_response(answer: UploadAnswerJson) -> Response {
    let mut response = Response::new(Body::from(answer.json));
    *response.status_mut() = StatusCode::CREATED;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if answer.is_replayed {
        headers.insert(REPLAYED_HEADER, HeaderValue::from_static("true"));
    }
    response
}

/// Returns the project of a page.
async fn project_of(calls: &CallServices, page: &ServedPage) -> Result<Project, Problem> {
    let PageKind::Frontend { host_label } = &page.kind else {
        return Err(Problem::not_found());
    };
    let project = calls.projects.find_by_label(host_label).await?;
    project.ok_or_else(Problem::not_found)
}

fn content_type(parts: &Parts) -> Option<String> {
    let value = parts.headers.get(header::CONTENT_TYPE)?;
    value.to_str().ok().map(str::to_owned)
}

/// Download a file
///
/// By an action that reads, with `:svc_file` and no other bind of its own: where it answers a row, the file may be had. Pictures, sound, video
/// and text are shown, everything else is saved, and nothing in a file runs.
#[utoipa::path(
    operation_id = "download_file",
    get, path = "/{slug}/api/files/{action}/{file_id}", tag = "visitors",
    params(
        ("slug" = String, Path, description = "A project's frontend."),
        ("action" = String, Path, description = "The action that allows it."),
        ("file_id" = String, Path, description = "The file."),
        DownloadQuery
    ),
    responses(
        (status = 200, description = "The file.", content_type = "application/octet-stream", body = String),
        (status = 206, description = "A part of it.", content_type = "application/octet-stream", body = String),
        (status = 304, description = "The file has not changed.")
    ),
    extensions(("x-problems" = json!("rate_limited not_found disabled invalid_request identity_required statement_refused statement_failed query_timeout database_busy capacity_reached range_not_satisfiable"))),
    security(())
)]
pub async fn download(
    State(services): State<VisitorFileRouteServices>,
    context: HttpRequestContext,
    Path(path): Path<DownloadPath>,
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    let at = (&*path.slug, &*path.action, &*path.file_id);
    answer_download(&services, (&context.host, &context.client), at, &parts).await
}

/// Answers a download. It bypasses the router, as calls do, if the path is in its plain form.
pub async fn answer_download(
    services: &VisitorFileRouteServices,
    (host, client): (&HostKind, &ClientIp),
    at: (&str, &str, &str),
    request: &Parts,
) -> Response {
    let buckets = services.calls.rate_limits.by_client(RateLimitRule::File);
    let draw = buckets.take(&client.bucket());
    let answer = match draw {
        TokenDraw::Empty => Err(buckets.empty_error().into()),
        _ => answer_allowed(services, host, at, request).await,
    };
    let mut response = answer.unwrap_or_else(|problem: Problem| {
        let mut response = problem.into_response();
        add_file_policies(false, response.headers_mut());
        response
    });
    buckets.add_headers(draw, response.headers_mut());
    response
}

/// Answers a file that its action allows.
async fn answer_allowed(
    services: &VisitorFileRouteServices,
    host: &HostKind,
    (slug, action, file): (&str, &str, &str),
    request: &Parts,
) -> Result<Response, Problem> {
    let calls = &services.calls;
    let page = calls.serving.page_on_host(host, slug).await?;
    let by = caller_of(calls, (host, &page), &request.headers).await?;
    let backend = bound_backend(&page)?;
    let action = calls.actions.download_action(backend, action, by.as_ref());
    let action = action.await?.ok_or_else(Problem::not_found)?;
    let found = services
        .files
        .find_allowed(backend, (&action, file), by.as_ref());
    let row = found.await?.ok_or_else(Problem::not_found)?;
    // Whether there is such a file comes before what is wrong with the query.
    let query = ApiQuery::<DownloadQuery>::of(request)?;
    let (size, is_saved) = query.checked()?;
    let allowed = services
        .files
        .find_form(backend, &action, (row, size))
        .await?;
    let allowed = allowed.ok_or_else(Problem::not_found)?;
    let headers = file_headers(&allowed, is_saved)?;
    let file = allowed.form.file;
    calls
        .serving
        .visitor_file_response(file, headers, &request.headers)
        .await
}

/// Composes the headers of a file.
fn file_headers(allowed: &AllowedFile, is_saved: bool) -> Result<HeaderMap, Problem> {
    let media_type = &*allowed.form.media_type;
    let kind = media_type.split('/').next().unwrap_or_default();
    let is_shown = matches!(kind, "image" | "audio" | "video") || media_type == "text/plain";
    let mut headers = HeaderMap::with_capacity(24);
    headers.insert(
        header::CONTENT_TYPE,
        match media_type {
            "text/plain" => HeaderValue::from_static("text/plain; charset=utf-8"),
            other => HeaderValue::try_from(other)?,
        },
    );
    let disposition = match is_shown && !is_saved {
        true => "inline",
        false => "attachment",
    };
    headers.insert(
        header::CONTENT_DISPOSITION,
        disposition_of(disposition, &file_name(allowed))?,
    );
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static(match allowed.is_public {
            true => "public, max-age=0, must-revalidate",
            false => "private, max-age=0, must-revalidate",
        }),
    );
    add_file_policies(allowed.embeds, &mut headers);
    Ok(headers)
}

/// Adds what every answer of a download has, so that nothing of it runs or is shown elsewhere.
fn add_file_policies(embeds: bool, headers: &mut HeaderMap) {
    headers.insert(
        RESOURCE_POLICY,
        HeaderValue::from_static(match embeds {
            true => "cross-origin",
            false => "same-origin",
        }),
    );
    headers.insert(header::CONTENT_SECURITY_POLICY, FILE_POLICY);
    headers.insert(NOSNIFF.0, NOSNIFF.1);
    headers.insert(UNLISTED.0, UNLISTED.1);
}

/// Returns the name under which a file is saved. A smaller copy has its size and its own ending.
fn file_name(allowed: &AllowedFile) -> String {
    let name = &*allowed.row.name;
    let ending = match &*allowed.form.media_type {
        "image/png" => "png",
        _ => "jpg",
    };
    match allowed.form.size {
        0 => name.to_owned(),
        size => {
            let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
            format!("{stem}-{size}.{ending}")
        }
    }
}

/// Writes the header that names a file, by RFC 6266: plain, and with all of its characters.
fn disposition_of(kind: &str, name: &str) -> Result<HeaderValue, Problem> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ' ');
    let plain: String = name
        .chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .collect();
    let encoded = utf8_percent_encode(name, NAME_CHARACTERS);
    let value = format!("{kind}; filename=\"{plain}\"; filename*=UTF-8''{encoded}");
    Ok(HeaderValue::try_from(value)?)
}

/// List visitors' files
///
/// Newest first, with what all files of the project take.
#[utoipa::path(
    operation_id = "list_files",
    get, path = "/api/v1/projects/{id}/files", tag = "files",
    params(("id" = String, Path, description = "The project."), ListFiles),
    responses((status = 200, description = "The files.", body = VisitorFileList)),
    extensions(("x-problems" = json!("owner forbidden not_found database_busy"))),
    security(("bearer" = []))
)]
pub async fn list(
    State(services): State<VisitorFileRouteServices>,
    at: AuthorizedProject<Viewer>,
    ApiQuery(input): ApiQuery<ListFiles>,
) -> Result<Json<VisitorFileList>, Problem> {
    operations::list(services.files, at, input).await.map(Json)
}

/// Get a visitor's file
///
/// Its bytes, as a file to save.
#[utoipa::path(
    operation_id = "get_file_of_visitor",
    get, path = "/api/v1/projects/{id}/files/{file_id}", tag = "files",
    params(
        ("id" = String, Path, description = "The project."),
        ("file_id" = String, Path, description = "The file.")
    ),
    responses((status = 200, description = "The file's bytes.", content_type = "application/octet-stream", body = String)),
    extensions(("x-problems" = json!("owner forbidden not_found disabled database_busy capacity_reached"))),
    security(("bearer" = []))
)]
pub async fn get(
    State(services): State<VisitorFileRouteServices>,
    at: AuthorizedProject<Viewer>,
    Path(path): Path<FilePath>,
    _: NoQueryParams,
) -> Result<Response, Problem> {
    let (row, reader) = operations::get(services.files, at, path.file_id).await?;
    let bytes = reader.bytes();
    let body = services
        .calls
        .serving
        .streamed_file(reader, 0..bytes)
        .await?;
    let mut response = body.into_response();
    let headers = response.headers_mut();
    let media_type = HeaderValue::from_static("application/octet-stream");
    headers.insert(header::CONTENT_TYPE, media_type);
    headers.insert(
        header::CONTENT_DISPOSITION,
        disposition_of("attachment", &row.name)?,
    );
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(bytes));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(NOSNIFF.0, NOSNIFF.1);
    Ok(response)
}

/// Delete a visitor's file
///
/// With its bytes, and with the rows that refer to it and go with it. An unknown file is no error.
#[utoipa::path(
    operation_id = "delete_file_of_visitor",
    delete, path = "/api/v1/projects/{id}/files/{file_id}", tag = "files",
    params(
        ("id" = String, Path, description = "The project."),
        ("file_id" = String, Path, description = "The file.")
    ),
    responses((status = 204, description = "It is gone.")),
    extensions(("x-problems" = json!("owner forbidden not_found constraint_violation statement_failed query_timeout database_busy capacity_reached"))),
    security(("bearer" = []))
)]
pub async fn delete(
    State(services): State<VisitorFileRouteServices>,
    at: AuthorizedProject<Editor>,
    Path(path): Path<FilePath>,
    _: NoQueryParams,
) -> Result<StatusCode, Problem> {
    operations::delete(services.files, at, path.file_id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Forget a visitor
///
/// An extension. What the platform knows of them is erased and their sessions end; rows that actions have written stay. With `files=true` the
/// files go, too, that they have brought, with the rows that refer to them and go with them. One who is not there is answered alike. A new
/// sign-in gets a new id.
#[utoipa::path(
    operation_id = "forget_visitor",
    delete, path = "/api/v1/projects/{id}/visitors/{user_id}", tag = "projects",
    params(
        ("id" = String, Path, description = "The project."),
        ("user_id" = String, Path, description = "The visitor."),
        ForgetVisitor
    ),
    responses((status = 204, description = "Forgotten.")),
    extensions(("x-problems" = json!("owner forbidden not_found constraint_violation statement_failed query_timeout database_busy capacity_reached"))),
    security(("bearer" = []))
)]
pub async fn forget(
    State(services): State<VisitorFileRouteServices>,
    at: AuthorizedProject<Editor>,
    Path(path): Path<VisitorPath>,
    ApiQuery(input): ApiQuery<ForgetVisitor>,
) -> Result<StatusCode, Problem> {
    let VisitorFileRouteServices { files, calls } = services;
    operations::forget((files, calls.visitors), at, (path.user_id, input)).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_written_for_old_and_new_browsers() {
        for (name, header) in [
            (
                "a b.png",
                r#"inline; filename="a b.png"; filename*=UTF-8''a%20b.png"#,
            ),
            (
                "é\".txt",
                r#"inline; filename="__.txt"; filename*=UTF-8''%C3%A9%22.txt"#,
            ),
        ] {
            assert_eq!(disposition_of("inline", name).unwrap(), header);
        }
    }
}
