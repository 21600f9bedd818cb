//! Records of installed guests: a folder for each world, with components and one small file that names the one that serves.
//!
//! A component is written and synced before the record names it, and the record is replaced by a rename: after a crash, either
//! the old guest or the new one serves. Changes are serialized by a file lock. Without a record the component whose name sorts
//! last serves, so that one may be copied there by hand before a first start.

mod changes;
mod describe;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use cap_std::fs::Dir;
use serde::{Deserialize, Serialize};

use super::components::{
    TEMPORARY_SUFFIX, check_owner, installed_by_hand, is_installed_by_command,
};
use crate::control;
use crate::data_lock::create_private_dir;
use svc_base::clock::Timestamp;
use svc_base::file_lock::FileLock;
use svc_base::{disk, fault};
use svc_sandbox::{
    GuestCandidates, GuestCandidatesByWorld, GuestDigest, GuestOrigin, RolledBackGuest, World,
    components_newest_first,
};

/// File name of the record.
const RECORD_FILE: &str = "installed.json";
/// Format version of the record that this program reads and writes.
const FORMAT_VERSION: u32 = 1;
/// File name of the lock. Backups leave out names that begin with a dot.
const LOCK_FILE: &str = ".lock";
/// Number of guests that can be rolled back one after the other; older components are removed.
const ROLLBACK_DEPTH: usize = 8;
/// Number of changes that are kept.
const MAX_CHANGES: usize = 100;
/// Length of a guest's trial, in seconds: a day.
const TRIAL_SECONDS: i64 = 24 * 3600;

/// Installed guests of a world.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestRecord {
    format: u32,
    /// Number of changes so far: the server reports which one it follows.
    pub sequence: u64,
    /// Installed guests; the last one serves. Empty while the built-in guest serves.
    pub serving: Vec<InstalledGuest>,
    /// The latest changes, oldest first.
    pub history: Vec<ServingGuestChange>,
}

/// A component that was installed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstalledGuest {
    /// SHA-256 of the guest.
    pub digest: GuestDigest,
    /// File name in the folder.
    pub file: String,
    /// Size of the file.
    pub bytes: u64,
    /// Time since which it serves.
    pub installed_at: Timestamp,
    /// Path of the file that was installed.
    pub from: String,
}

/// A change of the guest that serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServingGuestChange {
    /// Time of the change.
    pub at: Timestamp,
    /// Kind of the change.
    pub kind: GuestChangeCause,
    /// Guest that serves after the change; absent for the built-in one.
    pub digest: Option<GuestDigest>,
    /// Reason, if no operator asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Cause of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GuestChangeCause {
    /// An operator installed a guest.
    Install,
    /// An operator put the previous guest back.
    Rollback,
    /// The previous guest serves again, because the newer one failed where it does not.
    Automatic,
}

impl InstalledGuest {
    /// Describes a component that is stored under its digest.
    pub fn of_stored(digest: GuestDigest, bytes: u64, from: String, now: Timestamp) -> Self {
        Self {
            digest,
            file: component_file_name(&digest),
            bytes,
            installed_at: now,
            from,
        }
    }
}

impl GuestRecord {
    /// Makes the record of an installation in which the built-in guest serves, and nothing was changed.
    pub fn new() -> Self {
        Self {
            format: FORMAT_VERSION,
            ..Self::default()
        }
    }

    /// Reads a record that was written as JSON.
    ///
    /// # Errors
    /// Text that is no record, or is one of another version of this program.
    pub fn from_json(text: &[u8]) -> anyhow::Result<Self> {
        let record: Self = serde_json::from_slice(text)?;
        anyhow::ensure!(
            record.format == FORMAT_VERSION,
            "it is of another version of this program"
        );
        Ok(record)
    }

    /// Returns the guest that serves; `None` for the built-in one.
    pub fn current_guest(&self) -> Option<&InstalledGuest> {
        self.serving.last()
    }

