//! Connections: accepted, served in HTTP/1.1 or HTTP/2, and closed gracefully.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use axum::response::IntoResponse;
use http::header::CONTENT_TYPE;
use http::{Request, Uri, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::admission::{ConnectionCounts, ConnectionPermit};
use super::front::{self, Front, handle_request};
use super::handshakes::{HandshakeCounts, HandshakeSlot};
use super::proxy::RequestProxy;
use super::tls_ask;
use crate::app::SharedApp;
use crate::http::client_timeout::{
    AnswerTracker, SEND_BUFFER_BYTES, SlowClientTimeout, TrackedAnswerGuard,
};
use crate::http::forwarded::RequestSource;
use crate::http::problem::Problem;
use crate::http::stall::StallTimeoutStream;
use crate::router::paths;
use crate::tls::Tls;

/// Timeout of a request's head.
pub(super) const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum size of a request's head, in bytes: one for both versions, whose defaults differ. More is answered with a bare 431 before a request
/// exists. HTTP/1.1 counts the bytes as sent and HTTP/2 names and values, with 32 bytes for each.
pub(super) const MAX_HEAD_BYTES: u32 = 64 << 10;
/// Time in which a client takes a least part of the answers that wait for it: see `http/stall.rs`.
pub(super) const STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Idle timeout of an HTTP/2 connection; in HTTP/1.1 the timeout of the next head takes its place.
const IDLE_TIMEOUT: Duration = Duration::from_secs(75);
/// Time that requests have to finish when the server stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// Time that clients have to read the end of an event stream when the server stops.
const STREAM_STOP_TIMEOUT: Duration = Duration::from_secs(1);
/// Type of the answer of `/metrics`.
pub(super) const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Time that the figures of a node may take.
const MEASURE_TIMEOUT: Duration = Duration::from_secs(2);
/// Pause after a connection could not be accepted, as when file descriptors have run out.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(50);

/// Builders of HTTP connections: for the version that a client begins with, or the one that ALPN has selected.
#[derive(Clone, Debug)]
struct HttpConnectionBuilders {
    either: Builder<TokioExecutor>,
    http1: Builder<TokioExecutor>,
    http2: Builder<TokioExecutor>,
}

/// Makes the builder of connections whose clients choose the version.
pub(super) fn connection_builder() -> Builder<TokioExecutor> {
    let mut either = Builder::new(TokioExecutor::new());
    either
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES as usize);
    either
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Some(HEAD_TIMEOUT))
        .max_header_list_size(MAX_HEAD_BYTES)
        .max_send_buf_size(SEND_BUFFER_BYTES)
        .max_concurrent_streams(100);
    either
}

impl HttpConnectionBuilders {
    fn new() -> Self {
        let either = connection_builder();
        Self {
            http1: either.clone().http1_only(),
            http2: either.clone().http2_only(),
            either,
        }
    }
}

/// Serves until `stop` becomes true, then finishes the running requests. A node of several has a proxy, which knows the others.
pub(super) async fn serve(
    listener: TcpListener,
    app: SharedApp,
    (tls, proxy): (Option<Arc<Tls>>, Option<Arc<RequestProxy>>),
    mut stop: watch::Receiver<bool>,
) {
    let front = Arc::new(Front::new(app.clone(), proxy));
    if let Some(proxy) = &front.proxy {
        proxy.serve(&front);
    }
    let builders = Arc::new(HttpConnectionBuilders::new());
    let handshakes = tls.map(|tls| HandshakeCounts::new(tls, &app.config.trusted_proxies));
    let admission = Arc::new(ConnectionCounts::new(
        &app.config.limits,
        &app.config.trusted_proxies,
    ));
    let graceful = GracefulShutdown::new();
    while let Some((stream, peer)) = accept(&listener, &mut stop).await {
        let Some(permit) = admission.admit(peer.ip()) else {
            app.metrics.connections_refused.inc();
            tracing::debug!(peer = %peer.ip(), "a connection too many is closed");
            continue;
        };
        // Answers are written whole, so Nagle's algorithm only delays them. A socket that refuses the option works anyway.
        let _ = stream.set_nodelay(true);
        let stream = StallTimeoutStream::new(stream, STALL_TIMEOUT);
        let connection = AcceptedConnection {
            front: Arc::clone(&front),
            builders: Arc::clone(&builders),
            peer: peer.ip(),
            stop: stop.clone(),
            watcher: graceful.watcher(),
            permit,
        };
        match &handshakes {
            None => drop(tokio::spawn(connection.serve_plain(stream))),
            Some(handshakes) => match handshakes.reserve_slot(peer.ip()) {
                Some(slot) => drop(tokio::spawn(connection.serve_tls(stream, slot))),
                None => tracing::debug!("too many handshakes are under way"),
            },
        }
    }
    drop(listener);
    let passed = async {
        if let Some(proxy) = &front.proxy {
            proxy.stop().await;
        }
    };
    // Owners' streams would go on, and be waited for.
    app.activity.stop_following();
    // WebSockets are closed while requests finish.
    let ended = async { tokio::join!(app.realtime.stop(), graceful.shutdown(), passed) };
    if timeout(STOP_TIMEOUT, ended).await.is_err() {
        tracing::warn!("some requests or sockets did not finish in time");
    }
}

