//! The route of the tool endpoint.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;

use super::auth::{self, RefusalForm, SenderIdentity};
use super::backend_calls::called_project;
use super::handler::McpRequestHandler;
use super::{ToolServices, framing, transport};
use crate::http::byte_budget::BytePermit;
use crate::http::context::HttpRequestContext;
use crate::http::extract::{UnreadBody, body_too_large};
use crate::http::forwarded::BackendForwarder;
use crate::http::problem::Problem;
use svc_sandbox::CallerFlow;

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
    State(services): State<ToolServices>,
    context: HttpRequestContext,
    request: Request,
) -> Result<Response, Problem> {
    let client = auth::identify(&services, request.headers()).await;
    // An invalid credential is reported before errors of the body.
    let first = |problem: Problem| match &client {
        SenderIdentity::Refused(refused) => refused.clone(),
        _ => problem,
    };
    let body = UnreadBody::new(request, most_bytes(&services, &client)).map_err(first)?;
    let (mut parts, body) = body.read_with_head().await.map_err(first)?;
    let counted = count_if_large(&services, &client, body.len()).await?;
    let forwarder = parts.extensions.remove::<BackendForwarder>();
    // At one machine nothing is kept.
    let passed = forwarder.map(|forwarder| (forwarder, body.clone()));
    let mut message = match (framing::parse_message(body), &client) {
        (Ok(message), _) => message,
        (Err(_), SenderIdentity::Refused(problem)) => return Err(problem.clone()),
        (Err(refused), _) => return Ok(refused.into_response()),
    };
    if counted.is_some() && !message.publishes_files() {
        return Err(body_too_large(services.config.limits.body_bytes));
    }
    let (flow, answers) = (CallerFlow::current(), services.answers.clone());
    answers.check(&flow)?;
    let refusal = auth::refusal(&services, &client, message.tool.as_deref());
    if let (None, Some((forwarder, body))) = (&refusal, passed)
        && let Some(project) = called_project(&message)
    {
        let request = Request::from_parts(parts, Body::from(body));
        match forwarder.forward(project, request).await {
            Ok(response) => return Ok(response),
            Err(request) => parts = request.into_parts().0,
        }
    }
    let most = services.config.limits.body_bytes;
    let handler = McpRequestHandler::new(services, client, &context, message.arguments.take());
    let response = transport::handle(handler, parts, &message, most).await;
    // Errors of the protocol's headers are reported before the credential.
    if let Some(RefusalForm::Transport(problem)) = refusal
        && response.status() != StatusCode::BAD_REQUEST
    {
        return Err(problem);
    }
    transport::convert_response(response, &message, (&answers, flow)).await
}

/// Returns the most bytes of a sender's message: files of a site are more than other arguments, and need a credential.
fn most_bytes(services: &ToolServices, client: &SenderIdentity) -> u64 {
    let limits = &services.config.limits;
    match client {
        SenderIdentity::Known(_) => limits.body_bytes.max(limits.site_body_bytes),
        SenderIdentity::Anonymous | SenderIdentity::Refused(_) => limits.body_bytes,
    }
}

/// Counts a message that is as large as the files of a site, for as long as it is in memory: as it was sent, its arguments, and as they
/// are read.
async fn count_if_large(
    services: &ToolServices,
    client: &SenderIdentity,
    bytes: usize,
) -> Result<Option<BytePermit>, Problem> {
    match client {
        SenderIdentity::Known(caller) if bytes as u64 > services.config.limits.body_bytes => {
            let counted = services.releases.reserve_body(3 * bytes);
            Ok(Some(caller.flow().scope(counted).await?))
        }
        _ => Ok(None),
    }
}
