//! Manifest of a backup.

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use crate::content::Digest;
use crate::control;

/// Format that this program writes, and the newest that it reads.
pub(super) const FORMAT_VERSION: u32 = 2;

/// Contents of a backup. Objects are not listed: they are those that its control database refers to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BackupManifest {
    /// Format of the backup.
    pub(super) format: u32,
    /// Program that wrote the backup.
    pub(super) program: String,
    /// Schema of the control database.
    pub(super) schema: u32,
    /// Moment of the backup's state, RFC 3339 in UTC.
    pub(super) moment: String,
    /// Directory of the databases.
    pub(super) state: String,
    /// The control database.
    pub(super) control: ManifestEntry,
    /// The counters; format 1 has them in the control database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) counters: Option<ManifestEntry>,
    /// Tenants' databases, by id.
    pub(super) backends: Vec<ManifestEntry>,
    /// Installed guests, by their paths in the data directory's `guests`.
    pub(super) guests: Vec<ManifestEntry>,
}

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ManifestEntry {
    /// Name of the file.
    pub(super) name: String,
    /// SHA-256 in hexadecimal.
    pub(super) sha256: String,
    /// Length in bytes.
    pub(super) bytes: u64,
}

#[derive(Deserialize)]
struct ManifestFormatField {
    format: u32,
}

impl ManifestEntry {
    /// Parses the SHA-256.
    pub(super) fn parse_digest(&self) -> Option<Digest> {
        Digest::from_hex(&self.sha256)
    }

    /// Whether a file has this entry's digest and length.
    pub(super) fn describes(&self, digest: Digest, bytes: u64) -> bool {
        Some(digest) == self.parse_digest() && bytes == self.bytes
    }
}

impl BackupManifest {
    /// Parses a manifest of this format or an older one.
    ///
    /// # Errors
    /// When it is damaged, or made by a newer program.
    pub(super) fn parse(text: &[u8]) -> anyhow::Result<Self> {
        let form: ManifestFormatField =
            serde_json::from_slice(text).context("the backup's manifest is damaged")?;
        if form.format > FORMAT_VERSION {
            bail!(
                "the backup has form {}; this program knows forms up to {FORMAT_VERSION}: use a newer one",
                form.format
            );
        }
        let manifest: Self =
            serde_json::from_slice(text).context("the backup's manifest is damaged")?;
        if manifest.schema > control::SCHEMA_VERSION {
            bail!(
                "the backup was made by {}, whose schema {} is newer than {}: use a newer program",
                manifest.program,
                manifest.schema,
                control::SCHEMA_VERSION
            );
        }
        Ok(manifest)
    }

    /// Serializes the manifest as JSON.
    ///
    /// # Errors
    /// Never in practice: the manifest is plain data.
    pub(super) fn text(&self) -> serde_json::Result<Vec<u8>> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> BackupManifest {
        BackupManifest {
            format: FORMAT_VERSION,
            program: "svc 0.1.0".into(),
            schema: control::SCHEMA_VERSION,
            moment: "2026-11-20T12:00:00.000Z".into(),
            state: "state-1".into(),
            control: ManifestEntry {
                name: "control.db".into(),
                sha256: "00".repeat(32),
                bytes: 1,
            },
            counters: None,
            backends: Vec::new(),
            guests: Vec::new(),
        }
    }

    #[test]
    fn what_is_written_is_read_and_what_is_newer_is_refused() {
        let known = manifest();
        assert_eq!(
            BackupManifest::parse(&known.text().unwrap()).unwrap(),
            known
        );
        let later = BackupManifest {
            schema: control::SCHEMA_VERSION + 1,
            ..manifest()
        };
        let refused = BackupManifest::parse(&later.text().unwrap()).unwrap_err();
        assert!(refused.to_string().contains("newer"), "{refused}");
        let refused = BackupManifest::parse(br#"{"format":3,"anything":"else"}"#).unwrap_err();
        assert!(refused.to_string().contains("form 3"), "{refused}");
        for damaged in [&b""[..], b"{}", br#"{"format":1}"#] {
            let refused = BackupManifest::parse(damaged).unwrap_err();
            assert!(refused.to_string().contains("damaged"), "{refused}");
        }
    }
}
