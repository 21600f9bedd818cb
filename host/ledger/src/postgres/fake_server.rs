//! A server for tests that speaks as much of PostgreSQL's protocol as a connection needs, and fails as told.

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Answer to each statement but those that a connection begins with.
#[derive(Clone, Copy, Debug)]
pub(super) enum FakeAnswer {
    /// Nothing, ever.
    Silence,
    /// An error with this code.
    Error(&'static str),
    /// An error with this code in place of a login, behind which the connection ends.
    NoLogin(&'static str),
}

/// A server that takes writes. It ends with this value.
#[derive(Debug)]
pub(super) struct FakeServer {
    address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl FakeServer {
    /// Starts a server at an address. It ends the first connections, so many as `refused`.
    pub(super) async fn start(address: &str, refused: usize, answer: FakeAnswer) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&accepted);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                if count.fetch_add(1, Ordering::Relaxed) >= refused {
                    tokio::spawn(serve(stream, answer));
                }
            }
        });
        Self {
            address,
            accepted,
            task,
        }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn url(&self) -> String {
        format!("postgresql://svc@{}/svc?sslmode=disable", self.address)
    }

    /// Number of connections so far.
    pub(super) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::Relaxed)
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves a connection until its client ends it.
async fn serve(mut stream: TcpStream, answer: FakeAnswer) -> io::Result<()> {
    // The first message has no kind, and is believed.
    read(&mut stream).await?;
    if let FakeAnswer::NoLogin(code) = answer {
        return stream.write_all(&error(code)).await;
    }
    let hello = [message(b'R', &0_u32.to_be_bytes()), ready()].concat();
    stream.write_all(&hello).await?;
    let mut statement = String::new();
    loop {
        let kind = stream.read_u8().await?;
        let body = read(&mut stream).await?;
        if matches!(kind, b'Q' | b'P') {
            statement = String::from_utf8_lossy(&body).into_owned();
        }
        let reply = match (kind, answer) {
            (b'Q', _) if statement.contains("transaction_read_only") => row("off"),
            (b'Q', _) => message(b'C', b"SELECT 0\0"),
            (b'S', _) if statement.contains("pg_postmaster_start_time") => row("1"),
            (b'S', FakeAnswer::Error(code)) => error(code),
            (b'S', FakeAnswer::Silence | FakeAnswer::NoLogin(_)) => return pending().await,
            _ => continue,
        };
        stream.write_all(&[reply, ready()].concat()).await?;
    }
}

/// Reads the rest of a message: its length, which counts itself, and its body.
async fn read(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let length = usize::try_from(stream.read_u32().await?).unwrap();
    let mut body = vec![0; length - 4];
    stream.read_exact(&mut body).await?;
    Ok(body)
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    let length = length.to_be_bytes();
    [[kind].as_slice(), length.as_slice(), body].concat()
}

fn ready() -> Vec<u8> {
    message(b'Z', b"I")
}

/// One row with one text.
fn row(text: &str) -> Vec<u8> {
    // One column named `v`: of no table, of the type with the number 25, of any length, as text.
    let column = b"\0\x01v\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0";
    let length = u32::try_from(text.len()).unwrap().to_be_bytes();
    let value = [b"\0\x01".as_slice(), length.as_slice(), text.as_bytes()].concat();
    let done = message(b'C', b"SELECT 1\0");
    [message(b'T', column), message(b'D', &value), done].concat()
}

fn error(code: &str) -> Vec<u8> {
    let fields = format!("SERROR\0VERROR\0C{code}\0Mtold to fail\0\0");
    message(b'E', fields.as_bytes())
}
