//! A relay on the way of the other nodes to one: a test cuts that node off from its peers.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU16, Ordering};

use crate::relay::{Relay, RelayMode, RelayTarget};

/// Port of the first listener of a process.
const FIRST_PORT: u16 = 9443;

/// A relay before a node's listener for its peers. The listener has an address that no other process uses, since a node that starts
/// again needs the same one.
#[derive(Debug)]
pub struct PeerRelay {
    listen: SocketAddr,
    relay: Relay,
}

impl PeerRelay {
    pub async fn start() -> Self {
        static PORTS: AtomicU16 = AtomicU16::new(FIRST_PORT);
        let [_, high, middle, low] = std::process::id().to_be_bytes();
        // All of 127.0.0.0/8 is this machine. Sockets of others are at 127.0.0.1.
        let address = Ipv4Addr::new(127, high | 0x80, middle, low);
        let listen = SocketAddr::from((address, PORTS.fetch_add(1, Ordering::Relaxed)));
        let relay = Relay::start(Some(RelayTarget::Tcp(listen))).await;
        Self { listen, relay }
    }

    /// Settings of the node, in the table `[cluster]`.
    pub fn settings(&self) -> String {
        let (listen, relay) = (self.listen, self.relay.address());
        format!("peer_listen = '{listen}'\npeer_url = 'https://{relay}'\n")
    }

    /// Changes what the network does to connections of peers to the node.
    pub fn switch(&self, mode: RelayMode) {
        self.relay.switch(mode);
    }
}
