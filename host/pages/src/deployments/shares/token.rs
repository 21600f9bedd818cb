//! The token that deletes a share: `svcd_` and 32 random bytes in base 62. It is kept as its SHA-256 and shown once.

use std::fmt;

use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use crate::content::Digest;
use crate::workspaces::credential;
use svc_base::random::{Random, RandomSourceError};

/// A new token, on its way to who publishes.
#[derive(Clone, ToSchema)]
#[schema(value_type = String)]
pub struct DeleteToken(String);

impl DeleteToken {
    /// A new one.
    ///
    /// # Errors
    /// When there is no randomness.
    pub fn new(random: &Random) -> Result<Self, RandomSourceError> {
        Ok(Self(format!("svcd_{}", credential::random_secret(random)?)))
    }

    /// Returns the digest, which is all that is stored of the token.
    pub fn digest(&self) -> Digest {
        Digest::of(self.0.as_bytes())
    }

    /// The token itself, for its one showing.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for DeleteToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeleteToken")
    }
}

impl Serialize for DeleteToken {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_its_form_and_is_never_in_a_log() {
        let (one, two) = (
            DeleteToken::new(&Random::system()).unwrap(),
            DeleteToken::new(&Random::system()).unwrap(),
        );
        let secret = one.text().strip_prefix("svcd_").unwrap();
        assert_eq!(secret.len(), 43);
        assert!(secret.bytes().all(|b| b.is_ascii_alphanumeric()));
        assert_ne!(one.text(), two.text());
        assert!(one.digest().is_digest_of(one.text().as_bytes()));
        assert!(!format!("{one:?}").contains(secret));
    }
}
