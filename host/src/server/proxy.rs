//! Requests that another node answers: each is passed on whole, and streamed both ways.
//!
//! A request of which nothing was sent is sent once more, to the run that has the database by then; one that was sent only if it
//! changes nothing. Rate limits and the sizes of bodies are those of the node that answers, for the client that the first node names;
//! the first node counts its connections and the bytes that it holds.

use std::sync::Arc;
use std::time::Duration;

use axum::body::HttpBody as _;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use http_body_util::BodyExt as _;
use hyper::upgrade::OnUpgrade;
use svc_ledger::{DatabaseName, RunId};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::access_log::AnsweringRun;
use super::admission::{ConnectionCounts, ConnectionPermit};
use super::front::{Front, handle_forwarded};
use super::other_nodes::{ClusterNodes, OtherNodes};
use super::placement::{BackendPath, RequestPlace, is_repeatable, placement};
use super::proxied_messages::{
    BodyProgress, ForwardedHead, remove_hop_by_hop, watch_client, with_permit,
};
use super::tunnel::{self, Tunnels};
use crate::app::App;
use crate::backends::Backends;
use crate::cluster::{
    BoxError, DatabaseLocation, PeerBody, PeerError, PeerHandlerFn, ServingClusterNode, full_body,
};
use crate::config::Config;
use crate::http::forwarded::{BackendForwarder, ForwardedRequest, RequestSource};
use crate::http::hosts::HostKind;
use crate::http::problem::{Problem, ProblemCode};
use crate::http::request_bodies::BodyMeter;
use crate::router;
use svc_base::Stopwatch;
use svc_base::ids::BackendId;

/// Most times that a request is passed on: by the node that a client has asked, and by one whose database has just moved.
const MAX_HOPS: u8 = 2;
/// Longest time in which the database of a request is named and looked for.
const LOCATE_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest time until the head of an answer, from when the other node takes nothing any more. With the look for the database it is 12
/// seconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Most requests and sockets that this node passes on at once: each has a connection between nodes, which are fewer than the streams that
/// clients of HTTP/2 may open. What the nodes themselves ask each other has the rest of these connections.
const MAX_PROXIED: u64 = 28_672;
/// Pause between two looks at a request that waits for its answer.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Headers of a rate limit, which this node adds itself where a route has counted the request before it is passed on.
const RATE_LIMITS: [HeaderName; 2] = [
    HeaderName::from_static("ratelimit"),
    HeaderName::from_static("ratelimit-policy"),
];

/// Passes requests on to the nodes that answer them.
#[derive(Debug)]
pub(super) struct RequestProxy {
    nodes: Arc<dyn OtherNodes>,
    tunnels: Tunnels,
    /// Requests and sockets that are passed on, by client.
    passing: Arc<ConnectionCounts>,
    /// Closes when no request of another node is being answered.
    answering: watch::Sender<()>,
    answer_timeout: Duration,
}

/// Node that a request is for.
#[derive(Debug)]
pub(super) enum Destination {
    /// This one.
    Here,
    /// Another one, which has this database.
    Node(DatabaseName, RunId),
    /// None that can be asked now.
    Refused(Problem),
}

/// Request that is for another node, without its head and body.
#[derive(Debug)]
pub(super) struct ProxiedRequest {
    proxy: Arc<RequestProxy>,
    database: DatabaseName,
    run: RunId,
    forwarded: ForwardedRequest,
}

/// A request was not answered by the nodes that were asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unanswered {
    /// Nothing was done.
    NotDone,
    /// It may have been done.
    MaybeDone,
}

impl RequestProxy {
    /// Creates the proxy of a node. A client may have as many requests passed on at once as it may have connections.
    pub(super) fn new(node: &ServingClusterNode, config: &Config) -> Self {
        let limits = &config.limits;
        let per_client = limits
            .connections_per_client
            .saturating_add(limits.sockets_per_ip);
        let many = &config.trusted_proxies;
        let passing = ConnectionCounts::with_limits(MAX_PROXIED, per_client, many);
        Self::over(Arc::new(ClusterNodes::new(node)), ANSWER_TIMEOUT, passing)
    }

