//! The route of live queries: a WebSocket with many queries, or a stream of server-sent events with one.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use http::HeaderMap;
use serde::Deserialize;
use tokio::sync::mpsc;
use tracing::Instrument;

use super::LiveQueries;
use super::connection::{ConnectionContext, LiveTransport, StreamEvent};
use super::identity::ConnectionSession;
use super::opening::{LiveQueryLog, LiveQueryOpening};
use super::service::{SubscribeRequest, SubscriptionRateTokens};
use super::socket;
use super::stream::LiveEventStream;
use crate::backends::calls::requests::read_params;
use crate::backends::calls::routes::bound_backend;
use crate::deployments::serving::PageService;
use crate::deployments::serving::pages;
use crate::deployments::serving::request_log::LogNote;
use crate::http::context::HttpRequestContext;
use crate::http::event_stream::{EVENT_STREAM, event_response};
use crate::http::extract::{UnparsedQuery, invalid_request};
use crate::http::negotiate;
use crate::http::origin;
use crate::http::problem::{Problem, ProblemCode};
use crate::http::websocket::UpgradeRequest;
use crate::realtime::page::SocketPage;
use svc_sandbox::CallerFlow;

#[derive(Clone, Debug)]
pub struct LiveQueryServices {
    pub live: LiveQueries,
    pub serving: Arc<PageService>,
}

/// Query string of a stream.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StreamQuery {
    action: String,
    params: Option<String>,
}

/// Query string of a request that is neither a socket nor a stream.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NonUpgradeQuery {
    #[serde(rename = "action")]
    _action: Option<String>,
    #[serde(rename = "params")]
    _params: Option<String>,
}

/// Listen to live queries
///
/// An extension. What a reading action answers, now and whenever a commit has changed it: a query is evaluated `live_per_second` times a
/// second at most, and the last change always arrives. Two ways:
///
/// A WebSocket, for many queries. Frames of a page: `{"v":1,"type":"subscribe","id","action","params"}`, `{"v":1,"type":"unsubscribe","id"}`. Frames
/// of the server: `{"v":1,"type":"result","id","seq","result"}`, whose `result` is what a call of the action answers, and `{"v":1,"type":"error","id","problem"}`,
/// by which the subscription of that id has ended. Each subscribe counts as a call for the client's rate limit, and for the page's unless the same
/// query is being served. Close codes are those of rooms.
///
/// Server-sent events, for one query: `Accept: text/event-stream` with `action` and `params` in the query. Each `result` event has its number as
/// `id` and the result as `data`; an `error` event with a problem is the last.
#[utoipa::path(
    operation_id = "listen",
    get, path = "/{slug}/api/live", tag = "visitors",
    params(
        ("slug" = String, Path, description = "A project's frontend with a live backend."),
        ("action" = Option<String>, Query, description = "Of a stream: the name of a reading action."),
        ("params" = Option<String>, Query, description = "Of a stream: a JSON object with a value for each param of the action."),
        ("Upgrade" = Option<String>, Header, description = "`websocket`; a browser's `Origin` must be the page's own.")
    ),
    responses(
        (status = 101, description = "The socket is open."),
        (status = 200, description = "The stream of events.", content_type = "text/event-stream", body = String)
    ),
    extensions(("x-problems" = json!("invalid_request invalid_json origin_refused disabled not_found rate_limited params_mismatch reserved_param identity_required statement_refused statement_failed query_timeout payload_too_large database_busy capacity_reached")))
)]
pub async fn listen(
    State(services): State<LiveQueryServices>,
    context: HttpRequestContext,
    Path(slug): Path<String>,
    query: UnparsedQuery,
    mut request: Request,
) -> Response {
    let headers = request.headers();
    if !UpgradeRequest::is_requested(headers) && negotiate::accepts_by_name(headers, EVENT_STREAM) {
        let mut left = SubscriptionRateTokens::default();
        let answer = stream(&services, &context, &slug, (&query, headers), &mut left).await;
        let mut response = answer.unwrap_or_else(IntoResponse::into_response);
        services
            .live
            .add_rate_limit_headers(left, response.headers_mut());
        return response;
    }
    let answer = open(&services, &context, &slug, (&query, &mut request)).await;
    answer.unwrap_or_else(IntoResponse::into_response)
}

