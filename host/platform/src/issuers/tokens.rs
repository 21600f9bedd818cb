//! JSON Web Tokens (RFC 7519): parsing, and the verification of signature, issuer, audience and time.

use std::fmt;

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::cryptography;
use super::keys::IssuerKeySet;
use super::metadata::IssuerMetadata;
use svc_base::clock::Timestamp;

/// Accepted difference of clocks, in seconds.
const LEEWAY: f64 = 60.0;
/// Most bytes of a subject (OpenID Connect Core, section 2).
const MAX_SUBJECT_BYTES: usize = 255;

/// Reason for refusing a token. The text contains nothing of the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The token cannot be parsed.
    #[error("it cannot be read")]
    Malformed,
    /// The algorithm is not supported: it is not a public-key signature.
    #[error("its algorithm is not one that is taken")]
    Algorithm,
    /// The issuer has no key that the token may be signed with.
    #[error("it names a key that the issuer does not have")]
    UnknownKey,
    /// The signature is invalid.
    #[error("its signature is not the issuer's")]
    Signature,
    /// The token is from another issuer.
    #[error("its `iss` is another issuer's")]
    Issuer,
    /// The token is for another audience.
    #[error("its `aud` is somebody else")]
    Audience,
    /// The token was issued to another client.
    #[error("its `azp` is another client")]
    AuthorizedParty,
    /// The token has expired.
    #[error("it has expired")]
    Expired,
    /// The token is not valid yet.
    #[error("it is not valid yet")]
    NotYet,
    /// The token belongs to another sign-in.
    #[error("its `nonce` is that of another sign-in")]
    Nonce,
    /// A required claim is missing.
    #[error("it has no usable `{0}`")]
    Missing(&'static str),
}

/// Audience claim of a token.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum AudienceClaim {
    /// One audience.
    One(String),
    /// Several audiences.
    Several(Vec<String>),
}

impl AudienceClaim {
    pub fn has(&self, name: &str) -> bool {
        match self {
            Self::One(one) => one == name,
            Self::Several(several) => several.iter().any(|one| one == name),
        }
    }

    fn is_several(&self) -> bool {
        matches!(self, Self::Several(several) if several.len() > 1)
    }
}

/// Claims of a verified ID token about the person who signed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdTokenClaims {
    /// Issuer name, that of the tenant for a multi-tenant issuer.
    pub issuer: String,
    /// Subject: the issuer's id of the person.
    pub subject: String,
    /// E-mail address of the person.
    pub email: Option<String>,
    /// Whether the issuer has verified the address.
    pub email_verified: bool,
    /// Name of the person.
    pub name: Option<String>,
    /// URL of a picture of the person.
    pub picture: Option<String>,
    /// Language of the person.
    pub locale: Option<String>,
}

/// Claims of a verified access token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessTokenClaims {
    /// Issuer name, that of the tenant for a multi-tenant issuer.
    pub issuer: String,
    /// Subject: the issuer's id of the person.
    pub subject: String,
    /// E-mail address of the person, if the issuer has verified it.
    pub email: Option<String>,
    /// Client that the token was issued to.
    pub client_id: Option<String>,
    /// Scopes of the token, separated by spaces.
    pub scope: Option<String>,
    /// Time from which the token is refused.
    pub until: Timestamp,
}

/// Claims of a token, not verified yet.
#[derive(Clone, Debug, Deserialize)]
struct UnverifiedClaims {
    iss: Option<String>,
    sub: Option<String>,
    aud: Option<AudienceClaim>,
    azp: Option<String>,
    exp: Option<f64>,
    nbf: Option<f64>,
    iat: Option<f64>,
    nonce: Option<String>,
    tid: Option<String>,
    client_id: Option<String>,
    scope: Option<String>,
    #[serde(flatten)]
    profile: ProfileClaims,
}

