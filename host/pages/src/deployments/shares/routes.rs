//! The routes of shares: publishing, burning, deletion, and the claim.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::requests::{
    ClaimRequest, DeployFrontendRequest, DeployRequest, DeploySite, UploadOptions, UploadedShare,
};
use super::scope::PresentedShareToken;
use super::views::Deployed;
use super::{Shares, operations};
use crate::access::idempotency::{IdempotencyScope, IdempotentRequest};
use crate::access::{Editor, MaybeCaller};
use crate::control::kept_answers::AnswerRecorder;
use crate::deployments::files::requests::names_site;
use crate::deployments::forms;
use crate::deployments::frontends::views::FrontendView;
use crate::deployments::publication::SharePublisher;
use crate::deployments::serving::answer::{disabled_page, platform_page};
use crate::deployments::serving::pages::{self, PageKind};
use crate::deployments::serving::password::routes::unlock_tokens;
use crate::deployments::serving::{PageLookupError, PageService};
use crate::http::context::HttpRequestContext;
use crate::http::extract::{
    CheckedBodyLength, UnparsedQuery, UnreadBody, parse_json, read_document,
};
use crate::http::negotiate;
use crate::http::origin::{check_navigation, check_origin};
use crate::http::problem::{Problem, ProblemCode};
use crate::projects::scope::AuthorizedProject;
use crate::workspaces::Caller;
use svc_sandbox::CallerFlow;

/// Maximum size of the form that opens a one-time page, in bytes: it has no fields.
const MAX_REVEAL_BYTES: u64 = 4 << 10;

/// Publish a quick share
///
/// Anybody may; the page lives for {{quick_share_seconds}}. It may carry a password, and it may be readable once.
#[utoipa::path(
    post, path = "/api/v1/deploy", tag = "quick share",
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repeated request answer what the first did, for 24 hours.")),
    request_body = DeployFrontendRequest,
    responses((status = 201, description = "Published, and durable.", body = Deployed)),
    extensions(("x-problems" = json!("invalid_request invalid_json render_failed path_refused rules_refused plan_limit unauthorized timeout idempotency_conflict payload_too_large unsupported_media_type rate_limited capacity_reached"))),
    security((), ("bearer" = []))
)]
pub async fn deploy(
    State(shares): State<Arc<Shares>>,
    context: HttpRequestContext,
    request: IdempotentRequest,
    MaybeCaller(caller): MaybeCaller,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let body = body.bytes().await?;
    let publisher = SharePublisher::new(context.client.network(), caller.clone());
    let route = IdempotencyScope {
        name: "deploy",
        parent: "",
    };
    let by = caller.as_ref();
    if read_document(&body, names_site).await? {
        let input = read_document(&body, parse_json::<DeploySite>).await??;
        let work = |keep| async move {
            let share = input.checked(&shares.config().limits)?;
            Ok::<_, Problem>(shares.publish_site(share, publisher, keep).await?)
        };
        return request
            .run_once(by, route, &body, StatusCode::CREATED, work)
            .await;
    }
    let input = read_document(&body, parse_json::<DeployRequest>).await??;
    let work = |keep| async move {
        let share = input.checked(&shares.config().limits)?;
        Ok::<_, Problem>(shares.publish(share, publisher, keep).await?)
    };
    request
        .run_once(by, route, &body, StatusCode::CREATED, work)
        .await
}

/// Publish a file as it is
///
/// The body is the file. Its name says the type: {{extensions}}; any other text becomes
/// Markdown with one block of code in its language. A file of {{media_extensions}} becomes a site of the file as it is, with a page that
/// shows it, or has it downloaded; it takes no `one_time`. `curl -T notes.md <base_url>/api/v1/deploy/` appends the name. An extension
/// of this implementation.
#[utoipa::path(
    put, path = "/api/v1/deploy/{id}", tag = "quick share", operation_id = "deploy_file",
    params(("id" = String, Path, description = "The file's name; the page's title, if no other is given."), UploadOptions),
    request_body(content = String, content_type = "text/plain", description = "The file: a text in UTF-8, or the bytes of a picture, sound, video or PDF."),
    responses((status = 201, description = "Published, and durable: the link and a line break, or the whole answer for who accepts JSON.", content((String = "text/plain"), (Deployed = "application/json")))),
    extensions(("x-problems" = json!("invalid_request render_failed unauthorized timeout payload_too_large unsupported_media_type rate_limited capacity_reached"))),
    security((), ("bearer" = []))
)]
pub async fn put(
    State(shares): State<Arc<Shares>>,
    Path(file): Path<String>,
    headers: HeaderMap,
    context: HttpRequestContext,
    MaybeCaller(caller): MaybeCaller,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let flow = caller
        .as_ref()
        .map_or_else(CallerFlow::current, Caller::flow);
    let publisher = SharePublisher::new(context.client.network(), caller);
    let publishing = publish(shares, file, publisher, &headers, body);
    flow.scope(publishing).await
}

