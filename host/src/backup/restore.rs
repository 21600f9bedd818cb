//! Restore of a backup.

use std::io;
use std::path::{Component, Path};

use anyhow::{Context as _, bail};
use cap_std::fs::Dir;
use serde::Serialize;

use super::directory::{BackupDirectory, check_not_nested};
use super::make::{BACKENDS, CONTENT, CONTROL, check_copy};
use super::manifest::{BackupManifest, ManifestEntry};
use super::objects::{ObjectCopier, ObjectSource};
use super::outcome::CopyStats;
use super::{BackupProgressFn, BackupStage, millis, switch};
use crate::check::InstallationStores;
use crate::content::{ContentLock, ContentStore, Digest, ObjectDirectory};
use crate::control::{self, ControlDatabase, counters};
use crate::data_dir::NewDirectoryGuard;
use crate::data_lock::DataLock;
use crate::deployments::operators;
use svc_base::Stopwatch;
use svc_base::clock::Clock;
use svc_base::ids::BackendId;
use svc_base::{disk, fault};
use svc_database::{DatabasesDirectory, prepare_for_server};

pub(super) const GUESTS: &str = "guests";

/// Outcome of a restore.
#[derive(Clone, Debug, Serialize)]
pub struct BackupRestoreOutcome {
    /// Moment of the restored state, RFC 3339 in UTC.
    pub moment: String,
    /// Whether the backup was restored; else nothing has changed.
    pub restored: bool,
    /// Subdirectory with the earlier state, if there was one.
    pub before: Option<String>,
    /// The control database, the counters and tenants' databases.
    pub databases: CopyStats,
    /// Sources and pages.
    pub content: CopyStats,
    /// Installed guests.
    pub guests: CopyStats,
    /// Errors of the backup.
    pub errors: Vec<String>,
    /// Notes on parts that could not be checked; they do not prevent the restore.
    pub notes: Vec<String>,
    /// Duration in milliseconds.
    pub duration_ms: u64,
}

/// Restores the backup in `place` into a data directory that no server holds. The earlier state is kept beside it. Nothing changes
/// until everything is copied and checked. Blocks.
///
/// # Errors
/// When a server has the directory, or something cannot be read or written.
pub async fn restore(
    place: &Path,
    data: &Path,
    clock: &Clock,
    watch: BackupProgressFn<'_>,
) -> anyhow::Result<BackupRestoreOutcome> {
    let started = Stopwatch::start();
    let place = BackupDirectory::open_for_reading(place)?;
    check_not_nested(&place.path, data)?;
    let manifest = place.manifest()?;
    let mut guard = NewDirectoryGuard::begin(data)?;
    let lock = DataLock::take(data)?;
    guard.check_if_new(&lock)?;
    lock.announce_restore()?;
    let Some(_hold) = ContentLock::exclusive(data)? else {
        bail!("a backup of {} is being made", data.display());
    };
    switch::finish_interrupted(data)?;
    let dir = disk::open_directory(data)?;
    let new = switch::create_new_state(&dir)?;
    fault::point("restore.begun");
    let mut done = prepare(
        &place,
        &manifest,
        &data.join(switch::NEW_STATE_DIRECTORY),
        &new,
        watch,
    )
    .await;
    if let Ok(restored) = &mut done
        && restored.errors.is_empty()
    {
        let before = switch::switch_to_new_state(&dir, clock.now());
        restored.before = before.inspect_err(|_| clean_up(data))?;
        restored.restored = true;
        guard.disarm();
        restored.duration_ms = millis(started.elapsed());
    } else {
        clean_up(data);
    }
    done
}

/// Removes the new state, or finishes the switch to it if that was committed.
pub(super) fn clean_up(data: &Path) {
    if let Err(error) = switch::finish_interrupted(data) {
        tracing::warn!(error = format!("{error:#}"), "whatever runs next goes on");
    }
}

