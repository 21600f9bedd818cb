//! The routes below a page's address: visitors call actions, and the owner runs queries.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, header};

use super::ActionCalls;
use super::call_log::{CallNote, CalledActions};
use super::requests::{
    As, CallOrBatch, CheckedCallRequest, QueryBackend, RunQuery, UncheckedCallBody,
};
use super::tokens::CallRateTokens;
use super::views::{OpAnswer, QueryResult};
use crate::access::{
    self, Authenticator, AuthorizedCaller, Editor, MaybeCaller, Viewer, credential_invalid,
    credential_missing, run_to_completion,
};
use crate::backends::model::QueryAccess;
use crate::backends::{ActionDefinitions, BackendError, Backends};
use crate::config::Config;
use crate::control::audit::{AuditActor, with_actor};
use crate::deployments::serving::PageLookupError;
use crate::deployments::serving::PageService;
use crate::deployments::serving::pages::{PageKind, ServedPage};
use crate::http::client_ip::ClientIp;
use crate::http::context::HttpRequestContext;
use crate::http::extract::{NoQueryParams, UnreadBody, check_single_headers};
use crate::http::held_answers::HeldAnswerBudget;
use crate::http::hosts::HostKind;
use crate::http::problem::{Problem, ProblemCode};
use crate::http::rate_limit::RateLimits;
use crate::projects::Projects;
use crate::visitors::{ActionCallerIdentity, Visitors};
use crate::workspaces::Caller;
use svc_base::ids::BackendId;
use svc_database::{ResultJson, Schema};
use svc_sandbox::CallerFlow;

/// Services that calls of visitors need.
#[derive(Clone, Debug)]
pub struct CallServices {
    pub backends: Arc<Backends>,
    pub definitions: Arc<ActionDefinitions>,
    /// Calls of actions, and queries.
    pub actions: Arc<ActionCalls>,
    pub serving: Arc<PageService>,
    pub projects: Projects,
    pub visitors: Arc<Visitors>,
    pub authenticator: Authenticator,
    pub rate_limits: Arc<RateLimits>,
    /// Large answers that wait for their readers.
    pub answers: HeldAnswerBudget,
    pub config: Arc<Config>,
}

/// Call an action
///
/// As anybody who visits the page may. A write is durable when it is answered. A visitor who is signed in on the page is known to the action, if the
/// page itself calls: `Origin` is the frontend's own, or there is none and `Sec-Fetch-Site` says nothing else than `same-origin`. With `as`
/// beside `params` or `ops`, and the owner's credential, it runs as that visitor.
#[utoipa::path(
    operation_id = "call_action",
    post, path = "/{slug}/api/op", tag = "visitors",
    params(("slug" = String, Path, description = "A project's frontend.")),
    request_body = CallOrBatch,
    responses((status = 200, description = "What the action's statement answers; for a batch, what each does, in order.", body = OpAnswer)),
    extensions(("x-problems" = json!("body rate_limited not_found disabled params_mismatch reserved_param identity_required statement_refused statement_failed query_timeout constraint_violation database_full database_busy capacity_reached unauthorized forbidden"))),
    security((), ("bearer" = []))
)]
pub async fn op(
    State(calls): State<CallServices>,
    context: HttpRequestContext,
    Path(slug): Path<String>,
    request: Request,
) -> Response {
    let context = CallContext {
        host: &context.host,
        client: &context.client,
        request_id: &context.request_id,
        began: calls.serving.clock().elapsed(),
    };
    call(&calls, context, &slug, request).await
}

/// Request data that the server's front has determined.
#[derive(Clone, Copy, Debug)]
pub struct CallContext<'a> {
    /// Host that the request names.
    pub host: &'a HostKind,
    /// Address of the client.
    pub client: &'a ClientIp,
    /// Id of the request.
    pub request_id: &'a str,
    /// When the request began, on the clock that only runs forward.
    pub began: Duration,
}

