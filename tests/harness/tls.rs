//! TLS of tests: certificates for made-up names, in files, and clients that believe them.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A certificate with its key, in two files.
#[derive(Debug)]
pub struct CertificateFiles {
    directory: TempDir,
    names: Vec<String>,
    pem: String,
}

impl CertificateFiles {
    /// A pair for some names, which whoever believes the certificate itself believes.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn new(names: &[&str]) -> Self {
        let mut pair = Self {
            directory: TempDir::new().unwrap(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            pem: String::new(),
        };
        pair.replace();
        pair
    }

    /// Puts another pair for the same names in the place of this one; answers its certificate.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn replace(&mut self) -> &str {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(self.names.clone()).unwrap();
        self.pem = params.self_signed(&key).unwrap().pem();
        std::fs::write(self.cert(), &self.pem).unwrap();
        std::fs::write(self.key(), key.serialize_pem()).unwrap();
        &self.pem
    }

    /// The file of the certificate.
    pub fn cert(&self) -> PathBuf {
        self.directory.path().join("cert.pem")
    }

    /// The file of the key.
    pub fn key(&self) -> PathBuf {
        self.directory.path().join("key.pem")
    }

    /// The certificate in PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }
}

/// A client that believes these certificates, in PEM, and speaks these protocols.
///
/// # Panics
/// When they are none.
pub fn client_config(roots: &str, protocols: &[&str]) -> Arc<ClientConfig> {
    let mut believed = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(roots.as_bytes()) {
        believed.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().unwrap();
    let mut config = config
        .with_root_certificates(believed)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|p| p.as_bytes().to_vec()).collect();
    Arc::new(config)
}

/// A TLS connection to a server that is called so.
///
/// # Errors
/// The connection's and the handshake's.
pub async fn connect(
    address: SocketAddr,
    name: &str,
    config: Arc<ClientConfig>,
) -> io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
    TlsConnector::from(config).connect(name, stream).await
}