/// Copies a backup into the new state, and checks the copy.
async fn prepare(
    place: &BackupDirectory,
    manifest: &BackupManifest,
    directory: &Path,
    new: &Dir,
    watch: BackupProgressFn<'_>,
) -> anyhow::Result<BackupRestoreOutcome> {
    let mut restored = BackupRestoreOutcome {
        moment: manifest.moment.clone(),
        restored: false,
        before: None,
        databases: CopyStats::default(),
        content: CopyStats::default(),
        guests: CopyStats::default(),
        errors: Vec::new(),
        notes: Vec::new(),
        duration_ms: 0,
    };
    copy_databases(
        place,
        manifest,
        directory,
        new,
        &mut restored.databases,
        watch,
    )?;
    fault::point("restore.databases");
    copy_guests(place, manifest, new, &mut restored.guests)?;
    let control = ControlDatabase::open(directory)?;
    let wanted = operators::referenced_content(&control).await?;
    let objects = ObjectCopier {
        from: ObjectSource::Directory(place.content()?),
        wanted: &wanted,
    };
    let mut content = ObjectDirectory::new(disk::ensure_subdirectory(new, CONTENT)?);
    let damaged = objects
        .copy_to(&mut content, &mut restored.content, false, watch)
        .await?;
    fault::point("restore.content");
    let parts = InstallationStores {
        control,
        content: ContentStore::open(&directory.join(CONTENT))?,
        once: None,
        files: DatabasesDirectory::open(&directory.join(BACKENDS))?,
    };
    let found = check_copy(&parts, damaged, watch).await?;
    (restored.errors, restored.notes) = (found.errors, found.notes);
    parts.control.close();
    drop(parts);
    control::finish_copy(directory)?;
    Ok(restored)
}

fn copy_databases(
    place: &BackupDirectory,
    manifest: &BackupManifest,
    directory: &Path,
    new: &Dir,
    copied: &mut CopyStats,
    watch: BackupProgressFn<'_>,
) -> anyhow::Result<()> {
    let state = place.dir.open_dir(&manifest.state)?;
    let all = manifest.backends.len() as u64 + 1;
    watch(BackupStage::Databases, 0, all);
    copied.count(copy_file(&state, new, CONTROL, &manifest.control)?, true);
    if let Some(entry) = &manifest.counters {
        copied.count(
            copy_file(&state, new, counters::COUNTERS_FILE, entry)?,
            true,
        );
    }
    let to = disk::ensure_subdirectory(new, BACKENDS)?;
    let (from, files) = (
        state.open_dir(BACKENDS)?,
        DatabasesDirectory::open(&directory.join(BACKENDS))?,
    );
    for entry in &manifest.backends {
        let id: BackendId = entry
            .name
            .parse()
            .map_err(|_| anyhow::anyhow!("the backup's manifest is damaged: {}", entry.name))?;
        let (from, to) = (
            from.open_dir(id.to_string())?,
            disk::ensure_subdirectory(&to, &id.to_string())?,
        );
        copied.count(
            copy_file(&from, &to, DatabasesDirectory::NAME, entry)?,
            true,
        );
        prepare_for_server(&files, &id).with_context(|| format!("opening backend {id}"))?;
        watch(BackupStage::Databases, copied.files, all);
    }
    Ok(())
}

/// Copies a file that the manifest describes; returns its length.
fn copy_file(from: &Dir, to: &Dir, name: &str, entry: &ManifestEntry) -> anyhow::Result<u64> {
    let mut file = to.open_with(name, &disk::private_file_options())?;
    let source = from
        .open(name)
        .with_context(|| format!("opening {}", entry.name))?;
    let (digest, bytes) = Digest::copy_and_digest(source, &mut file)?;
    if !entry.describes(digest, bytes) {
        bail!(
            "the backup is damaged: {} is not as its manifest describes it",
            entry.name
        );
    }
    Ok(bytes)
}

fn copy_guests(
    place: &BackupDirectory,
    manifest: &BackupManifest,
    new: &Dir,
    copied: &mut CopyStats,
) -> anyhow::Result<()> {
    if manifest.guests.is_empty() {
        return Ok(());
    }
    let (from, to) = (place.guests()?, disk::ensure_subdirectory(new, GUESTS)?);
    for entry in &manifest.guests {
        let damaged = || format!("the backup is damaged: guest {}", entry.name);
        let mut parts = Path::new(&entry.name).components();
        let (Some(Component::Normal(folder)), Some(Component::Normal(name)), None) =
            (parts.next(), parts.next(), parts.next())
        else {
            bail!(damaged());
        };
        let digest = entry.parse_digest().with_context(damaged)?;
        let source = from.get(&digest)?.with_context(damaged)?;
        let folder = disk::ensure_subdirectory(&to, &folder.to_string_lossy())?;
        let mut file = folder.open_with(name, &disk::private_file_options())?;
        let (found, bytes) = Digest::copy_and_digest(source, &mut file)?;
        if found != digest {
            return Err(io::Error::other(damaged()).into());
        }
        copied.count(bytes, true);
    }
    Ok(())
}
