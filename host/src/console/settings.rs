//! Settings of the console for browsers: where pages are, the limits, and where people sign in.

use std::sync::atomic::Ordering;

use serde::Serialize;
use url::Url;

use super::Console;
use super::shell::issuer_origin;
use crate::config::Limits;
use crate::issuers::IssuerMetadata;

/// Settings as `GET /config.json` answers them.
#[derive(Debug, Serialize)]
pub(super) struct BrowserSettings<'a> {
    version: &'static str,
    base_url: &'a str,
    sites_url: &'a str,
    sites_domain: Option<&'a str>,
    /// Whether the server is for trying things out.
    dev: bool,
    limits: &'a Limits,
    oauth: Option<SignInSettings<'a>>,
}

/// The console as a client of the issuer.
#[derive(Debug, Serialize)]
struct SignInSettings<'a> {
    issuer: &'a str,
    authorization_endpoint: String,
    token_endpoint: String,
    client_id: &'a str,
    scopes: &'a [String],
    audience: &'a str,
}

impl Console {
    /// Returns the settings for browsers. Without an answer of the issuer, people sign in by keys and links alone.
    pub(super) async fn browser_settings(&self) -> BrowserSettings<'_> {
        let config = &self.config;
        BrowserSettings {
            version: env!("CARGO_PKG_VERSION"),
            base_url: &config.base_url,
            sites_url: &config.sites_url,
            sites_domain: config.sites_domain.as_deref(),
            dev: config.dev,
            limits: &config.limits,
            oauth: self.sign_in_settings().await,
        }
    }

    async fn sign_in_settings(&self) -> Option<SignInSettings<'_>> {
        let (oauth, console) = (self.config.oauth.as_ref()?, self.config.console.as_ref()?);
        let metadata = self.authenticator.tokens()?.issuer_metadata().await;
        let metadata = metadata.map_err(|error| error.to_string());
        let origin = issuer_origin(&self.config)?;
        let endpoints = metadata.and_then(|metadata| endpoints_on(&origin, &metadata));
        match endpoints {
            Ok((authorization_endpoint, token_endpoint)) => {
                self.is_issuer_fault_logged.store(false, Ordering::Relaxed);
                Some(SignInSettings {
                    issuer: &oauth.issuer,
                    authorization_endpoint,
                    token_endpoint,
                    client_id: &console.client_id,
                    scopes: console.scopes(),
                    audience: &oauth.audience,
                })
            }
            Err(reason) => {
                if !self.is_issuer_fault_logged.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        reason,
                        "nobody can sign in to the console at the issuer of `[oauth]`"
                    );
                }
                None
            }
        }
    }
}

/// Returns the endpoints of a sign-in, which must lie on the issuer's own origin: browsers send codes there, and no others.
///
/// # Errors
/// A text that says what is missing, or lies elsewhere.
fn endpoints_on(origin: &str, metadata: &IssuerMetadata) -> Result<(String, String), String> {
    let endpoint = |name: &str, endpoint: Option<&Url>| match endpoint {
        None => Err(format!("its discovery document has no `{name}`")),
        Some(url) if url.origin().ascii_serialization() != origin => {
            Err(format!("its `{name}` lies off {origin}: {url}"))
        }
        Some(url) => Ok(url.to_string()),
    };
    Ok((
        endpoint(
            "authorization_endpoint",
            metadata.authorization_endpoint.as_ref(),
        )?,
        endpoint("token_endpoint", metadata.token_endpoint.as_ref())?,
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::IssuerAddress;

    #[test]
    fn endpoints_lie_on_the_issuers_origin() {
        let address = IssuerAddress::parse("https://id.example.com/realms/a").unwrap();
        let own = "https://id.example.com/realms/a";
        for (authorization, token, says) in [
            (
                json!(format!("{own}/auth")),
                json!(format!("{own}/token")),
                None,
            ),
            (
                json!("https://id.example.com/auth"),
                json!("https://id.example.com/t"),
                None,
            ),
            (
                json!("https://login.example.com/auth"),
                json!(format!("{own}/token")),
                Some("authorization_endpoint"),
            ),
            (
                json!(format!("{own}/auth")),
                json!("https://id.example.com:8443/token"),
                Some("token_endpoint"),
            ),
            (
                json!(null),
                json!(format!("{own}/token")),
                Some("authorization_endpoint"),
            ),
            (
                json!(format!("{own}/auth")),
                json!(null),
                Some("token_endpoint"),
            ),
        ] {
            let document = json!({
                "issuer": own, "jwks_uri": format!("{own}/keys"),
                "authorization_endpoint": authorization, "token_endpoint": token,
            });
            let metadata = IssuerMetadata::parse(&address, document.to_string().as_bytes());
            let found = endpoints_on("https://id.example.com", &metadata.unwrap());
            match says {
                None => assert!(found.is_ok(), "{found:?}"),
                Some(name) => assert!(found.unwrap_err().contains(name), "{document}"),
            }
        }
    }
}