/// Answers a call. It bypasses the router, whose boxed futures cost as much as a read, if the path is in its plain form.
pub async fn call(
    calls: &CallServices,
    context: CallContext<'_>,
    slug: &str,
    request: Request,
) -> Response {
    let (mut tokens, page) = CallRateTokens::draw(calls, context.host, context.client, slug).await;
    let mut note = CallNote::begin(calls, &context, slug, page.as_ref());
    let mut response = match (tokens.refusal(calls), page) {
        (None, Some(page)) => answer_call(calls, page, context, (&mut tokens, &mut note), request)
            .await
            .unwrap_or_else(IntoResponse::into_response),
        (refusal, _) => refusal
            .map_or_else(Problem::not_found, Problem::from)
            .into_response(),
    };
    note.record(calls, &context, &response);
    tokens.add_rate_limit_headers(calls, response.headers_mut());
    response
}

async fn answer_call(
    calls: &CallServices,
    page: Result<Arc<ServedPage>, PageLookupError>,
    context: CallContext<'_>,
    (tokens, note): (&mut CallRateTokens, &mut CallNote),
    request: Request,
) -> Result<Response, Problem> {
    let presented = request.headers().get_all(header::AUTHORIZATION).iter();
    let presented: Vec<HeaderValue> = presented.cloned().collect();
    let caller = match &page {
        Ok(page) => {
            let headers = request.headers();
            calls
                .visitors
                .caller_session(context.host, page, headers)
                .await?
        }
        Err(_) => None,
    };
    let body = UnreadBody::new(request, calls.config.limits.op_body_bytes)?;
    let page = page?;
    let backend = bound_backend(&page)?;
    let mut body = body.json::<UncheckedCallBody>().await?.value;
    let (owner, by) = match body.by.take() {
        Some(by) => {
            // Boxed, because most calls are visitors' and must not carry its size.
            let named = Box::pin(authenticate_owner(calls, &page, presented, by));
            let (owner, by) = named.await?;
            (Some(owner), Some(by))
        }
        None => (None, caller.map(|session| session.identity())),
    };
    let wanted = body.checked()?;
    note.set_visitor(by.as_ref());
    if let CheckedCallRequest::Batch(ops) = &wanted {
        tokens.draw_more(calls, context.client, &page, ops.len() - 1)?;
    }
    let Some(owner) = owner else {
        // This is no route that the server's front gives a flow, and the gate may have to judge the action again.
        let flow = CallerFlow::stranger(context.client.0);
        calls.answers.check(&flow)?;
        let work = run_call(&calls.actions, backend, (wanted, by), &mut note.called);
        let done = flow.clone().scope(work).await?;
        note.rows = done.rows;
        return Ok(json_answer(calls, flow, done.json));
    };
    let flow = owner.flow();
    calls.answers.check(&flow)?;
    let work = run_owners_call(calls, backend, (wanted, by), (&owner, &context));
    let (called, done) = Box::pin(flow.clone().scope(work)).await?;
    note.called = called;
    let done = done?;
    note.rows = done.rows;
    Ok(json_answer(calls, flow, done.json))
}

