//! The clients for other servers. Of the HTTP client every call is bounded in time and in bytes, and follows no redirect.
//!
//! Root certificates are the machine's. A machine without any, such as an empty container, speaks no HTTPS. The program has no
//! list of its own: that would grow old with the binary, and nobody could remove an authority.

#![forbid(unsafe_code)]

pub mod mail;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode};
use reqwest::redirect::Policy;
use reqwest::{Certificate, ClientBuilder};

/// Time limit for making a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Size limit of a response body, unless a caller sets another.
const MAX_BODY_BYTES: usize = 1 << 20;

/// Loopback addresses; port 0 stands for the port of the URL.
pub const LOOPBACK: [SocketAddr; 2] = [
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
    SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), 0),
];

/// Error of HTTPS calls on a machine without root certificates.
pub const NO_ROOT_CERTIFICATES: &str = "this machine has no certificates of authorities, so HTTPS cannot be spoken: install them (the package `ca-certificates`), or name a file of them by SSL_CERT_FILE, and start the program again";

/// The client; clones share its connections.
#[derive(Clone, Debug)]
pub struct OutboundClient {
    client: reqwest::Client,
    has_root_certificates: bool,
}

/// A response, read to its end.
#[derive(Clone, Debug)]
pub struct OutboundResponse {
    /// Status of the response.
    pub status: StatusCode,
    /// Headers of the response.
    pub headers: HeaderMap,
    /// Body of the response.
    pub body: Bytes,
}

/// Failure of a call. Its text contains neither the address nor the request.
#[derive(Debug, thiserror::Error)]
pub enum OutboundError {
    /// The whole response did not arrive in time.
    #[error("no answer in time")]
    Timeout,
    /// The response body is larger than the limit.
    #[error("an answer of more bytes than it may have")]
    TooLarge,
    /// No connection was made, so nothing was sent.
    #[error("{0}")]
    Unconnected(String),
    /// The transfer failed.
    #[error("{0}")]
    Failed(String),
}

impl From<reqwest::Error> for OutboundError {
    fn from(error: reqwest::Error) -> Self {
        if error.is_connect() {
            Self::Unconnected(error.without_url().to_string())
        } else if error.is_timeout() {
            Self::Timeout
        } else {
            Self::Failed(error.without_url().to_string())
        }
    }
}

/// Returns a builder of clients that use ring for cryptography.
pub fn client_builder() -> ClientBuilder {
    // The first caller installs the provider for the process; later calls find it installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // `localhost` is this machine (RFC 6761, section 6.3), also where neither a hosts file nor a resolver says so.
    reqwest::Client::builder().resolve_to_addrs("localhost", &LOOPBACK)
}

/// Builds a client with the machine's root certificates. Returns also whether there are any: without them it speaks HTTP alone.
///
/// # Errors
/// There is no client, with or without root certificates.
pub fn build_client(
    settings: impl Fn() -> ClientBuilder,
) -> reqwest::Result<(reqwest::Client, bool)> {
    match settings().build() {
        Ok(client) => Ok((client, true)),
        // Other errors recur without root certificates.
        Err(_) => Ok((settings().tls_certs_only([]).build()?, false)),
    }
}

fn bounded_builder() -> ClientBuilder {
    client_builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(Policy::none())
}

impl OutboundClient {
    /// Creates a client that trusts the machine's root certificates.
    ///
    /// # Errors
    /// The client cannot be built.
    pub fn new() -> anyhow::Result<Self> {
        let (client, has_root_certificates) = build_client(bounded_builder)?;
        Ok(Self {
            client,
            has_root_certificates,
        })
    }

    /// Whether there are root certificates; without them every HTTPS call fails with [`NO_ROOT_CERTIFICATES`].
    pub fn has_root_certificates(&self) -> bool {
        self.has_root_certificates
    }

    /// Creates a client that trusts the certificates in a file, and no others.
    ///
    /// # Errors
    /// The file cannot be read, or holds no certificate.
    pub fn with_roots_from(roots: &Path) -> anyhow::Result<Self> {
        let shown = roots.display();
        let text = std::fs::read(roots).with_context(|| format!("reading {shown}"))?;
        let roots = Certificate::from_pem_bundle(&text);
        let roots = roots.with_context(|| format!("reading certificates in {shown}"))?;
        if roots.is_empty() {
            bail!("{shown} holds no certificates in PEM");
        }
        Ok(Self {
            client: bounded_builder().tls_certs_only(roots).build()?,
            has_root_certificates: true,
        })
    }

