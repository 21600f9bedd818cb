//! An issuer's key set (RFC 7517), and which of its keys may verify a token.

use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;

/// Most keys that are kept of a set: real ones have a handful.
const MAX_KEYS: usize = 100;

/// The key set of an issuer.
#[derive(Clone, Debug, Default)]
pub struct IssuerKeySet(Vec<VerificationKey>);

#[derive(Clone, Debug)]
struct VerificationKey {
    id: Option<String>,
    /// Algorithms that the key may verify.
    algorithms: Vec<Algorithm>,
    /// The issuer that the key signs for, where the set says so.
    issuer: Option<String>,
    key: DecodingKey,
}

/// A key in JSON.
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    #[serde(rename = "use")]
    purpose: Option<String>,
    key_ops: Option<Vec<String>>,
    alg: Option<String>,
    kid: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
    issuer: Option<String>,
}

#[derive(Deserialize)]
struct JwkSet {
    keys: Vec<Value>,
}

impl IssuerKeySet {
    /// Reads a set. Keys of unknown types and those not for signatures are left out.
    ///
    /// # Errors
    /// A text that says why it is not a key set.
    pub fn parse(document: &[u8]) -> Result<Self, String> {
        let set: JwkSet = serde_json::from_slice(document).map_err(|error| error.to_string())?;
        let keys = set.keys.into_iter();
        let keys = keys.filter_map(|key| VerificationKey::read(serde_json::from_value(key).ok()?));
        Ok(Self(keys.take(MAX_KEYS).collect()))
    }

    /// Returns the number of keys.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the keys that may have signed a token with this key id and algorithm, each with the issuer that it signs for.
    pub(super) fn candidates<'a>(
        &'a self,
        id: Option<&'a str>,
        algorithm: Algorithm,
    ) -> impl Iterator<Item = (&'a DecodingKey, Option<&'a str>)> {
        let keys = self.0.iter();
        let keys = keys.filter(move |key| {
            let named = match (id, key.id.as_deref()) {
                (Some(wanted), Some(id)) => wanted == id,
                _ => true,
            };
            named && key.algorithms.contains(&algorithm)
        });
        keys.map(|key| (&key.key, key.issuer.as_deref()))
    }
}

impl VerificationKey {
    fn read(jwk: Jwk) -> Option<Self> {
        let verifies = jwk
            .purpose
            .as_deref()
            .is_none_or(|purpose| purpose == "sig");
        let may = jwk.key_ops.as_ref();
        let may = may.is_none_or(|ops| ops.iter().any(|op| op == "verify"));
        if !verifies || !may {
            return None;
        }
        let (algorithms, key): (&[Algorithm], _) = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("RSA", _) => (
                &[
                    Algorithm::RS256,
                    Algorithm::RS384,
                    Algorithm::RS512,
                    Algorithm::PS256,
                    Algorithm::PS384,
                    Algorithm::PS512,
                ],
                DecodingKey::from_rsa_components(&jwk.n?, &jwk.e?),
            ),
            ("EC", Some("P-256")) => (
                &[Algorithm::ES256],
                DecodingKey::from_ec_components(&jwk.x?, &jwk.y?),
            ),
            ("EC", Some("P-384")) => (
                &[Algorithm::ES384],
                DecodingKey::from_ec_components(&jwk.x?, &jwk.y?),
            ),
            ("OKP", Some("Ed25519")) => (
                &[Algorithm::EdDSA],
                DecodingKey::from_ed_components(&jwk.x?),
            ),
            _ => return None,
        };
        let algorithms = match &jwk.alg {
            None => algorithms.to_vec(),
            Some(name) => {
                let only = name.parse().ok()?;
                algorithms.contains(&only).then(|| vec![only])?
            }
        };
        Some(Self {
            id: jwk.kid,
            algorithms,
            issuer: jwk.issuer,
            key: key.ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn candidates(keys: &Value, id: Option<&str>, algorithm: Algorithm) -> usize {
        let keys = IssuerKeySet::parse(json!({ "keys": keys }).to_string().as_bytes()).unwrap();
        keys.candidates(id, algorithm).count()
    }

    #[test]
    fn a_key_fits_by_its_id_its_kind_and_its_purpose() {
        let rsa = json!({"kty": "RSA", "kid": "a", "n": "3Q", "e": "AQAB"});
        let with = |name: &str, value: Value| {
            let mut key = rsa.clone();
            key[name] = value;
            json!([key])
        };
        let set = json!([rsa]);
        for (keys, id, algorithm, count) in [
            (&set, Some("a"), Algorithm::RS256, 1),
            (&set, Some("a"), Algorithm::PS512, 1),
            (&set, None, Algorithm::RS256, 1),
            (&set, Some("b"), Algorithm::RS256, 0),
            (&set, Some("a"), Algorithm::ES256, 0),
            (&set, Some("a"), Algorithm::HS256, 0),
            (&with("alg", json!("RS256")), Some("a"), Algorithm::RS256, 1),
            (&with("alg", json!("RS256")), Some("a"), Algorithm::RS512, 0),
            (&with("alg", json!("HS256")), Some("a"), Algorithm::HS256, 0),
            (
                &with("alg", json!("RSA-OAEP")),
                Some("a"),
                Algorithm::RS256,
                0,
            ),
            (&with("use", json!("enc")), Some("a"), Algorithm::RS256, 0),
            (
                &with("key_ops", json!(["sign"])),
                Some("a"),
                Algorithm::RS256,
                0,
            ),
            (&with("kid", json!(null)), Some("a"), Algorithm::RS256, 1),
            (
                &json!([{"kty": "oct", "k": "c2VjcmV0"}]),
                None,
                Algorithm::HS256,
                0,
            ),
            (
                &json!([{"kty": "EC", "crv": "P-521", "x": "", "y": ""}]),
                None,
                Algorithm::ES384,
                0,
            ),
            (&json!([7, "a", {"kty": 1}]), None, Algorithm::RS256, 0),
        ] {
            assert_eq!(
                candidates(keys, id, algorithm),
                count,
                "{keys} {id:?} {algorithm:?}"
            );
        }
    }

    #[test]
    fn no_set_of_keys_is_an_error_and_a_large_one_is_cut() {
        assert!(IssuerKeySet::parse(b"[]").is_err());
        assert!(IssuerKeySet::parse(b"{}").is_err());
        let many = vec![json!({"kty": "OKP", "crv": "Ed25519", "x": "AA"}); 500];
        let many = IssuerKeySet::parse(json!({ "keys": many }).to_string().as_bytes());
        assert_eq!(many.unwrap().count(), MAX_KEYS);
    }
}