/// Accepts the next connection; `None` once the server stops.
pub(super) async fn accept(
    listener: &TcpListener,
    stop: &mut watch::Receiver<bool>,
) -> Option<(TcpStream, SocketAddr)> {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => return None,
        };
        match accepted {
            Ok(accepted) => return Some(accepted),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(ACCEPT_BACKOFF).await;
            }
        }
    }
}

/// An accepted connection.
struct AcceptedConnection {
    front: Arc<Front>,
    builders: Arc<HttpConnectionBuilders>,
    peer: IpAddr,
    stop: watch::Receiver<bool>,
    /// Held until the connection ends: the server's stop waits for it.
    watcher: Watcher,
    /// Held until the connection ends or becomes a WebSocket, which has limits of its own.
    permit: ConnectionPermit,
}

/// State of a connection's requests, shared with the service.
#[derive(Debug, Default)]
struct RequestState {
    /// Whether a request has arrived.
    has_requests: AtomicBool,
    /// Whether the last request is answered by an event stream that occupies the connection.
    is_stream: AtomicBool,
}

impl RequestState {
    fn record(&self, request: &Request<Incoming>) {
        self.has_requests.store(true, Ordering::Relaxed);
        // HTTP/2 answers other requests beside it.
        let is_alone = request.version() != Version::HTTP_2;
        let is_stream = is_alone && paths::may_be_stream(request.uri().path());
        self.is_stream.store(is_stream, Ordering::Relaxed);
    }
}

impl AcceptedConnection {
    async fn serve_plain(self, stream: StallTimeoutStream<TcpStream>) {
        let builders = Arc::clone(&self.builders);
        self.serve_http(stream, &builders.either).await;
    }

    async fn serve_tls(mut self, stream: StallTimeoutStream<TcpStream>, slot: HandshakeSlot) {
        let shaken = tokio::select! {
            shaken = slot.perform(stream) => shaken,
            _ = self.stop.wait_for(|stop| *stop) => None,
        };
        let Some(stream) = shaken else {
            return;
        };
        let builders = Arc::clone(&self.builders);
        let builder = match stream.get_ref().1.alpn_protocol() {
            Some(b"h2") => &builders.http2,
            _ => &builders.http1,
        };
        self.serve_http(stream, builder).await;
    }