/// Runs a call of the page's owner. It has an entry in the audit log, so it runs to completion.
async fn run_owners_call(
    calls: &CallServices,
    backend: BackendId,
    wanted: (CheckedCallRequest, Option<ActionCallerIdentity>),
    (owner, context): (&Caller, &CallContext<'_>),
) -> Result<(CalledActions, Result<ResultJson, BackendError>), Problem> {
    let actions = Arc::clone(&calls.actions);
    let work = Box::pin(async move {
        let mut called = CalledActions::default();
        let done = run_call(&actions, backend, wanted, &mut called).await;
        Ok::<_, BackendError>((called, done))
    });
    let actor = AuditActor::new(owner.id(), &context.request_id.into());
    with_actor(actor, run_to_completion(work)).await
}

/// Runs a checked call or batch; the actions that are found come into `called`.
async fn run_call(
    actions: &ActionCalls,
    backend: BackendId,
    (wanted, by): (CheckedCallRequest, Option<ActionCallerIdentity>),
    called: &mut CalledActions,
) -> Result<ResultJson, BackendError> {
    match wanted {
        CheckedCallRequest::Call { action, params } => {
            let action = match actions.action(backend, &action).await {
                Ok(found) => found,
                Err(error) => {
                    called.set_unknown(action);
                    return Err(error);
                }
            };
            called.single = Some(Arc::clone(&action));
            let done = actions.call_found(backend, &action, params, by.as_ref());
            done.await
        }
        CheckedCallRequest::Batch(ops) => {
            let found = called.begin_batch(&ops);
            actions.batch(backend, ops, by.as_ref(), found).await
        }
    }
}

/// Authenticates the page's owner; returns the owner and the visitor whom the owner calls as.
async fn authenticate_owner(
    calls: &CallServices,
    page: &ServedPage,
    presented: Vec<HeaderValue>,
    by: As,
) -> Result<(Caller, ActionCallerIdentity), Problem> {
    let mut headers = HeaderMap::with_capacity(presented.len());
    for value in presented {
        headers.append(header::AUTHORIZATION, value);
    }
    check_single_headers(&headers, &[header::AUTHORIZATION])?;
    let caller = match calls.authenticator.identify(&headers).await? {
        access::AuthenticationResult::Known(caller) => caller,
        access::AuthenticationResult::Nobody => return Err(credential_missing()),
        access::AuthenticationResult::Invalid => return Err(credential_invalid()),
    };
    let PageKind::Frontend { host_label } = &page.kind else {
        return Err(quick_share_problem());
    };
    let project = calls.projects.find_by_label(host_label).await?;
    let project = project.ok_or_else(Problem::not_found)?;
    calls.projects.scoped::<Editor>(&caller, project.id).await?;
    Ok((caller, by.checked()?))
}

/// Run a query
///
/// The owner's own SQL, one statement: it reads and changes rows, never the schema. A viewer's only reads.
#[utoipa::path(
    operation_id = "run_query",
    post, path = "/{slug}/api/query", tag = "visitors",
    params(("slug" = String, Path, description = "A project's frontend.")),
    request_body = RunQuery,
    responses((status = 200, description = "What the statement answers.", body = QueryResult)),
    extensions(("x-problems" = json!("body unauthorized forbidden rate_limited not_found disabled params_mismatch reserved_param statement_refused statement_failed query_timeout constraint_violation database_full database_busy capacity_reached provider_unavailable"))),
    security(("bearer" = []))
)]
pub async fn query(
    State(calls): State<CallServices>,
    context: HttpRequestContext,
    Path(slug): Path<String>,
    caller: Result<MaybeCaller, Problem>,
    body: Result<UnreadBody, Problem>,
) -> Result<Response, Problem> {
    let caller = require_caller(caller)?;
    let body = body?.with_limit(calls.config.limits.op_body_bytes)?;
    let (backend, at) = owned_backend(&calls, &context, &slug, &caller).await?;
    let query = QueryBackend::from(body.json::<RunQuery>().await?.value).checked()?;
    let flow = caller.flow();
    calls.answers.check(&flow)?;
    let actions = Arc::clone(&calls.actions);
    let access = QueryAccess::of(at, query.read_only);
    let work = async move {
        actions
            .query(backend, query.sql, query.params, access)
            .await
    };
    let actor = AuditActor::new(caller.id(), &context.request_id);
    let done = flow.clone().scope(with_actor(actor, work));
    Ok(json_answer(&calls, flow, done.await?.json))
}

/// Get the schema
///
/// The tables and columns as they are in the file, for the owner.
#[utoipa::path(
    operation_id = "get_schema",
    get, path = "/{slug}/api/schema", tag = "visitors",
    params(("slug" = String, Path, description = "A project's frontend.")),
    responses((status = 200, description = "The schema.", body = Schema)),
    extensions(("x-problems" = json!("unauthorized rate_limited not_found disabled database_busy invalid_request capacity_reached"))),
    security(("bearer" = []))
)]
pub async fn schema(
    State(calls): State<CallServices>,
    context: HttpRequestContext,
    Path(slug): Path<String>,
    caller: Result<MaybeCaller, Problem>,
    query: Result<NoQueryParams, Problem>,
) -> Result<Response, Problem> {
    let caller = require_caller(caller)?;
    let (backend, _) = owned_backend(&calls, &context, &slug, &caller).await?;
    query?;
    let schema = calls.backends.schema(backend).await?;
    Ok((no_store_headers(), axum::Json(schema)).into_response())
}

