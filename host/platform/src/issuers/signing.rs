//! Signing of tokens, for the issuer inside the server and for tests.

use std::fmt;

use jsonwebtoken::{Algorithm, EncodingKey, Header};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde::Serialize;
use serde_json::{Value, json};

use super::cryptography;

/// A private key that signs tokens.
#[derive(Clone)]
pub struct SigningKey {
    id: String,
    key: EncodingKey,
    point: Vec<u8>,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// Key generation or signing failed.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("no key could be made")]
pub struct SigningError;

impl SigningKey {
    /// Generates a key for ES256.
    ///
    /// # Errors
    /// When the system has no randomness.
    pub fn generate(id: &str) -> Result<Self, SigningError> {
        cryptography::install_ring_provider();
        let (random, scheme) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(scheme, &random).map_err(|_| SigningError)?;
        let pair =
            EcdsaKeyPair::from_pkcs8(scheme, pkcs8.as_ref(), &random).map_err(|_| SigningError)?;
        Ok(Self {
            id: id.to_owned(),
            key: EncodingKey::from_ec_der(pkcs8.as_ref()),
            point: pair.public_key().as_ref().to_vec(),
        })
    }

    /// Returns the public key as a JWK.
    pub fn public_jwk(&self) -> Value {
        let (x, y) = self.point[1..].split_at(32);
        json!({
            "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.id,
            "x": base64_url(x), "y": base64_url(y),
        })
    }

    /// Signs a token with these claims.
    ///
    /// # Errors
    /// When they are no JSON object, or the system has no randomness.
    pub fn sign(&self, claims: &impl Serialize) -> Result<String, SigningError> {
        let mut header = Header::new(Algorithm::ES256);
        header.kid = Some(self.id.clone());
        jsonwebtoken::encode(&header, claims, &self.key).map_err(|_| SigningError)
    }
}

fn base64_url(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)
}
