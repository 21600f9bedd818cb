//! The routes below a page's address: its visitors call actions, its owner runs queries.

use std::num::NonZeroU32;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, header};

use super::requests::{As, CallOrBatch, OpAnswer, OpBody, QueryResult, RunQuery, Wanted};
use crate::access::{
    self, Authority, Callers, Editor, MaybeCaller, Viewer, credential_invalid, credential_missing,
    to_the_end,
};
use crate::backends::Backends;
use crate::config::Config;
use crate::deployments::Deployments;
use crate::deployments::pages::{Kind, Page};
use crate::deployments::serve::LookupError;
use crate::http::client_ip::ClientIp;
use crate::http::context::Context;
use crate::http::extract::{NoQuery, UnreadBody, invalid};
use crate::http::hosts::Host;
use crate::http::problem::{Code, Problem};
use crate::http::rate_limit::{RateLimits, Rule};
use crate::projects::Projects;
use crate::visitors::{Identity, Visitors};
use crate::workspaces::Caller;
use svc_base::ids::BackendId;
use svc_database::Schema;

/// Services that calls of visitors need.
#[derive(Clone, Debug)]
pub struct Calls {
    /// Databases and their actions.
    pub backends: Arc<Backends>,
    /// Pages that are called.
    pub deployments: Arc<Deployments>,
    /// Projects of the pages' owners.
    pub projects: Projects,
    /// Visitors who are somebody.
    pub visitors: Arc<Visitors>,
    /// Tells whose credentials are whose.
    pub callers: Callers,
    /// Buckets that calls draw from.
    pub rate_limits: Arc<RateLimits>,
    /// Settings in effect.
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
    State(calls): State<Calls>,
    context: Context,
    Path(slug): Path<String>,
    request: Request,
) -> Response {
    call(&calls, &context.host, &context.client, &slug, request).await
}

/// Answers a call: past the router, whose boxes cost as much as a read, where its path is in its plain form.
pub async fn call(
    calls: &Calls,
    host: &Host,
    client: &ClientIp,
    slug: &str,
    request: Request,
) -> Response {
    let (mut tokens, page) = Tokens::draw(calls, host, client, slug).await;
    let mut response = match (tokens.refusal(calls), page) {
        (None, Some(page)) => answer(calls, page, host, client, &mut tokens, request)
            .await
            .unwrap_or_else(IntoResponse::into_response),
        (refusal, _) => refusal.unwrap_or_else(Problem::not_found).into_response(),
    };
    tokens.announce(calls, response.headers_mut());
    response
}

async fn answer(
    calls: &Calls,
    page: Result<Arc<Page>, LookupError>,
    host: &Host,
    client: &ClientIp,
    tokens: &mut Tokens,
    request: Request,
) -> Result<Response, Problem> {
    let credential = request.headers().get(header::AUTHORIZATION).cloned();
    let caller = match &page {
        Ok(page) => calls.visitors.caller(host, page, request.headers()).await?,
        Err(_) => None,
    };
    let body = UnreadBody::of(request, calls.config.limits.op_body_bytes)?;
    let page = page?;
    let backend = bound(&page)?;
    let mut body = body.json::<OpBody>().await?.value;
    let by = match body.by.take() {
        Some(by) => Some(named_by_owner(calls, &page, credential, by).await?),
        None => caller.map(|session| session.identity()),
    };
    let json = match body.checked()? {
        Wanted::Call { action, params } => {
            let called = calls.backends.op(backend, &action, params, by.as_ref());
            called.await?
        }
        Wanted::Batch(ops) => {
            tokens.draw_more(calls, client, &page, ops.len() - 1)?;
            calls.backends.batch(backend, ops, by.as_ref()).await?
        }
    };
    Ok(json_answer(json))
}

