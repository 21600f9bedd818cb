//! The proof for an authority that a name leads here: a certificate for a handshake that only the authority makes (RFC 8737, `tls-alpn-01`).
//!
//! It is answered on the port of HTTPS itself: nothing needs port 80, and no page can be in its way.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring::sign::any_ecdsa_type;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};

use super::server_config;

/// The protocol that such a handshake asks for, and it alone.
pub const ACME_PROTOCOL: &[u8] = b"acme-tls/1";

/// The proofs that are asked for now, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Challenges(Arc<Mutex<HashMap<String, Arc<ServerConfig>>>>);

/// A proof that is shown until this is dropped.
#[derive(Debug)]
pub(super) struct ChallengeGuard {
    name: String,
    challenges: Challenges,
}

impl Challenges {
    /// Shows the proof for a name: the digest of what the authority and its account agreed on.
    ///
    /// # Errors
    /// When no key can be made.
    pub(super) fn show(&self, name: &str, digest: &[u8]) -> anyhow::Result<ChallengeGuard> {
        let mut params = CertificateParams::new(vec![name.to_owned()])?;
        params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        // Its extension is one that a library must refuse which does not know it, so nothing looks at it here.
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

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<ServerConfig>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ChallengeGuard {
    fn drop(&mut self) {
        self.challenges.lock().remove(&self.name);
    }
}
