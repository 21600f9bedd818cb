//! A certificate with its key, as a handshake takes them.

use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys};

use super::validity::ValidityPeriod;

/// A certificate chain and its private key.
#[derive(Clone, Debug)]
pub(super) struct CertificatePair {
    /// Chain and key as rustls takes them.
    pub(super) key: Arc<CertifiedKey>,
    pub(super) validity: ValidityPeriod,
}

/// Error of two texts that are not a certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PairError {
    /// The first text has no certificate.
    #[error("there is no certificate in PEM in it")]
    NoCertificate,
    /// The second text has no key.
    #[error("there is no private key in PEM in it")]
    NoKey,
    /// The key's algorithm is not supported.
    #[error(
        "the private key is of a kind that is not supported: use ECDSA (P-256, P-384), Ed25519 or RSA"
    )]
    Kind,
    /// The key belongs to another certificate.
    #[error("the private key does not belong to the certificate")]
    Mismatch,
    /// The certificate cannot be used, whatever its key.
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
        let validity = ValidityPeriod::parse(first).ok_or(PairError::NoCertificate)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| PairError::NoKey)?;
        let provider = default_provider();
        let key = provider.key_provider.load_private_key(key);
        let key = CertifiedKey::new(chain, key.map_err(|_| PairError::Kind)?);
        match key.keys_match() {
            // Unknown means that the key cannot tell its public half: it is accepted.
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
            (&certificate, &certificate, PairError::NoKey),
            (&key, &key, PairError::NoCertificate),
            ("", &key, PairError::NoCertificate),
            (&certificate, "nothing", PairError::NoKey),
        ] {
            let found = CertificatePair::read(certificate.as_bytes(), key.as_bytes());
            assert_eq!(found.unwrap_err(), expected);
        }
    }
}
