//! The front: steps before and after the route of every request.
//!
//! Before: an id, the host, the path in canonical form, CORS preflights, and at a node of several whether another one answers. After:
//! the problem as JSON or HTML, the headers of every answer, and the metrics. One function, because each layer costs every page view.

use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::body::HttpBody as _;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use http::uri::Authority;
use http::{HeaderName, HeaderValue, Method, StatusCode, Version, header};
use tracing::Instrument;

use super::access_log::AccessLogLine;
use super::answer_format::{AnswerFormat, REQUEST_ID, add_common_headers, write_if_problem};
use super::canonical_path::{canonicalize, refused_file, with_path};
use super::guard::{AnswerGuard, ViewKind, run_guarded};
use super::linger;
use super::mounts::RequestTarget;
use super::proxied_messages::client_target;
use super::proxy::{Destination, ProxiedRequest, RequestProxy};
use super::request_kind::RequestKind;
use crate::app::{App, SharedApp};
use crate::console;
use crate::http::client_ip::ClientIp;
use crate::http::context::HttpRequestContext;
use crate::http::extract::{check_single_headers, invalid_request};
use crate::http::forwarded::{ForwardedRequest, RequestSource};
use crate::http::hosts::{HostKind, names_address, names_listener};
use crate::http::problem::{Problem, ProblemCode};
use crate::router::{self, HostRouters};
use svc_sandbox::CallerFlow;

/// Path of the tools, whose messages may be about a backend of another node.
const TOOLS_PATH: &str = "/mcp";

/// Application, its routes, and the proxy of a node of several.
#[derive(Debug)]
pub(super) struct Front {
    app: SharedApp,
    routers: HostRouters,
    pub(super) proxy: Option<Arc<RequestProxy>>,
}

impl Front {
    /// Makes the routes of an application.
    pub(super) fn new(app: SharedApp, proxy: Option<Arc<RequestProxy>>) -> Self {
        let routers = HostRouters::new(&app);
        Self {
            app,
            routers,
            proxy,
        }
    }
}

/// Answers one request.
pub(super) async fn handle_request(
    front: &Front,
    source: RequestSource,
    request: Request<hyper::body::Incoming>,
) -> Response {
    let app = &front.app;
    let started = app.clock.elapsed();
    let request_id = request_id_of(app, &source);
    let client = ClientIp::of(&source, request.headers(), &app.config.trusted_proxies);
    let line = AccessLogLine::begin(app, client, &request_id, &request);
    let mut request = count_body(app, client, linger::linger_on_drop(request));
    let classified = classify_host(app, &source, &request);
    let is_console = matches!(classified, Ok((HostKind::Console, _)));
    let target = RequestTarget::find(app, client, classified).await;
    let mut admitted =
        target.and_then(|it| admit_request(app, it, (&source, client), &request_id, &mut request));
    if let Some(proxy) = proxy_for(app, front.proxy.as_ref(), (&source, &admitted), &request) {
        let origin = (&source, &*request_id);
        admitted = Box::pin(place_request(app, proxy, origin, admitted, &mut request)).await;
    }
    let guard = guard_request(app, &request, &mut admitted);
    // Computed from the canonical path, which the routes see, too.
    let format = AnswerFormat::for_request(is_console, &request);
    let span = tracing::debug_span!("request", id = request_id, method = %request.method());
    let (kind, mut response) = match admitted {
        Ok(AdmittedRequest::Answered(answer)) => (RequestKind::Routed, *answer),
        Ok(AdmittedRequest::View(host, client)) => {
            let (parts, _) = request.into_parts();
            let answer = async move { router::view(app, &host, &parts).await }.instrument(span);
            (RequestKind::View, run_for(client, guard, answer).await)
        }
        Ok(AdmittedRequest::File(host, client, at_root)) => {
            let answer = router::view_file(app, (&host, at_root), request).instrument(span);
            (RequestKind::File, run_for(client, guard, answer).await)
        }
        Ok(AdmittedRequest::Call(host, client)) => {
            let answer = router::call(app, (&host, &client), (&request_id, started), request);
            let answer = catch_panic(answer.instrument(span));
            (RequestKind::Call, run_guarded(guard, answer).await)
        }
        Ok(AdmittedRequest::Download(host, client)) => {
            let answer = router::download(app, (&host, &client), request).instrument(span);
            (RequestKind::Download, run_for(client, guard, answer).await)
        }
        Ok(AdmittedRequest::Route(host, client)) => {
            let answer = front.routers.answer(&host, request).instrument(span);
            (RequestKind::Routed, run_for(client, guard, answer).await)
        }
        Ok(AdmittedRequest::Proxied(to, client)) => {
            let answer = Box::pin(to.send(request).instrument(span));
            (RequestKind::Proxied, run_for(client, guard, answer).await)
        }
        Err(problem) => (RequestKind::Routed, problem.into_response()),
    };
    write_if_problem(app, &format, &request_id, &mut response);
    add_common_headers(app, &format, &request_id, response.headers_mut());
    let took = app.clock.elapsed().saturating_sub(started);
    app.metrics.count_request(kind.name(), &response, took);
    AccessLogLine::attach(line, kind.name(), response)
}

