//! A relay in front of the nodes of an installation that knows nothing of what passes: each connection leads to a node that chance names.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::seeded_rng::SeededRng;

/// Takes connections for as long as it is polled. What is passed on ends with its ends.
pub(crate) async fn pass_on_blindly(listener: TcpListener, nodes: Vec<SocketAddr>, seed: u64) {
    let mut chance = SeededRng::new(seed);
    loop {
        // A client may have gone again.
        let Ok((client, from)) = listener.accept().await else {
            continue;
        };
        let node = nodes[chance.draw() as usize % nodes.len()];
        tokio::spawn(pass_on(client, from.ip(), node));
    }
}

/// Passes on what both ends send, until each has ended or one has broken off.
async fn pass_on(mut client: TcpStream, from: IpAddr, node: SocketAddr) {
    let Ok(mut server) = connect(from, node).await else {
        return;
    };
    let _ = client.set_nodelay(true);
    let _ = server.set_nodelay(true);
    let _ = copy_bidirectional(&mut client, &mut server).await;
}

/// Connects to a node from the client's address: nodes count by it.
async fn connect(client: IpAddr, node: SocketAddr) -> io::Result<TcpStream> {
    let client = client.to_canonical();
    // A connection within this machine comes from here anyway, and takes a port that is free for this node alone.
    if client == IpAddr::from(Ipv4Addr::LOCALHOST) || client.is_ipv4() != node.is_ipv4() {
        return TcpStream::connect(node).await;
    }
    let socket = match node {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    };
    let socket = socket?;
    socket.bind((client, 0).into())?;
    socket.connect(node).await
}
