//! Which guests are installed: a folder for each world, with the components and one small file that says which of them serves.
//!
//! A component is written and synced before the record names it, and the record is replaced by a rename: whenever a process dies, what
//! served before serves, or what was chosen. Changes take turns by a lock of the operating system's. Where there is no record, the
//! component whose name sorts last serves, so that one may be put there by hand before a first start.

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
use crate::data_lock::create_private_dir;
use svc_base::clock::Timestamp;
use svc_base::file_lock::FileLock;
use svc_base::{disk, fault};
use svc_sandbox::{
    GuestChoice, GuestChoices, GuestDigest, GuestOrigin, RolledBackGuest, World,
    components_newest_first,
};

/// The name of the record.
const RECORD_FILE: &str = "installed.json";
/// The form of the record that this version reads and writes.
const FORMAT_VERSION: u32 = 1;
/// The name of the lock. Backups leave out what begins with a dot.
const LOCK_FILE: &str = ".lock";
/// How many guests can be rolled back one after the other; the components of earlier ones are removed.
const ROLLBACK_DEPTH: usize = 8;
/// How many changes are remembered.
const MAX_CHANGES: usize = 100;
/// How long a guest is on trial, in seconds: a day.
const TRIAL_SECONDS: i64 = 24 * 3600;

/// Choices for a world.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    format: u32,
    /// Counts the changes, so that a server can say which one it follows.
    pub sequence: u64,
    /// Guest that serves, last, and the guests before it. Empty while the built-in one serves.
    pub serving: Vec<InstalledGuest>,
    /// The latest changes, oldest first.
    pub history: Vec<Change>,
}

/// A component that was installed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstalledGuest {
    /// SHA-256 of the guest.
    pub digest: GuestDigest,
    /// The name of its file in the folder.
    pub file: String,
    /// How large that is.
    pub bytes: u64,
    /// Since when it serves.
    pub installed_at: Timestamp,
    /// Where it came from.
    pub from: String,
}

/// Something that changed who serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Time of the installation.
    pub at: Timestamp,
    /// Kind of the change.
    pub kind: ChangeKind,
    /// Guest that serves since; absent for the built-in one.
    pub digest: Option<GuestDigest>,
    /// Why, if nobody asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// How it came that another guest serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// An operator installed it.
    Install,
    /// An operator put back the one before.
    Rollback,
    /// The one before took its place back, because the newer one failed where it does not.
    Automatic,
}

impl Record {
    /// Returns the guest that serves; `None` for the built-in one.
    pub fn current_guest(&self) -> Option<&InstalledGuest> {
        self.serving.last()
    }

    /// The end of the trial of the guest that serves: a day after its installation, also where a rollback has put it back.
    /// A guest that was put there by hand has none.
    pub fn trial_until(&self) -> Option<Timestamp> {
        let top = self
            .current_guest()
            .filter(|top| is_installed_by_command(Path::new(&top.file)))?;
        Some(top.installed_at.plus_seconds(TRIAL_SECONDS))
    }

    fn add_change(&mut self, kind: ChangeKind, at: Timestamp, why: Option<String>) {
        self.sequence += 1;
        let digest = self.current_guest().map(|top| top.digest);
        self.history.push(Change {
            at,
            kind,
            digest,
            why,
        });
        let old = self.history.len().saturating_sub(MAX_CHANGES);
        self.history.drain(..old);
    }
}

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// It is what serves.
    #[error("this guest serves already")]
    AlreadyServing,
    /// Nothing was installed, or all of it was rolled back.
    #[error("the built-in {0} guest serves: there is none before it")]
    NoPreviousGuest(World),
    /// A component is to serve that is not in the folder.
    #[error("component {0} is not in the folder of guests: install its file again")]
    ComponentMissing(GuestDigest),
    /// Another guest serves by now than the one that was to be replaced.
    #[error("another guest serves meanwhile")]
    OtherGuestServes,
    /// The disk's, or a record that nobody can read.
    #[error(transparent)]
    Internal(#[from] anyhow::Error),
}

impl From<io::Error> for RecordError {
    fn from(error: io::Error) -> Self {
        Self::Internal(error.into())
    }
}

/// Keeps a stored component in its folder until it is dropped, or its process ends.
#[derive(Debug)]
#[must_use]
pub struct HeldComponent {
    _lock: FileLock,
}

