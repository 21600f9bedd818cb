//! The `state` of a sign-in under way: sealed, so that it carries everything that its end needs, and nothing is kept meanwhile but which ones
//! are used.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::{digest, hmac};
use serde::{Deserialize, Serialize};

use svc_base::clock::Timestamp;
use svc_base::ids::DeploymentId;
use svc_base::random::{NoRandomness, Random};

/// How long a sign-in may take, in milliseconds.
const SIGN_IN_LIFETIME_MS: i64 = 600_000;
/// Used states that are remembered at most; one over that makes room by forgetting the oldest.
const MAX_USED_STATES: usize = 100_000;
/// Purpose under which states are sealed, so that nothing sealed for another is taken for one.
const SEAL_PURPOSE: &[u8] = b"svc sign-in 1";

/// A sign-in under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PendingSignIn {
    /// Identifier of the sign-in.
    #[serde(rename = "i")]
    pub id: String,
    /// The frontend that it began on.
    #[serde(rename = "s")]
    pub slug: String,
    /// Identifier of the deployment, which a slug's next owner does not share.
    #[serde(rename = "d", with = "as_text")]
    pub deployment: DeploymentId,
    /// With which provider.
    #[serde(rename = "p")]
    pub provider: String,
    /// Where it leads back to.
    #[serde(rename = "r")]
    pub return_to: String,
    /// A digest of what the browser that began it is known by.
    #[serde(rename = "b")]
    pub browser: String,
    /// When it began, in milliseconds since the epoch.
    #[serde(rename = "t")]
    pub at: i64,
}

/// Seals sign-ins, derives their secrets, and remembers which are used.
#[derive(Debug)]
pub(super) struct SignInStates {
    seal: LessSafeKey,
    secret: hmac::Key,
    used: Mutex<UsedStates>,
}

#[derive(Debug, Default)]
struct UsedStates {
    ids: HashSet<String>,
    by_time: BTreeSet<(i64, String)>,
}

impl SignInStates {
    /// With keys that are made of the installation's secret.
    ///
    /// # Errors
    /// Never: a key of this length is one.
    pub(super) fn new(secret: &hmac::Key) -> anyhow::Result<Self> {
        let key = hmac::sign(secret, b"seal");
        let key = UnboundKey::new(&CHACHA20_POLY1305, key.as_ref())
            .map_err(|_| anyhow::anyhow!("the key of sign-ins is none"))?;
        Ok(Self {
            seal: LessSafeKey::new(key),
            secret: secret.clone(),
            used: Mutex::default(),
        })
    }

    /// The `state` of a sign-in.
    ///
    /// # Errors
    /// When there is no randomness.
    pub(super) fn seal(
        &self,
        sign_in: &PendingSignIn,
        random: &Random,
    ) -> Result<String, NoRandomness> {
        let number = random.bytes::<NONCE_LEN>()?;
        let mut text = serde_json::to_vec(sign_in).unwrap_or_default();
        let nonce = Nonce::assume_unique_for_key(number);
        let sealed = self
            .seal
            .seal_in_place_append_tag(nonce, Aad::from(SEAL_PURPOSE), &mut text);
        sealed.map_err(|_| NoRandomness)?;
        Ok(URL_SAFE_NO_PAD.encode([&number[..], &text].concat()))
    }

    /// The sign-in of a `state`, if it is one of ours.
    pub(super) fn open(&self, state: &str) -> Option<PendingSignIn> {
        let mut bytes = URL_SAFE_NO_PAD.decode(state).ok()?;
        let (number, text) = bytes.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(number).ok()?;
        let text = self
            .seal
            .open_in_place(nonce, Aad::from(SEAL_PURPOSE), text)
            .ok()?;
        serde_json::from_slice(text).ok()
    }

    /// The `nonce` of a sign-in, which its ID token must have.
    pub(super) fn nonce(&self, sign_in: &PendingSignIn) -> String {
        self.derive(b"nonce", sign_in)
    }

    /// The secret of PKCE (RFC 7636), which this server alone can derive.
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

    /// Whether a sign-in is too old.
    pub(super) fn is_expired(sign_in: &PendingSignIn, now: Timestamp) -> bool {
        !(0..SIGN_IN_LIFETIME_MS).contains(&(now.0 - sign_in.at))
    }

    /// Uses a sign-in up; returns whether it was not used before.
    pub(super) fn mark_used(&self, sign_in: &PendingSignIn, now: Timestamp) -> bool {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((at, id)) = used.by_time.first().cloned() {
            if now.0 - at < SIGN_IN_LIFETIME_MS && used.ids.len() < MAX_USED_STATES {
                break;
            }
            used.by_time.pop_first();
            used.ids.remove(&id);
        }
        let new = used.ids.insert(sign_in.id.clone());
        if new {
            used.by_time.insert((sign_in.at, sign_in.id.clone()));
        }
        new
    }
}

/// Computes the challenge that PKCE shows of its secret at the beginning.
pub(super) fn challenge(verifier: &str) -> String {
    sha256_base64url(verifier)
}

/// A digest of what a browser is known by.
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
            browser: sha256_base64url("browser"),
            at,
        }
    }

    fn states() -> SignInStates {
        let secret = Random::system().bytes::<32>().unwrap();
        SignInStates::new(&hmac::Key::new(hmac::HMAC_SHA256, &secret)).unwrap()
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
        // Nothing of it can be read on its way.
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
                SignInStates::is_expired(&first, Timestamp(now)),
                old,
                "{now}"
            );
        }
        // What nobody can use any more is not remembered either.
        let late = sign_in(700_000);
        assert!(states.mark_used(&late, Timestamp(700_000)));
        assert_eq!(states.used.lock().unwrap().ids.len(), 1);
    }

    #[test]
    fn a_challenge_is_that_of_the_rfc() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(
            challenge(verifier),
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
        );
    }
}
