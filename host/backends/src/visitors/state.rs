//! The OAuth `state` of a pending sign-in. It is sealed and carries everything that the callback needs, so that the server only remembers which
//! states were used.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::{digest, hmac};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::used_ids::UsedIds;
use svc_base::clock::Timestamp;
use svc_base::ids::DeploymentId;
use svc_base::random::{Random, RandomSourceError};

/// Maximum duration of a sign-in, in milliseconds.
const SIGN_IN_LIFETIME_MS: i64 = 600_000;
/// Associated data of the seal, so that nothing that is sealed for another purpose is accepted.
const SEAL_PURPOSE: &[u8] = b"svc sign-in 1";

/// Sign-in that is not completed yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PendingSignIn {
    #[serde(rename = "i")]
    pub id: String,
    /// Slug of the frontend that the sign-in began on.
    #[serde(rename = "s")]
    pub slug: String,
    /// Identifier of the deployment, because the slug may get another owner.
    #[serde(rename = "d", with = "as_text")]
    pub deployment: DeploymentId,
    /// Name of the provider.
    #[serde(rename = "p")]
    pub provider: String,
    /// Path to lead back to.
    #[serde(rename = "r")]
    pub return_to: String,
    /// Domain of the project that the sign-in began on, as requests name it; absent on the project's own origin.
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Hash of the browser's token.
    #[serde(rename = "b")]
    pub browser: String,
    /// When the sign-in began, in milliseconds since the epoch.
    #[serde(rename = "t")]
    pub at: i64,
}

/// Seals pending sign-ins, derives their secrets, and remembers the used ones.
#[derive(Debug)]
pub(super) struct SignInStateSealer {
    seal: LessSafeKey,
    secret: hmac::Key,
    used: UsedIds,
}

impl SignInStateSealer {
    /// Derives the keys from the installation's secret.
    ///
    /// # Errors
    /// Never, because the key has the right length.
    pub(super) fn new(secret: &hmac::Key) -> anyhow::Result<Self> {
        let key = hmac::sign(secret, b"seal");
        let key = UnboundKey::new(&CHACHA20_POLY1305, key.as_ref())
            .map_err(|_| anyhow::anyhow!("the key of sign-ins is none"))?;
        Ok(Self {
            seal: LessSafeKey::new(key),
            secret: secret.clone(),
            used: UsedIds::new(SIGN_IN_LIFETIME_MS),
        })
    }

    /// Seals a sign-in into its `state`.
    ///
    /// # Errors
    /// No randomness is available.
    pub(super) fn seal(
        &self,
        sign_in: &PendingSignIn,
        random: &Random,
    ) -> Result<String, RandomSourceError> {
        self.seal_for(SEAL_PURPOSE, sign_in, random)
    }

    /// Seals a value for a purpose, so that it is opened for no other one.
    ///
    /// # Errors
    /// No randomness is available.
    pub(super) fn seal_for(
        &self,
        purpose: &[u8],
        value: &impl Serialize,
        random: &Random,
    ) -> Result<String, RandomSourceError> {
        let number = random.bytes::<NONCE_LEN>()?;
        let mut text = serde_json::to_vec(value).unwrap_or_default();
        let nonce = Nonce::assume_unique_for_key(number);
        let sealed = self
            .seal
            .seal_in_place_append_tag(nonce, Aad::from(purpose), &mut text);
        sealed.map_err(|_| RandomSourceError)?;
        Ok(URL_SAFE_NO_PAD.encode([&number[..], &text].concat()))
    }

    /// Opens a `state`; `None` if this installation has not sealed it.
    pub(super) fn open(&self, state: &str) -> Option<PendingSignIn> {
        self.open_for(SEAL_PURPOSE, state)
    }

    /// Opens what was sealed for a purpose; `None` if this installation has not sealed it.
    pub(super) fn open_for<T: DeserializeOwned>(&self, purpose: &[u8], sealed: &str) -> Option<T> {
        let mut bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (number, text) = bytes.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(number).ok()?;
        let text = self
            .seal
            .open_in_place(nonce, Aad::from(purpose), text)
            .ok()?;
        serde_json::from_slice(text).ok()
    }

    /// Returns the `nonce` of a sign-in, which the ID token must contain.
    pub(super) fn nonce(&self, sign_in: &PendingSignIn) -> String {
        self.derive(b"nonce", sign_in)
    }

