//! Handshakes of strangers: bounded in time and in count, and no way around them.

use std::net::SocketAddr;

use svc_tests::tls::{client_config, connect};
use svc_tests::{DEADLINE, TestServer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use super::local;

/// How many handshakes a client may have under way.
const OF_CLIENT: usize = 128;

/// Connects from an address of this machine.
async fn connect_from(client: [u8; 4], server: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((client, 0))).unwrap();
    socket.connect(server).await.unwrap()
}

/// Reads until the server closes; answers what came.
async fn read_until_closed(stream: &mut TcpStream) -> Vec<u8> {
    let mut read = Vec::new();
    let end = tokio::time::timeout(DEADLINE, stream.read_to_end(&mut read)).await;
    // A reset is an end, too.
    let _ = end.expect("the server closes");
    read
}

#[tokio::test]
async fn who_says_nothing_is_closed_and_keeps_nobody_out() {
    let pair = local();
    let server = TestServer::builder().https(&pair).start().await;
    let address = server.address();
    let mut silent = Vec::new();
    for _ in 0..OF_CLIENT {
        silent.push(connect_from([127, 0, 0, 2], address).await);
    }
    // A handshake that stalls counts as well; one more connection of the same client is closed at once.
    silent[0].write_all(&[22, 3, 1, 2, 0]).await.unwrap();
    let mut refused = 0;
    for _ in 0..20 {
        let mut more = connect_from([127, 0, 0, 2], address).await;
        assert!(read_until_closed(&mut more).await.is_empty());
        refused += 1;
    }
    assert_eq!(refused, 20);
    let config = client_config(pair.pem(), &["http/1.1"]);
    let other = connect(address, "localhost", config.clone()).await;
    assert!(other.is_ok(), "another client is answered meanwhile");
    for stream in &mut silent {
        read_until_closed(stream).await;
    }
    // Closed handshakes free their slots.
    let stream = connect_from([127, 0, 0, 2], address).await;
    let name = "localhost".try_into().unwrap();
    let connector = tokio_rustls::TlsConnector::from(config);
    assert!(connector.connect(name, stream).await.is_ok());
}

#[tokio::test]
async fn who_asks_for_nothing_after_the_handshake_is_closed() {
    let pair = local();
    let server = TestServer::builder().https(&pair).start().await;
    let connections = ["http/1.1", "h2"].map(|protocol| {
        let config = client_config(pair.pem(), &[protocol]);
        connect(server.address(), "localhost", config)
    });
    for mut connection in futures_util::future::join_all(connections)
        .await
        .into_iter()
        .flatten()
    {
        let mut read = Vec::new();
        let end = connection.read_to_end(&mut read);
        let _ = tokio::time::timeout(DEADLINE, end)
            .await
            .expect("the server closes");
    }
}

#[tokio::test]
async fn plain_http_and_noise_are_no_handshakes() {
    let pair = local();
    let server = TestServer::builder().https(&pair).start().await;
    for bytes in [
        &b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"[..],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        &[0; 100],
        &[22, 3, 1, 255, 255, 1],
        &[255; 20_000],
    ] {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        // The server may have closed before it has all of it.
        let _ = stream.write_all(bytes).await;
        let _ = stream.shutdown().await;
        let read = read_until_closed(&mut stream).await;
        assert!(!read.starts_with(b"HTTP"), "{read:?}");
    }
}

#[tokio::test]
async fn a_server_that_stops_waits_for_no_handshake() {
    let pair = local();
    let server = TestServer::builder().https(&pair).start().await;
    let mut silent = TcpStream::connect(server.address()).await.unwrap();
    silent.write_all(&[22, 3, 1]).await.unwrap();
    server.stop().await;
    assert!(read_until_closed(&mut silent).await.is_empty());
}