/// Answers a request that another node has passed on.
pub(super) async fn handle_forwarded(
    front: &Front,
    mut request: Request<hyper::body::Incoming>,
) -> Response {
    let forwarded = ForwardedRequest::take(request.headers_mut());
    let target = client_target(request.uri());
    let (Some(forwarded), Some(target)) = (forwarded, target) else {
        return Problem::internal(&"a node has not said whose request it passes on")
            .into_response();
    };
    *request.uri_mut() = target;
    // Routes that look for it, as the tools' do, find the client's own.
    if let Ok(host) = HeaderValue::try_from(&*forwarded.authority)
        && !host.is_empty()
    {
        request.headers_mut().insert(header::HOST, host);
    }
    handle_request(front, RequestSource::Node(forwarded), request).await
}

/// Returns the id of a request: the one that it has already, if another node passes it on.
fn request_id_of(app: &App, source: &RequestSource) -> String {
    let forwarded = source.forwarded();
    forwarded.map_or_else(|| app.request_ids.next(), |it| it.request_id.to_string())
}

/// Returns the proxy of a node of several, if another node may have to answer a request. Views and refusals are every node's, and most
/// calls are known to be answered here.
fn proxy_for<'p>(
    app: &App,
    proxy: Option<&'p Arc<RequestProxy>>,
    (source, admitted): (&RequestSource, &Result<AdmittedRequest, Problem>),
    request: &Request,
) -> Option<&'p Arc<RequestProxy>> {
    proxy.filter(|proxy| match admitted {
        Ok(AdmittedRequest::Call(host, _)) => !proxy.is_call_here(app, host, request.uri(), source),
        Ok(AdmittedRequest::Route(..) | AdmittedRequest::Download(..)) => true,
        Ok(_) | Err(_) => false,
    })
}

/// Looks which node answers a request that was admitted.
async fn place_request(
    app: &App,
    proxy: &Arc<RequestProxy>,
    (source, request_id): (&RequestSource, &str),
    admitted: Result<AdmittedRequest, Problem>,
    request: &mut Request,
) -> Result<AdmittedRequest, Problem> {
    let (host, client) = match &admitted {
        Ok(
            AdmittedRequest::Call(host, client)
            | AdmittedRequest::Download(host, client)
            | AdmittedRequest::Route(host, client),
        ) => (host.clone(), *client),
        _ => return admitted,
    };
    // A node that may not answer refuses the request itself, and the ledger is not asked.
    let gate = app.cluster.as_ref().map(|node| node.gate());
    if gate.is_some_and(|gate| !gate.may_answer()) {
        return admitted;
    }
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let finding = proxy.destination(app, &host, (&method, &uri), source);
    let found = CallerFlow::stranger(client.0).scope(finding).await;
    match found {
        Destination::Here if uri.path() == TOOLS_PATH => {
            let forwarded = forwarded_request((source, request_id), client, request)?;
            let forwarder = proxy.backend_forwarder(app, source, forwarded);
            request.extensions_mut().insert(forwarder);
            admitted
        }
        Destination::Here => admitted,
        Destination::Refused(problem) => Err(problem),
        Destination::Node(database, run) => {
            let forwarded = forwarded_request((source, request_id), client, request)?;
            let proxied = ProxiedRequest::new(proxy, (database, run), forwarded);
            Ok(AdmittedRequest::Proxied(Box::new(proxied), client))
        }
    }
}

/// Returns a request as another node is told of it; which database it is about is added where it is passed on.
fn forwarded_request(
    (source, request_id): (&RequestSource, &str),
    client: ClientIp,
    request: &Request,
) -> Result<ForwardedRequest, Problem> {
    Ok(ForwardedRequest {
        hops: source.forwarded().map_or(0, |forwarded| forwarded.hops),
        database: String::new(),
        client,
        request_id: request_id.into(),
        authority: authority_of(source, request)?.unwrap_or_default().into(),
    })
}

