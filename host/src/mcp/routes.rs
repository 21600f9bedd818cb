//! The route of the tool endpoint: HTTP on one side, the protocol's library on the other.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::Tools;
use super::auth::{self, Refusal};
use super::framing::{self, Refused};
use super::handler::Handler;
use crate::http::context::Context;
use crate::http::extract::UnreadBody;
use crate::http::problem::Problem;

/// A message to the tool endpoint; `openapi/rules.rs` describes it.
#[derive(Debug, utoipa::ToSchema)]
pub struct RpcMessage;

/// Call a tool
///
/// The Model Context Protocol over streamable HTTP: one JSON-RPC message in, one out. Stateless, without streams, in the
/// versions of the protocol up to 2026-07-28, with or without `initialize`. `tools/list` describes the tools; all but
/// `deploy_asset` need a credential. What a tool refuses is a result with `isError` whose `structuredContent` is a problem.
/// Each call takes one token of this route's bucket, a batch of actions too: it names a project, and no page whose calls
/// it could count among.
#[utoipa::path(
    operation_id = "call_tool",
    post, path = "/mcp", tag = "tools",
    request_body(content = RpcMessage, description = "A JSON-RPC request or notification."),
    responses(
        (status = 200, description = "A JSON-RPC response.", content_type = "application/json", body = Object),
        (status = 202, description = "A notification was taken."),
        (status = 400, description = "A JSON-RPC error: the body is no message, or the protocol's headers do not fit it.", content_type = "application/json", body = Object),
        (status = 404, description = "A JSON-RPC error: there is no such method.", content_type = "application/json", body = Object),
        (status = 406, description = "A JSON-RPC error: the answer would be JSON, which `Accept` refuses.", content_type = "application/json", body = Object)
    ),
    extensions(("x-problems" = json!("invalid_request unauthorized timeout payload_too_large unsupported_media_type rate_limited capacity_reached provider_unavailable forbidden"))),
    security((), ("bearer" = []))
)]
pub async fn serve(
    State(services): State<Tools>,
    context: Context,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let (mut parts, body) = body.raw().await?;
    let mut message = match framing::look(body) {
        Ok(message) => message,
        Err(refused) => return Ok(refused.into_response()),
    };
    let client = auth::identify(&services, &parts.headers).await;
    let refusal = auth::refusal(&services, &client, message.tool.as_deref());
    framing::relax(&mut parts.headers);
    let most = usize::try_from(services.config.limits.body_bytes).unwrap_or(usize::MAX);
    let handler = Handler::new(services, client, &context, message.arguments.take());
    // The front has checked the host, and any origin may call: a browser sends no credential by itself.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(most)
        .disable_allowed_hosts()
        .disable_allowed_origins();
    let sessions = Arc::new(NeverSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(handler.clone()), sessions, config);
    let request = Request::from_parts(parts, Full::new(message.body.clone()));
    let response = service.handle(request).await;
    let status = response.status();
    // The protocol's headers come before the credential.
    if let Some(Refusal::Transport(problem)) = refusal
        && status != StatusCode::BAD_REQUEST
    {
        return Err(problem);
    }
    let label = response.headers().get(header::CONTENT_TYPE);
    if status == StatusCode::ACCEPTED || label.is_some_and(|label| label == "application/json") {
        let mut response = response.map(Body::new);
        never_stored(&mut response);
        return Ok(response);
    }
    let text = match response.into_body().collect().await {
        Ok(text) => text.to_bytes(),
        Err(never) => match never {},
    };
    let text = String::from_utf8_lossy(&text);
    if status.is_server_error() {
        return Err(Problem::internal(&text));
    }
    Ok(message.refused(status, &text).into_response())
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let kind = [(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        )];
        let mut response = (self.status, kind, Bytes::from(self.body)).into_response();
        never_stored(&mut response);
        response
    }
}

fn never_stored(response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
}
