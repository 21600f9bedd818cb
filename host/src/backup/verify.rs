//! Verification of a backup.

use std::io;
use std::path::Path;

use super::directory::{BACKUP_LAYOUT, BackupDirectory};
use super::make::{BACKENDS, CONTROL};
use super::manifest::{BackupManifest, ManifestEntry};
use crate::check::{InstallationStores, StoreCheckFindings};
use crate::content::{ContentStore, Digest};
use crate::control::{self, ControlDatabase, counters};
use crate::permissions;
use svc_base::ids::BackendId;
use svc_database::DatabasesDirectory;

/// Checks a backup without changing it; `watch` is told how many databases of how many are looked at.
///
/// # Errors
/// When the backup cannot be read at all.
pub async fn verify(place: &Path, watch: impl Fn(u64, u64)) -> anyhow::Result<StoreCheckFindings> {
    let place = BackupDirectory::open_for_reading(place)?;
    let manifest = place.manifest()?;
    let damaged = damaged_files(&place, &manifest)?;
    if manifest.schema != control::SCHEMA_VERSION {
        anyhow::bail!(
            "the backup was made by {}: restore it into a new directory to check it",
            manifest.program
        );
    }
    let directory = place.state(&manifest.state);
    let stores = InstallationStores {
        control: ControlDatabase::open_read_only(&directory)?,
        content: ContentStore::open(&place.content_path())?,
        once: None,
        files: DatabasesDirectory::open(&directory.join(BACKENDS))?,
    };
    let mut found = stores.check(watch).await?;
    found.errors.extend(damaged);
    // Permissions are only a note: a copy may be anywhere.
    found
        .notes
        .extend(permissions::describe_exposure(&place.path, &BACKUP_LAYOUT)?);
    Ok(found)
}

/// Returns a line for each file that differs from the manifest.
fn damaged_files(
    place: &BackupDirectory,
    manifest: &BackupManifest,
) -> anyhow::Result<Vec<String>> {
    let mut damaged = Vec::new();
    let state = place.state(&manifest.state);
    if !matches_entry(&state.join(CONTROL), &manifest.control)? {
        damaged.push("control database: not as the manifest describes it".to_owned());
    }
    if let Some(entry) = &manifest.counters
        && !matches_entry(&state.join(counters::COUNTERS_FILE), entry)?
    {
        damaged.push("counters: not as the manifest describes them".to_owned());
    }
    let files = DatabasesDirectory::open(&state.join(BACKENDS))?;
    for entry in &manifest.backends {
        let path = entry.name.parse::<BackendId>().map(|id| files.path(&id));
        if !path.is_ok_and(|path| matches_entry(&path, entry).unwrap_or(false)) {
            damaged.push(format!(
                "backend {}: not as the manifest describes it",
                entry.name
            ));
        }
    }
    let guests = place.guests()?;
    for entry in &manifest.guests {
        let whole = entry
            .parse_digest()
            .map(|digest| guests.is_whole(&digest))
            .transpose()?;
        if whole != Some(true) {
            damaged.push(format!("guest {}: missing or damaged", entry.name));
        }
    }
    Ok(damaged)
}

fn matches_entry(path: &Path, entry: &ManifestEntry) -> io::Result<bool> {
    match std::fs::File::open(path) {
        Ok(file) => {
            let (digest, bytes) = Digest::copy_and_digest(file, io::sink())?;
            Ok(entry.describes(digest, bytes))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
