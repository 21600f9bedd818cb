//! The route of an app's tools.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};

use super::AppToolServices;
use super::handler::AppRequestHandler;
use super::sanitize::quote_title;
use crate::activity::{EntryKind, LoggedOutcome};
use crate::backends::calls::routes::bound_backend;
use crate::backends::calls::tokens::CallRateTokens;
use crate::deployments::serving::PageLookupError;
use crate::deployments::serving::pages::{PageKind, ServedPage};
use crate::deployments::serving::request_log::LogNote;
use crate::http::context::HttpRequestContext;
use crate::http::extract::UnreadBody;
use crate::http::hosts::HostKind;
use crate::http::problem::{Problem, ProblemCode};
use crate::mcp::{framing, transport};
use svc_sandbox::CallerFlow;

/// Instructions for a model that has never seen the app.
const INSTRUCTIONS: &str = include_str!("instructions.md");
/// Methods whose answers contain the instructions, one in each era of the protocol.
const METHODS_WITH_INSTRUCTIONS: [&str; 2] = ["initialize", "server/discover"];

/// Call an app's tool
///
/// An extension: the Model Context Protocol, as at `/mcp`, for the agents of a page's visitors. The tools are the actions of
/// the page's backend that need no identity, once its owner has said `agents: true`; before that, and without a backend, the
/// address is a 404. A tool is named as its action, its description is the action's note, its arguments are the binds, each
/// required unless it has a default. An argument has the declared type of its column, where one is known, as advice: any JSON scalar is taken.
/// A result is what `op` answers; what `op` refuses is a result with `isError` whose `structuredContent` is the problem. `tools/list` comes in pages
/// (`nextCursor`). Each request takes the tokens of a call.
#[utoipa::path(
    operation_id = "call_app_tool",
    post, path = "/{slug}/mcp", tag = "visitors",
    params(("slug" = String, Path, description = "A project's frontend.")),
    request_body(content = crate::mcp::routes::RpcMessage, description = "A JSON-RPC request or notification."),
    responses(
        (status = 200, description = "A JSON-RPC response.", content_type = "application/json", body = Object),
        (status = 202, description = "A notification was taken."),
        (status = 400, description = "A JSON-RPC error: the body is no message, or the protocol's headers do not fit it.", content_type = "application/json", body = Object),
        (status = 404, description = "A JSON-RPC error: there is no such method. A problem: there is no such app.", content_type = "application/json", body = Object),
        (status = 406, description = "A JSON-RPC error: the answer would be JSON, which `Accept` refuses.", content_type = "application/json", body = Object)
    ),
    extensions(("x-problems" = json!("invalid_request not_found disabled timeout payload_too_large unsupported_media_type rate_limited capacity_reached")))
)]
pub async fn serve(
    State(services): State<AppToolServices>,
    context: HttpRequestContext,
    Path(slug): Path<String>,
    request: Request,
) -> Response {
    let calls = services.calls.clone();
    let began = calls.serving.clock().elapsed();
    let (tokens, page) = CallRateTokens::draw(&calls, &context.host, &context.client, &slug).await;
    let mut response = match (tokens.refusal(&calls), page) {
        (None, Some(page)) => answer(services, &context, &slug, page, request)
            .await
            .unwrap_or_else(IntoResponse::into_response),
        (refusal, _) => refusal
            .map_or_else(Problem::not_found, Problem::from)
            .into_response(),
    };
    let outcome = LoggedOutcome::of(&response);
    // Calls write themselves into the log; here are the requests that never came to a tool.
    if outcome.is_failure()
        && let Some(page) = calls.serving.known_activity(&context.host, &slug)
    {
        let of = (&context.client, &*context.request_id);
        let said = (outcome, LogNote::default());
        calls
            .serving
            .record(&page, EntryKind::Tool, of, began, said);
    }
    tokens.add_rate_limit_headers(&calls, response.headers_mut());
    response
}

async fn answer(
    services: AppToolServices,
    context: &HttpRequestContext,
    slug: &str,
    page: Result<Arc<ServedPage>, PageLookupError>,
    request: Request,
) -> Result<Response, Problem> {
    let most = services.calls.config.limits.op_body_bytes;
    let body = UnreadBody::new(request, most)?;
    let page = page?;
    let backend = bound_backend(&page)?;
    if !services.calls.backends.allows_agents(backend).await? {
        return Err(agents_disabled());
    }
    let (parts, body) = body.read_with_head().await?;
    let mut message = match framing::parse_message(body) {
        Ok(message) => message,
        Err(refused) => return Ok(refused.into_response()),
    };
    let asked = message.method.as_deref().unwrap_or_default();
    let instructions = if METHODS_WITH_INSTRUCTIONS.contains(&asked) {
        instructions(&services, (&context.host, slug), &page).await?
    } else {
        String::new()
    };
    let (flow, answers) = (CallerFlow::current(), services.calls.answers.clone());
    answers.check(&flow)?;
    let handler = AppRequestHandler {
        services,
        slug: slug.into(),
        page: page.activity.clone(),
        client: context.client,
        backend,
        instructions: instructions.into(),
        request_id: Arc::clone(&context.request_id),
        flow: flow.clone(),
        arguments: message.arguments.take().map(Arc::from),
    };
    let response = transport::handle(handler, parts, &message, most).await;
    transport::convert_response(response, &message, (&answers, flow)).await
}

/// Returns the instructions for an agent: the service's own text, with the title of the page as a quotation.
async fn instructions(
    services: &AppToolServices,
    (host, slug): (&HostKind, &str),
    page: &ServedPage,
) -> Result<String, Problem> {
    let calls = &services.calls;
    let PageKind::Frontend { host_label } = &page.kind else {
        return Err(Problem::not_found());
    };
    let url = format!("{}/{slug}", host.project_origin(&calls.config, host_label));
    let title = calls.serving.title(page.id).await?;
    // The title is inserted last, so that placeholders in it are not replaced.
    let text = calls.config.limits.fill_in(INSTRUCTIONS);
    Ok(text
        .replace("{{url}}", &url)
        .replace("{{title}}", &quote_title(&title)))
}

/// Returns the 404 of a page whose owner has not opened its actions to agents.
fn agents_disabled() -> Problem {
    Problem::new(
        ProblemCode::NotFound,
        "This page has no tools for agents: its owner has not switched them on (`agents` of its backend). Visitors' pages call its actions at /api/op.",
    )
}
