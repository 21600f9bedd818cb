//! HTTPS by the server itself: over real connections, with certificates from files and from a real authority.

mod acme;
mod domains;
mod files;
mod handshakes;
mod own_certificate;
mod pebble;
mod redirect;
mod sockets;

use svc_tests::tls::CertificateFiles;

/// Certificate files for a server on this machine.
fn local() -> CertificateFiles {
    CertificateFiles::new(&["localhost", "127.0.0.1"])
}

/// Returns the options with which a server takes its certificate and key from files.
fn tls_options<'a>(cert: &'a str, key: &'a str) -> [&'a str; 5] {
    ["--https", "--tls-cert", cert, "--tls-key", key]
}

/// Returns the paths of certificate and key, as a command takes them.
fn paths(pair: &CertificateFiles) -> (String, String) {
    (
        pair.cert().display().to_string(),
        pair.key().display().to_string(),
    )
}
