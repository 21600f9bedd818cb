//! HTTPS by the server itself: over real connections, with certificates from files and from a real authority.

mod acme;
mod files;
mod handshakes;
mod own;
mod pebble;
mod redirect;
mod sockets;

use svc_tests::tls::Pair;

/// A pair for a server on this machine.
fn local() -> Pair {
    Pair::new(&["localhost", "127.0.0.1"])
}
