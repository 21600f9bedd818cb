//! A certificate with its key, as a handshake takes them.

use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys};

use super::validity::Validity;

/// A certificate with those that it is believed by, and its key.
#[derive(Clone, Debug)]
pub(super) struct CertificatePair {
    /// Certificate and key as a handshake takes them.
    pub(super) key: Arc<CertifiedKey>,
    /// From when to when the certificate is valid.
    pub(super) validity: Validity,
}

/// Texts that are not a certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PairError {
    /// No certificate in the first.
    #[error("there is no certificate in PEM in it")]
    NoCertificate,
    /// No key in the second.
    #[error("there is no private key in PEM in it")]
    SigningError,
    /// A key of a kind that TLS does not take here.
    #[error(
        "the private key is of a kind that is not supported: use ECDSA (P-256, P-384), Ed25519 or RSA"
    )]
    Kind,
    /// The key is another's.
    #[error("the private key does not belong to the certificate")]
    Mismatch,
    /// A certificate that cannot be used, whatever its key.
    #[error("the certificate cannot be used: {0}")]
    Unusable(String),
}

impl CertificatePair {
    /// Reads a certificate and a key in PEM.
    ///
    /// # Errors
    /// [`PairError`].
    pub(super) fn read(certificate: &[u8], key: &[u8]) -> Result<Self, PairError> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
        let chain = chain.map_err(|_| PairError::NoCertificate)?;
        let first = chain.first().ok_or(PairError::NoCertificate)?;
        let validity = Validity::parse(first).ok_or(PairError::NoCertificate)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| PairError::SigningError)?;
        let provider = default_provider();
        let key = provider.key_provider.load_private_key(key);
        let key = CertifiedKey::new(chain, key.map_err(|_| PairError::Kind)?);
        match key.keys_match() {
            // A key that tells nothing of itself is taken at the operator's word.
            Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
            Err(Error::InconsistentKeys(_)) => return Err(PairError::Mismatch),
            Err(error) => return Err(PairError::Unusable(error.to_string())),
        }
        Ok(Self {
            key: Arc::new(key),
            validity,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_belong_together_is_refused() {
        let make = || rcgen::generate_simple_self_signed(vec!["a.example".into()]).unwrap();
        let (one, other) = (make(), make());
        let (certificate, key) = (one.cert.pem(), one.signing_key.serialize_pem());
        assert!(CertificatePair::read(certificate.as_bytes(), key.as_bytes()).is_ok());
        let both = format!("{key}{certificate}");
        assert!(CertificatePair::read(both.as_bytes(), both.as_bytes()).is_ok());
        let strange = other.signing_key.serialize_pem();
        for (certificate, key, expected) in [
            (certificate.as_str(), strange.as_str(), PairError::Mismatch),
            (&certificate, &certificate, PairError::SigningError),
            (&key, &key, PairError::NoCertificate),
            ("", &key, PairError::NoCertificate),
            (&certificate, "nothing", PairError::SigningError),
        ] {
            let found = CertificatePair::read(certificate.as_bytes(), key.as_bytes());
            assert_eq!(found.unwrap_err(), expected);
        }
    }
}
