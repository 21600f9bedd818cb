//! HTTPS by the server itself: over real connections, with certificates from files and from a real authority.

mod acme;
mod files;
mod handshakes;
mod own_certificate;
mod pebble;
mod redirect;
mod sockets;

use svc_tests::tls::CertificateFiles;

/// A pair for a server on this machine.
fn local() -> CertificateFiles {
    CertificateFiles::new(&["localhost", "127.0.0.1"])
}