    /// Returns the end of the trial of the guest that serves: a day after its installation, even after a rollback. A guest that
    /// was copied there by hand has no trial.
    pub fn trial_until(&self) -> Option<Timestamp> {
        let top = self
            .current_guest()
            .filter(|top| is_installed_by_command(Path::new(&top.file)))?;
        Some(top.installed_at.plus_seconds(TRIAL_SECONDS))
    }
}

/// Reason why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum GuestRecordError {
    /// The guest serves already.
    #[error("this guest serves already")]
    AlreadyServing,
    /// Nothing was installed, or all of it was rolled back.
    #[error("the built-in {0} guest serves: there is none before it")]
    NoPreviousGuest(World),
    /// The component is not in the folder.
    #[error("component {0} is not in the folder of guests: install its file again")]
    ComponentMissing(GuestDigest),
    /// The guest to be replaced no longer serves.
    #[error("another guest serves meanwhile")]
    OtherGuestServes,
    /// An error of the control database, which has the records of a cluster.
    #[error(transparent)]
    Control(#[from] control::Error),
    /// An error of the disk, or an unreadable record.
    #[error(transparent)]
    Internal(#[from] anyhow::Error),
}

impl GuestRecordError {
    /// Whether the record is as it was because the change does not fit to it, and nothing has failed.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::AlreadyServing | Self::NoPreviousGuest(_) | Self::OtherGuestServes
        )
    }
}

impl From<io::Error> for GuestRecordError {
    fn from(error: io::Error) -> Self {
        Self::Internal(error.into())
    }
}

/// Keeps a stored component in its folder until it is dropped or its process ends.
#[derive(Debug)]
#[must_use]
pub struct ComponentLock {
    _lock: FileLock,
}

/// Folder of a world's guests.
#[derive(Clone, Debug)]
pub struct WorldFolder {
    world: World,
    path: PathBuf,
}

impl WorldFolder {
    /// Returns the folder of `world` below the directory of guests; it need not exist.
    pub fn new(guests: &Path, world: World) -> Self {
        Self {
            world,
            path: guests.join(world.as_str()),
        }
    }

    /// Returns the kind of guests that the folder has.
    pub fn world(&self) -> World {
        self.world
    }

    /// Returns the path of the record.
    pub fn record_path(&self) -> PathBuf {
        self.path.join(RECORD_FILE)
    }

    /// Returns the path of an installed component.
    pub fn component_path(&self, installed: &InstalledGuest) -> PathBuf {
        self.path.join(&installed.file)
    }

