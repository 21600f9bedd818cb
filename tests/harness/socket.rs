//! A visitor's WebSocket, spoken by another implementation of the protocol than the server's.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::wait::DEADLINE;

/// How long a client listens before it believes that nothing comes.
const QUIET: Duration = Duration::from_millis(300);

/// The connection below a socket, whatever it is.
pub trait Transport: AsyncRead + AsyncWrite + Debug + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Debug + Send + Unpin> Transport for T {}

/// A socket that a server has accepted.
#[derive(Debug)]
pub struct Socket(pub WebSocketStream<Box<dyn Transport>>);

/// Next thing that a socket heard.
#[derive(Clone, Debug, PartialEq)]
pub enum SocketEvent {
    /// An envelope.
    Text(Value),
    /// The end, with its code if it had one.
    Closed(Option<u16>),
}

impl Socket {
    /// Opens a socket with headers of one's own; returns the status of a refusal.
    ///
    /// # Errors
    /// The status.
    ///
    /// # Panics
    /// When the server answers neither.
    pub async fn open(
        address: SocketAddr,
        path: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<Self, u16> {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self::open_over(Box::new(stream), &address.to_string(), path, headers).await
    }

    /// Opens a socket over a connection to a host.
    ///
    /// # Errors
    /// The status.
    ///
    /// # Panics
    /// When the server answers neither.
    pub async fn open_over(
        stream: Box<dyn Transport>,
        host: &str,
        path: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<Self, u16> {
        let mut request = format!("ws://{host}{path}").into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        // Small buffers, because some tests open thousands.
        let config = WebSocketConfig::default()
            .read_buffer_size(4096)
            .write_buffer_size(0);
        match tokio_tungstenite::client_async_with_config(request, stream, Some(config)).await {
            Ok((stream, _)) => Ok(Self(stream)),
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("no handshake: {error}"),
        }
    }

    /// Sends an envelope of this type.
    ///
    /// # Panics
    /// When the connection is broken.
    pub async fn send_envelope(&mut self, kind: &str, data: Value) {
        self.send(json!({ "v": 1, "type": kind, "data": data }).to_string())
            .await;
    }

    /// Sends a text, whatever it is.
    ///
    /// # Panics
    /// When the connection is broken.
    pub async fn send(&mut self, text: impl Into<String>) {
        self.0.send(Message::text(text.into())).await.unwrap();
    }

    /// Waits for what comes next; pings are answered on the way.
    ///
    /// # Panics
    /// When nothing comes.
    pub async fn next(&mut self) -> SocketEvent {
        let next = tokio::time::timeout(DEADLINE, self.read_event()).await;
        next.expect("something comes")
    }

    async fn read_event(&mut self) -> SocketEvent {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Text(text))) => {
                    return SocketEvent::Text(serde_json::from_str(&text).unwrap());
                }
                Some(Ok(Message::Close(frame))) => {
                    return SocketEvent::Closed(frame.map(|frame| frame.code.into()));
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return SocketEvent::Closed(None),
            }
        }
    }

    /// The next envelope.
    ///
    /// # Panics
    /// When the socket closes instead.
    pub async fn envelope(&mut self) -> Value {
        match self.next().await {
            SocketEvent::Text(envelope) => envelope,
            SocketEvent::Closed(code) => panic!("closed with {code:?}"),
        }
    }

    /// The next envelope of a type, past all others.
    pub async fn wait_for_envelope(&mut self, kind: &str) -> Value {
        loop {
            let envelope = self.envelope().await;
            if envelope["type"] == kind {
                return envelope;
            }
        }
    }

    /// The code with which the socket closes, whatever comes before.
    pub async fn wait_for_close(&mut self) -> Option<u16> {
        loop {
            if let SocketEvent::Closed(code) = self.next().await {
                return code;
            }
        }
    }

    /// Every envelope that comes until it is quiet.
    pub async fn drain_envelopes(&mut self) -> Vec<Value> {
        let mut all = Vec::new();
        while let Ok(heard) = tokio::time::timeout(QUIET, self.read_event()).await {
            match heard {
                SocketEvent::Text(envelope) => all.push(envelope),
                SocketEvent::Closed(_) => break,
            }
        }
        all
    }

    /// Closes it as clients do, and waits for the server to.
    ///
    /// # Panics
    /// When the server does not close.
    pub async fn close(mut self) {
        // One that is closed already needs no close.
        let _ = self.0.close(None).await;
        let ended = async { while let Some(Ok(_)) = self.0.next().await {} };
        let ended = tokio::time::timeout(DEADLINE, ended).await;
        ended.expect("the server closes, too");
    }
}
