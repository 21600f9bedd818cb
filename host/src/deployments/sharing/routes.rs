//! The routes of shares beside publishing: a file as it is, deletion, and the claim.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::operations;
use super::requests::{ClaimRequest, UploadOptions};
use super::scope::ShareToken;
use crate::access::{Editor, MaybeCaller};
use crate::control::kept_answers::AnswerKeeper;
use crate::deployments::frontends::views::FrontendView;
use crate::deployments::views::Deployed;
use crate::deployments::{Deployments, Publisher};
use crate::http::context::Context;
use crate::http::extract::{DeclaredLength, UnreadBody, UnreadQuery};
use crate::http::negotiate;
use crate::http::problem::Problem;
use crate::projects::scope::ProjectScope;
use crate::workspaces::Caller;
use svc_sandbox::Flow;

/// Publish a file as it is
///
/// The body is the file. Its name says the type: {{extensions}}; any other text becomes
/// Markdown with one block of code in its language. `curl -T notes.md <base_url>/api/v1/deploy/` appends the name. An extension
/// of this implementation.
#[utoipa::path(
    put, path = "/api/v1/deploy/{id}", tag = "quick share", operation_id = "deploy_file",
    params(("id" = String, Path, description = "The file's name; the page's title, if no other is given."), UploadOptions),
    request_body(content = String, content_type = "text/plain", description = "The file's text, in UTF-8."),
    responses((status = 201, description = "Published, and durable: the link and a line break, or the whole answer for who accepts JSON.", content((String = "text/plain"), (Deployed = "application/json")))),
    extensions(("x-problems" = json!("invalid_request render_failed unauthorized timeout payload_too_large unsupported_media_type rate_limited capacity_reached"))),
    security((), ("bearer" = []))
)]
pub async fn put(
    State(deployments): State<Arc<Deployments>>,
    Path(file): Path<String>,
    headers: HeaderMap,
    context: Context,
    MaybeCaller(caller): MaybeCaller,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let flow = caller.as_ref().map_or_else(Flow::current, Caller::flow);
    let publisher = Publisher::new(context.client.network(), caller);
    let publishing = publish(deployments, file, publisher, &headers, body);
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
    State(deployments): State<Arc<Deployments>>,
    headers: HeaderMap,
    context: Context,
    MaybeCaller(caller): MaybeCaller,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let flow = caller.as_ref().map_or_else(Flow::current, Caller::flow);
    let publisher = Publisher::new(context.client.network(), caller);
    let publishing = publish(deployments, String::new(), publisher, &headers, body);
    flow.scope(publishing).await
}

async fn publish(
    deployments: Arc<Deployments>,
    file: String,
    publisher: Publisher,
    headers: &HeaderMap,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let (bytes, options) = body.bytes_and_query::<UploadOptions>().await?;
    let share = options.checked(&file, &bytes, &deployments.config.limits)?;
    let publishing = deployments.publish_share(share, publisher, AnswerKeeper::none());
    let deployed = publishing.await?;
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
    State(deployments): State<Arc<Deployments>>,
    Path(id): Path<String>,
    ShareToken(token): ShareToken,
    _: DeclaredLength,
    query: UnreadQuery,
) -> Result<StatusCode, Problem> {
    let proven = deployments.prove_share(&id, &token).await?;
    query.none()?;
    deployments.delete_share(proven).await?;
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
    State(deployments): State<Arc<Deployments>>,
    at: ProjectScope<Editor>,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let input = body.json::<ClaimRequest>().await?.value;
    let view = operations::claim(deployments, at, input).await?;
    let location = HeaderValue::try_from(&view.url).map_err(|e| Problem::internal(&e))?;
    let headers = [(header::LOCATION, location)];
    Ok((StatusCode::CREATED, headers, Json(view)).into_response())
}