async fn open(
    LiveQueryServices { live, serving }: &LiveQueryServices,
    context: &HttpRequestContext,
    slug: &str,
    (query, request): (&UnparsedQuery, &mut Request),
) -> Result<Response, Problem> {
    let page = serving.page_on_host(&context.host, slug).await?;
    let backend = bound_backend(&page)?;
    if !UpgradeRequest::is_requested(request.headers()) {
        query.read::<NonUpgradeQuery>()?;
        return Err(invalid_request(
            "Live queries come in two ways: over a WebSocket, or as server-sent events, for which `Accept` names `text/event-stream` and the query has `action` and `params`.",
        ));
    }
    if !origin::is_same_origin(&live.config.scheme, &context.authority, request.headers()) {
        return Err(Problem::new(
            ProblemCode::OriginRefused,
            "The socket was opened from a page of another origin. Open it from the page itself.",
        ));
    }
    query.none()?;
    let session = live
        .visitors
        .caller_session(&context.host, &page, request.headers())
        .await?;
    let sign_in = session.map(ConnectionSession::for_session);
    let upgrade = UpgradeRequest::from_request(request)?;
    let log = live.log_of(serving, &page, (backend, context.client));
    let opened = connection_context(live, context, (slug, &page), (sign_in, log));
    let client = context.client.bucket();
    live.claim(backend).await?;
    let place = live.admit(backend, client, &opened.page.slug, false)?;
    let span = tracing::debug_span!("live", request = %context.request_id, slug);
    let (response, accepted) = upgrade.accept();
    let serving = socket::serve(live.clone(), accepted, (backend, client), (place, opened));
    tokio::spawn(CallerFlow::current().scope(serving).instrument(span));
    // Its subscriptions are the requests of a socket.
    Ok(mark_logged(response))
}

/// Keeps the layer around the route from writing an answer into the log, where it is already.
fn mark_logged(mut response: Response) -> Response {
    response.extensions_mut().insert(LogNote {
        is_logged: true,
        ..LogNote::default()
    });
    response
}

/// Opens a stream: the response begins with the first result.
async fn stream(
    LiveQueryServices { live, serving }: &LiveQueryServices,
    context: &HttpRequestContext,
    slug: &str,
    (query, headers): (&UnparsedQuery, &HeaderMap),
    left: &mut SubscriptionRateTokens,
) -> Result<Response, Problem> {
    let client = context.client.bucket();
    live.draw_client_token(&client, left)?;
    let page = serving.page_on_host(&context.host, slug).await?;
    let backend = bound_backend(&page)?;
    let session = live
        .visitors
        .caller_session(&context.host, &page, headers)
        .await?;
    let sign_in = session.map(ConnectionSession::for_session);
    let log = live.log_of(serving, &page, (backend, context.client));
    let opened = connection_context(live, context, (slug, &page), (sign_in, log));
    let request = match subscribe_request(live, query) {
        Ok(request) => request,
        Err(problem) => {
            // The request names no query that is served already, so it takes a token of the page.
            live.draw_page_token(&page.id, left)?;
            return Err(problem);
        }
    };
    let place = live.admit(backend, client, &opened.page.slug, true)?;
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let registration = live.register(backend, place, opened, LiveTransport::Stream(sender));
    // A database that goes to another node from now on ends the stream.
    live.claim(backend).await?;
    let opening = LiveQueryOpening {
        action: request.action.clone(),
        began: live.now(),
    };
    let subscribed = live.subscribe(&registration.listener, request, left);
    if let Err(error) = subscribed.await {
        let opened = registration.listener.opened();
        opened.record(opening, Err(&error));
        return Ok(mark_logged(Problem::from(&error).into_response()));
    }
    let first = match receiver.recv().await {
        Some(StreamEvent::Error(error)) => {
            return Ok(mark_logged(Problem::from(&*error).into_response()));
        }
        Some(first) => first,
        None => return Err(closed_early()),
    };
    let mut events = LiveEventStream {
        registration,
        receiver,
        ready: VecDeque::new(),
        ends: false,
    };
    events.put(first);
    let stream = Body::from_stream(events.stream());
    Ok(mark_logged(event_response(stream)))
}

/// Refusal of a stream that was closed before its first result: the server stops, or the database goes to another one.
fn closed_early() -> Problem {
    Problem::new(
        ProblemCode::CapacityReached,
        "Another server may answer now. Try again after Retry-After.",
    )
    .retry_soon()
}

fn subscribe_request(
    live: &LiveQueries,
    query: &UnparsedQuery,
) -> Result<SubscribeRequest, Problem> {
    let StreamQuery { action, params } = query.read()?;
    let most = live.config.limits.op_body_bytes;
    if params
        .as_ref()
        .is_some_and(|params| params.len() as u64 > most)
    {
        return Err(Problem::new(
            ProblemCode::PayloadTooLarge,
            format!("`params` has more than {most} bytes, which is the most."),
        ));
    }
    if action.is_empty() {
        return Err(invalid_request("`action` must be the name of an action."));
    }
    Ok(SubscribeRequest {
        id: "stream".into(),
        action,
        params: read_params(params.as_deref())?,
    })
}

fn connection_context(
    live: &LiveQueries,
    context: &HttpRequestContext,
    (slug, page): (&str, &pages::ServedPage),
    (sign_in, log): (Option<ConnectionSession>, Option<LiveQueryLog>),
) -> ConnectionContext {
    ConnectionContext {
        page: SocketPage::on_host(&context.host, slug, page),
        request: Arc::clone(&context.request_id),
        base_url: live.config.base_url.clone(),
        sign_in,
        log,
    }
}
