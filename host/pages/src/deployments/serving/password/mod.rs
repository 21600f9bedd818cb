//! Passwords of protected pages: Argon2id, and the cookie that says "this browser knew it".

pub mod routes;

use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, PasswordHasher, PasswordVerifier};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;

use svc_base::clock::Timestamp;
use svc_base::ids::DeploymentId;

/// The longest password, in bytes.
pub const MAX_PASSWORD_BYTES: usize = 1024;
/// Time for which an unlocked page stays unlocked, in seconds.
pub const UNLOCKED_SECONDS: i64 = 3600;

/// Hashes a password with a fresh salt: tens of milliseconds and 19 MiB, so callers run it on a worker.
///
/// # Errors
/// Never for passwords within the bound.
pub fn hash_password(password: &str, salt: &[u8; 16]) -> anyhow::Result<String> {
    let hash = Argon2::default()
        .hash_password_with_salt(password.as_bytes(), salt)
        .map_err(|error| anyhow::anyhow!("hashing a password: {error}"))?;
    Ok(hash.to_string())
}

/// Whether a password is the hashed one; as costly as [`hash_password`].
pub fn verify_password(password: &str, hash: &str) -> bool {
    let Ok(hash) = PasswordHash::new(hash) else {
        return false;
    };
    Argon2::default()
        .verify_password(password.as_bytes(), &hash)
        .is_ok()
}

/// The value of a cookie that unlocks a page until `until`.
pub fn unlock_token(key: &hmac::Key, page: &DeploymentId, hash: &str, until: Timestamp) -> String {
    let mut token = until.0.to_be_bytes().to_vec();
    token.extend_from_slice(hmac::sign(key, &signed_text(page, hash, until)).as_ref());
    URL_SAFE_NO_PAD.encode(token)
}

/// Whether a cookie's value unlocks a page at `now`.
pub fn is_valid_token(
    key: &hmac::Key,
    page: &DeploymentId,
    hash: &str,
    now: Timestamp,
    token: &[u8],
) -> bool {
    let Ok(token) = URL_SAFE_NO_PAD.decode(token) else {
        return false;
    };
    let Some((until, tag)) = token.split_first_chunk::<8>() else {
        return false;
    };
    let until = Timestamp(i64::from_be_bytes(*until));
    until > now && hmac::verify(key, &signed_text(page, hash, until), tag).is_ok()
}

/// Composes the text that the tag covers: the page, this password of it, and the end.
fn signed_text(page: &DeploymentId, hash: &str, until: Timestamp) -> Vec<u8> {
    format!("unlock\n{page}\n{hash}\n{}", until.0).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_base::clock::Clock;
    use svc_base::random::Random;

    #[test]
    fn a_password_verifies_against_its_hash_alone() {
        let hash = hash_password("correct horse", &[7; 16]).unwrap();
        assert!(hash.starts_with("$argon2id$"));
        assert!(verify_password("correct horse", &hash));
        assert!(!verify_password("battery staple", &hash));
        assert!(!verify_password("", "nonsense"));
    }

    #[test]
    fn a_token_unlocks_its_page_for_its_time() {
        let (clock, random) = (Clock::manual(Timestamp(0)), Random::system());
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"key");
        let page = DeploymentId::new(&clock, &random).unwrap();
        let other = DeploymentId::new(&clock, &random).unwrap();
        let token = unlock_token(&key, &page, "hash", Timestamp(1_000));
        let check = |page, hash, at, token: &str| {
            is_valid_token(&key, page, hash, Timestamp(at), token.as_bytes())
        };
        assert!(check(&page, "hash", 999, &token));
        assert!(!check(&page, "hash", 1_000, &token), "over");
        assert!(!check(&other, "hash", 0, &token), "another page");
        assert!(!check(&page, "changed", 0, &token), "another password");
        assert!(!check(&page, "hash", 0, &token[1..]), "torn");
        assert!(!check(&page, "hash", 0, ""), "empty");
    }
}