/// Rate limit middleware of these routes: takes a token from the client's bucket, then one from the deployment's.
pub async fn limit_call_rate(
    State(calls): State<CallServices>,
    request: Request,
    next: Next,
) -> Response {
    let Some(context) = request.extensions().get::<HttpRequestContext>().cloned() else {
        return Problem::internal(&"a request without a context").into_response();
    };
    let slug = request.uri().path().split('/').nth(1).unwrap_or_default();
    let (tokens, _) = CallRateTokens::draw(&calls, &context.host, &context.client, slug).await;
    let mut response = match tokens.refusal(&calls) {
        Some(spent) => Problem::from(spent).into_response(),
        None => next.run(request).await,
    };
    tokens.add_rate_limit_headers(&calls, response.headers_mut());
    response
}

/// Returns the live backend that a page is bound to.
///
/// # Errors
/// `not_found`.
pub fn bound_backend(page: &ServedPage) -> Result<BackendId, Problem> {
    match (&page.kind, page.backend) {
        (PageKind::Frontend { .. }, Some(backend)) => Ok(backend),
        (PageKind::Frontend { .. }, None) => Err(Problem::new(
            ProblemCode::NotFound,
            "This page has no backend. Making one for its project gives it to the page; where the page had another one that was deleted, publish it again afterwards.",
        )),
        _ => Err(quick_share_problem()),
    }
}

/// Returns the 404 of a quick share, which has no backend.
fn quick_share_problem() -> Problem {
    Problem::new(
        ProblemCode::NotFound,
        "A quick share has no backend. Publish the page as a frontend of a project that has one.",
    )
}

/// Returns the caller, or the problem of a request without one.
fn require_caller(caller: Result<MaybeCaller, Problem>) -> Result<Caller, Problem> {
    match caller {
        Ok(MaybeCaller(Some(caller))) => Ok(caller),
        Ok(MaybeCaller(None)) => Err(owners_only_problem()),
        // The header keeps the reason why the credential was refused.
        Err(problem) if problem.code == ProblemCode::Unauthorized => Err(Problem {
            headers: problem.headers,
            ..owners_only_problem()
        }),
        Err(problem) => Err(problem),
    }
}

/// Finds the backend of a page, and the authority of its owner, who calls.
async fn owned_backend(
    calls: &CallServices,
    context: &HttpRequestContext,
    slug: &str,
    caller: &Caller,
) -> Result<(BackendId, AuthorizedCaller<Viewer>), Problem> {
    let page = calls.serving.page_on_host(&context.host, slug).await?;
    let PageKind::Frontend { host_label } = &page.kind else {
        return Err(quick_share_problem());
    };
    let project = calls
        .projects
        .find_by_label(host_label)
        .await?
        .ok_or_else(Problem::not_found)?;
    match calls.projects.scoped(caller, project.id).await {
        Ok(at) => Ok((bound_backend(&page)?, at.authority)),
        Err(crate::projects::ProjectError::Forbidden) => Err(owners_only_problem()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the 401 of a request that only the page's owner may send.
fn owners_only_problem() -> Problem {
    Problem::new(
        ProblemCode::Unauthorized,
        "Only the owner may do this: send the credential of the namespace that owns the page as Authorization: Bearer. Visitors call the page's named actions at /op.",
    )
    .header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
}

fn no_store_headers() -> HeaderMap {
    // Leaves room for the headers of the rate limits and of the server's front.
    let mut headers = HeaderMap::with_capacity(16);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers
}

/// Answers a result, which counts for a flow until it is read.
fn json_answer(calls: &CallServices, flow: CallerFlow, json: Vec<u8>) -> Response {
    let mut headers = no_store_headers();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    let mut response = Response::new(calls.answers.body(flow, json.into()));
    *response.headers_mut() = headers;
    response
}
