//! The WebSocket handshake: from an upgrade request to a socket.

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version, header};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto::upgrade;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use super::UpgradedSocket;
use super::wire::SocketTransport;
use crate::http::extract::invalid_request;
use crate::http::problem::Problem;
use crate::http::stall::StallTimeoutStream;

/// GUID that the key is hashed with for `Sec-WebSocket-Accept` (RFC 6455, section 1.3).
const ACCEPT_GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// The only version of the protocol.
const WEBSOCKET_VERSION: HeaderValue = HeaderValue::from_static("13");

/// A valid upgrade request.
#[derive(Debug)]
pub struct UpgradeRequest {
    connection: OnUpgrade,
    answer: HeaderValue,
}

/// An accepted upgrade, whose answer is being sent.
#[derive(Debug)]
pub struct AcceptedUpgrade {
    connection: OnUpgrade,
}

impl UpgradeRequest {
    /// Whether a request asks for an upgrade, valid or not.
    pub fn is_requested(headers: &HeaderMap) -> bool {
        list_contains(headers, &header::UPGRADE, "websocket")
    }

    /// Reads the handshake of a request.
    ///
    /// # Errors
    /// `invalid_request`, saying what is missing.
    pub fn from_request(request: &mut Request) -> Result<Self, Problem> {
        let headers = request.headers();
        let asks = request.method() == Method::GET
            && request.version() == Version::HTTP_11
            && list_contains(headers, &header::CONNECTION, "upgrade")
            && list_contains(headers, &header::UPGRADE, "websocket");
        if !asks {
            return Err(invalid_request(
                "This address is a WebSocket: open it with a WebSocket client, over HTTP/1.1.",
            )
            .header(header::UPGRADE, HeaderValue::from_static("websocket")));
        }
        if headers.get(header::SEC_WEBSOCKET_VERSION) != Some(&WEBSOCKET_VERSION) {
            return Err(invalid_request("`Sec-WebSocket-Version` must be 13.")
                .header(header::SEC_WEBSOCKET_VERSION, WEBSOCKET_VERSION));
        }
        let key = headers.get(header::SEC_WEBSOCKET_KEY);
        let answer = key.and_then(accept_key).ok_or_else(|| {
            invalid_request(
                "`Sec-WebSocket-Key` must be 16 bytes in base64, made anew for each connection.",
            )
        })?;
        let connection = request.extensions_mut().remove::<OnUpgrade>();
        let connection =
            connection.ok_or_else(|| Problem::internal(&"a connection that cannot be upgraded"))?;
        Ok(Self { connection, answer })
    }

    /// Accepts the upgrade; returns the answer to send, and the upgrade that follows it.
    pub fn accept(self) -> (Response, AcceptedUpgrade) {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, self.answer);
        let accepted = AcceptedUpgrade {
            connection: self.connection,
        };
        (response, accepted)
    }
}

impl AcceptedUpgrade {
    /// Returns the socket once the answer is sent; `None` if the client is gone by then.
    pub async fn into_socket(self, most: usize) -> Option<UpgradedSocket> {
        let upgraded = self.connection.await.ok()?;
        // Copied, because a slice would keep the connection's whole buffer.
        let own = |early: Bytes| Bytes::copy_from_slice(&early);
        let upgraded = match upgrade::downcast::<TokioIo<StallTimeoutStream<TcpStream>>>(upgraded) {
            Ok(parts) => {
                let wire = SocketTransport::Plain(parts.io.into_inner().into_inner());
                return Some(UpgradedSocket::new(wire, own(parts.read_buf), most));
            }
            Err(upgraded) => upgraded,
        };
        type Secure = TokioIo<TlsStream<StallTimeoutStream<TcpStream>>>;
        let upgraded = match upgrade::downcast::<Secure>(upgraded) {
            Ok(parts) => {
                let (stream, session) = parts.io.into_inner().into_inner();
                let wire = SocketTransport::tls(stream.into_inner(), session);
                return Some(UpgradedSocket::new(wire, own(parts.read_buf), most));
            }
            Err(upgraded) => upgraded,
        };
        // Another node's, which passes the socket on. Its listener speaks HTTP/1.1 alone.
        let parts = upgraded.downcast::<TokioIo<TlsStream<TcpStream>>>().ok()?;
        let (stream, session) = parts.io.into_inner().into_inner();
        let wire = SocketTransport::tls(stream, session);
        Some(UpgradedSocket::new(wire, own(parts.read_buf), most))
    }
}

/// Whether a header's comma-separated list has a token.
fn list_contains(headers: &HeaderMap, name: &HeaderName, wanted: &str) -> bool {
    let lines = headers.get_all(name).iter().filter_map(|v| v.to_str().ok());
    lines
        .flat_map(|line| line.split(','))
        .any(|entry| entry.trim().eq_ignore_ascii_case(wanted))
}

fn accept_key(key: &HeaderValue) -> Option<HeaderValue> {
    let decoded = STANDARD.decode(key.as_bytes()).ok()?;
    if decoded.len() != 16 {
        return None;
    }
    // The protocol requires SHA-1, which protects nothing here: it shows that the server speaks the protocol.
    let mut digest = ring::digest::Context::new(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY);
    digest.update(key.as_bytes());
    digest.update(ACCEPT_GUID);
    HeaderValue::try_from(STANDARD.encode(digest.finish())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_answered_as_the_standard_says() {
        let key = HeaderValue::from_static("dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(
            accept_key(&key).unwrap(),
            HeaderValue::from_static("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
        );
        for bad in ["", "c2hvcnQ=", "not base64!", "dGhlIHNhbXBsZSBub25jZSE="] {
            assert_eq!(accept_key(&HeaderValue::from_static(bad)), None, "{bad}");
        }
    }
}
