//! Plain HTTP beside HTTPS: every request is redirected to the same address over TLS, if its host is ours.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HOST, LOCATION};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use ipnet::IpNet;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout;

use super::admission::ConnectionCounts;
use super::connections::{HEAD_TIMEOUT, MAX_HEAD_BYTES, STALL_TIMEOUT, accept};
use crate::app::App;
use crate::http::stall::StallTimeoutStream;
use crate::tls::{Names, ServedDomains, Tls};

/// Most connections at once.
const MAX_CONNECTIONS: u64 = 1_024;
/// Most connections of a client at once.
const MAX_PER_CLIENT: u64 = 64;

/// Path of an authority's challenges (RFC 8555, section 8.3).
const CHALLENGE_PATH: &str = "/.well-known/acme-challenge/";

/// Names that plain HTTP is answered for, and the challenges of an authority.
#[derive(Debug)]
pub(super) struct PlainHttpNames {
    names: Names,
    /// Domains of projects.
    domains: Arc<ServedDomains>,
    /// Certificates, which know the challenges.
    tls: Option<Arc<Tls>>,
}

impl PlainHttpNames {
    /// Reads the names of an application.
    pub(super) fn new(app: &App, tls: Option<Arc<Tls>>) -> Self {
        Self {
            names: Names::new(&app.config),
            domains: Arc::clone(app.domains.served()),
            tls,
        }
    }

    /// Returns the HTTPS authority for a host; `None` if the host is not ours.
    fn authority(&self, host: &str) -> Option<String> {
        let name = bare_name(host);
        self.names.authority(host).or_else(|| {
            let domain = self.domains.find(&name)?;
            Some(format!("{}{}", domain.name, self.names.sites_port()))
        })
    }

    /// Returns the answer to an authority's request for a domain.
    fn challenge(&self, host: &str, path: &str) -> Option<String> {
        let token = path.strip_prefix(CHALLENGE_PATH)?;
        self.tls.as_ref()?.http_challenge(&bare_name(host), token)
    }
}

/// Returns the name of a host without its port, in lower case.
fn bare_name(host: &str) -> String {
    let bare = match host.rsplit_once(':') {
        Some((bare, port)) if !port.ends_with(']') => bare,
        _ => host,
    };
    bare.to_ascii_lowercase()
}

/// Serves until `stop` becomes true.
pub(super) async fn serve(
    listener: TcpListener,
    names: PlainHttpNames,
    proxies: Vec<IpNet>,
    mut stop: watch::Receiver<bool>,
) {
    let names = Arc::new(names);
    let admission = Arc::new(ConnectionCounts::with_limits(
        MAX_CONNECTIONS,
        MAX_PER_CLIENT,
        &proxies,
    ));
    while let Some((stream, peer)) = accept(&listener, &mut stop).await {
        let Some(permit) = admission.admit(peer.ip()) else {
            continue;
        };
        let names = Arc::clone(&names);
        tokio::spawn(async move {
            let service = service_fn(|request: Request<Incoming>| {
                let answer = redirect_response(&names, &request);
                async { Ok::<_, Infallible>(answer) }
            });
            let stream = TokioIo::new(StallTimeoutStream::new(stream, STALL_TIMEOUT));
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .max_buf_size(MAX_HEAD_BYTES as usize)
                .serve_connection(stream, service);
            // A connection has one answer, so this bounds it as a whole.
            let _ = timeout(HEAD_TIMEOUT + STALL_TIMEOUT, connection).await;
            drop(permit);
        });
    }
}

/// Answers with a redirect to the same address over TLS. The host must be ours, so that this is no open redirect.
fn redirect_response<B>(names: &PlainHttpNames, request: &Request<B>) -> Response<Full<Bytes>> {
    let header = request
        .headers()
        .get(HOST)
        .and_then(|host| host.to_str().ok());
    let host = request
        .uri()
        .authority()
        .map_or(header, |named| Some(named.as_str()));
    let authority = host.and_then(|host| names.authority(host));
    let path = request
        .uri()
        .path_and_query()
        .map_or("/", |path| path.as_str());
    let location = authority.and_then(|authority| {
        let path = if path.starts_with('/') { path } else { "/" };
        HeaderValue::try_from(format!("https://{authority}{path}")).ok()
    });
    let mut response = Response::new(Full::default());
    let challenge = host.and_then(|host| names.challenge(host, request.uri().path()));
    match location {
        _ if challenge.is_some() => {
            let answer = challenge.unwrap_or_default();
            *response.body_mut() = Full::from(answer);
            let kind = HeaderValue::from_static("application/octet-stream");
            response.headers_mut().insert(CONTENT_TYPE, kind);
        }
        Some(location) => {
            // 308 keeps the method and the body of a form.
            *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
            response.headers_mut().insert(LOCATION, location);
        }
        None => {
            *response.status_mut() = StatusCode::MISDIRECTED_REQUEST;
            let text = "This server does not answer for the host that the request names.\n";
            *response.body_mut() = Full::from(text);
            let kind = HeaderValue::from_static("text/plain; charset=utf-8");
            response.headers_mut().insert(CONTENT_TYPE, kind);
        }
    }
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