    async fn serve_http<S>(self, stream: S, builder: &Builder<TokioExecutor>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Self {
            front,
            peer,
            stop,
            watcher: _watcher,
            permit: _permit,
            ..
        } = self;
        let (seen, answers) = (Arc::<RequestState>::default(), AnswerTracker::default());
        let sees = Arc::clone(&seen);
        let mut slow_client = SlowClientTimeout::new(answers.clone(), STALL_TIMEOUT, IDLE_TIMEOUT);
        let service = service_fn(move |request: Request<Incoming>| {
            sees.record(&request);
            let front = Arc::clone(&front);
            let tracked = (request.version() == Version::HTTP_2).then(|| answers.track());
            async move {
                let source = RequestSource::Client(peer);
                let answer = handle_request(&front, source, request).await;
                Ok::<_, Infallible>(TrackedAnswerGuard::wrap(tracked, answer))
            }
        });
        let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
        let (mut connection, mut stopped) = (pin!(connection), pin!(stop_requested(stop.clone())));
        let (mut given_up, mut silent) = (pin!(stream_timeout(stop)), pin!(sleep(HEAD_TIMEOUT)));
        let mut is_closing = false;
        // Timers are polled only where they can end the connection: polling them costs every request.
        poll_fn(|context| {
            if !is_closing && stopped.as_mut().poll(context).is_ready() {
                is_closing = true;
                connection.as_mut().graceful_shutdown();
            }
            if let Poll::Ready(ended) = connection.as_mut().poll(context) {
                let error = ended.err().map(tracing::field::display);
                tracing::debug!(error, "a connection ended");
                return Poll::Ready(());
            }
            if !seen.has_requests.load(Ordering::Relaxed) {
                return silent.as_mut().poll(context);
            }
            if let Poll::Ready(ending) = slow_client.poll_timeout(context) {
                tracing::debug!(?ending, "a client of HTTP/2 is not waited for");
                if is_closing {
                    return Poll::Ready(());
                }
                // Requests that arrived meanwhile are still answered.
                is_closing = true;
                connection.as_mut().graceful_shutdown();
                context.waker().wake_by_ref();
            }
            if seen.is_stream.load(Ordering::Relaxed) {
                return given_up.as_mut().poll(context);
            }
            Poll::Pending
        })
        .await;
    }
}

/// Waits until the server stops.
async fn stop_requested(mut stop: watch::Receiver<bool>) {
    // A dropped sender means stop.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Waits until a stopping server gives up on a connection with an event stream.
async fn stream_timeout(stop: watch::Receiver<bool>) {
    stop_requested(stop).await;
    sleep(STREAM_STOP_TIMEOUT).await;
}

/// Serves operators: `GET /metrics`, `GET /tls/ask`, and nothing else.
pub(super) async fn serve_operators(
    listener: TcpListener,
    app: SharedApp,
    stop: watch::Receiver<bool>,
) {
    let completed = axum::middleware::from_fn_with_state(app.clone(), front::complete_response);
    let address = match listener.local_addr() {
        Ok(address) => address,
        Err(error) => {
            tracing::error!(%error, "the operators' listener has no address");
            return;
        }
    };
    let named = axum::middleware::from_fn_with_state(address, front::check_listener);
    let asked = app.clone();
    let ask =
        axum::routing::get(move |uri: Uri| async move { tls_ask::answer(&asked, &uri).await });
    let metrics = axum::routing::get(move || {
        let app = app.clone();
        async move {
            let kind = [(CONTENT_TYPE, METRICS_TYPE)];
            let now = app.clock.now();
            let measuring = app
                .gauges
                .measure(&app.config, &app.control, &app.serving, now);
            let measured = match &app.cluster {
                None => measuring.await,
                // Without the ledger nothing is read: the rest is shown with the figures of before.
                Some(_) => timeout(MEASURE_TIMEOUT, measuring).await.unwrap_or(Ok(())),
            };
            if let Err(error) = measured {
                return Problem::internal(&error).into_response();
            }
            match app.metrics.encode() {
                Ok(text) => (kind, text).into_response(),
                Err(error) => Problem::internal(&error).into_response(),
            }
        }
    });
    let router = axum::Router::new()
        .route("/metrics", metrics)
        .route("/tls/ask", ask)
        .fallback(|| async { Problem::not_found() })
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
        .layer(named)
        .layer(completed);
    let late = async {
        stop_requested(stop.clone()).await;
        sleep(STOP_TIMEOUT).await;
    };
    tokio::select! {
        served = axum::serve(listener, router).with_graceful_shutdown(stop_requested(stop.clone())) => {
            if let Err(error) = served {
                tracing::error!(%error, "the operators' listener failed");
            }
        }
        () = late => tracing::warn!("a request to the operators' listener did not finish in time"),
    }
}