/// The folder of a world's guests.
#[derive(Clone, Debug)]
pub struct Folder {
    world: World,
    path: PathBuf,
}

impl Folder {
    /// That of `world` below the directory of guests; nothing need be there.
    pub fn new(guests: &Path, world: World) -> Self {
        Self {
            world,
            path: guests.join(world.as_str()),
        }
    }

    /// Where the record is.
    pub fn record_path(&self) -> PathBuf {
        self.path.join(RECORD_FILE)
    }

    /// Returns where an installed component is.
    pub fn component_path(&self, installed: &InstalledGuest) -> PathBuf {
        self.path.join(&installed.file)
    }

    /// Reads the record of choices.
    ///
    /// # Errors
    /// The disk's, or a record that is none.
    pub fn read(&self) -> anyhow::Result<Record> {
        let path = self.record_path();
        let text = match std::fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(self.record_of_manual_guests());
            }
            text => text.with_context(|| format!("reading {}", path.display()))?,
        };
        let record: Record =
            serde_json::from_slice(&text).with_context(|| format!("in {}", path.display()))?;
        anyhow::ensure!(
            record.format == FORMAT_VERSION,
            "{} is of another version of this program",
            path.display()
        );
        Ok(record)
    }

    /// Makes a record of the guest that was put there by hand, where there is no record.
    fn record_of_manual_guests(&self) -> Record {
        let mut serving: Vec<InstalledGuest> = components_newest_first(&self.path)
            .into_iter()
            .filter(|path| !is_installed_by_command(path))
            .take(ROLLBACK_DEPTH)
            .filter_map(|path| installed_by_hand(self.world, &path))
            .collect();
        serving.reverse();
        Record {
            format: FORMAT_VERSION,
            serving,
            ..Record::default()
        }
    }

    /// Returns the guest that the sandbox is to try.
    pub fn choice(&self, record: &Record, now: Timestamp) -> GuestChoice {
        let files = record
            .serving
            .iter()
            .rev()
            .map(|installed| GuestOrigin::File {
                path: self.path.join(&installed.file),
                digest: Some(installed.digest),
            });
        GuestChoice {
            origins: files.chain([GuestOrigin::BuiltIn]).collect(),
            on_trial: record.trial_until().is_some_and(|until| now < until),
        }
    }

    /// Stores a component under its digest, durably. It may be chosen then, and stays in the folder until it is chosen or the
    /// returned hold is dropped: other changes do not remove it meanwhile.
    ///
    /// # Errors
    /// The disk's, or a folder of somebody else's.
    pub fn store(&self, component: &[u8]) -> Result<HeldComponent, RecordError> {
        check_owner(&self.path)?;
        create_private_dir(&self.path)?;
        let dir = disk::open_directory(&self.path)?;
        let _lock = self.lock()?;
        let name = component_file_name(&GuestDigest::of(component));
        // A file that is whole is kept: another command may hold that very file until it is chosen.
        if dir.read(&name).ok().as_deref() != Some(component) {
            disk::replace_file(&dir, &name, component)?;
        }
        let held = FileLock::try_shared(File::open(self.path.join(&name))?)?;
        fault::point("install.stored");
        let locked =
            || RecordError::Internal(anyhow::anyhow!("another process keeps {name} locked"));
        let _lock = held.ok_or_else(locked)?;
        Ok(HeldComponent { _lock })
    }

    /// Lets a component that is stored serve from now on. Durable when it answers.
    ///
    /// # Errors
    /// [`RecordError::AlreadyServing`], [`RecordError::ComponentMissing`], or the disk's.
    pub fn choose(
        &self,
        digest: GuestDigest,
        from: String,
        now: Timestamp,
    ) -> Result<Record, RecordError> {
        let dir = disk::open_directory(&self.path)?;
        let _lock = self.lock()?;
        let mut record = self.read()?;
        if record
            .current_guest()
            .is_some_and(|top| top.digest == digest)
        {
            return Err(RecordError::AlreadyServing);
        }
        let file = component_file_name(&digest);
        let bytes = match dir.metadata(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(RecordError::ComponentMissing(digest));
            }
            stored => stored?.len(),
        };
        record.serving.push(InstalledGuest {
            digest,
            file,
            bytes,
            installed_at: now,
            from,
        });
        let old = record.serving.len().saturating_sub(ROLLBACK_DEPTH);
        record.serving.drain(..old);
        record.add_change(ChangeKind::Install, now, None);
        self.write(&dir, &record)?;
        fault::point("install.recorded");
        self.remove_unused(&dir, &record);
        Ok(record)
    }

    /// Lets the guest that served before serve again, or the built-in one. Durable when it answers. With `only`, that guest and no
    /// other loses its place, so that two who see the same fault do not put back two; with a reason, no operator has asked for it.
    ///
    /// # Errors
    /// [`RecordError::NoPreviousGuest`]; [`RecordError::OtherGuestServes`] where `only` does not serve; or the disk's.
    pub fn roll_back(
        &self,
        only: Option<GuestDigest>,
        now: Timestamp,
    ) -> Result<Record, RecordError> {
        if !self.path.is_dir() {
            return Err(RecordError::NoPreviousGuest(self.world));
        }
        let dir = disk::open_directory(&self.path)?;
        let _lock = self.lock()?;
        let mut record = self.read()?;
        let top = record
            .serving
            .pop()
            .ok_or(RecordError::NoPreviousGuest(self.world))?;
        if only.is_some_and(|digest| digest != top.digest) {
            return Err(RecordError::OtherGuestServes);
        }
        record.add_change(ChangeKind::Rollback, now, None);
        self.write(&dir, &record)?;
        self.remove_unused(&dir, &record);
        Ok(record)
    }

    /// Takes a guest that fell out of those that serve, wherever it is among them by now. Durable when it answers.
    pub fn remove_rolled_back(
        &self,
        fallen: &RolledBackGuest,
        now: Timestamp,
    ) -> Result<(), RecordError> {
        if !self.path.is_dir() {
            return Ok(());
        }
        let dir = disk::open_directory(&self.path)?;
        let _lock = self.lock()?;
        let mut record = self.read()?;
        let before = record.serving.len();
        record.serving.retain(|one| one.digest != fallen.guest);
        if record.serving.len() == before {
            return Ok(());
        }
        record.add_change(ChangeKind::Automatic, now, Some(fallen.why.clone()));
        self.write(&dir, &record)?;
        self.remove_unused(&dir, &record);
        Ok(())
    }

    /// Keeps what is there as it is until it is dropped; `None` where nothing was installed by a command, or by somebody
    /// whose lock is not ours to take. Blocks.
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

    fn lock(&self) -> Result<File, RecordError> {
        check_owner(&self.path)?;
        let mut options = File::options();
        let options = options.create(true).truncate(false).write(true).mode(0o600);
        let file = options.open(self.path.join(LOCK_FILE))?;
        file.lock()?;
        Ok(file)
    }

    fn write(&self, dir: &Dir, record: &Record) -> Result<(), RecordError> {
        let text = serde_json::to_vec_pretty(record).map_err(anyhow::Error::from)?;
        Ok(disk::replace_file(dir, RECORD_FILE, &text)?)
    }

    /// Removes components that neither the record names nor a command holds. What cannot be removed is removed with the next change.
    fn remove_unused(&self, dir: &Dir, record: &Record) {
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

    /// Whether a command holds a component that it has stored and that is yet to be chosen.
    fn is_held(&self, name: &str) -> bool {
        let file = File::open(self.path.join(name));
        file.and_then(FileLock::try_exclusive)
            .is_ok_and(|lock| lock.is_none())
    }
}

/// The name of the file of a component.
fn component_file_name(digest: &GuestDigest) -> String {
    format!("{digest}.wasm")
}

/// Reads what is installed below the directory of guests, for a sandbox that starts. A record that cannot be read is
/// named in the log, and the built-in guest serves.
pub fn read_choices(guests: &Path, now: Timestamp) -> GuestChoices {
    let mut choices = GuestChoices::default();
    for world in World::ALL {
        let folder = Folder::new(guests, world);
        match folder.read() {
            Ok(record) => *choices.of(world) = folder.choice(&record, now),
            Err(error) => {
                tracing::error!(guest = %world, error = format!("{error:#}"), "it is not known which guest is installed");
            }
        }
    }
    choices
}
