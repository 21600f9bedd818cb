//! The listeners of a node that starts or stands by: they answer probes, operators' look at the metrics, and everything else by a 503,
//! until this node has control.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use prometheus_client::registry::Registry;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::StartResources;
use super::admission::ConnectionCounts;
use super::connections::{self, METRICS_TYPE, STALL_TIMEOUT};
use super::front;
use super::handshakes::HandshakeCounts;
use crate::app;
use crate::cluster::ClusterNode;
use crate::config::Config;
use crate::gauges;
use crate::http::NOSNIFF;
use crate::http::problem::{Problem, ProblemCode};
use crate::http::request_ids::RequestIdGenerator;
use crate::http::stall::StallTimeoutStream;
use crate::tls::{CertifiedNames, Tls};
use svc_base::clock::Clock;
use svc_sandbox::Sandbox;

const TEXT_TYPE: &str = "text/plain; charset=utf-8";
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Time after which connections to the standby end, once this node serves: the same as `Retry-After` says.
const END_DELAY: Duration = Duration::from_secs(1);

/// Builder of the standby's connections, and its answers.
#[derive(Debug)]
struct StandbyService {
    builder: Builder<TokioExecutor>,
    base_url: String,
    request_ids: RequestIdGenerator,
    /// Metrics, at the operators' listener.
    metrics: Option<StandbyMetrics>,
}

/// Metrics of a node that stands by: its own, and those of the process.
#[derive(Debug)]
struct StandbyMetrics {
    registry: Registry,
    /// Address of the operators' listener.
    listen: SocketAddr,
}

impl StandbyMetrics {
    fn new(node: &ClusterNode, listen: SocketAddr) -> Self {
        let mut registry = Registry::default();
        gauges::register_process(&mut registry);
        node.metrics().register(&mut registry);
        Self { registry, listen }
    }

    /// Encodes the metrics in the text format, for a request that names this listener.
    fn show(&self, request: &Request<Incoming>) -> Result<String, Problem> {
        front::require_listener_host(request, self.listen)?;
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)
            .map_err(|error| Problem::internal(&error))?;
        Ok(text)
    }
}

/// Listeners of a node that stands by.
#[derive(Debug)]
pub(super) struct StandbyListeners {
    stop: watch::Sender<bool>,
    serving: Vec<JoinHandle<()>>,
    /// Compiles the guests while there is time; `None` where this node serves soon, which has its own.
    guests: Option<Sandbox>,
}

impl StandbyListeners {
    /// Starts to answer on the sockets of the server's listeners, which the server takes over later. A node that has not joined yet has no
    /// metrics: who asks for them waits.
    ///
    /// # Errors
    /// The system's, or certificates that cannot be read.
    pub(super) fn start(
        config: &Config,
        clock: &Clock,
        resources: &StartResources,
        node: Option<&ClusterNode>,
    ) -> anyhow::Result<Self> {
        // Certificates are files, so no authority is asked.
        let tls = Tls::open(config, clock, CertifiedNames::none())?.map(Arc::new);
        let (stop, stopped) = watch::channel(false);
        let mut serving = Vec::new();
        let (ops, metrics) = match (&resources.ops, node) {
            (Some(ops), Some(node)) => {
                let metrics = StandbyMetrics::new(node, ops.local_addr()?);
                (Some(ops), Some(metrics))
            }
            _ => (None, None),
        };
        let listeners = [
            (Some(&resources.listener), tls, None),
            (ops, None, metrics),
            (resources.redirect.as_ref(), None, None),
        ];
        for (listener, tls, metrics) in listeners {
            if let Some(listener) = listener {
                let listener = share(listener)?;
                let listening = serve(listener, config.clone(), (tls, metrics), stopped.clone());
                serving.push(tokio::spawn(listening));
            }
        }
        let guests = node.map(|_| app::compile_guests(config, clock));
        Ok(Self {
            stop,
            serving,
            guests: guests.transpose()?,
        })
    }

    /// Stops to accept. Connections that wait in a socket are the server's.
    pub(super) async fn stop(self) {
        // No receiver is left.
        let _ = self.stop.send(true);
        for task in self.serving {
            // A panic of the task is in the log.
            let _ = task.await;
        }
        // Its threads may still compile, which nobody waits for.
        drop(tokio::task::spawn_blocking(move || drop(self.guests)));
    }
}

/// Opens another handle to the socket of a listener.
fn share(listener: &TcpListener) -> std::io::Result<TcpListener> {
    let socket = listener.as_fd().try_clone_to_owned()?;
    TcpListener::from_std(socket.into())
}

