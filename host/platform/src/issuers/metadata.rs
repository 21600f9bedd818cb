//! Metadata of an issuer: the document of OpenID Connect Discovery, parsed and checked.

use serde::Deserialize;
use url::Url;

use crate::config::{IssuerAddress, IssuerAddressError};

/// Placeholder for a tenant's id in the issuer name of a multi-tenant issuer, as Microsoft writes it.
const TENANT_PLACEHOLDER: &str = "{tenantid}";

/// Metadata of an issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuerMetadata {
    /// Issuer name in tokens; a template if it contains [`TENANT_PLACEHOLDER`].
    issuer: String,
    /// URL of the key set.
    pub jwks_uri: Url,
    /// URL of the sign-in page.
    pub authorization_endpoint: Option<Url>,
    /// URL where a code is exchanged for tokens.
    pub token_endpoint: Option<Url>,
    /// URL of the user's profile.
    pub userinfo_endpoint: Option<Url>,
    /// Whether authorization responses have the parameter `iss` (RFC 9207).
    pub answers_name_issuer: bool,
    /// Whether the client secret is sent in the body of token requests, because the issuer does not accept HTTP Basic.
    pub secret_in_body: bool,
    /// Whether the issuer says that it can ask the user which account to use (`prompt=select_account`).
    pub selects_account: bool,
}

/// Error of a discovery document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiscoveryDocumentError {
    /// The document cannot be parsed.
    #[error("its discovery document cannot be read: {0}")]
    Unreadable(String),
    /// The document describes another issuer.
    #[error(
        "its discovery document is that of {0:?}: set `issuer` to exactly that, if it is meant"
    )]
    OtherIssuer(String),
    /// The document names an endpoint that is not allowed.
    #[error("`{0}` of its discovery document {1}")]
    Endpoint(&'static str, IssuerAddressError),
}

#[derive(Deserialize)]
struct DiscoveryDocument {
    issuer: String,
    jwks_uri: String,
    authorization_endpoint: Option<String>,
    token_endpoint: Option<String>,
    userinfo_endpoint: Option<String>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    prompt_values_supported: Option<Vec<String>>,
}

impl IssuerMetadata {
    /// Reads the discovery document of the issuer at `address`.
    ///
    /// # Errors
    /// [`DiscoveryDocumentError`].
    pub fn parse(address: &IssuerAddress, document: &[u8]) -> Result<Self, DiscoveryDocumentError> {
        let document: DiscoveryDocument = serde_json::from_slice(document)
            .map_err(|error| DiscoveryDocumentError::Unreadable(error.to_string()))?;
        if !describes_issuer(address.as_str(), &document.issuer) {
            return Err(DiscoveryDocumentError::OtherIssuer(document.issuer));
        }
        let endpoint = |name, text: &str| {
            let read = address.endpoint(text);
            read.map_err(|error| DiscoveryDocumentError::Endpoint(name, error))
        };
        let optional =
            |name, text: Option<String>| text.map(|text| endpoint(name, &text)).transpose();
        let methods = document.token_endpoint_auth_methods_supported;
        let takes = |method: &str| methods.iter().flatten().any(|known| known == method);
        let prompts = document.prompt_values_supported;
        Ok(Self {
            jwks_uri: endpoint("jwks_uri", &document.jwks_uri)?,
            authorization_endpoint: optional(
                "authorization_endpoint",
                document.authorization_endpoint,
            )?,
            token_endpoint: optional("token_endpoint", document.token_endpoint)?,
            userinfo_endpoint: optional("userinfo_endpoint", document.userinfo_endpoint)?,
            answers_name_issuer: document.authorization_response_iss_parameter_supported,
            secret_in_body: takes("client_secret_post") && !takes("client_secret_basic"),
            selects_account: prompts.iter().flatten().any(|one| one == "select_account"),
            issuer: document.issuer,
        })
    }

    /// Returns the issuer name expected in a token; for a multi-tenant issuer, that of the token's tenant.
    pub(super) fn issuer_of(&self, tenant: Option<&str>) -> Option<String> {
        if !self.issuer.contains(TENANT_PLACEHOLDER) {
            return Some(self.issuer.clone());
        }
        tenant
            .filter(|tenant| is_tenant(tenant))
            .map(|tenant| self.issuer.replace(TENANT_PLACEHOLDER, tenant))
    }

    /// Whether `name` is the issuer's name, or that of one of its tenants.
    pub fn is_issuer(&self, name: &str) -> bool {
        match self.issuer.split_once(TENANT_PLACEHOLDER) {
            None => self.issuer == name,
            Some((before, after)) => name
                .strip_prefix(before)
                .and_then(|rest| rest.strip_suffix(after))
                .is_some_and(is_tenant),
        }
    }

