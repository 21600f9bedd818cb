//! The client that tests ask servers with.

/// Returns a client builder, with `ring` as the provider of cryptography.
pub fn http_client() -> reqwest::ClientBuilder {
    // The first to ask sets the provider for the process; a later one finds it set.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
}