    /// Returns the PKCE verifier (RFC 7636), which only this server can derive.
    pub(super) fn verifier(&self, sign_in: &PendingSignIn) -> String {
        self.derive(b"verifier", sign_in)
    }

    fn derive(&self, purpose: &[u8], sign_in: &PendingSignIn) -> String {
        let mut context = hmac::Context::with_key(&self.secret);
        context.update(purpose);
        context.update(&[0]);
        context.update(sign_in.id.as_bytes());
        URL_SAFE_NO_PAD.encode(context.sign())
    }

    /// Whether a sign-in has expired.
    pub(super) fn is_expired(sign_in: &PendingSignIn, now: Timestamp) -> bool {
        !(0..SIGN_IN_LIFETIME_MS).contains(&(now.0 - sign_in.at))
    }

    /// Whether a sign-in is used.
    pub(super) fn is_used(&self, sign_in: &PendingSignIn) -> bool {
        self.used.contains(&sign_in.id)
    }

    /// Marks a sign-in as used; returns whether it was unused.
    pub(super) fn mark_used(&self, sign_in: &PendingSignIn, now: Timestamp) -> bool {
        self.used.mark(&sign_in.id, sign_in.at, now)
    }
}

/// Returns the PKCE challenge of a verifier.
pub(super) fn pkce_challenge(verifier: &str) -> String {
    sha256_base64url(verifier)
}

/// Returns the SHA-256 of a text in base64url.
pub(super) fn sha256_base64url(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, text.as_bytes()))
}

mod as_text {
    use serde::{Deserialize, Deserializer, Serializer};

    use svc_base::ids::DeploymentId;

    pub(super) fn serialize<S: Serializer>(id: &DeploymentId, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(id)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<DeploymentId, D::Error> {
        String::deserialize(from)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_base::clock::Clock;

    fn sign_in(at: i64) -> PendingSignIn {
        let (clock, random) = (Clock::manual(Timestamp(at)), Random::system());
        PendingSignIn {
            id: random.slug(20).unwrap(),
            slug: "book".to_owned(),
            deployment: DeploymentId::new(&clock, &random).unwrap(),
            provider: "acme".to_owned(),
            return_to: "/book?a=b".to_owned(),
            domain: None,
            browser: sha256_base64url("browser"),
            at,
        }
    }

    fn states() -> SignInStateSealer {
        let secret = Random::system().bytes::<32>().unwrap();
        SignInStateSealer::new(&hmac::Key::new(hmac::HMAC_SHA256, &secret)).unwrap()
    }

    #[test]
    fn a_state_is_ours_or_nothing() {
        let (ours, other) = (states(), states());
        let sign_in = sign_in(1_000);
        let state = ours.seal(&sign_in, &Random::system()).unwrap();
        assert_eq!(ours.open(&state), Some(sign_in.clone()));
        assert_eq!(other.open(&state), None);
        for text in [
            "",
            "a",
            &state[1..],
            &format!("{state}A"),
            &state.to_ascii_lowercase(),
        ] {
            assert_eq!(ours.open(text), None, "{text}");
        }
        // A text that is sealed for another purpose is no state.
        let other = ours.seal_for(b"other", &sign_in, &Random::system());
        assert_eq!(ours.open(&other.unwrap()), None);
        // The content is encrypted.
        let sealed = URL_SAFE_NO_PAD.decode(&state).unwrap();
        assert!(!String::from_utf8_lossy(&sealed).contains("book"));
        assert_ne!(ours.nonce(&sign_in), ours.verifier(&sign_in));
        assert_eq!(ours.verifier(&sign_in).len(), 43);
    }

    #[test]
    fn a_state_is_used_once_and_in_time() {
        let states = states();
        let first = sign_in(1_000);
        assert!(states.mark_used(&first, Timestamp(2_000)));
        assert!(!states.mark_used(&first, Timestamp(3_000)));
        assert!(states.mark_used(&sign_in(1_000), Timestamp(3_000)));
        for (now, old) in [
            (1_000, false),
            (600_999, false),
            (601_000, true),
            (999, true),
        ] {
            assert_eq!(
                SignInStateSealer::is_expired(&first, Timestamp(now)),
                old,
                "{now}"
            );
        }
    }

    #[test]
    fn a_challenge_is_that_of_the_rfc() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(
            pkce_challenge(verifier),
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
        );
    }
}
