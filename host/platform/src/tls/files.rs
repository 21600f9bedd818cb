//! A certificate and its key in two files of the operator, which are read again when they change.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};

use super::pair::{CertificatePair, PairError};

/// Permissions of other users on the key's file, which must not be set; those of a group are the operator's choice.
const OTHERS_MODE: u32 = 0o007;

/// The two files, and the digest of their last content.
#[derive(Debug)]
pub(super) struct CertificateFiles {
    cert: PathBuf,
    key: PathBuf,
    /// Digest of both files when they were last read.
    seen: Option<[u8; 32]>,
}

impl CertificateFiles {
    /// Names the files; nothing is read yet.
    pub(super) fn new(cert: &Path, key: &Path) -> Self {
        Self {
            cert: cert.to_owned(),
            key: key.to_owned(),
            seen: None,
        }
    }

    /// Reads both files; `None` if they have not changed. Blocks.
    ///
    /// # Errors
    /// When one cannot be read, or they are not a pair, naming the setting. The same content fails once.
    pub(super) fn read_if_changed(&mut self) -> anyhow::Result<Option<CertificatePair>> {
        let read = |name: &str, path: &Path| {
            std::fs::read(path).with_context(|| format!("{name}: reading {}", path.display()))
        };
        let (cert, key) = (read("tls_cert", &self.cert), read("tls_key", &self.key));
        let mut digest = ring::digest::Context::new(&ring::digest::SHA256);
        for text in [&cert, &key].into_iter().flatten() {
            digest.update(&(text.len() as u64).to_be_bytes());
            digest.update(text);
        }
        let digest = <[u8; 32]>::try_from(digest.finish().as_ref()).ok();
        if digest.is_some() && digest == self.seen {
            return Ok(None);
        }
        self.seen = digest;
        let (cert, key) = (cert?, key?);
        let pair = CertificatePair::read(&cert, &key).map_err(|error| self.name_setting(&error))?;
        Ok(Some(pair))
    }

    /// Returns a warning if other users can read the key. Blocks.
    pub(super) fn exposure_warning(&self) -> Option<String> {
        let mode = std::fs::metadata(&self.key).ok()?.mode() & 0o7777;
        (mode & OTHERS_MODE != 0).then(|| {
            format!(
                "tls_key: every user of this machine can read {} (mode {mode:04o}): close it with chmod o-rwx",
                self.key.display()
            )
        })
    }

    fn name_setting(&self, error: &PairError) -> anyhow::Error {
        let (cert, key) = (self.cert.display(), self.key.display());
        match error {
            PairError::NoCertificate | PairError::Unusable(_) => {
                anyhow!("tls_cert: {cert}: {error}")
            }
            PairError::NoKey | PairError::Kind => anyhow!("tls_key: {key}: {error}"),
            PairError::Mismatch => {
                anyhow!("tls_key: {key}: {error} in {cert} (tls_cert): name the two of one pair")
            }
        }
    }
}
