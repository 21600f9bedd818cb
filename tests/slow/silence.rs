//! Clients that say nothing, ask for nothing more, or take nothing of what they have asked for: none keeps its connection.

use std::net::SocketAddr;
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::svc;

/// How long is waited for the longest of the server's bounds.
const LONGEST: Duration = Duration::from_secs(180);
const DATA: u8 = 0;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const ACK: u8 = 1;

/// Writes bytes, and reads until the server ends the connection.
async fn write_until_closed(address: SocketAddr, bytes: &[u8]) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    // However it ends it.
    let _ = stream.read_to_end(&mut Vec::new()).await;
}

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    [&[0, 0, length, kind, flags, 0, 0, 0, stream], payload].concat()
}

/// Asks for the landing page in HTTP/2 with a window of so many bytes, and answers pings until the server ends the connection; returns the
/// bytes of the page that came, and whether the end was announced.
async fn send_request(address: SocketAddr, window: u32) -> (usize, bool) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let setting = [&[0, 4][..], &window.to_be_bytes()].concat();
    let mut hello = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    hello.extend(frame(SETTINGS, 0, 0, &setting));
    // GET http://localhost/, by HPACK's static table.
    let head = [&[0x82, 0x86, 0x84, 0x41, 9][..], b"localhost"].concat();
    hello.extend(frame(1, 5, 1, &head));
    stream.write_all(&hello).await.unwrap();
    let (mut head, mut read, mut is_announced) = ([0; 9], 0, false);
    while stream.read_exact(&mut head).await.is_ok() {
        let length = usize::from(head[1]) << 8 | usize::from(head[2]);
        let mut payload = vec![0; length];
        if stream.read_exact(&mut payload).await.is_err() {
            break;
        }
        match (head[3], head[4]) {
            // It may have ended it meanwhile.
            (PING, 0) => {
                let _ = stream.write_all(&frame(PING, ACK, 0, &payload)).await;
            }
            (DATA, _) => read += length,
            (GOAWAY, _) => is_announced = true,
            _ => {}
        }
    }
    (read, is_announced)
}

#[tokio::test]
async fn who_is_silent_keeps_no_connection() {
    let data = TempDir::new().unwrap();
    let server = svc().serve(data.path(), &[]).await;
    let at = server.address();
    let all = async {
        tokio::join!(
            write_until_closed(at, b""),
            write_until_closed(at, b"P"),
            write_until_closed(at, b"GET / HTTP/1.1\r\nhost: localhost\r\n"),
            write_until_closed(at, b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"),
            write_until_closed(at, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
            send_request(at, 0),
            send_request(at, 60_000),
        )
    };
    let (.., stalled, idle) = tokio::time::timeout(LONGEST, all).await.unwrap();
    assert_eq!(stalled, (0, false));
    assert!(idle.0 > 0 && idle.1, "{idle:?}");
}