/// The visitor whom the page's owner calls as.
async fn named_by_owner(
    calls: &Calls,
    page: &Page,
    credential: Option<HeaderValue>,
    by: As,
) -> Result<Identity, Problem> {
    let headers = credential.map(|value| (header::AUTHORIZATION, value));
    let headers = HeaderMap::from_iter(headers);
    let caller = match calls.callers.identify(&headers).await? {
        access::Identity::Known(caller) => caller,
        access::Identity::Nobody => return Err(credential_missing()),
        access::Identity::Invalid => return Err(credential_invalid()),
    };
    let Kind::Frontend { host_label } = &page.kind else {
        return Err(quick_share());
    };
    let project = calls.projects.by_label(host_label).await?;
    let project = project.ok_or_else(Problem::not_found)?;
    calls.projects.scoped::<Editor>(&caller, project.id).await?;
    by.checked()
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
    State(calls): State<Calls>,
    context: Context,
    Path(slug): Path<String>,
    caller: Result<MaybeCaller, Problem>,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let caller = owner(caller)?;
    let body = body.at_most(calls.config.limits.op_body_bytes)?;
    let (backend, at) = owned(&calls, &context, &slug, &caller).await?;
    let request = body.json::<RunQuery>().await?.value;
    let most = svc_sandbox::STATEMENT_BYTES;
    if request.sql.len() > most {
        return Err(invalid(format!(
            "`sql` has {} bytes; {most} is the most.",
            request.sql.len()
        )));
    }
    let backends = Arc::clone(&calls.backends);
    let may_write = at.raised::<Editor>().is_ok();
    let work = async move {
        let query = backends.query(backend, request.sql, request.params.0, may_write);
        query.await
    };
    Ok(json_answer(to_the_end(work).await?))
}

/// Get the schema
///
/// The tables and columns as they are in the file, for the owner.
#[utoipa::path(
    operation_id = "get_schema",
    get, path = "/{slug}/api/schema", tag = "visitors",
    params(("slug" = String, Path, description = "A project's frontend.")),
    responses((status = 200, description = "The schema.", body = Schema)),
    extensions(("x-problems" = json!("unauthorized rate_limited not_found disabled database_busy invalid_request"))),
    security(("bearer" = []))
)]
pub async fn schema(
    State(calls): State<Calls>,
    context: Context,
    Path(slug): Path<String>,
    caller: Result<MaybeCaller, Problem>,
    query: Result<NoQuery, Problem>,
) -> Result<Response, Problem> {
    let caller = owner(caller)?;
    let (backend, _) = owned(&calls, &context, &slug, &caller).await?;
    query?;
    let schema = calls.backends.schema(backend).await?;
    Ok((no_store(), axum::Json(schema)).into_response())
}

/// The layer of these routes: a token of the client's bucket, then one of the deployment's, if there is one.
pub async fn limit(State(calls): State<Calls>, request: Request, next: Next) -> Response {
    let Some(context) = request.extensions().get::<Context>().cloned() else {
        return Problem::internal(&"a request without a context").into_response();
    };
    let slug = request.uri().path().split('/').nth(1).unwrap_or_default();
    let (tokens, _) = Tokens::draw(&calls, &context.host, &context.client, slug).await;
    let mut response = match tokens.refusal(&calls) {
        Some(problem) => problem.into_response(),
        None => next.run(request).await,
    };
    tokens.announce(&calls, response.headers_mut());
    response
}

/// Tokens left in the buckets that a call draws from: of the client, then of the deployment, if there is one.
#[derive(Debug)]
pub struct Tokens {
    of_client: Option<u32>,
    of_deployment: Option<Option<u32>>,
}

impl Tokens {
    /// Draws; answers the page too, unless the client's bucket was empty.
    pub async fn draw(
        calls: &Calls,
        host: &Host,
        client: &ClientIp,
        slug: &str,
    ) -> (Self, Option<Result<Arc<Page>, LookupError>>) {
        let limits = &calls.rate_limits;
        let of_client = limits.by_client(Rule::Op).take(&client.bucket());
        let page = match of_client {
            Some(_) => Some(calls.deployments.visited(host, slug).await),
            // One that is refused by the client's bucket never touches the deployment's.
            None => None,
        };
        let found = page.as_ref().and_then(|page| page.as_ref().ok());
        let tokens = Self {
            of_client,
            of_deployment: found.map(|page| limits.op_deployment.take(&page.id)),
        };
        (tokens, page)
    }