/// Returns the guard of a request to a node of several, and refuses what the node must not begin; `None` on a single machine.
fn guard_request<'a>(
    app: &'a App,
    request: &Request,
    admitted: &mut Result<AdmittedRequest, Problem>,
) -> Option<AnswerGuard<'a>> {
    let node = app.cluster.as_deref()?;
    if matches!(admitted, Ok(AdmittedRequest::Proxied(..))) {
        // The node that answers it has its own.
        return None;
    }
    let (method, uri) = (request.method(), request.uri());
    let view = match admitted {
        Ok(AdmittedRequest::View(..)) => Some(ViewKind::Page),
        Ok(AdmittedRequest::File(..)) => Some(ViewKind::File),
        // These come from memory, too.
        Ok(AdmittedRequest::Route(host, _)) => ViewKind::of(host, method, uri),
        _ => None,
    };
    let guard = AnswerGuard::new(node, method, uri.path(), view);
    if let Some(refusal) = guard.refusal() {
        *admitted = Err(refusal);
    }
    Some(guard)
}

/// Counts the body of a request while it arrives.
fn count_body(app: &App, client: ClientIp, request: Request) -> Request {
    if request.body().is_end_stream() {
        return request;
    }
    let (mut parts, body) = request.into_parts();
    let (body, meter) = app.request_bodies.count(client, body);
    parts.extensions.insert(meter);
    Request::from_parts(parts, body)
}

