//! Creation of a backup.

use std::io;
use std::path::Path;

use anyhow::{Context as _, bail};

use super::directory::{BackupDirectory, check_not_nested};
use super::manifest::{BackupManifest, FORMAT_VERSION, ManifestEntry};
use super::objects::{ObjectCopier, ObjectSource};
use super::outcome::{BackupOutcome, CopyStats};
use super::{BackupProgressFn, BackupStage, millis};
use crate::backends::copies::DatabaseCopies;
use crate::check::{InstallationStores, StoreCheckFindings};
use crate::content::{ContentLocation, ContentLock, ContentStore, Digest, ObjectDirectory};
use crate::control::{self, ControlDatabase, counters};
use crate::data_dir::is_unfinished;
use crate::deployments::operators;
use crate::guests::{self, WorldFolder};
use crate::projects::domains;
use svc_base::Stopwatch;
use svc_base::clock::{Clock, Timestamp};
use svc_base::ids::BackendId;
use svc_base::{disk, fault};
use svc_database::DatabasesDirectory;
use svc_sandbox::World;

/// The name of the control database in a backup.
pub(super) const CONTROL: &str = "control.db";
/// The directory of tenants' databases, in a backup as in a data directory.
pub(super) const BACKENDS: &str = "backends";
/// Directory of objects, in a backup as in a data directory.
pub(super) const CONTENT: &str = "content";

/// Makes a backup of a data directory in `place`, also beside a running server, whose content is `served`. It replaces the backup that
/// was there before atomically, when it is complete. Blocks: callers run it on a thread of its own.
///
/// # Errors
/// When something cannot be read or written; the earlier backup stays complete.
pub async fn make(
    (data, control): (&Path, &ControlDatabase),
    served: Option<ContentStore>,
    place: &Path,
    clock: &Clock,
    watch: BackupProgressFn<'_>,
) -> anyhow::Result<BackupOutcome> {
    let started = Stopwatch::start();
    check_not_nested(place, data)?;
    let place = BackupDirectory::open_for_writing(place)?;
    fault::point("backup.begun");
    let Some(_hold) = ContentLock::shared(data)? else {
        bail!("the data directory {} is being restored", data.display());
    };
    if is_unfinished(data) {
        bail!(
            "a restore of {} was interrupted: run this again to go on",
            data.display()
        );
    }
    let state = place.new_state()?;
    let mut done = copy_installation((data, control), served, &place, &state, clock, watch).await;
    if let Ok(made) = &mut done {
        made.duration_ms = millis(started.elapsed());
    }
    if !matches!(&done, Ok(made) if made.complete)
        && let Err(error) = place.discard(&state)
    {
        tracing::warn!(%error, "an incomplete backup is removed by the next");
    }
    done
}

/// Opens the source of the content: a directory, or the running server's store.
async fn open_object_source(
    data: &Path,
    served: Option<ContentStore>,
) -> anyhow::Result<ObjectSource> {
    let stored = ContentLocation::read_recorded(data)?;
    match (stored.directory(), served) {
        (None, Some(content)) if stored.is_durable() => {
            let sizes = content.sizes().await?;
            Ok(ObjectSource::Store(content, sizes))
        }
        _ => {
            let directory = stored.require_directory()?;
            // An installation that never served has no directory of content.
            std::fs::create_dir_all(&directory)?;
            Ok(ObjectSource::Directory(ObjectDirectory::new(
                disk::open_directory(&directory)?,
            )))
        }
    }
}

/// Changes what is not to be restored as it is: removes one-time shares, and has every domain be checked before it is served. Returns the
/// number of shares that it has removed.
pub(super) async fn prepare_control_copy(
    control: &ControlDatabase,
    now: Timestamp,
) -> Result<usize, control::Error> {
    let left_out = operators::remove_one_time_shares(control, now).await?;
    domains::operators::require_checks(control).await?;
    Ok(left_out)
}

/// Copies everything into a new state, and checks the copy; objects of an earlier backup that are damaged are copied again.
async fn copy_installation(
    (data, control): (&Path, &ControlDatabase),
    served: Option<ContentStore>,
    place: &BackupDirectory,
    state: &str,
    clock: &Clock,
    watch: BackupProgressFn<'_>,
) -> anyhow::Result<BackupOutcome> {
    let directory = place.state(state);
    let from = open_object_source(data, served).await?;
    let (at, ids) = copy_databases((data, control), place, state, clock, watch)?;
    fault::point("backup.databases");
    let control = ControlDatabase::open(&directory)?;
    let one_time_left_out = prepare_control_copy(&control, at).await?;
    let wanted = operators::referenced_content(&control).await?;
    let source = ObjectCopier {
        from,
        wanted: &wanted,
    };
    let mut content = place.content()?;
    let mut made = BackupOutcome::new(at, one_time_left_out);
    let copying = source.copy_to(&mut content, &mut made.content, false, watch);
    let damaged = copying.await?;
    fault::point("backup.content");
    let guests = copy_guests(&data.join("guests"), &mut place.guests()?, &mut made.guests)?;
    let stores = InstallationStores {
        control,
        content: ContentStore::open(&place.content_path())?,
        once: None,
        files: DatabasesDirectory::open(&directory.join(BACKENDS))?,
    };
    let mut found = check_copy(&stores, damaged, watch).await?;
    if !found.errors.is_empty() {
        let copying = source.copy_to(&mut content, &mut made.content, true, watch);
        let damaged = copying.await?;
        found = check_copy(&stores, damaged, watch).await?;
    }
    (made.errors, made.notes) = (found.errors, found.notes);
    made.notes.extend(guests::status::location_note(data)?);
    if !made.errors.is_empty() {
        return Ok(made);
    }
    stores.control.close();
    drop(stores);
    control::finish_copy(&directory)?;
    let manifest = build_manifest(&directory, state, at, &ids, guests)?;
    let whole = [Some(&manifest.control), manifest.counters.as_ref()];
    for entry in manifest.backends.iter().chain(whole.into_iter().flatten()) {
        made.databases.count(entry.bytes, true);
    }
    fault::point("backup.checked");
    place.publish(&manifest)?;
    made.complete = true;
    if let Err(error) = place.remove_unneeded(&manifest, &wanted) {
        made.notes.push(format!(
            "what the backup does not need is still there: {error}"
        ));
    }
    Ok(made)
}

