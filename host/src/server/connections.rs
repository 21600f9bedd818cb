//! Connections: accepted, spoken with in HTTP/1.1 or HTTP/2, and ended in good order.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::response::IntoResponse;
use http::Request;
use http::header::CONTENT_TYPE;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::front;
use crate::app::SharedApp;
use crate::http::paths;
use crate::http::problem::Problem;
use crate::http::stall::Stalling;
use crate::router::Routers;

/// How long a request's head may take to arrive.
const HEAD_TIME: Duration = Duration::from_secs(15);
/// How long a client may take none of what is written to it.
const STALL_TIME: Duration = Duration::from_secs(30);
/// How long requests may take to finish when the server stops.
const STOP_TIME: Duration = Duration::from_secs(10);
/// How long a stream of events, which ends with the server, may take to be read to that end.
const STREAM_TIME: Duration = Duration::from_secs(1);
/// How long to wait when no connection can be accepted, as when file descriptors have run out.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(50);

/// Serves until `stop` becomes true, then finishes what is running.
pub(super) async fn serve(
    listener: TcpListener,
    app: SharedApp,
    routers: Arc<Routers>,
    mut stop: watch::Receiver<bool>,
) {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Some(HEAD_TIME))
        .max_concurrent_streams(100);
    let builder = Arc::new(builder);
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                let connection = (stream, peer, stop.clone());
                connect(connection, &app, &routers, &builder, &graceful);
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_BACKOFF).await;
            }
        }
    }
    drop(listener);
    // Sockets are told first; requests finish meanwhile.
    let ended = async { tokio::join!(app.realtime.stop(), graceful.shutdown()) };
    if tokio::time::timeout(STOP_TIME, ended).await.is_err() {
        tracing::warn!("some requests or sockets did not finish in time");
    }
}

fn connect(
    (stream, peer, stop): (TcpStream, SocketAddr, watch::Receiver<bool>),
    app: &SharedApp,
    routers: &Arc<Routers>,
    builder: &Arc<Builder<TokioExecutor>>,
    graceful: &GracefulShutdown,
) {
    // Answers are written whole: waiting to fill a segment only delays them. A socket that refuses works anyway.
    let _ = stream.set_nodelay(true);
    let (app, routers, builder) = (app.clone(), Arc::clone(routers), Arc::clone(builder));
    let watcher = graceful.watcher();
    tokio::spawn(async move {
        let streams = Arc::new(AtomicBool::new(false));
        let has_streams = Arc::clone(&streams);
        let service = service_fn(move |request: Request<Incoming>| {
            if paths::is_listening(request.uri().path()) {
                has_streams.store(true, Ordering::Relaxed);
            }
            let (app, routers) = (app.clone(), Arc::clone(&routers));
            async move { Ok::<_, Infallible>(front::handle(&app, &routers, peer.ip(), request).await) }
        });
        let stream = TokioIo::new(Stalling::new(stream, STALL_TIME));
        let connection = builder.serve_connection_with_upgrades(stream, service);
        tokio::select! {
            ended = watcher.watch(connection) => if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended early");
            },
            () = given_up(stop, &streams) => {}
        }
    });
}

/// Waits until a server that stops need not wait for a connection any more: one with a stream that nobody reads.
async fn given_up(mut stop: watch::Receiver<bool>, streams: &AtomicBool) {
    // A sender that is gone has stopped too.
    let _ = stop.wait_for(|stop| *stop).await;
    tokio::time::sleep(STREAM_TIME).await;
    if !streams.load(Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
}

/// Serves operators: `GET /metrics` and nothing else.
pub(super) async fn serve_operators(
    listener: TcpListener,
    app: SharedApp,
    mut stop: watch::Receiver<bool>,
) {
    let completed = axum::middleware::from_fn_with_state(app.clone(), front::complete);
    let metrics = axum::routing::get(move || {
        let app = app.clone();
        async move {
            let kind = [(
                CONTENT_TYPE,
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
            )];
            if let Err(error) = app
                .gauges
                .measure(&app.config, &app.control, &app.deployments, app.clock.now())
                .await
            {
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
        .fallback(|| async { Problem::not_found() })
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
        .layer(completed);
    let stopped = async move {
        // A sender that is gone has stopped too.
        let _ = stop.wait_for(|stop| *stop).await;
    };
    if let Err(error) = axum::serve(listener, router)
        .with_graceful_shutdown(stopped)
        .await
    {
        tracing::error!(%error, "the operators' listener failed");
    }
}
