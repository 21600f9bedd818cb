//! Signatures of webhooks: `t=<seconds>,v1=<HMAC-SHA256 in hexadecimal>[,v1=…]` over `<seconds>.<body>`.

use ring::hmac;

use svc_base::clock::Timestamp;

/// How old a signature may be, and how far ahead its clock, in seconds.
const TOLERANCE_SECONDS: i64 = 300;

/// Fault of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// There is none.
    #[error("the webhook has no `Stripe-Signature`")]
    Missing,
    /// It does not have the form of one.
    #[error("`Stripe-Signature` must be `t=<seconds>,v1=<hexadecimal>`")]
    Malformed,
    /// None of its values is that of this body with one of our secrets.
    #[error(
        "`Stripe-Signature` does not match the body with any of our secrets: compare `webhook_secret` with that of the provider's endpoint"
    )]
    Mismatch,
    /// It was made too long ago.
    #[error(
        "`Stripe-Signature` is more than {TOLERANCE_SECONDS} seconds old, or ahead of our clock"
    )]
    Stale,
}

/// A key of a webhook's secret.
pub(super) fn hmac_key(secret: &str) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes())
}

/// Signs a body as the provider does: the value of its `Stripe-Signature`.
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

/// Verifies a signature against every secret, each comparison in constant time.
///
/// # Errors
/// [`SignatureError`].
pub(super) fn verify(
    keys: &[hmac::Key],
    header: Option<&str>,
    body: &[u8],
    now: Timestamp,
) -> Result<(), SignatureError> {
    let header = header.ok_or(SignatureError::Missing)?;
    let (mut at, mut tags) = (None, Vec::new());
    for item in header.split(',') {
        match item.trim().split_once('=') {
            Some(("t", seconds)) if at.is_none() => at = Some(seconds),
            // Two times would leave open which of them is signed.
            Some(("t", _)) => return Err(SignatureError::Malformed),
            Some(("v1", tag)) => tags.push(tag),
            // Schemes that are not used, such as `v0` of test events.
            Some(_) => {}
            None => return Err(SignatureError::Malformed),
        }
    }
    let at = at.ok_or(SignatureError::Malformed)?;
    let seconds: i64 = at.parse().map_err(|_| SignatureError::Malformed)?;
    if tags.is_empty() {
        return Err(SignatureError::Malformed);
    }
    let signed = signed_payload(at, body);
    let tags: Vec<_> = tags.into_iter().filter_map(from_hex).collect();
    let matches = |key: &hmac::Key| {
        let mut tags = tags.iter();
        tags.any(|tag| hmac::verify(key, &signed, tag).is_ok())
    };
    if !keys.iter().any(matches) {
        return Err(SignatureError::Mismatch);
    }
    let age = now.0.div_euclid(1000).saturating_sub(seconds);
    if !(-TOLERANCE_SECONDS..=TOLERANCE_SECONDS).contains(&age) {
        return Err(SignatureError::Stale);
    }
    Ok(())
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
        verify(&keys, header, body.as_bytes(), NOW)
    }

    #[test]
    fn a_signature_is_of_one_body_by_one_of_the_secrets_for_a_while() {
        use SignatureError::{Malformed, Missing, Stale, Wrong};
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
            (by("whsec_other", 0), Err(Wrong)),
            (format!("t={time},v1={},v1={tag}", "0".repeat(64)), Ok(())),
            (format!("t={time},v0=abc,v1={tag}"), Ok(())),
            (format!(" t={time}, v1={tag}"), Ok(())),
            (format!("t={},v1={tag}", time - 1), Err(Wrong)),
            (format!("t={time},v0={tag}"), Err(Malformed)),
            (format!("t={time},v1=é{}", &tag[2..]), Err(Wrong)),
            (format!("t={time},v1={}", &tag[1..]), Err(Wrong)),
            (format!("t={time},v1=+{}", &tag[1..]), Err(Wrong)),
            (format!("t={time},t={time},v1={tag}"), Err(Malformed)),
            (format!("v1={tag}"), Err(Malformed)),
            (format!("t=soon,v1={tag}"), Err(Malformed)),
            (String::new(), Err(Malformed)),
        ] {
            assert_eq!(check(Some(&header), "{}"), expected, "{header}");
        }
        assert_eq!(check(None, "{}"), Err(Missing));
        assert_eq!(check(Some(&good), "{ }"), Err(Wrong), "another body");
    }
}
