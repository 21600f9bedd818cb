//! Connections: how many a client may have, and all together; written over raw sockets.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use svc_tests::{Builder, DEADLINE, TestServer, wait_until};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

fn server_with(of_client: u64, all: u64) -> Builder {
    TestServer::builder().limits(|limits| {
        limits.connections_per_client = of_client;
        limits.connections_total = all;
        limits.sockets_per_ip = 0;
        limits.sockets_total = 0;
        limits.cap_part_least = 1;
        limits.cap_client_percent = 100;
    })
}

/// A connection from an address of this machine.
async fn connect(to: SocketAddr, from: u8) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    let from = Ipv4Addr::new(127, 0, 0, from);
    socket.bind((from, 0).into()).unwrap();
    socket.connect(to).await.unwrap()
}

/// Asks for something small; `None` if the connection was closed instead.
async fn send_request(stream: &mut TcpStream) -> Option<String> {
    let request = b"GET /healthz HTTP/1.1\r\nHost: a.example\r\n\r\n";
    stream.write_all(request).await.ok()?;
    // The answer is small, and comes in one piece.
    let mut answer = [0; 4_096];
    let read = stream.read(&mut answer);
    let read = timeout(DEADLINE, read).await.unwrap().ok()?;
    let answer = String::from_utf8_lossy(&answer[..read]);
    Some(answer.get(..12)?.to_owned())
}

async fn is_served(stream: &mut TcpStream) -> bool {
    send_request(stream).await.as_deref() == Some("HTTP/1.1 200")
}

#[tokio::test]
async fn a_client_has_so_many_connections() {
    let server = server_with(3, 100).start().await;
    let address = server.address();
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut stream = connect(address, 1).await;
        assert!(is_served(&mut stream).await);
        open.push(stream);
    }
    // A silent connection counts as well.
    open.push(connect(address, 1).await);
    for _ in 0..3 {
        let mut stream = connect(address, 1).await;
        assert!(!is_served(&mut stream).await, "a fourth");
    }
    assert!(is_served(&mut connect(address, 2).await).await);
    assert!(is_served(&mut open[0]).await, "those that are open go on");
    open.pop();
    let again = async || {
        is_served(&mut connect(address, 1).await)
            .await
            .then_some(())
    };
    wait_until("a connection to be given back", again).await;
}

#[tokio::test]
async fn what_is_left_is_for_clients_that_have_none() {
    let server = server_with(100, 10).start().await;
    let address = server.address();
    let mut open = Vec::new();
    for _ in 0..8 {
        let mut stream = connect(address, 1).await;
        assert!(is_served(&mut stream).await);
        open.push(stream);
    }
    assert!(!is_served(&mut connect(address, 1).await).await, "kept");
    for client in [2, 3] {
        let mut stream = connect(address, client).await;
        assert!(is_served(&mut stream).await, "{client}");
        open.push(stream);
    }
    assert!(!is_served(&mut connect(address, 4).await).await, "full");
}

#[tokio::test]
async fn connections_of_trusted_proxies_are_not_counted() {
    let server = server_with(1, 2)
        .settings(|settings| settings.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()]);
    let server = server.start().await;
    let mut open = Vec::new();
    for _ in 0..5 {
        let mut stream = connect(server.address(), 1).await;
        assert!(is_served(&mut stream).await);
        open.push(stream);
    }
    let mut other = connect(server.address(), 2).await;
    assert!(is_served(&mut other).await);
    let mut second = connect(server.address(), 2).await;
    assert!(!is_served(&mut second).await);
}

/// A head that never ends is given up, however it trickles in.
#[tokio::test]
async fn a_head_that_never_ends_is_given_up() {
    let server = server_with(2, 10).start().await;
    let mut silent = connect(server.address(), 1).await;
    let mut slow = connect(server.address(), 1).await;
    slow.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    let trickling = async {
        let (mut reading, mut writing) = slow.split();
        let mut end = Vec::new();
        let ended = reading.read_to_end(&mut end);
        let writes = async {
            // Until the other side is gone.
            while writing.write_all(b"x: y\r\n").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        };
        tokio::select! {
            _ = ended => (),
            () = writes => (),
        }
    };
    timeout(DEADLINE, trickling).await.expect("it is closed");
    let mut end = Vec::new();
    let read = timeout(DEADLINE, silent.read_to_end(&mut end)).await;
    // Ended or reset, it is gone.
    let _ = read.expect("one that says nothing is closed, too");
}