/// Checks a copy, and adds the objects known to be `damaged`.
pub(super) async fn check_copy(
    stores: &InstallationStores,
    damaged: Vec<String>,
    watch: BackupProgressFn<'_>,
) -> anyhow::Result<StoreCheckFindings> {
    let watch = |done, all| watch(BackupStage::Check, done, all);
    let mut found = stores.check(watch).await?;
    found.errors.extend(damaged);
    Ok(found)
}

/// Copies all databases as they were at one moment; returns the moment and the ids of the tenants' databases.
fn copy_databases(
    (data, control): (&Path, &ControlDatabase),
    place: &BackupDirectory,
    state: &str,
    clock: &Clock,
    watch: BackupProgressFn<'_>,
) -> anyhow::Result<(Timestamp, Vec<BackendId>)> {
    let to = place.state(state);
    disk::ensure_subdirectory(&place.dir.open_dir(state)?, BACKENDS)?;
    let from = DatabasesDirectory::open(&data.join(BACKENDS))?;
    let mut copies = DatabaseCopies::begin(from, DatabasesDirectory::open(&to.join(BACKENDS))?);
    copies.copy_early(control, |done, all| {
        watch(BackupStage::Databases, done, all + 1);
    })?;
    let still = control.with_writes_paused(|| {
        let snapshot = control.snapshot()?;
        copies.hold(&snapshot)?;
        anyhow::Ok((clock.now(), snapshot))
    });
    let (at, snapshot) = still.context("waiting for a moment in which nothing is published")??;
    fault::point("backup.moment");
    let (copied, held) = copies.counts();
    let (mut done, all) = (copied, copied + held + 1);
    watch(BackupStage::Databases, done, all);
    // Tenants' databases first: a long read transaction keeps a write-ahead log from being restarted.
    let ids = copies.finish(|| {
        done += 1;
        watch(BackupStage::Databases, done, all);
    })?;
    snapshot.copy_to(&to)?;
    control.counters().copy_to(&to)?;
    watch(BackupStage::Databases, all, all);
    Ok((at, ids))
}

/// Copies the installed guests; returns their entries for the manifest.
fn copy_guests(
    from: &Path,
    to: &mut ObjectDirectory,
    copied: &mut CopyStats,
) -> anyhow::Result<Vec<ManifestEntry>> {
    let mut entries = Vec::new();
    let dir = match disk::open_directory(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(entries),
        dir => dir?,
    };
    for folder in dir.entries()? {
        let folder = folder?;
        if !folder.file_type()?.is_dir() {
            continue;
        }
        // Held, so that the guests of the record are not removed.
        let installed = World::ALL
            .into_iter()
            .find(|world| *world.as_str() == *folder.file_name());
        let _hold = match installed {
            Some(world) => WorldFolder::new(from, world).lock_existing()?,
            None => None,
        };
        for guest in folder.open_dir()?.entries()? {
            let guest = guest?;
            let (Ok(folder), Ok(name)) = (
                folder.file_name().into_string(),
                guest.file_name().into_string(),
            ) else {
                continue;
            };
            // Skips files of a running installation.
            if !guest.file_type()?.is_file() || name.starts_with('.') {
                continue;
            }
            let (digest, bytes) = Digest::copy_and_digest(guest.open()?, io::sink())?;
            let there = to.bytes(&digest)? == Some(bytes);
            if there {
                to.sync_later(&digest);
            } else {
                to.put(&digest, guest.open()?)?;
            }
            copied.count(bytes, !there);
            entries.push(ManifestEntry {
                name: format!("{folder}/{name}"),
                sha256: digest.to_string(),
                bytes,
            });
        }
    }
    to.sync()?;
    entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

fn build_manifest(
    directory: &Path,
    state: &str,
    at: Timestamp,
    ids: &[BackendId],
    guests: Vec<ManifestEntry>,
) -> anyhow::Result<BackupManifest> {
    let files = DatabasesDirectory::open(&directory.join(BACKENDS))?;
    let backends = ids
        .iter()
        .map(|id| describe_file(&files.path(id), id.to_string()));
    Ok(BackupManifest {
        format: FORMAT_VERSION,
        program: concat!("svc ", env!("CARGO_PKG_VERSION")).to_owned(),
        schema: control::SCHEMA_VERSION,
        moment: at.to_string(),
        state: state.to_owned(),
        control: describe_file(&directory.join(CONTROL), CONTROL.to_owned())?,
        counters: Some(describe_file(
            &directory.join(counters::COUNTERS_FILE),
            counters::COUNTERS_FILE.to_owned(),
        )?),
        backends: backends.collect::<anyhow::Result<_>>()?,
        guests,
    })
}

fn describe_file(path: &Path, name: String) -> anyhow::Result<ManifestEntry> {
    let (digest, bytes) = Digest::copy_and_digest(std::fs::File::open(path)?, io::sink())?;
    Ok(ManifestEntry {
        name,
        sha256: digest.to_string(),
        bytes,
    })
}
