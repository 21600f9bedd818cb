//! The relay that other tests cut networks with.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use svc_tests::relay::{Relay, RelayMode, RelayTarget};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// Time within which a held byte would have arrived.
const SOON: Duration = Duration::from_millis(100);

/// Starts a server that sends back what it gets.
async fn start_echo() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = client.split();
                let _ = copy(&mut from, &mut to).await;
            });
        }
    });
    address
}

#[tokio::test]
async fn connections_follow_a_switch_at_once() {
    let target = RelayTarget::Tcp(start_echo().await);
    let relay = Relay::start(Some(target)).await;
    let mut client = TcpStream::connect(relay.address()).await.unwrap();
    let mut byte = [0];
    for (number, mode) in [
        (1, RelayMode::Hang),
        (2, RelayMode::HoldRequests),
        (3, RelayMode::HoldAnswers),
    ] {
        relay.switch(RelayMode::Delay);
        client.write_all(&[0]).await.unwrap();
        client.read_exact(&mut byte).await.unwrap();
        relay.switch(mode);
        client.write_all(&[number]).await.unwrap();
        let early = timeout(SOON, client.read(&mut byte)).await;
        assert!(early.is_err(), "{mode:?}");
        // It was held, and not lost.
        relay.switch(RelayMode::Pass);
        client.read_exact(&mut byte).await.unwrap();
        assert_eq!(byte, [number]);
    }
    relay.switch(RelayMode::Refuse);
    let mut late = TcpStream::connect(relay.address()).await.unwrap();
    for refused in [&mut client, &mut late] {
        assert_eq!(refused.read(&mut byte).await.unwrap_or(0), 0);
    }
    relay.switch(RelayMode::Pass);
    let mut again = TcpStream::connect(relay.address()).await.unwrap();
    again.write_all(&[4]).await.unwrap();
    again.read_exact(&mut byte).await.unwrap();
    assert_eq!(byte, [4]);
}