/// Publish a text as it is
///
/// A body without a file's name is of the type that `type` says, else code in no language.
#[utoipa::path(
    put, path = "/api/v1/deploy/", tag = "quick share", operation_id = "deploy_text",
    params(UploadOptions),
    request_body(content = String, content_type = "text/plain", description = "The text, in UTF-8."),
    responses((status = 201, description = "Published, and durable: the link and a line break, or the whole answer for who accepts JSON.", content((String = "text/plain"), (Deployed = "application/json")))),
    extensions(("x-problems" = json!("invalid_request render_failed unauthorized timeout payload_too_large unsupported_media_type rate_limited capacity_reached"))),
    security((), ("bearer" = []))
)]
pub async fn put_unnamed(
    State(shares): State<Arc<Shares>>,
    headers: HeaderMap,
    context: HttpRequestContext,
    MaybeCaller(caller): MaybeCaller,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let flow = caller
        .as_ref()
        .map_or_else(CallerFlow::current, Caller::flow);
    let publisher = SharePublisher::new(context.client.network(), caller);
    let publishing = publish(shares, String::new(), publisher, &headers, body);
    flow.scope(publishing).await
}

async fn publish(
    shares: Arc<Shares>,
    file: String,
    publisher: SharePublisher,
    headers: &HeaderMap,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let (bytes, options) = body.bytes_and_query::<UploadOptions>().await?;
    let keep = AnswerRecorder::none();
    let deployed = match options.checked(&file, bytes, &shares.config().limits)? {
        UploadedShare::Page(share) => shares.publish(share, publisher, keep).await?,
        UploadedShare::Site(share) => shares.publish_site(share, publisher, keep).await?,
    };
    let location = HeaderValue::try_from(&deployed.url).map_err(|e| Problem::internal(&e))?;
    let answer = if negotiate::accepts_by_name(headers, "application/json") {
        Json(deployed).into_response()
    } else {
        format!("{}\n", deployed.url).into_response()
    };
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], answer).into_response())
}

/// Delete a share
///
/// For who holds its `delete_token`, as the bearer. A share that is gone already is answered alike. An extension of this
/// implementation.
#[utoipa::path(
    delete, path = "/api/v1/deploy/{id}", tag = "quick share", operation_id = "delete_share",
    params(("id" = String, Path, description = "The share's id.")),
    responses((status = 204, description = "Gone, and its slug is free.")),
    extensions(("x-problems" = json!("invalid_request unauthorized payload_too_large unsupported_media_type not_found rate_limited capacity_reached"))),
    security(("delete_token" = []))
)]
pub async fn delete(
    State(shares): State<Arc<Shares>>,
    Path(id): Path<String>,
    PresentedShareToken(token): PresentedShareToken,
    _: CheckedBodyLength,
    query: UnparsedQuery,
) -> Result<StatusCode, Problem> {
    let share = shares.authorize(&id, &token).await?;
    query.none()?;
    shares.delete(share).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Claim a share
///
/// Makes a quick share a frontend of the project: its slug, its source and its visits move, and its end no longer counts. An
/// extension of this implementation.
#[utoipa::path(
    post, path = "/api/v1/projects/{id}/frontends/claim", tag = "frontends", operation_id = "claim_share",
    params(("id" = String, Path, description = "The project.")),
    request_body = ClaimRequest,
    responses((status = 201, description = "The frontend, live and durable.", body = FrontendView)),
    extensions(("x-problems" = json!("owner body forbidden not_found disabled render_failed capacity_reached"))),
    security(("bearer" = []))
)]
pub async fn claim(
    State(shares): State<Arc<Shares>>,
    at: AuthorizedProject<Editor>,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let input = body.json::<ClaimRequest>().await?.value;
    let view = operations::claim(shares, at, input).await?;
    let location = HeaderValue::try_from(&view.url).map_err(|e| Problem::internal(&e))?;
    let headers = [(header::LOCATION, location)];
    Ok((StatusCode::CREATED, headers, Json(view)).into_response())
}

/// Open a one-time page
///
/// Deletes the page and answers it: of all who try, one reader gets it.
#[utoipa::path(
    post, path = "/{slug}", tag = "pages",
    params(("slug" = String, Path, description = "The page.")),
    responses(
        (status = 200, description = "The page, which is now gone from here.", content_type = "text/html", body = String),
        (status = 401, description = "The form of a protected page.", content_type = "text/html", body = String)
    ),
    extensions(("x-problems" = json!("timeout payload_too_large unsupported_media_type disabled origin_refused not_found method_not_allowed capacity_reached")))
)]
pub async fn reveal(
    State(serving): State<Arc<PageService>>,
    State(shares): State<Arc<Shares>>,
    context: HttpRequestContext,
    Path(slug): Path<String>,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let page = match serving.page_on_host(&context.host, &slug).await {
        Ok(page) => page,
        Err(PageLookupError::Disabled) => return Ok(disabled_page(shares.config())),
        Err(error) => return Err(error.into()),
    };
    if !page.one_time {
        return Err(Problem::new(
            ProblemCode::MethodNotAllowed,
            "Only a one-time page is opened by POST. Read this one with GET.",
        )
        .header(header::ALLOW, HeaderValue::from_static("GET, HEAD")));
    }
    let body = body.with_limit(MAX_REVEAL_BYTES)?;
    check_origin(shares.config(), &context, body.headers())?;
    check_navigation(body.headers())?;
    if !serving.is_unlocked(&page, unlock_tokens(body.headers())) {
        return Ok(platform_page(
            StatusCode::UNAUTHORIZED,
            &forms::password_form(&slug, false),
        ));
    }
    // A form's body says nothing here, and one that is refused must not burn the page. A head may take more memory than the body, so it
    // is not kept meanwhile.
    body.bytes_alone().await?;
    let id = page.id;
    let content = shares
        .burn(&slug, id, |bytes| serving.hold_page(bytes))
        .await?
        .ok_or_else(Problem::not_found)?;
    let mut headers = pages::trust_headers(&PageKind::Share, true, true);
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    Ok((headers, Body::from(content)).into_response())
}