/// Answers a CORS preflight, which is complete with the headers of every answer.
fn preflight_response() -> Response {
    let never = [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    (StatusCode::NO_CONTENT, never).into_response()
}

/// Runs an answer as work of a client without a credential. A route that requires one changes the flow to the owner's.
fn run_for(
    client: ClientIp,
    guard: Option<AnswerGuard<'_>>,
    answer: impl Future<Output = Response>,
) -> impl Future<Output = Response> {
    let answer = CallerFlow::stranger(client.0).scope(catch_panic(answer));
    run_guarded(guard, answer)
}

/// Answers 500 if the handler panics.
fn catch_panic(answer: impl Future<Output = Response>) -> impl Future<Output = Response> {
    // No `async fn`: it would keep the answer's future twice, and views are the most requests.
    AssertUnwindSafe(answer).catch_unwind().map(|answer| {
        answer.unwrap_or_else(|_| Problem::internal(&"a handler panicked").into_response())
    })
}

/// Refuses a request to the operators' listener that names another host.
pub(super) async fn check_listener(
    State(listen): State<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    match require_listener_host(&request, listen) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// Refuses a request to the operators' listener that names another host.
pub(super) fn require_listener_host<B>(
    request: &Request<B>,
    listen: SocketAddr,
) -> Result<(), Problem> {
    match named_host(request)? {
        Some(host) if !names_listener(host, listen) => Err(Problem::new(
            ProblemCode::Misdirected,
            "This listener answers to its own address and to `localhost`: ask it by address, or send `Host: localhost`.",
        )),
        _ => Ok(()),
    }
}

fn misdirected_problem() -> Problem {
    Problem::new(
        ProblemCode::Misdirected,
        "This server does not answer for the host that the request names.",
    )
}

/// Completes the answers of the operators' listener: with an id, and with the problem's document.
pub(super) async fn complete_response(
    State(app): State<SharedApp>,
    request: Request,
    next: Next,
) -> Response {
    let request_id = app.request_ids.next();
    let format = AnswerFormat::for_request(false, &request);
    let mut response = next.run(request).await;
    write_if_problem(&app, &format, &request_id, &mut response);
    if let Ok(value) = HeaderValue::try_from(request_id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

enum AdmittedRequest {
    /// A request whose answer is known: a CORS preflight, or one to a domain that sends all of them to another origin.
    Answered(Box<Response>),
    /// A page view, which skips the router. The look-up of a page that is not in memory counts for the client.
    View(HostKind, ClientIp),
    /// A view of a file below an address that may be a site's, which skips the router, too; and whether the mount is the root of the host.
    File(HostKind, ClientIp, bool),
    /// A call of an action, which skips the router, too.
    Call(HostKind, ClientIp),
    /// A download of a visitor's file, which skips the router, too.
    Download(HostKind, ClientIp),
    /// Any other request, for the router of the host.
    Route(HostKind, ClientIp),
    /// A request that another node answers.
    Proxied(Box<ProxiedRequest>, ClientIp),
}

/// Headers that a request may have only once.
const SINGLE_HEADERS: [HeaderName; 3] = [
    header::AUTHORIZATION,
    header::ORIGIN,
    HeaderName::from_static("idempotency-key"),
];

/// Returns the host that a request names, and whether it asks for a probe.
fn classify_host(
    app: &App,
    source: &RequestSource,
    request: &Request,
) -> Result<(HostKind, bool), Problem> {
    let named = authority_of(source, request)?;
    let is_probe = matches!(request.uri().path(), "/healthz" | "/readyz");
    // A request without a host, as HTTP/1.0 allows, is for the API host.
    let host = named.map_or(Some(HostKind::Api), |authority| {
        app.hosts.classify(authority)
    });
    match host {
        Some(host) => Ok((host, is_probe)),
        // The node that a client has asked answers for its own address, too. A domain that this one does not know yet is no address.
        None if is_probe
            || source
                .forwarded()
                .is_some_and(|node| names_address(&node.authority)) =>
        {
            Ok((HostKind::Api, is_probe))
        }
        None => Err(misdirected_problem()),
    }
}

/// The checks before routing that are about the path and the headers.
fn admit_request(
    app: &App,
    target: RequestTarget,
    (source, client): (&RequestSource, ClientIp),
    request_id: &str,
    request: &mut Request,
) -> Result<AdmittedRequest, Problem> {
    if let Some(answer) = target.redirect(request.uri()) {
        return Ok(AdmittedRequest::Answered(Box::new(answer)));
    }
    let missing = target.missing_path(request);
    let at_root = match &missing {
        Some(missing) => missing.at_root,
        None => target.add_slug(request)?,
    };
    let host = target.host;
    if router::is_view(&host, request) {
        return Ok(AdmittedRequest::View(host, client));
    }
    if router::is_call(&host, request) {
        return Ok(AdmittedRequest::Call(host, client));
    }
    check_single_headers(request.headers(), &SINGLE_HEADERS)?;
    let is_console = check_console(app, &host, request)?;
    let canonical = match &missing {
        // Its path has no canonical form, and no route sees it.
        Some(_) => None,
        None => canonical_path(request)?,
    };
    if missing.is_none() && canonical.is_none() && router::is_file_view(&host, request) {
        return Ok(AdmittedRequest::File(host, client, at_root));
    }
    if missing.is_none() && canonical.is_none() && router::is_download(&host, request) {
        return Ok(AdmittedRequest::Download(host, client));
    }
    let authority: Arc<str> = authority_of(source, request)?.unwrap_or_default().into();
    if let Some(missing) = missing {
        request.extensions_mut().insert(missing);
    }
    if let Some(path) = canonical {
        *request.uri_mut() = with_path(request.uri(), &path)?;
    }
    // No page of another origin asks the console's host for anything.
    if request.method() == Method::OPTIONS && !is_console {
        return Ok(AdmittedRequest::Answered(Box::new(preflight_response())));
    }
    // Ranges are defined for GET alone (RFC 9110, section 14.2).
    if request.method() != Method::GET {
        request.headers_mut().remove(header::RANGE);
    }
    request.extensions_mut().insert(HttpRequestContext {
        client,
        host: host.clone(),
        at_root,
        authority,
        request_id: request_id.into(),
    });
    Ok(AdmittedRequest::Route(host, client))
}

/// Whether a request is to the console's host, which refuses those of other origins.
fn check_console(app: &App, host: &HostKind, request: &Request) -> Result<bool, Problem> {
    let is_console = *host == HostKind::Console;
    if is_console {
        console::check_origin(&app.config, request.headers())?;
    }
    Ok(is_console)
}

/// Returns the canonical form of a request's path; `None` if the path has it already.
fn canonical_path(request: &Request) -> Result<Option<String>, Problem> {
    let path = request.uri().path();
    canonicalize(path).map_err(|problem| match *request.method() {
        Method::PUT => refused_file(path).unwrap_or(problem),
        _ => problem,
    })
}

/// Returns the host that a request names, as [`named_host`] does, or as another node says.
fn authority_of<'r>(
    source: &'r RequestSource,
    request: &'r Request,
) -> Result<Option<&'r str>, Problem> {
    match source {
        RequestSource::Client(_) => named_host(request),
        RequestSource::Node(forwarded) => Ok(Some(&forwarded.authority)),
    }
}

/// Returns the host that a request names: in an absolute target, else in `Host`; `None` if it names none and need not. HTTP/1.1
/// requires the header even with an absolute target (RFC 9112, section 3.2).
fn named_host<B>(request: &Request<B>) -> Result<Option<&str>, Problem> {
    check_single_headers(request.headers(), &[header::HOST])?;
    let header = request.headers().get(header::HOST);
    if header.is_none() && request.version() == Version::HTTP_11 {
        return Err(invalid_request(
            "The request has no `Host`, which HTTP/1.1 requires: name the host that you call.",
        ));
    }
    let target = request.uri().authority().map(Authority::as_str);
    let named = target.or_else(|| header?.to_str().ok());
    let needs_one = header.is_some() || request.version() > Version::HTTP_10;
    Ok(named.or(needs_one.then_some("")))
}
