//! Settings of a cache in front.

use anyhow::bail;
use serde::{Deserialize, Serialize};
use url::Url;

/// A Cloudflare-compatible edge cache that is purged.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EdgeCacheSettings {
    /// The zone of the pages.
    pub zone_id: String,
    /// The token of its API; `SVC_EDGE_API_TOKEN` beats it.
    #[serde(default, serialize_with = "super::masked")]
    pub api_token: String,
    /// Base URL of its API.
    #[serde(default = "cloudflare")]
    pub api_base: Url,
}

#[allow(clippy::expect_used, reason = "a constant")]
fn cloudflare() -> Url {
    Url::parse("https://api.cloudflare.com/client/v4").expect("a URL")
}

/// Reads the token from the environment, which beats the file. A token is required.
#[allow(
    clippy::disallowed_methods,
    reason = "secrets of tables come from the environment"
)]
pub(super) fn with_token(mut edge: EdgeCacheSettings) -> anyhow::Result<EdgeCacheSettings> {
    if let Ok(token) = std::env::var("SVC_EDGE_API_TOKEN") {
        edge.api_token = token;
    }
    if edge.api_token.is_empty() {
        bail!("edge.api_token is missing: set it in the file, or SVC_EDGE_API_TOKEN");
    }
    Ok(edge)
}
