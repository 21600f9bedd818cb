//! The access log: a line for each answered request, written when its answer has been sent.
//!
//! It names routes and never addresses: a slug may be a secret, and a query may hold one.

use std::net::IpAddr;
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http::Method;

use crate::app::App;
use crate::http::client_ip::ClientIp;
use crate::http::mapped_body::{MappedBody, PolledFrame};
use crate::log::ACCESS_TARGET;
use crate::telemetry::MatchedRoute;
use svc_base::clock::Clock;
use svc_ledger::RunId;

/// Run that has answered a request in place of this one.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnsweringRun(pub(super) RunId);

/// The line of a request, which is written when this is dropped.
#[derive(Debug)]
pub(super) struct AccessLogLine {
    client: IpAddr,
    method: Method,
    request: String,
    route: String,
    /// Run that has answered in place of this one.
    run: Option<RunId>,
    status: u16,
    bytes: u64,
    clock: Clock,
    started: Duration,
}

impl AccessLogLine {
    /// Begins the line of a request, if the access log is on.
    pub(super) fn begin<B>(
        app: &App,
        client: ClientIp,
        id: &str,
        request: &Request<B>,
    ) -> Option<Self> {
        app.config.access_log.then(|| Self {
            client: client.0,
            method: request.method().clone(),
            request: id.to_owned(),
            route: String::new(),
            run: None,
            status: 0,
            bytes: 0,
            clock: app.clock.clone(),
            started: app.clock.elapsed(),
        })
    }

    /// Attaches the line to the answer's body, so that it is written when the answer was sent or the client is gone. Without `route` the
    /// answer's [`MatchedRoute`] names it.
    pub(super) fn attach(line: Option<Self>, route: Option<&str>, response: Response) -> Response {
        let Some(mut line) = line else {
            return response;
        };
        let matched = response.extensions().get::<MatchedRoute>();
        let route = route.or_else(|| matched.map(|route| route.0.as_str()));
        route.unwrap_or("none").clone_into(&mut line.route);
        line.run = response.extensions().get().map(|AnsweringRun(run)| *run);
        line.status = response.status().as_u16();
        response.map(|body| Body::new(MappedBody::new(body, move |polled| line.count(polled))))
    }

    /// Counts the bytes of a frame.
    fn count(&mut self, polled: PolledFrame) -> PolledFrame {
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
        {
            self.bytes += data.len() as u64;
        }
        polled
    }
}

impl Drop for AccessLogLine {
    fn drop(&mut self) {
        let took = self.clock.elapsed().saturating_sub(self.started);
        tracing::info!(
            target: ACCESS_TARGET,
            client = %self.client,
            method = %self.method,
            route = self.route,
            run = self.run.map(tracing::field::display),
            status = self.status,
            bytes = self.bytes,
            ms = took.as_secs_f64() * 1000.0,
            request = self.request,
            "request"
        );
    }
}
