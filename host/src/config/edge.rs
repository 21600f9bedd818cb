//! Settings of a cache in front.

use anyhow::bail;
use serde::{Deserialize, Serialize};
use url::Url;

/// A Cloudflare-compatible edge that is told what to forget.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edge {
    /// The zone that the pages are in.
    pub zone_id: String,
    /// The token of its API; `SVC_EDGE_API_TOKEN` beats it.
    #[serde(default, serialize_with = "super::masked")]
    pub api_token: String,
    /// Where its API is.
    #[serde(default = "cloudflare")]
    pub api_base: Url,
}

#[allow(clippy::expect_used, reason = "a constant")]
fn cloudflare() -> Url {
    Url::parse("https://api.cloudflare.com/client/v4").expect("a URL")
}

/// The token of the environment beats that of the file; without one there is nothing to purge with.
#[allow(
    clippy::disallowed_methods,
    reason = "secrets of tables come from the environment"
)]
pub(super) fn with_token(mut edge: Edge) -> anyhow::Result<Edge> {
    if let Ok(token) = std::env::var("SVC_EDGE_API_TOKEN") {
        edge.api_token = token;
    }
    if edge.api_token.is_empty() {
        bail!("edge.api_token is missing: set it in the file, or SVC_EDGE_API_TOKEN");
    }
    Ok(edge)
}
