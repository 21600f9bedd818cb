//! TLS to the server of the ledger, as its URL asks for it.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Certificates that a server may show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// Any, even one that the server has signed itself: against eyes, and not against who stands between.
    Any,
    /// Those of the authorities that the machine trusts.
    Machine,
    /// Those of the authorities in a file.
    File(PathBuf),
}

/// Makes what connects by TLS.
///
/// # Errors
/// A text that says which certificates cannot be read.
pub(super) fn connector(trust: &Trust) -> Result<MakeRustlsConnect, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let config = match trust {
        Trust::Any => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
            .with_no_client_auth(),
        Trust::Machine | Trust::File(_) => builder
            .with_root_certificates(roots(trust)?)
            .with_no_client_auth(),
    };
    Ok(MakeRustlsConnect::new(config))
}

/// Reads certificates of authorities; there is at least one.
fn roots(trust: &Trust) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let shown = match trust {
        Trust::File(path) => {
            let shown = path.display().to_string();
            let read = CertificateDer::pem_file_iter(path);
            let read = read.and_then(|certificates| certificates.collect::<Result<Vec<_>, _>>());
            let certificates = read.map_err(|error| format!("reading {shown}: {error}"))?;
            roots.add_parsable_certificates(certificates);
            shown
        }
        Trust::Machine | Trust::Any => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            "this machine".to_owned()
        }
    };
    if roots.is_empty() {
        return Err(format!("{shown} has no certificates of authorities"));
    }
    Ok(roots)
}

/// Verifier that takes every certificate, and checks that the server has its key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_in_a_file_are_certificates() {
        assert!(connector(&Trust::Any).is_ok());
        let file = tempfile::NamedTempFile::new().unwrap();
        let trust = Trust::File(file.path().to_owned());
        let error = connector(&trust).err().unwrap();
        assert!(error.ends_with("no certificates of authorities"), "{error}");
        let missing = Trust::File(file.path().with_extension("none"));
        assert!(connector(&missing).err().unwrap().starts_with("reading "));
    }
}