    /// Reads the record.
    ///
    /// # Errors
    /// The disk's errors, or an unreadable record.
    pub fn read(&self) -> anyhow::Result<GuestRecord> {
        let path = self.record_path();
        let text = match std::fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(self.record_of_manual_guests());
            }
            text => text.with_context(|| format!("reading {}", path.display()))?,
        };
        GuestRecord::from_json(&text).with_context(|| format!("in {}", path.display()))
    }

    /// Makes a record of components that were copied there by hand, where no record exists.
    fn record_of_manual_guests(&self) -> GuestRecord {
        let mut serving: Vec<InstalledGuest> = components_newest_first(&self.path)
            .into_iter()
            .filter(|path| !is_installed_by_command(path))
            .take(ROLLBACK_DEPTH)
            .filter_map(|path| installed_by_hand(self.world, &path))
            .collect();
        serving.reverse();
        GuestRecord {
            serving,
            ..GuestRecord::new()
        }
    }

    /// Returns the guests that the sandbox is to load, in their order.
    pub fn choice(&self, record: &GuestRecord, now: Timestamp) -> GuestCandidates {
        let files = record
            .serving
            .iter()
            .rev()
            .map(|installed| GuestOrigin::File {
                path: self.path.join(&installed.file),
                digest: Some(installed.digest),
            });
        GuestCandidates {
            origins: files.chain([GuestOrigin::BuiltIn]).collect(),
            on_trial: record.trial_until().is_some_and(|until| now < until),
        }
    }

    /// Stores a component under its digest, durably. It stays in the folder until it is chosen or the returned hold is dropped:
    /// other changes do not remove it meanwhile.
    ///
    /// # Errors
    /// The disk's errors, or a folder of another user.
    pub fn store(&self, component: &[u8]) -> Result<ComponentLock, GuestRecordError> {
        check_owner(&self.path)?;
        create_private_dir(&self.path)?;
        let dir = disk::open_directory(&self.path)?;
        let _lock = self.lock()?;
        let name = component_file_name(&GuestDigest::of(component));
        // An identical file is kept: another command may hold it until it is chosen.
        if dir.read(&name).ok().as_deref() != Some(component) {
            disk::replace_file(&dir, &name, component)?;
        }
        let held = FileLock::try_shared(File::open(self.path.join(&name))?)?;
        fault::point("install.stored");
        let locked =
            || GuestRecordError::Internal(anyhow::anyhow!("another process keeps {name} locked"));
        let _lock = held.ok_or_else(locked)?;
        Ok(ComponentLock { _lock })
    }

    /// Makes a stored component the one that serves. Durable on return.
    ///
    /// # Errors
    /// [`GuestRecordError::AlreadyServing`], [`GuestRecordError::ComponentMissing`], or the disk's.
    pub fn choose(
        &self,
        digest: GuestDigest,
        from: String,
        now: Timestamp,
    ) -> Result<GuestRecord, GuestRecordError> {
        let dir = disk::open_directory(&self.path)?;
        let _lock = self.lock()?;
        let mut record = self.read()?;
        let bytes = match dir.metadata(component_file_name(&digest)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(GuestRecordError::ComponentMissing(digest));
            }
            stored => stored?.len(),
        };
        record.choose(InstalledGuest::of_stored(digest, bytes, from, now))?;
        self.write(&dir, &record)?;
        fault::point("install.recorded");
        self.remove_unused(&dir, &record);
        Ok(record)
    }

    /// Makes the previous guest serve again, or the built-in one. Durable on return. With `only`, it fails unless that guest
    /// serves: two operators who see one fault do not roll back twice.
    ///
    /// # Errors
    /// [`GuestRecordError::NoPreviousGuest`]; [`GuestRecordError::OtherGuestServes`] where `only` does not serve; or the disk's.
    pub fn roll_back(
        &self,
        only: Option<GuestDigest>,
        now: Timestamp,
    ) -> Result<GuestRecord, GuestRecordError> {
        if !self.path.is_dir() {
            return Err(GuestRecordError::NoPreviousGuest(self.world));
        }
        let dir = disk::open_directory(&self.path)?;
        let _lock = self.lock()?;
        let mut record = self.read()?;
        record.roll_back(self.world, only, now)?;
        self.write(&dir, &record)?;
        self.remove_unused(&dir, &record);
        Ok(record)
    }

    /// Removes a rolled back guest from those that serve, at any depth. Durable on return.
    pub fn remove_rolled_back(
        &self,
        fallen: &RolledBackGuest,
        now: Timestamp,
    ) -> Result<(), GuestRecordError> {
        if !self.path.is_dir() {
            return Ok(());
        }
        let dir = disk::open_directory(&self.path)?;
        let _lock = self.lock()?;
        let mut record = self.read()?;
        let fell = |one: &InstalledGuest| one.digest == fallen.guest;
        if !record.remove_fallen(fell, &fallen.why, now) {
            return Ok(());
        }
        self.write(&dir, &record)?;
        self.remove_unused(&dir, &record);
        Ok(())
    }

    /// Replaces the record by the one that the nodes of a cluster share, whose components are stored. Durable on return.
    ///
    /// # Errors
    /// The disk's errors, or a folder of another user.
    pub fn adopt(&self, record: &GuestRecord) -> Result<(), GuestRecordError> {
        check_owner(&self.path)?;
        create_private_dir(&self.path)?;
        let dir = disk::open_directory(&self.path)?;
        let _lock = self.lock()?;
        self.write(&dir, record)?;
        self.remove_unused(&dir, record);
        Ok(())
    }

    /// Returns the installed guests whose components are not in the folder, or not all of them.
    pub fn missing_components(&self, record: &GuestRecord) -> Vec<InstalledGuest> {
        let is_there = |one: &InstalledGuest| {
            let file = std::fs::metadata(self.component_path(one));
            file.is_ok_and(|file| file.len() == one.bytes)
        };
        let missing = record.serving.iter().filter(|one| !is_there(one));
        missing.cloned().collect()
    }

    /// Reads the component of an installed guest.
    ///
    /// # Errors
    /// The disk's errors, or a file that is another component.
    pub fn read_component(&self, installed: &InstalledGuest) -> anyhow::Result<Vec<u8>> {
        let path = self.component_path(installed);
        let read = svc_sandbox::read_component(&path).and_then(|component| {
            anyhow::ensure!(
                GuestDigest::of(&component) == installed.digest,
                "it is not the guest that was installed"
            );
            Ok(component)
        });
        read.with_context(|| format!("reading {}", path.display()))
    }

    /// Locks the folder against changes until the file is dropped. `None` if no command has installed anything, or the lock
    /// belongs to another user. Blocks.
    pub fn lock_existing(&self) -> io::Result<Option<File>> {
        use io::ErrorKind::{NotFound, PermissionDenied, ReadOnlyFilesystem};
        match File::open(self.path.join(LOCK_FILE)) {
            Err(error)
                if matches!(
                    error.kind(),
                    NotFound | PermissionDenied | ReadOnlyFilesystem
                ) =>
            {
                Ok(None)
            }
            file => {
                let file = file?;
                file.lock()?;
                Ok(Some(file))
            }
        }
    }

    fn lock(&self) -> Result<File, GuestRecordError> {
        check_owner(&self.path)?;
        let mut options = File::options();
        let options = options.create(true).truncate(false).write(true).mode(0o600);
        let file = options.open(self.path.join(LOCK_FILE))?;
        file.lock()?;
        Ok(file)
    }

    fn write(&self, dir: &Dir, record: &GuestRecord) -> Result<(), GuestRecordError> {
        let text = serde_json::to_vec_pretty(record).map_err(anyhow::Error::from)?;
        Ok(disk::replace_file(dir, RECORD_FILE, &text)?)
    }

    /// Removes components that no record names and no command holds. A failed removal is tried again with the next change.
    fn remove_unused(&self, dir: &Dir, record: &GuestRecord) {
        let Ok(entries) = dir.entries() else { return };
        for name in entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
        {
            let kept = record.serving.iter().any(|kept| kept.file == name);
            let ours =
                is_installed_by_command(Path::new(&name)) || name.ends_with(TEMPORARY_SUFFIX);
            if ours && !kept && !self.is_held(&name) {
                let _ = disk::remove_file(dir, &name);
            }
        }
    }

    /// Whether a command holds a component that it has stored and not chosen yet.
    fn is_held(&self, name: &str) -> bool {
        let file = File::open(self.path.join(name));
        file.and_then(FileLock::try_exclusive)
            .is_ok_and(|lock| lock.is_none())
    }
}

/// Returns the file name of a component.
fn component_file_name(digest: &GuestDigest) -> String {
    format!("{digest}.wasm")
}

/// Reads the installed guests for a sandbox that starts. An unreadable record is logged, and the built-in guest serves.
pub fn read_choices(guests: &Path, now: Timestamp) -> GuestCandidatesByWorld {
    let mut choices = GuestCandidatesByWorld::default();
    for world in World::ALL {
        let folder = WorldFolder::new(guests, world);
        match folder.read() {
            Ok(record) => *choices.of(world) = folder.choice(&record, now),
            Err(error) => {
                tracing::error!(guest = %world, error = format!("{error:#}"), "it is not known which guest is installed");
            }
        }
    }
    choices
}
