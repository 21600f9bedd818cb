//! The challenge `tls-alpn-01` (RFC 8737): a certificate for a handshake of the authority proves that a name leads here.
//!
//! It is answered on the port of HTTPS itself: port 80 is not needed, and no page can interfere. For domains there is `http-01`, too (RFC
//! 8555, section 8.3), answered by the listener that redirects plain HTTP.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring::sign::any_ecdsa_type;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};

use super::server_config;

/// The ALPN protocol of a challenge's handshake.
pub const ACME_PROTOCOL: &[u8] = b"acme-tls/1";

/// The pending challenges, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct PendingChallenges {
    handshakes: Arc<Mutex<HashMap<String, Arc<ServerConfig>>>>,
    /// Token and answer of plain HTTP.
    http: Arc<Mutex<HashMap<String, (String, String)>>>,
}

/// A challenge that is answered until this is dropped.
#[derive(Debug)]
pub(super) struct ChallengeGuard {
    name: String,
    challenges: PendingChallenges,
}

impl PendingChallenges {
    /// Answers the challenge for a name with the digest of its key authorization.
    ///
    /// # Errors
    /// When no key can be made.
    pub(super) fn show(&self, name: &str, digest: &[u8]) -> anyhow::Result<ChallengeGuard> {
        let mut params = CertificateParams::new(vec![name.to_owned()])?;
        params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        // The certificate has a critical extension that the library does not know, so the pair is not checked here.
        let proof = CertifiedKey::new(vec![certificate.der().clone()], any_ecdsa_type(&key)?);
        let proof = Arc::new(SingleCertAndKey::from(proof));
        let mut config = server_config()?.with_cert_resolver(proof);
        config.alpn_protocols = vec![ACME_PROTOCOL.to_vec()];
        self.lock().insert(name.to_owned(), Arc::new(config));
        Ok(ChallengeGuard {
            name: name.to_owned(),
            challenges: self.clone(),
        })
    }

    /// Finds the configuration of the handshake that proves a name to the authority.
    pub(super) fn config_for(&self, name: &str) -> Option<Arc<ServerConfig>> {
        self.lock().get(name).cloned()
    }

    /// Answers the challenge of plain HTTP for a name.
    pub(super) fn show_http(&self, name: &str, token: &str, answer: &str) -> ChallengeGuard {
        let challenge = (token.to_owned(), answer.to_owned());
        self.lock_http().insert(name.to_owned(), challenge);
        ChallengeGuard {
            name: name.to_owned(),
            challenges: self.clone(),
        }
    }

    /// Returns the answer to a request of plain HTTP that proves a name to the authority.
    pub(super) fn http_answer(&self, name: &str, token: &str) -> Option<String> {
        let pending = self.lock_http();
        let (known, answer) = pending.get(name)?;
        (known == token).then(|| answer.clone())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<ServerConfig>>> {
        let pending = self.handshakes.lock();
        pending.unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_http(&self) -> MutexGuard<'_, HashMap<String, (String, String)>> {
        self.http.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ChallengeGuard {
    fn drop(&mut self) {
        self.challenges.lock().remove(&self.name);
        self.challenges.lock_http().remove(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_is_answered_for_the_name_and_its_token_while_it_is_pending() {
        let challenges = PendingChallenges::default();
        let guard = challenges.show_http("www.shop.com", "token", "token.key");
        for (name, token, expected) in [
            ("www.shop.com", "token", Some("token.key")),
            ("www.shop.com", "other", None),
            ("www.shop.com", "", None),
            ("shop.com", "token", None),
            ("", "token", None),
        ] {
            let answer = challenges.http_answer(name, token);
            assert_eq!(answer.as_deref(), expected, "{name} {token}");
        }
        assert!(challenges.config_for("www.shop.com").is_none());
        drop(guard);
        assert_eq!(challenges.http_answer("www.shop.com", "token"), None);
    }
}
