//! The one client of other servers: every call is bounded in time and in bytes, and follows no redirect.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use reqwest::redirect::Policy;

/// How long a connection may take to be made.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// The most bytes of an answer's body.
const BODY_BYTES: usize = 1 << 20;

/// The client; clones share its connections.
#[derive(Clone, Debug)]
pub struct Outbound(reqwest::Client);

/// An answer, read to its end.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Status of the answer.
    pub status: StatusCode,
    /// Body of the answer.
    pub body: Bytes,
}

/// Why there is no answer. Its text names neither the address nor what was sent.
#[derive(Debug, thiserror::Error)]
pub enum OutboundError {
    /// No whole answer came in time.
    #[error("no answer in time")]
    Timeout,
    /// The answer is larger than an answer may be.
    #[error("an answer of more than {BODY_BYTES} bytes")]
    TooLarge,
    /// The connection or the transfer failed.
    #[error("{0}")]
    Failed(String),
}

impl From<reqwest::Error> for OutboundError {
    fn from(error: reqwest::Error) -> Self {
        if error.is_timeout() {
            Self::Timeout
        } else {
            Self::Failed(error.without_url().to_string())
        }
    }
}

impl Outbound {
    /// A client with one provider of cryptography.
    ///
    /// # Errors
    /// When the system's certificates cannot be read.
    pub fn new() -> anyhow::Result<Self> {
        // The first to ask sets the provider for the process; a later one finds it set.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIME)
            .redirect(Policy::none())
            .build()?;
        Ok(Self(client))
    }

    /// Sends what `call` makes, and reads the answer, both within `time`.
    ///
    /// # Errors
    /// [`OutboundError`]; whether the other side acted is not known then.
    pub async fn call(
        &self,
        time: Duration,
        call: impl FnOnce(&reqwest::Client) -> reqwest::RequestBuilder,
    ) -> Result<Answer, OutboundError> {
        let mut response = call(&self.0).timeout(time).send().await?;
        let mut body = BytesMut::new();
        while let Some(part) = response.chunk().await? {
            if body.len() + part.len() > BODY_BYTES {
                return Err(OutboundError::TooLarge);
            }
            body.extend_from_slice(&part);
        }
        Ok(Answer {
            status: response.status(),
            body: body.freeze(),
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// A server that answers every connection with `head`, then with `byte` as long as anybody reads.
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
                // Without more to say it keeps the connection open and says nothing.
                let _ = stream.read(&mut [0; 1]).await;
            }
        });
        format!("http://{address}/")
    }

    #[tokio::test]
    async fn a_call_is_bounded_whatever_the_other_side_does() {
        let client = Outbound::new().unwrap();
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
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
