//! Credentials of the form `svc_<key id>_<secret>_<checksum>`.
//!
//! The prefix and the checksum let secret scanners find one that has leaked, without asking us.

use svc_base::random::{Random, RandomSourceError};

const BASE62: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const KEY_ID_LENGTH: usize = 8;
/// 32 bytes in base 62.
const SECRET_LENGTH: usize = 43;
/// 32 bits in base 62.
const CHECKSUM_LENGTH: usize = 6;

/// New credential, which is shown only once.
#[derive(Clone)]
pub struct NewCredential {
    pub key_id: String,
    /// Full text of the credential, secret included.
    pub text: String,
}

impl NewCredential {
    /// Generates a credential.
    ///
    /// # Errors
    /// No randomness is available.
    pub fn new(random: &Random) -> Result<Self, RandomSourceError> {
        let key_id = random.slug(KEY_ID_LENGTH)?;
        let secret = random_secret(random)?;
        let body = format!("svc_{key_id}_{secret}");
        let text = format!("{body}_{}", checksum(&body));
        Ok(Self { key_id, text })
    }
}

/// Returns 32 random bytes in base 62: 43 characters.
///
/// # Errors
/// No randomness is available.
pub fn random_secret(random: &Random) -> Result<String, RandomSourceError> {
    Ok(base62_padded(&random.bytes::<32>()?, SECRET_LENGTH))
}

/// Whether a text has the form of [`random_secret`].
pub fn is_secret(text: &str) -> bool {
    text.len() == SECRET_LENGTH && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Returns the key id of a credential whose form and checksum are correct.
pub fn parse_key_id(text: &str) -> Option<&str> {
    let (body, sum) = text.rsplit_once('_')?;
    let (key_id, secret) = body.strip_prefix("svc_")?.split_once('_')?;
    let formed = key_id.len() == KEY_ID_LENGTH && is_secret(secret) && checksum(body) == sum;
    formed.then_some(key_id)
}

fn checksum(body: &str) -> String {
    base62_padded(
        &crc32fast::hash(body.as_bytes()).to_be_bytes(),
        CHECKSUM_LENGTH,
    )
}

fn base62_padded(bytes: &[u8], length: usize) -> String {
    let digits = base_x::encode(BASE62, bytes);
    // Leading zero bytes come out as a zero each, so the number is padded to a fixed width instead.
    format!("{:0>length$}", digits.trim_start_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_has_its_form() {
        for _ in 0..100 {
            let credential = NewCredential::new(&Random::system()).unwrap();
            assert_eq!(
                parse_key_id(&credential.text),
                Some(credential.key_id.as_str())
            );
            assert_eq!(credential.text.len(), 4 + 8 + 1 + 43 + 1 + 6);
        }
        assert_eq!(base62_padded(&[0; 32], 43), "0".repeat(43));
    }

    #[test]
    fn a_changed_character_breaks_the_checksum() {
        let text = NewCredential::new(&Random::system()).unwrap().text;
        for at in 4..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = if bytes[at] == b'x' { b'y' } else { b'x' };
            assert_eq!(
                parse_key_id(&String::from_utf8(bytes).unwrap()),
                None,
                "at {at}"
            );
        }
        assert_eq!(parse_key_id(""), None);
        assert_eq!(parse_key_id("svc___"), None);
    }
}
