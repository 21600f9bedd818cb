//! A keep-alive connection of plain HTTP/1.1, with only the features that the requested answers need.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, bail};

/// Timeout of an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(90);

/// A connection.
#[derive(Debug)]
pub(crate) struct Client {
    stream: TcpStream,
    address: SocketAddr,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        Ok(Self { stream, address })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn get(&mut self, path: &str, encoding: &str) -> anyhow::Result<Answer> {
        self.send(&get(self.address, path, encoding))
    }

    pub(crate) fn post(&mut self, path: &str, body: &serde_json::Value) -> anyhow::Result<Answer> {
        self.send_request("POST", path, "", body)
    }

    /// Writes a request of an owner: any method, with a credential.
    pub(crate) fn send_as_owner(
        &mut self,
        method: &str,
        path: &str,
        credential: &str,
        body: &serde_json::Value,
    ) -> anyhow::Result<Answer> {
        let header = format!("Authorization: Bearer {credential}\r\n");
        self.send_request(method, path, &header, body)
    }

    fn send_request(
        &mut self,
        method: &str,
        path: &str,
        header: &str,
        body: &serde_json::Value,
    ) -> anyhow::Result<Answer> {
        self.send(&request(method, self.address, path, header, body))
    }

    /// Sends a request that was made beforehand.
    pub(crate) fn send(&mut self, request: &[u8]) -> anyhow::Result<Answer> {
        self.stream.write_all(request)?;
        let mut bytes = Vec::new();
        let mut chunk = [0; 16 * 1024];
        let end = loop {
            if let Some(end) = head_end(&bytes) {
                break end;
            }
            let read = self.stream.read(&mut chunk)?;
            if read == 0 {
                bail!("the connection ended before an answer");
            }
            bytes.extend_from_slice(&chunk[..read]);
        };
        let head = std::str::from_utf8(&bytes[..end])?.to_owned();
        let length = match status(&bytes) {
            // It has no body, and says no length (RFC 9110, section 15.3.5).
            Some(204) => Length::Bytes(0),
            _ => Length::parse(&bytes[..end])?,
        };
        while !length.is_whole(&bytes, end) {
            let read = self.stream.read(&mut chunk)?;
            if read == 0 {
                bail!("the connection ended within an answer");
            }
            bytes.extend_from_slice(&chunk[..read]);
        }
        let body = bytes.split_off(end);
        Ok(Answer {
            status: status(&bytes).context("an answer without a status")?,
            head,
            body: match length {
                Length::Bytes(_) => body,
                Length::Chunked => join_chunks(&body).context("chunks that are none")?,
            },
        })
    }
}

/// Makes a request for a page, with the relevant headers of a browser.
pub(crate) fn get(address: SocketAddr, path: &str, encoding: &str) -> Vec<u8> {
    get_at(&address.to_string(), path, encoding)
}

/// Makes a request for a page of a host.
pub(crate) fn get_at(host: &str, path: &str, encoding: &str) -> Vec<u8> {
    format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: bench\r\nAccept: text/html,*/*;q=0.8\r\nAccept-Encoding: {encoding}\r\n\r\n"
    )
    .into_bytes()
}

/// Returns the end of the head of an answer, if it is complete.
pub(crate) fn head_end(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    // Look at line ends alone: they are few.
    while let Some(at) = bytes[from..].iter().position(|&b| b == b'\n') {
        let next = from + at + 1;
        if bytes.get(next..next + 2) == Some(b"\r\n") {
            return Some(next + 2);
        }
        from = next;
    }
    None
}

/// The `Content-Length` of a head.
pub(crate) fn content_length(head: &[u8]) -> Option<usize> {
    head.split(|&b| b == b'\n').find_map(|line| {
        let (name, value) = line.split_at_checked(15)?;
        if !name.eq_ignore_ascii_case(b"content-length:") {
            return None;
        }
        std::str::from_utf8(value).ok()?.trim().parse().ok()
    })
}

/// Length of the body of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Length {
    Bytes(usize),
    /// Chunked: unknown before the last chunk. The body is JSON without line ends, so only a chunk boundary looks like one.
    Chunked,
}

impl Length {
    pub(crate) fn parse(head: &[u8]) -> anyhow::Result<Self> {
        if let Some(length) = content_length(head) {
            return Ok(Self::Bytes(length));
        }
        let chunked = head.to_ascii_lowercase();
        let chunked = chunked
            .split(|&b| b == b'\n')
            .any(|line| line.starts_with(b"transfer-encoding: chunked"));
        chunked
            .then_some(Self::Chunked)
            .context("an answer without a length")
    }

    /// Whether `bytes`, whose head ends at `end`, are all of an answer.
    pub(crate) fn is_whole(self, bytes: &[u8], end: usize) -> bool {
        match self {
            Self::Bytes(length) => bytes.len() >= end + length,
            Self::Chunked => bytes.ends_with(b"\r\n0\r\n\r\n"),
        }
    }
}

/// Returns the body without its chunk headers.
fn join_chunks(mut chunks: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = chunks.iter().position(|&b| b == b'\n')?;
        let size = std::str::from_utf8(&chunks[..line]).ok()?.trim();
        let size = usize::from_str_radix(size, 16).ok()?;
        if size == 0 {
            return Some(body);
        }
        let chunk = chunks.get(line + 1..line + 1 + size)?;
        body.extend_from_slice(chunk);
        chunks = chunks.get(line + 1 + size + 2..)?;
    }
}

/// A request of an owner that sends a file.
pub(crate) fn put(address: SocketAddr, path: &str, credential: &str, bytes: &[u8]) -> Vec<u8> {
    let head = format!(
        "PUT {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {credential}\r\nContent-Type: application/octet-stream\r\nContent-Length: {}\r\n\r\n",
        bytes.len()
    );
    [head.as_bytes(), bytes].concat()
}

/// A request that sends a document.
pub(crate) fn post(address: SocketAddr, path: &str, body: &serde_json::Value) -> Vec<u8> {
    request("POST", address, path, "", body)
}

/// A visitor's request with a file as it is.
pub(crate) fn post_file(address: SocketAddr, path: &str, bytes: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/octet-stream\r\nContent-Length: {}\r\n\r\n",
        bytes.len()
    );
    [head.as_bytes(), bytes].concat()
}

/// A webhook of the payment provider.
pub(crate) fn webhook(address: SocketAddr, signature: &str, body: &str) -> Vec<u8> {
    let header = format!("Stripe-Signature: {signature}\r\n");
    request_text("POST", address, "/_svc/webhooks/stripe", &header, body)
}

fn request(
    method: &str,
    address: SocketAddr,
    path: &str,
    header: &str,
    body: &serde_json::Value,
) -> Vec<u8> {
    request_text(method, address, path, header, &body.to_string())
}

fn request_text(
    method: &str,
    address: SocketAddr,
    path: &str,
    header: &str,
    body: &str,
) -> Vec<u8> {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\n{header}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// The status of an answer.
pub(crate) fn status(answer: &[u8]) -> Option<u16> {
    std::str::from_utf8(answer.get(9..12)?).ok()?.parse().ok()
}