/// Serves as a standby until `stop` becomes true; connections that are open then end soon after.
async fn serve(
    listener: TcpListener,
    config: Config,
    (tls, metrics): (Option<Arc<Tls>>, Option<StandbyMetrics>),
    mut stop: watch::Receiver<bool>,
) {
    let handshakes = tls.map(|tls| HandshakeCounts::new(tls, &config.trusted_proxies));
    let counts = ConnectionCounts::new(&config.limits, &config.trusted_proxies);
    let admission = Arc::new(counts);
    let service = Arc::new(StandbyService {
        builder: connections::connection_builder(),
        base_url: config.base_url,
        request_ids: RequestIdGenerator::new(std::process::id()),
        metrics,
    });
    let graceful = GracefulShutdown::new();
    while let Some((stream, peer)) = connections::accept(&listener, &mut stop).await {
        let Some(permit) = admission.admit(peer.ip()) else {
            continue;
        };
        let stream = StallTimeoutStream::new(stream, STALL_TIMEOUT);
        let (service, watcher) = (Arc::clone(&service), graceful.watcher());
        let slot = match &handshakes {
            None => None,
            Some(handshakes) => match handshakes.reserve_slot(peer.ip()) {
                Some(slot) => Some(slot),
                None => continue,
            },
        };
        tokio::spawn(async move {
            let _permit = permit;
            match slot {
                None => service.serve_connection(stream, watcher).await,
                Some(slot) => {
                    if let Some(stream) = slot.perform(stream).await {
                        service.serve_connection(stream, watcher).await;
                    }
                }
            }
        });
    }
    drop(listener);
    // A connection that ends before its request is read breaks that request. So those that are open are answered as by a standby, once,
    // while this node serves already.
    tokio::spawn(async move {
        sleep(END_DELAY).await;
        graceful.shutdown().await;
    });
}

impl StandbyService {
    async fn serve_connection<S>(self: Arc<Self>, stream: S, watcher: Watcher)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let me = Arc::clone(&self);
        let answering = service_fn(move |request: Request<Incoming>| {
            let answer = me.answer(&request);
            async move { Ok::<_, Infallible>(answer) }
        });
        let connection = self
            .builder
            .serve_connection(TokioIo::new(stream), answering);
        if let Err(error) = watcher.watch(connection.into_owned()).await {
            tracing::debug!(%error, "a connection to the standby ended");
        }
    }

    /// Answers a request to a standby.
    fn answer(&self, request: &Request<Incoming>) -> Response<Body> {
        let request_id = self.request_ids.next();
        let is_look = matches!(*request.method(), Method::GET | Method::HEAD);
        let metrics = self.metrics.as_ref().filter(|_| is_look);
        let found = match (request.uri().path(), metrics) {
            ("/healthz", _) if is_look => Ok((StatusCode::OK, TEXT_TYPE, "ok\n".to_owned())),
            ("/readyz", _) if is_look => {
                let status = StatusCode::SERVICE_UNAVAILABLE;
                Ok((status, TEXT_TYPE, "standby\n".to_owned()))
            }
            ("/metrics", Some(metrics)) => {
                let shown = metrics.show(request);
                shown.map(|text| (StatusCode::OK, METRICS_TYPE, text))
            }
            _ => Err(standby_problem()),
        };
        let (status, kind, text) = found.unwrap_or_else(|problem| {
            problem.log(&request_id);
            let document = problem.document(&self.base_url, &request_id).to_json();
            let status = problem.code.status();
            (status, "application/problem+json", document)
        });
        response(request, (status, kind, text), &request_id)
    }
}

/// Writes an answer to a request. Its connection ends with it: a later request on it could meet its end when this node serves.
fn response(
    request: &Request<Incoming>,
    (status, kind, text): (StatusCode, &'static str, String),
    request_id: &str,
) -> Response<Body> {
    let body = match *request.method() {
        Method::HEAD => Body::empty(),
        _ => Body::from(text),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(NOSNIFF.0, NOSNIFF.1);
    if let Ok(id) = HeaderValue::try_from(request_id) {
        headers.insert(REQUEST_ID, id);
    }
    if status == StatusCode::SERVICE_UNAVAILABLE {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    // HTTP/2 has another way to say so.
    if request.version() <= Version::HTTP_11 {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

fn standby_problem() -> Problem {
    Problem::new(
        ProblemCode::CapacityReached,
        "This server stands by for another one, and nothing was done. Try again after Retry-After.",
    )
}