    /// Creates a proxy over nodes that give the head of an answer within `answer_timeout`.
    pub(super) fn over(
        nodes: Arc<dyn OtherNodes>,
        answer_timeout: Duration,
        passing: ConnectionCounts,
    ) -> Self {
        Self {
            nodes,
            tunnels: Tunnels::default(),
            passing: Arc::new(passing),
            answering: watch::Sender::new(()),
            answer_timeout,
        }
    }

    /// Begins to answer what other nodes pass on.
    pub(super) fn serve(self: &Arc<Self>, front: &Arc<Front>) {
        let (proxy, front) = (Arc::clone(self), Arc::clone(front));
        let handler: PeerHandlerFn = Arc::new(move |_, request| {
            let (proxy, front) = (Arc::clone(&proxy), Arc::clone(&front));
            Box::pin(async move {
                let _answering = proxy.answering.subscribe();
                let answer = handle_forwarded(&front, request).await;
                answer.map(|body| body.map_err(BoxError::from).boxed_unsync())
            })
        });
        self.nodes.serve(Some(handler));
    }

    /// Refuses what other nodes pass on from now on, closes the sockets that other nodes have, and waits until all of it has ended.
    pub(super) async fn stop(&self) {
        self.nodes.serve(None);
        tokio::join!(self.tunnels.stop(), self.answering.closed());
    }

    /// Whether a call of an action is known to be answered here, by what is in memory. Nobody is asked, and nothing is allocated: most
    /// calls are such.
    pub(super) fn is_call_here(
        &self,
        app: &App,
        host: &HostKind,
        uri: &Uri,
        source: &RequestSource,
    ) -> bool {
        let database = match source.forwarded() {
            Some(forwarded) => forwarded.database.parse().ok(),
            None => {
                let slug = router::called_slug(uri);
                let backend = slug.and_then(|slug| app.serving.known_backend(host, slug));
                backend.map(DatabaseName::Backend)
            }
        };
        let known = database.and_then(|database| self.nodes.known_location(database));
        known == Some(DatabaseLocation::Here)
    }

    /// Returns the node that a request is for. Another node names the database itself.
    pub(super) async fn destination(
        &self,
        app: &App,
        host: &HostKind,
        (method, uri): (&Method, &Uri),
        source: &RequestSource,
    ) -> Destination {
        let begun = Stopwatch::start();
        let database = match source.forwarded() {
            Some(forwarded) => forwarded.database.parse().ok(),
            None => {
                // A page that is loaded for so long is left to the route, too.
                let naming = named_database(app, host, method, uri);
                timeout(LOCATE_TIMEOUT, naming).await.unwrap_or(None)
            }
        };
        let left = LOCATE_TIMEOUT.saturating_sub(begun.elapsed());
        match database {
            Some(database) => self.look_within(left, database, source).await,
            None => Destination::Here,
        }
    }

    /// Returns the node that has a database, if a request from `source` may go there.
    pub(super) async fn look_for(
        &self,
        database: DatabaseName,
        source: &RequestSource,
    ) -> Destination {
        self.look_within(LOCATE_TIMEOUT, database, source).await
    }

    async fn look_within(
        &self,
        longest: Duration,
        database: DatabaseName,
        source: &RequestSource,
    ) -> Destination {
        let hops = source.forwarded().map_or(0, |forwarded| forwarded.hops);
        // Most places are known, and need neither a box nor a timer.
        let located = match self.nodes.known_location(database) {
            Some(known) => known,
            None => {
                let located = timeout(longest, self.nodes.locate(database)).await;
                located.unwrap_or(DatabaseLocation::Unknown)
            }
        };
        match located {
            DatabaseLocation::Here => Destination::Here,
            DatabaseLocation::At(run) if hops < MAX_HOPS => Destination::Node(database, run),
            DatabaseLocation::At(_) | DatabaseLocation::Unknown => Destination::Refused(refusal()),
        }
    }

