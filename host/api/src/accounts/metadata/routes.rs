//! The routes of OAuth metadata: which issuer's tokens are accepted.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::access::Authenticator;
use crate::config::Config;

/// Metadata that clients of OAuth read first (RFC 9728).
#[derive(Debug, Serialize, ToSchema)]
pub struct ProtectedResource {
    /// Resource that tokens are requested for.
    resource: String,
    /// The issuer of tokens; none, where the operator has named none.
    authorization_servers: Vec<String>,
    /// The scopes that a token must have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scopes_supported: Vec<String>,
    /// How tokens are sent.
    bearer_methods_supported: [&'static str; 1],
    /// The name of the service.
    resource_name: &'static str,
}

impl ProtectedResource {
    fn new(config: &Config, callers: &Authenticator, path: &str) -> Self {
        let tokens = callers.tokens();
        Self {
            resource: format!("{}{path}", config.base_url),
            authorization_servers: tokens.map(|t| t.issuer().to_owned()).into_iter().collect(),
            scopes_supported: tokens.map(|t| t.scopes().to_vec()).unwrap_or_default(),
            bearer_methods_supported: ["header"],
            resource_name: "svc",
        }
    }
}

/// Where tokens for the API come from
///
/// Metadata of a protected resource (RFC 9728).
#[utoipa::path(
    operation_id = "get_protected_resource",
    get, path = "/.well-known/oauth-protected-resource", tag = "workspaces",
    responses((status = 200, description = "The issuer of tokens, if there is one.", body = ProtectedResource))
)]
pub async fn resource(
    State(config): State<Arc<Config>>,
    State(callers): State<Authenticator>,
) -> Json<ProtectedResource> {
    Json(ProtectedResource::new(&config, &callers, ""))
}

/// Where tokens for the tools come from
///
/// Metadata of a protected resource (RFC 9728).
#[utoipa::path(
    operation_id = "get_protected_tools",
    get, path = "/.well-known/oauth-protected-resource/mcp", tag = "workspaces",
    responses((status = 200, description = "The issuer of tokens, if there is one.", body = ProtectedResource))
)]
pub async fn tools(
    State(config): State<Arc<Config>>,
    State(callers): State<Authenticator>,
) -> Json<ProtectedResource> {
    Json(ProtectedResource::new(&config, &callers, "/mcp"))
}