    /// Draws the tokens of a batch's other ops: all of them, or none and the batch is refused.
    fn draw_more(
        &mut self,
        calls: &Calls,
        client: &ClientIp,
        page: &Page,
        more: usize,
    ) -> Result<(), Problem> {
        let Some(more) = u32::try_from(more).ok().and_then(NonZeroU32::new) else {
            return Ok(());
        };
        let limits = &calls.rate_limits;
        let of_client = limits.by_client(Rule::Op);
        self.of_client = Some(of_client.take_all(&client.bucket(), more)?);
        self.of_deployment = Some(Some(limits.op_deployment.take_all(&page.id, more)?));
        Ok(())
    }

    /// The problem of a call that found a bucket empty.
    pub fn refusal(&self, calls: &Calls) -> Option<Problem> {
        match (self.of_client, self.of_deployment) {
            (None, _) => Some(calls.rate_limits.by_client(Rule::Op).refusal()),
            (_, Some(None)) => Some(calls.rate_limits.op_deployment.refusal()),
            _ => None,
        }
    }

    /// Says in an answer what is left.
    pub fn announce(&self, calls: &Calls, headers: &mut HeaderMap) {
        let limits = &calls.rate_limits;
        limits.by_client(Rule::Op).announce(self.of_client, headers);
        if let Some(left) = self.of_deployment {
            limits.op_deployment.announce(left, headers);
        }
    }
}

/// The live backend that a page is bound to.
///
/// # Errors
/// `not_found`.
pub fn bound(page: &Page) -> Result<BackendId, Problem> {
    match (&page.kind, page.backend) {
        (Kind::Frontend { .. }, Some(backend)) => Ok(backend),
        (Kind::Frontend { .. }, None) => Err(Problem::new(
            Code::NotFound,
            "This page has no backend. Making one for its project gives it to the page; where the page had another one that was deleted, publish it again afterwards.",
        )),
        _ => Err(quick_share()),
    }
}

/// The 404 of what only a frontend can have.
fn quick_share() -> Problem {
    Problem::new(
        Code::NotFound,
        "A quick share has no backend. Publish the page as a frontend of a project that has one.",
    )
}

/// The caller, who must be there.
fn owner(caller: Result<MaybeCaller, Problem>) -> Result<Caller, Problem> {
    match caller {
        Ok(MaybeCaller(Some(caller))) => Ok(caller),
        Ok(MaybeCaller(None)) => Err(owners_only()),
        // What was wrong with the credential stays in its header.
        Err(problem) if problem.code == Code::Unauthorized => Err(Problem {
            headers: problem.headers,
            ..owners_only()
        }),
        Err(problem) => Err(problem),
    }
}

/// The backend of a page whose owner calls, and what the owner may.
async fn owned(
    calls: &Calls,
    context: &Context,
    slug: &str,
    caller: &Caller,
) -> Result<(BackendId, Authority<Viewer>), Problem> {
    let page = calls.deployments.visited(&context.host, slug).await?;
    let Kind::Frontend { host_label } = &page.kind else {
        return Err(quick_share());
    };
    let project = calls
        .projects
        .by_label(host_label)
        .await?
        .ok_or_else(Problem::not_found)?;
    match calls.projects.scoped(caller, project.id).await {
        Ok(at) => Ok((bound(&page)?, at.authority)),
        Err(crate::projects::ProjectError::Forbidden) => Err(owners_only()),
        Err(error) => Err(error.into()),
    }
}

/// The 401 of what only a page's owner may do.
fn owners_only() -> Problem {
    Problem::new(
        Code::Unauthorized,
        "Only the owner may do this: send the credential of the namespace that owns the page as Authorization: Bearer. Visitors call the page's named actions at /op.",
    )
    .header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
}

fn no_store() -> HeaderMap {
    // With room for those that the limits and the front add.
    let mut headers = HeaderMap::with_capacity(16);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers
}

fn json_answer(json: Vec<u8>) -> Response {
    let mut headers = no_store();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    let mut response = Response::new(Body::from(json));
    *response.headers_mut() = headers;
    response
}