    /// Returns the forwarder for a route that knows its project only once it has read the body. `client` is whose request it is.
    pub(super) fn backend_forwarder(
        self: &Arc<Self>,
        app: &App,
        source: &RequestSource,
        client: ForwardedRequest,
    ) -> BackendForwarder {
        let (proxy, source) = (Arc::clone(self), source.clone());
        let backends = Arc::clone(&app.backends);
        BackendForwarder::new(Arc::new(move |project, request| {
            let (proxy, source) = (Arc::clone(&proxy), source.clone());
            let (backends, client) = (Arc::clone(&backends), client.clone());
            Box::pin(async move {
                let Some(backend) = find_backend(&backends, &project).await else {
                    return Err(Box::new(request));
                };
                let database = DatabaseName::Backend(backend);
                match proxy.look_for(database, &source).await {
                    Destination::Here => Err(Box::new(request)),
                    Destination::Refused(problem) => Ok(problem.into_response()),
                    Destination::Node(database, run) => {
                        let proxied = ProxiedRequest::new(&proxy, (database, run), client);
                        let mut response = proxied.send(request).await;
                        for header in &RATE_LIMITS {
                            response.headers_mut().remove(header);
                        }
                        Ok(response)
                    }
                }
            })
        }))
    }

    /// Passes a request on, and returns its answer.
    async fn pass_on(
        &self,
        to: &ProxiedRequest,
        mut request: Request,
    ) -> Result<Response, Problem> {
        let permit = self.passing.admit(to.forwarded.client.0);
        let permit = permit.ok_or_else(too_many)?;
        let client = tunnel::take_upgrade(&mut request);
        let (mut parts, body) = request.into_parts();
        let meter = parts.extensions.remove::<BodyMeter>();
        let is_repeatable = is_repeatable(&parts.method, parts.uri.path());
        let head = ForwardedHead::new(parts, &to.forwarded)?;
        let is_empty = body.is_end_stream();
        let (body, progress) = watch_client(body, meter);
        let body = body.map_err(BoxError::from).boxed_unsync();
        let attempts = self.attempt(to, (&head, body), (is_empty, is_repeatable));
        let answered = tokio::select! {
            biased;
            answered = attempts => answered,
            () = wait_too_long(&progress, self.answer_timeout) => Err(Unanswered::MaybeDone),
        };
        if answered.is_err()
            && let Some(problem) = progress.failure()
        {
            return Err(problem);
        }
        match answered {
            Ok((run, response)) => Ok(self.answer(run, (client, permit), response)),
            Err(Unanswered::MaybeDone) if !is_repeatable => Err(Problem::interrupted()),
            Err(Unanswered::MaybeDone | Unanswered::NotDone) => Err(refusal()),
        }
    }

    /// Sends a request, and once more where it may be. Returns the answer with the run that has given it.
    async fn attempt(
        &self,
        to: &ProxiedRequest,
        (head, body): (&ForwardedHead, PeerBody),
        (is_empty, is_repeatable): (bool, bool),
    ) -> Result<(RunId, Response), Unanswered> {
        let failed = match self.nodes.send(to.run, head.request(body)).await {
            Ok(response) => return Ok((to.run, response)),
            Err(failed) => failed,
        };
        tracing::debug!(run = %to.run, error = %failed, "a request was not answered by another node");
        self.nodes.forget(to.database);
        let again = match failed {
            PeerError::NotSent { request, .. } => *request,
            PeerError::Refused if is_empty => head.request(full_body(Bytes::new())),
            PeerError::Refused => return Err(Unanswered::NotDone),
            PeerError::Lost { .. } if is_empty && is_repeatable => {
                head.request(full_body(Bytes::new()))
            }
            PeerError::Lost { .. } => return Err(Unanswered::MaybeDone),
        };
        let DatabaseLocation::At(next) = self.nodes.locate(to.database).await else {
            return Err(Unanswered::NotDone);
        };
        match self.nodes.send(next, again).await {
            Ok(response) => Ok((next, response)),
            Err(PeerError::Lost { .. }) => Err(Unanswered::MaybeDone),
            Err(PeerError::NotSent { .. } | PeerError::Refused) => Err(Unanswered::NotDone),
        }
    }

