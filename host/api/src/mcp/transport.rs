//! Passes HTTP requests to the MCP library and converts its answers, for both endpoints: stateless, with one JSON document per answer.

use std::convert::Infallible;
use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Request, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::framing::{self, ParsedRpcMessage, RpcErrorResponse};
use crate::http::NOSNIFF;
use crate::http::held_answers::HeldAnswerBudget;
use crate::http::problem::Problem;
use svc_sandbox::CallerFlow;

/// Passes a message of at most `most` bytes to the library, with a handler.
pub(super) async fn handle<H: ServerHandler + Clone>(
    handler: H,
    mut parts: Parts,
    message: &ParsedRpcMessage,
    most: u64,
) -> http::Response<BoxBody<Bytes, Infallible>> {
    framing::normalize_headers(&mut parts.headers);
    // The server's front has checked the host, and any origin may call, because a browser sends no credential by itself.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(usize::try_from(most).unwrap_or(usize::MAX))
        .disable_allowed_hosts()
        .disable_allowed_origins();
    let sessions = Arc::new(NeverSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(handler.clone()), sessions, config);
    let request = Request::from_parts(parts, Full::new(message.body.clone()));
    service.handle(request).await
}

/// Converts the library's answer: plain texts become JSON-RPC errors. A large one counts for a flow until it is read.
///
/// # Errors
/// `internal` if the library failed.
pub(super) async fn convert_response(
    response: http::Response<BoxBody<Bytes, Infallible>>,
    message: &ParsedRpcMessage,
    (answers, flow): (&HeldAnswerBudget, CallerFlow),
) -> Result<Response, Problem> {
    let (head, body) = response.into_parts();
    let text = match body.collect().await {
        Ok(text) => text.to_bytes(),
        Err(never) => match never {},
    };
    let status = head.status;
    let label = head.headers.get(header::CONTENT_TYPE);
    if status == StatusCode::ACCEPTED || label.is_some_and(|label| label == "application/json") {
        let mut response = Response::from_parts(head, answers.body(flow, text));
        set_no_store(&mut response);
        return Ok(response);
    }
    let text = String::from_utf8_lossy(&text);
    if status.is_server_error() {
        return Err(Problem::internal(&text));
    }
    Ok(message.error_response(status, &text).into_response())
}

impl IntoResponse for RpcErrorResponse {
    fn into_response(self) -> Response {
        let kind = [(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        )];
        let mut response = (self.status, kind, Bytes::from(self.body)).into_response();
        set_no_store(&mut response);
        response
    }
}

fn set_no_store(response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(NOSNIFF.0, NOSNIFF.1);
}