/// Profile of a person, in a token or from the issuer. Members of a wrong type are left out.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ProfileClaims {
    /// E-mail address of the person.
    #[serde(default, deserialize_with = "text")]
    pub email: Option<String>,
    /// Whether the issuer has verified the address; some issuers write a text.
    #[serde(default, deserialize_with = "truth")]
    pub email_verified: bool,
    /// Name of the person.
    #[serde(default, deserialize_with = "text")]
    pub name: Option<String>,
    /// URL of a picture of the person.
    #[serde(default, deserialize_with = "text")]
    pub picture: Option<String>,
    /// Language of the person.
    #[serde(default, deserialize_with = "text")]
    pub locale: Option<String>,
}

fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(value
        .as_str()
        .filter(|text| !text.is_empty())
        .map(str::to_owned))
}

fn truth<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(value == Value::Bool(true) || value.as_str() == Some("true"))
}

/// A token whose header was parsed, and whose claims are not verified yet.
#[derive(Clone)]
pub struct UnverifiedToken<'a> {
    text: &'a str,
    algorithm: Algorithm,
    key_id: Option<String>,
}

impl fmt::Debug for UnverifiedToken<'_> {
    /// Leaves out the token itself.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnverifiedToken")
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}

impl<'a> UnverifiedToken<'a> {
    /// Parses a token's header.
    ///
    /// # Errors
    /// [`TokenError::Malformed`] or [`TokenError::Algorithm`].
    pub fn parse(text: &'a str) -> Result<Self, TokenError> {
        let header = jsonwebtoken::decode_header(text).map_err(|error| match error.kind() {
            // An algorithm that the library does not know, such as `none`.
            ErrorKind::Json(error) if error.to_string().contains("variant") => {
                TokenError::Algorithm
            }
            _ => TokenError::Malformed,
        })?;
        if matches!(
            header.alg,
            Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512
        ) {
            return Err(TokenError::Algorithm);
        }
        // Critical extensions are not supported.
        if header.crit.is_some() {
            return Err(TokenError::Malformed);
        }
        Ok(Self {
            text,
            algorithm: header.alg,
            key_id: header.kid,
        })
    }

    /// Whether the set has a key that may have signed the token.
    pub fn has_candidate_key(&self, keys: &IssuerKeySet) -> bool {
        let mut fitting = keys.candidates(self.key_id.as_deref(), self.algorithm);
        fitting.next().is_some()
    }

    /// Verifies the token as an ID token of our own sign-in (OpenID Connect Core, section 3.1.3.7).
    ///
    /// # Errors
    /// [`TokenError`].
    pub fn verify_id(
        &self,
        metadata: &IssuerMetadata,
        keys: &IssuerKeySet,
        client_id: &str,
        nonce: &str,
        now: Timestamp,
    ) -> Result<IdTokenClaims, TokenError> {
        let claims = self.verify(metadata, keys, client_id, now)?;
        claims.iat.ok_or(TokenError::Missing("iat"))?;
        let several = claims.aud.as_ref().is_some_and(AudienceClaim::is_several);
        match claims.azp.as_deref() {
            Some(azp) if azp != client_id => return Err(TokenError::AuthorizedParty),
            None if several => return Err(TokenError::AuthorizedParty),
            _ => {}
        }
        if claims.nonce.as_deref() != Some(nonce) {
            return Err(TokenError::Nonce);
        }
        Ok(IdTokenClaims {
            issuer: claims.iss.unwrap_or_default(),
            subject: claims.sub.unwrap_or_default(),
            email: claims.profile.email,
            email_verified: claims.profile.email_verified,
            name: claims.profile.name,
            picture: claims.profile.picture,
            locale: claims.profile.locale,
        })
    }