    /// Whether a key of `issuer` may sign tokens of the issuer named `name`.
    pub(super) fn may_sign(issuer: Option<&str>, name: &str) -> bool {
        issuer.is_none_or(|issuer| issuer == name || issuer.contains(TENANT_PLACEHOLDER))
    }
}

/// Whether a document that names `issuer` describes the issuer at the address `asked`. A trailing slash makes no difference.
fn describes_issuer(asked: &str, issuer: &str) -> bool {
    let plain = |text: &str| text.trim_end_matches('/').to_owned();
    if plain(asked) == plain(issuer) {
        return true;
    }
    // At `/common/v2.0`, Microsoft describes `/{tenantid}/v2.0`.
    let Some((before, after)) = issuer.split_once(TENANT_PLACEHOLDER) else {
        return false;
    };
    let asked = asked.strip_prefix(before);
    let asked = asked.and_then(|rest| plain(rest).strip_suffix(&plain(after)).map(str::to_owned));
    asked.is_some_and(|group| matches!(group.as_str(), "common" | "organizations" | "consumers"))
}

/// Whether a text can be a tenant's id: letters, digits and hyphens, so that it cannot change the address.
fn is_tenant(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn parse(address: &str, document: &Value) -> Result<IssuerMetadata, DiscoveryDocumentError> {
        let address = IssuerAddress::parse(address).unwrap();
        IssuerMetadata::parse(&address, document.to_string().as_bytes())
    }

    fn document(issuer: &str) -> Value {
        json!({"issuer": issuer, "jwks_uri": "https://a.example/keys"})
    }

    #[test]
    fn a_document_describes_the_issuer_that_was_asked() {
        for (asked, named, its) in [
            ("https://a.example", "https://a.example", true),
            ("https://a.example", "https://a.example/", true),
            ("https://a.example/", "https://a.example", true),
            ("https://a.example", "https://b.example", false),
            ("https://a.example", "https://a.example/b", false),
            ("https://a.example", "https://A.example", false),
            (
                "https://m.example/common/v2.0",
                "https://m.example/{tenantid}/v2.0",
                true,
            ),
            (
                "https://m.example/organizations/v2.0",
                "https://m.example/{tenantid}/v2.0",
                true,
            ),
            (
                "https://m.example/72f988bf/v2.0",
                "https://m.example/{tenantid}/v2.0",
                false,
            ),
            (
                "https://n.example/common/v2.0",
                "https://m.example/{tenantid}/v2.0",
                false,
            ),
        ] {
            assert_eq!(
                parse(asked, &document(named)).is_ok(),
                its,
                "{asked} {named}"
            );
        }
    }

    #[test]
    fn a_template_stands_for_tenants_and_nothing_else() {
        let found = parse(
            "https://m.example/common/v2.0",
            &document("https://m.example/{tenantid}/v2.0"),
        );
        let found = found.unwrap();
        assert!(found.is_issuer("https://m.example/9188040d-6c67/v2.0"));
        for other in [
            "https://m.example/{tenantid}/v2.0",
            "https://m.example//v2.0",
            "https://m.example/a/b/v2.0",
            "https://m.example/a/v2.0/",
        ] {
            assert!(!found.is_issuer(other), "{other}");
        }
        assert_eq!(found.issuer_of(None), None);
        assert_eq!(found.issuer_of(Some("a/../b")), None);
        let expected = "https://m.example/a-1/v2.0";
        assert_eq!(found.issuer_of(Some("a-1")).as_deref(), Some(expected));
    }

    #[test]
    fn the_secret_goes_where_the_issuer_takes_it() {
        for (methods, in_body) in [
            (json!(null), false),
            (json!(["client_secret_basic", "client_secret_post"]), false),
            (json!(["client_secret_post"]), true),
            (json!(["private_key_jwt"]), false),
        ] {
            let mut of = document("https://a.example");
            of["token_endpoint_auth_methods_supported"] = methods.clone();
            let found = parse("https://a.example", &of).unwrap();
            assert_eq!(found.secret_in_body, in_body, "{methods}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let mut of = document("https://a.example");
        of["token_endpoint"] = json!("http://127.0.0.1/token");
        let error = parse("https://a.example", &of).unwrap_err().to_string();
        assert!(error.contains("token_endpoint"), "{error}");
        let error = parse("https://a.example", &json!({"issuer": "https://a.example"}));
        let error = error.unwrap_err().to_string();
        assert!(error.contains("jwks_uri"), "{error}");
    }
}