    /// Sends the request that `call` makes and reads the response, both within `time`.
    ///
    /// # Errors
    /// [`OutboundError`]; the other server may have acted all the same.
    pub async fn call(
        &self,
        time: Duration,
        call: impl FnOnce(&reqwest::Client) -> reqwest::RequestBuilder,
    ) -> Result<OutboundResponse, OutboundError> {
        let request = call(&self.client).timeout(time).build()?;
        self.send(request, |_| MAX_BODY_BYTES).await
    }

    /// Sends a request that has a timeout of its own. `most` gives the size limit of the body for a status.
    ///
    /// # Errors
    /// [`OutboundError`]; the other server may have acted all the same.
    pub async fn send(
        &self,
        request: reqwest::Request,
        most: impl Fn(StatusCode) -> usize + Send,
    ) -> Result<OutboundResponse, OutboundError> {
        if !self.has_root_certificates && request.url().scheme() == "https" {
            return Err(OutboundError::Failed(NO_ROOT_CERTIFICATES.to_owned()));
        }
        let mut response = self.client.execute(request).await?;
        let most = most(response.status());
        let mut body = BytesMut::new();
        while let Some(part) = response.chunk().await? {
            if body.len() + part.len() > most {
                return Err(OutboundError::TooLarge);
            }
            body.extend_from_slice(&part);
        }
        Ok(OutboundResponse {
            status: response.status(),
            headers: std::mem::take(response.headers_mut()),
            body: body.freeze(),
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// Starts a server that answers every connection with `head`, then with `byte` for as long as the client reads.
    async fn server(head: &'static str, byte: Option<u8>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.read(&mut [0; 4096]).await;
                let _ = stream.write_all(head.as_bytes()).await;
                while let Some(byte) = byte {
                    if stream.write_all(&[byte; 65536]).await.is_err() {
                        break;
                    }
                }
                // Without a byte to repeat it keeps the connection open and silent.
                let _ = stream.read(&mut [0; 1]).await;
            }
        });
        format!("http://{address}/")
    }

    #[test]
    fn roots_are_certificates_in_a_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let missing = file.path().with_extension("missing");
        let made = rcgen::generate_simple_self_signed(vec!["a.example".into()]).unwrap();
        for (text, says) in [
            ("", Some("holds no certificates")),
            ("nothing", Some("holds no certificates")),
            (made.cert.pem().as_str(), None),
        ] {
            std::fs::write(file.path(), text).unwrap();
            let error = OutboundClient::with_roots_from(file.path())
                .err()
                .map(|e| format!("{e:#}"));
            assert_eq!(error.is_some(), says.is_some(), "{text}: {error:?}");
            assert!(error.unwrap_or_default().contains(says.unwrap_or_default()));
        }
        let error = format!(
            "{:#}",
            OutboundClient::with_roots_from(&missing).unwrap_err()
        );
        assert!(error.contains("reading"), "{error}");
    }

    #[tokio::test]
    async fn a_call_is_bounded_whatever_the_other_side_does() {
        let client = OutboundClient::new().unwrap();
        let get = async |url: String, millis: u64| {
            let time = Duration::from_millis(millis);
            client.call(time, |client| client.get(url)).await
        };
        let endless = "HTTP/1.1 200 OK\r\n\r\n";
        let found = get(server(endless, Some(b'x')).await, 30_000).await;
        assert!(matches!(found, Err(OutboundError::TooLarge)), "{found:?}");
        let silent = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n";
        let found = get(server(silent, None).await, 200).await;
        assert!(matches!(found, Err(OutboundError::Timeout)), "{found:?}");
        let moved = "HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n";
        let found = get(server(moved, None).await, 30_000).await.unwrap();
        assert_eq!(found.status, StatusCode::FOUND);
        let error = get("http://127.0.0.1:1/secret".to_owned(), 30_000)
            .await
            .unwrap_err();
        assert!(matches!(error, OutboundError::Unconnected(_)), "{error:?}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
