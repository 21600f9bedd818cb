//! The `[oauth]` table: the issuer whose access tokens identify users.

use anyhow::bail;
use serde::{Deserialize, Serialize};

/// The issuer of users' access tokens, and the required audience and scopes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OauthSettings {
    /// The issuer, as its tokens name it in `iss`.
    pub issuer: String,
    /// Value that tokens for this service have in `aud`.
    pub audience: String,
    /// Scopes that a token must have; none, if absent.
    #[serde(default)]
    pub scopes: Vec<String>,
}

impl OauthSettings {
    /// Refuses an empty audience and malformed scopes. The issuer's address is checked when the issuer is made.
    ///
    /// # Errors
    /// When the audience is empty, or a scope has characters that none has (RFC 6749, section 3.3).
    pub(super) fn checked(self) -> anyhow::Result<Self> {
        if self.audience.is_empty() {
            bail!("oauth.audience is empty: it is what tokens for this service have in `aud`");
        }
        check_scopes("oauth.scopes", &self.scopes)?;
        Ok(self)
    }
}

/// Refuses scopes that have characters which none has (RFC 6749, section 3.3).
pub(super) fn check_scopes(name: &str, scopes: &[String]) -> anyhow::Result<()> {
    let formed = |c: char| c.is_ascii_graphic() && c != '"' && c != '\\';
    let mut scopes = scopes.iter();
    match scopes.find(|scope| scope.is_empty() || !scope.chars().all(formed)) {
        Some(scope) => bail!("{name} has {scope:?}, which no scope can be"),
        None => Ok(()),
    }
}