    /// Makes the answer of another node the client's.
    fn answer(
        &self,
        run: RunId,
        (client, permit): (Option<OnUpgrade>, ConnectionPermit),
        mut response: Response,
    ) -> Response {
        remove_hop_by_hop(response.headers_mut());
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let node = tunnel::take_accepted(&mut response);
            let (Some(client), Some(node)) = (client, node) else {
                return Problem::internal(&"a node has upgraded what cannot be").into_response();
            };
            let upgrade = HeaderValue::from_static("upgrade");
            response.headers_mut().insert(header::CONNECTION, upgrade);
            let gone = self.nodes.wait_until_gone(run);
            self.tunnels.open(client, node, (gone, permit));
            response.extensions_mut().insert(AnsweringRun(run));
            return response;
        }
        response.extensions_mut().insert(AnsweringRun(run));
        response.map(|body| with_permit(body, permit))
    }
}

impl ProxiedRequest {
    /// Makes a request for the node that has a database; `client` is whose it is.
    pub(super) fn new(
        proxy: &Arc<RequestProxy>,
        (database, run): (DatabaseName, RunId),
        client: ForwardedRequest,
    ) -> Self {
        let forwarded = ForwardedRequest {
            hops: client.hops.saturating_add(1),
            database: database.to_string(),
            ..client
        };
        Self {
            proxy: Arc::clone(proxy),
            database,
            run,
            forwarded,
        }
    }

    /// Has the other node answer the request.
    pub(super) async fn send(self, request: Request) -> Response {
        let started = Stopwatch::start();
        let answer = self.proxy.pass_on(&self, request).await;
        self.proxy.nodes.count(started.elapsed());
        answer.unwrap_or_else(IntoResponse::into_response)
    }
}

/// Returns the database that a request is about, if it matters who has it. What cannot be found out is left to the route.
async fn named_database(
    app: &App,
    host: &HostKind,
    method: &Method,
    uri: &Uri,
) -> Option<DatabaseName> {
    match placement(host, method, uri)? {
        RequestPlace::AnyNode => None,
        RequestPlace::Control | RequestPlace::ControlWithBackend => Some(DatabaseName::Control),
        RequestPlace::Preview {
            deployment,
            revision,
        } => {
            let (deployment, revision) = (deployment.parse().ok()?, revision.parse().ok()?);
            let found = app.revisions.find_previewable(deployment, revision).await;
            let is_rendered = found.ok()?.1.preview.is_some();
            (!is_rendered).then_some(DatabaseName::Control)
        }
        RequestPlace::Backend(BackendPath::Page(slug)) => {
            let page = app.serving.page_on_host(host, slug).await.ok()?;
            page.backend.map(DatabaseName::Backend)
        }
        RequestPlace::Backend(BackendPath::Project(project)) => {
            let backend = find_backend(&app.backends, project).await?;
            Some(DatabaseName::Backend(backend))
        }
    }
}

/// Finds the backend of a project.
async fn find_backend(backends: &Backends, project: &str) -> Option<BackendId> {
    let found = backends.find_by_project(project.parse().ok()?).await;
    Some(found.ok()??.id)
}

/// Refusal of a request whose node cannot be asked: nothing was done.
fn refusal() -> Problem {
    Problem::new(
        ProblemCode::CapacityReached,
        "The server that has this is being replaced, and nothing was done. Try again after Retry-After.",
    )
    .retry_soon()
}

/// Refusal of a request whose client has too many under way that other nodes answer.
fn too_many() -> Problem {
    Problem::new(
        ProblemCode::CapacityReached,
        "Too many requests of this network are under way at another server, and nothing was done. Wait for answers, then go on with fewer at once.",
    )
}

/// Ends when an answer has been waited for too long: while the client itself is waited for, and while the other node takes what it sends,
/// nobody waits.
async fn wait_too_long(progress: &BodyProgress, longest: Duration) {
    let mut waited = Duration::ZERO;
    while waited < longest {
        sleep(LOOK_EVERY).await;
        if progress.stands_still() {
            waited += LOOK_EVERY;
        }
    }
}
