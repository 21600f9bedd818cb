//! The client of everything that this server asks of others: bounded in time, with one provider of cryptography.

use std::time::Duration;

/// How long a connection may take to be made.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// A client to be; callers add the time that a whole call may take.
pub fn builder() -> reqwest::ClientBuilder {
    // The first to ask sets the provider for the process; a later one finds it set.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().connect_timeout(CONNECT_TIME)
}