    /// Verifies the token as an access token of a request.
    ///
    /// # Errors
    /// [`TokenError`].
    pub fn verify_access(
        &self,
        metadata: &IssuerMetadata,
        keys: &IssuerKeySet,
        audience: &str,
        now: Timestamp,
    ) -> Result<AccessTokenClaims, TokenError> {
        let claims = self.verify(metadata, keys, audience, now)?;
        let profile = claims.profile;
        Ok(AccessTokenClaims {
            issuer: claims.iss.unwrap_or_default(),
            subject: claims.sub.unwrap_or_default(),
            email: profile.email.filter(|_| profile.email_verified),
            client_id: claims.client_id.or(claims.azp),
            scope: claims.scope,
            until: expiry_from_claim(claims.exp),
        })
    }

    /// Returns the claims, if the issuer signed them for `audience` and they are valid now.
    fn verify(
        &self,
        metadata: &IssuerMetadata,
        keys: &IssuerKeySet,
        audience: &str,
        now: Timestamp,
    ) -> Result<UnverifiedClaims, TokenError> {
        let mut refusal = TokenError::UnknownKey;
        for (key, signs_for) in keys.candidates(self.key_id.as_deref(), self.algorithm) {
            match self.verify_signature(key) {
                Ok(claims) => {
                    check_issuer(&claims, metadata, signs_for)?;
                    check_claims(&claims, audience, now)?;
                    return Ok(claims);
                }
                Err(error) => refusal = error,
            }
        }
        Err(refusal)
    }

    fn verify_signature(&self, key: &DecodingKey) -> Result<UnverifiedClaims, TokenError> {
        cryptography::install_ring_provider();
        let mut validation = Validation::new(self.algorithm);
        // The library would use the machine's clock; `check_claims` uses ours.
        validation.validate_exp = false;
        validation.validate_aud = false;
        validation.required_spec_claims.clear();
        let read = jsonwebtoken::decode(self.text, key, &validation);
        read.map(|data| data.claims)
            .map_err(|error| match error.kind() {
                ErrorKind::InvalidSignature => TokenError::Signature,
                ErrorKind::InvalidAlgorithm | ErrorKind::UnsupportedAlgorithm => {
                    TokenError::Algorithm
                }
                _ => TokenError::Malformed,
            })
    }
}

/// Returns the time from which a token with this `exp` is refused.
#[allow(
    clippy::cast_possible_truncation,
    reason = "a float beyond the integers becomes the nearest of them"
)]
fn expiry_from_claim(exp: Option<f64>) -> Timestamp {
    Timestamp(((exp.unwrap_or_default() + LEEWAY) * 1000.0) as i64)
}

fn check_issuer(
    claims: &UnverifiedClaims,
    metadata: &IssuerMetadata,
    signs_for: Option<&str>,
) -> Result<(), TokenError> {
    let expected = metadata.issuer_of(claims.tid.as_deref());
    match (expected, claims.iss.as_deref()) {
        (Some(expected), Some(issuer))
            if expected == issuer && IssuerMetadata::may_sign(signs_for, issuer) =>
        {
            Ok(())
        }
        _ => Err(TokenError::Issuer),
    }
}

fn check_claims(
    claims: &UnverifiedClaims,
    audience: &str,
    now: Timestamp,
) -> Result<(), TokenError> {
    if !claims.aud.as_ref().is_some_and(|aud| aud.has(audience)) {
        return Err(TokenError::Audience);
    }
    #[allow(clippy::cast_precision_loss, reason = "moments are far below 2^53")]
    let now = now.0 as f64 / 1000.0;
    let expires = claims.exp.ok_or(TokenError::Missing("exp"))?;
    if now >= expires + LEEWAY {
        return Err(TokenError::Expired);
    }
    let begins = [claims.nbf, claims.iat].into_iter().flatten();
    if begins.into_iter().any(|at| at > now + LEEWAY) {
        return Err(TokenError::NotYet);
    }
    match claims.sub.as_deref() {
        Some(sub) if !sub.is_empty() && sub.len() <= MAX_SUBJECT_BYTES => Ok(()),
        _ => Err(TokenError::Missing("sub")),
    }
}
