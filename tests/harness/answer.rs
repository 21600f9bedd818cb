//! Answers as they came over the wire, read whole.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use crate::nodes;
use crate::wait::DEADLINE;

/// Times that one of several nodes is asked, and the pause in between.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

/// A response with its whole body.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    /// Body as received, still compressed.
    pub body: Bytes,
}

/// Sends a request and reads its answer.
pub trait ReadAnswer {
    /// Sends the request; returns the response of any status.
    fn answer(self) -> impl Future<Output = Answer> + Send;

    /// Sends the request; returns the response of any status, or `None` if no whole one came.
    fn try_answer(self) -> impl Future<Output = Option<Answer>> + Send;
}

impl ReadAnswer for reqwest::RequestBuilder {
    async fn answer(self) -> Answer {
        let mut request = self;
        let mut tries = nodes::requested().map_or(1, |_| TRIES);
        loop {
            tries -= 1;
            let again = request.try_clone();
            let answer = send(request).await;
            match again {
                Some(again) if tries > 0 && answer.asks_to_try_again() => request = again,
                _ => return answer,
            }
            eprintln!("a node says to try again: {}", answer.text());
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn try_answer(self) -> Option<Answer> {
        let response = self.send().await.ok()?;
        Some(Answer {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            body: response.bytes().await.ok()?,
        })
    }
}

async fn send(request: reqwest::RequestBuilder) -> Answer {
    let response = request.send().await.expect("the server answers");
    Answer {
        status: response.status().as_u16(),
        headers: response.headers().clone(),
        body: response.bytes().await.expect("the body arrives"),
    }
}

/// Sends raw bytes on a new connection; returns everything that the server sends until it closes.
///
/// # Panics
/// When the server neither answers nor closes.
pub fn exchange(address: SocketAddr, request: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    // A server that refuses early may close before it has read everything.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(read) if read > 0 => answer.extend_from_slice(&buffer[..read]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("no answer came"),
            _ => return answer,
        }
    }
}

impl Answer {
    /// Reads an HTTP/1.1 answer that its sender ended by closing.
    ///
    /// # Panics
    /// When it is none.
    pub fn parse(raw: &[u8]) -> Self {
        let end = raw.windows(4).position(|w| w == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("no answer: {:?}", String::from_utf8_lossy(raw)));
        let head = std::str::from_utf8(&raw[..end]).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap();
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(':').unwrap();
            let name: HeaderName = name.parse().unwrap();
            (name, HeaderValue::from_str(value.trim()).unwrap())
        });
        Self {
            status: status.parse().unwrap(),
            headers: headers.collect(),
            body: Bytes::copy_from_slice(&raw[end + 4..]),
        }
    }

    /// Whether a node has done nothing with the request, and says to send it again at once. One of a machine with much to do may be late
    /// with the news of another for a moment.
    fn asks_to_try_again(&self) -> bool {
        let is_refused = self.status == 503 && self.header("retry-after") == Some("1");
        is_refused && !self.body.windows(11).any(|word| word == b"interrupted")
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|v| v.to_str().unwrap())
    }

    /// Returns the headers that are the same at every node.
    pub fn lasting_headers(&self) -> HeaderMap {
        let mut headers = self.headers.clone();
        // The time, the request, and the connection.
        for name in ["date", "x-request-id", "connection"] {
            headers.remove(name);
        }
        headers
    }

    /// Whether this is the same answer as another one, byte for byte, whichever node has given each.
    pub fn is_same(&self, other: &Self) -> bool {
        let [one, another] = [self, other].map(Self::lasting_headers);
        self.status == other.status && one == another && self.body == other.body
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// Asserts the status; returns the response.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        let body = String::from_utf8_lossy(&self.body);
        assert_eq!(self.status, status, "{:.600}", body);
        self
    }

    /// The problem document that this answer is, in everything that every problem has.
    ///
    /// # Panics
    /// When it is none, or one of another status or code.
    #[track_caller]
    pub fn problem(&self, status: u16, code: &str) -> Value {
        let body = String::from_utf8_lossy(&self.body);
        assert_eq!(self.status, status, "{body:.600}");
        let kind = self.header("content-type");
        assert_eq!(kind, Some("application/problem+json"), "{body:.600}");
        let problem = self.json();
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(problem["status"], status, "{problem}");
        let kind = problem["type"].as_str().unwrap();
        assert!(kind.starts_with("http"), "{problem}");
        assert!(kind.ends_with(&format!("/problems/{code}")), "{problem}");
        for text in ["title", "detail"] {
            assert!(!problem[text].as_str().unwrap().is_empty(), "{problem}");
        }
        assert_eq!(self.header("cache-control"), Some("no-store"));
        let id = self.header("x-request-id").expect("every answer has an id");
        if status >= 500 {
            assert_eq!(problem["request_id"], id);
        }
        problem
    }

    /// Asserts that the response is an HTML page; returns its text.
    #[track_caller]
    pub fn html(&self) -> &str {
        let kind = self.header("content-type");
        assert_eq!(kind, Some("text/html; charset=utf-8"), "{}", self.text());
        self.text()
    }
}
