//! Keys by which the nodes know each other. A run makes its pair at its start, has it in memory alone, and shows the public half in
//! the table of nodes.
//!
//! A certificate only carries a key: names, dates and authorities in it are not looked at. Who has the private half shows it by a
//! signature in each handshake, which is verified as ever.

use std::fmt;
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::default_provider;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, ParsedCertificate};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig,
    SignatureScheme,
};

use super::peers::KnownRuns;

/// Name in every certificate, and in every handshake. Nobody looks at it.
pub(super) const CERTIFICATE_NAME: &str = "node.svc";

/// Key pair of a run, with a certificate that carries its public half.
pub(super) struct RunKeys {
    provider: Arc<CryptoProvider>,
    certified: Arc<SingleCertAndKey>,
    public_key: Vec<u8>,
}

impl fmt::Debug for RunKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunKeys").finish_non_exhaustive()
    }
}

impl RunKeys {
    /// Makes a pair.
    ///
    /// # Errors
    /// The system has no randomness.
    pub(super) fn generate() -> anyhow::Result<Self> {
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(vec![CERTIFICATE_NAME.to_owned()])?;
        let certificate = certificate.self_signed(&key)?.der().clone();
        let public_key = public_key_of(&certificate)?;
        let provider = Arc::new(default_provider());
        let key = PrivateKeyDer::from(key);
        let certified = CertifiedKey::from_der(vec![certificate], key, &provider)?;
        Ok(Self {
            provider,
            certified: Arc::new(SingleCertAndKey::from(certified)),
            public_key,
        })
    }

    /// Returns the public half, as the table of nodes has it.
    pub(super) fn public_key(&self) -> &[u8] {
        &self.public_key
    }

    /// Makes the configuration of a listener: it accepts runs that live.
    ///
    /// # Errors
    /// The provider lacks TLS 1.3.
    pub(super) fn server_config(&self, known: KnownRuns) -> Result<ServerConfig, Error> {
        let verifier = LiveRunVerifier {
            known,
            signatures: self.signatures(),
        };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(&[&TLS13])?;
        let mut config = builder
            .with_client_cert_verifier(Arc::new(verifier))
            .with_cert_resolver(Arc::clone(&self.certified) as _);
        // A session that is resumed shows no key: its run may be dead meanwhile.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(config)
    }

    /// Makes the configuration of a connection to the run with this key.
    ///
    /// # Errors
    /// The provider lacks TLS 1.3.
    pub(super) fn client_config(&self, expected: Vec<u8>) -> Result<ClientConfig, Error> {
        let verifier = ExpectedKeyVerifier {
            expected,
            signatures: self.signatures(),
        };
        let builder = ClientConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(&[&TLS13])?;
        let mut config = builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_client_cert_resolver(Arc::clone(&self.certified) as _);
        config.resumption = Resumption::disabled();
        Ok(config)
    }

    /// Makes a pair that shows the certificate of this one, and signs with another key.
    #[cfg(test)]
    pub(super) fn impostor(&self) -> anyhow::Result<Self> {
        use anyhow::Context as _;
        use rustls::client::ResolvesClientCert;

        let shown = ResolvesClientCert::resolve(&*self.certified, &[], &[]);
        let own = Self::generate()?;
        let signing = ResolvesClientCert::resolve(&*own.certified, &[], &[]);
        let (shown, signing) = (shown.context("no key")?, signing.context("no key")?);
        let mixed = CertifiedKey::new(shown.cert.clone(), Arc::clone(&signing.key));
        Ok(Self {
            certified: Arc::new(SingleCertAndKey::from(mixed)),
            public_key: self.public_key.clone(),
            ..own
        })
    }

    fn signatures(&self) -> SignatureVerifier {
        SignatureVerifier(Arc::clone(&self.provider))
    }
}

/// Returns the public key that a certificate carries.
///
/// # Errors
/// The bytes are no certificate.
pub(super) fn public_key_of(certificate: &CertificateDer<'_>) -> Result<Vec<u8>, Error> {
    let parsed = ParsedCertificate::try_from(certificate)?;
    Ok(parsed.subject_public_key_info().to_vec())
}

/// Error of a key that is not the one to expect.
fn refused() -> Error {
    Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)
}

/// Verifier of the signatures in handshakes, by which the other side shows that it has the private half.
#[derive(Debug)]
struct SignatureVerifier(Arc<CryptoProvider>);

impl SignatureVerifier {
    fn verify_tls12(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Verifier of callers: their key must be that of a run that lives.
#[derive(Debug)]
struct LiveRunVerifier {
    known: KnownRuns,
    signatures: SignatureVerifier,
}

impl ClientCertVerifier for LiveRunVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let key = public_key_of(end_entity)?;
        match self.known.find_by_key(&key) {
            Some(_) => Ok(ClientCertVerified::assertion()),
            None => Err(refused()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signatures.verify_tls12(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signatures.verify_tls13(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signatures.schemes()
    }
}

/// Verifier of the run that is called: its key must be the one in the table of nodes.
#[derive(Debug)]
struct ExpectedKeyVerifier {
    expected: Vec<u8>,
    signatures: SignatureVerifier,
}

impl ServerCertVerifier for ExpectedKeyVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match public_key_of(end_entity)? == self.expected {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(refused()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signatures.verify_tls12(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signatures.verify_tls13(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signatures.schemes()
    }
}
