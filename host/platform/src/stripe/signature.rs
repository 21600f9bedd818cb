//! Signatures of webhooks: `t=<seconds>,v1=<HMAC-SHA256 in hexadecimal>[,v1=…]` over `<seconds>.<body>`.

use ring::hmac;

use svc_base::clock::Timestamp;

/// Largest difference between the clock of a signature and ours, in seconds.
const TOLERANCE_SECONDS: i64 = 300;

/// Error of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The header is missing.
    #[error("the webhook has no `Stripe-Signature`")]
    Missing,
    /// The header has the wrong form.
    #[error("`Stripe-Signature` must be `t=<seconds>,v1=<hexadecimal>`")]
    Malformed,
    /// No value matches the body with any of our secrets.
    #[error(
        "`Stripe-Signature` does not match the body with any of our secrets: compare `webhook_secret` with that of the provider's endpoint"
    )]
    Mismatch,
    /// The signature is too old, or from the future.
    #[error(
        "`Stripe-Signature` is more than {TOLERANCE_SECONDS} seconds old, or ahead of our clock"
    )]
    Stale,
}

/// Returns the HMAC key of a webhook secret.
pub(super) fn hmac_key(secret: &str) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes())
}

/// Signs a body as the provider does; returns the value of `Stripe-Signature`.
pub fn sign(secret: &str, body: &[u8], now: Timestamp) -> String {
    let at = now.0.div_euclid(1000).to_string();
    let tag = hmac::sign(&hmac_key(secret), &signed_payload(&at, body));
    let mut value = format!("t={at},v1=");
    for byte in tag.as_ref() {
        value.push(char::from(HEX_DIGITS[usize::from(byte >> 4)]));
        value.push(char::from(HEX_DIGITS[usize::from(byte & 15)]));
    }
    value
}

const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";

fn signed_payload(at: &str, body: &[u8]) -> Vec<u8> {
    let mut signed = Vec::with_capacity(at.len() + 1 + body.len());
    signed.extend_from_slice(at.as_bytes());
    signed.push(b'.');
    signed.extend_from_slice(body);
    signed
}

/// Value of `Stripe-Signature`: not compared with a body yet.
#[derive(Debug)]
pub struct PresentedSignature {
    /// Time as it was sent, because it is signed.
    at: String,
    seconds: i64,
    tags: Vec<[u8; 32]>,
}

impl PresentedSignature {
    /// Parses the header.
    ///
    /// # Errors
    /// `Missing` or `Malformed`.
    pub(super) fn parse(header: Option<&str>) -> Result<Self, SignatureError> {
        let header = header.ok_or(SignatureError::Missing)?;
        let (mut at, mut tags) = (None, Vec::new());
        for item in header.split(',') {
            match item.trim().split_once('=') {
                Some(("t", seconds)) if at.is_none() => at = Some(seconds),
                // With two times it would be unclear which one is signed.
                Some(("t", _)) => return Err(SignatureError::Malformed),
                Some(("v1", tag)) => tags.push(tag),
                // Other schemes are ignored, such as `v0` of test events.
                Some(_) => {}
                None => return Err(SignatureError::Malformed),
            }
        }
        let at = at.ok_or(SignatureError::Malformed)?;
        let seconds: i64 = at.parse().map_err(|_| SignatureError::Malformed)?;
        if tags.is_empty() {
            return Err(SignatureError::Malformed);
        }
        Ok(Self {
            at: at.to_owned(),
            seconds,
            tags: tags.into_iter().filter_map(from_hex).collect(),
        })
    }

    /// Checks the time of the signature.
    ///
    /// # Errors
    /// `Stale`.
    pub(super) fn check_age(&self, now: Timestamp) -> Result<(), SignatureError> {
        let age = now.0.div_euclid(1000).saturating_sub(self.seconds);
        if (-TOLERANCE_SECONDS..=TOLERANCE_SECONDS).contains(&age) {
            Ok(())
        } else {
            Err(SignatureError::Stale)
        }
    }

    /// Verifies the signature against every secret, each comparison in constant time.
    ///
    /// # Errors
    /// `Mismatch`.
    pub(super) fn verify(&self, keys: &[hmac::Key], body: &[u8]) -> Result<(), SignatureError> {
        let signed = signed_payload(&self.at, body);
        let matches = |key: &hmac::Key| {
            let mut tags = self.tags.iter();
            tags.any(|tag| hmac::verify(key, &signed, tag).is_ok())
        };
        if keys.iter().any(matches) {
            Ok(())
        } else {
            Err(SignatureError::Mismatch)
        }
    }
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_795_176_000_000);

    fn check(header: Option<&str>, body: &str) -> Result<(), SignatureError> {
        let keys = [hmac_key("whsec_new"), hmac_key("whsec_old")];
        let signature = PresentedSignature::parse(header)?;
        signature.check_age(NOW)?;
        signature.verify(&keys, body.as_bytes())
    }

    #[test]
    fn a_signature_is_of_one_body_by_one_of_the_secrets_for_a_while() {
        use SignatureError::{Malformed, Mismatch, Missing, Stale};
        let by = |secret: &str, seconds: i64| sign(secret, b"{}", NOW.plus_seconds(seconds));
        let good = by("whsec_new", 0);
        let tag = good.split_once("v1=").unwrap().1;
        let time = NOW.0 / 1000;
        for (header, expected) in [
            (good.clone(), Ok(())),
            (by("whsec_old", 0), Ok(())),
            (by("whsec_new", -300), Ok(())),
            (by("whsec_new", 300), Ok(())),
            (by("whsec_new", -301), Err(Stale)),
            (by("whsec_new", 301), Err(Stale)),
            (by("whsec_other", 0), Err(Mismatch)),
            (format!("t={time},v1={},v1={tag}", "0".repeat(64)), Ok(())),
            (format!("t={time},v0=abc,v1={tag}"), Ok(())),
            (format!(" t={time}, v1={tag}"), Ok(())),
            (format!("t={},v1={tag}", time - 1), Err(Mismatch)),
            (format!("t={time},v0={tag}"), Err(Malformed)),
            (format!("t={time},v1=é{}", &tag[2..]), Err(Mismatch)),
            (format!("t={time},v1={}", &tag[1..]), Err(Mismatch)),
            (format!("t={time},v1=+{}", &tag[1..]), Err(Mismatch)),
            (format!("t={time},t={time},v1={tag}"), Err(Malformed)),
            (format!("v1={tag}"), Err(Malformed)),
            (format!("t=soon,v1={tag}"), Err(Malformed)),
            (String::new(), Err(Malformed)),
        ] {
            assert_eq!(check(Some(&header), "{}"), expected, "{header}");
        }
        assert_eq!(check(None, "{}"), Err(Missing));
        assert_eq!(check(Some(&good), "{ }"), Err(Mismatch), "another body");
    }
}
