//! The directory of a backup.
//!
//! ```text
//! backup.json    the manifest, replaced when everything that it names is durable
//! backup.lock    one writer at a time
//! state-<n>/     control.db and backends/<id>/default.db, each a file by itself
//! content/       objects by their SHA-256, which successive backups share
//! guests/        installed guests, likewise
//! ```

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use cap_std::fs::Dir;

use super::make::CONTENT;
use super::manifest::{BackupManifest, ManifestEntry};
use crate::content::{Digest, ObjectDirectory};
use crate::data_lock::create_private_dir;
use crate::permissions::{self, DirectoryLayout};
use svc_base::file_lock::FileLock;
use svc_base::{disk, fault};

const MANIFEST_FILE: &str = "backup.json";
const LOCK_FILE: &str = "backup.lock";
const STATE_PREFIX: &str = "state-";
const GUESTS_DIRECTORY: &str = "guests";
/// Layout of a backup.
pub(super) const BACKUP_LAYOUT: DirectoryLayout = DirectoryLayout {
    what: "backup",
    names: &[MANIFEST_FILE, LOCK_FILE, CONTENT, GUESTS_DIRECTORY],
    prefixes: &[STATE_PREFIX, ".backup.json"],
    owned: &[MANIFEST_FILE, LOCK_FILE],
    // Copies of a backup are made with the modes of its files.
    vast: &[],
};

/// The directory of a backup, locked until it is dropped.
#[derive(Debug)]
pub(super) struct BackupDirectory {
    pub(super) path: PathBuf,
    pub(super) dir: Dir,
    _lock: Option<FileLock>,
}

/// Whether a directory has a complete backup.
pub fn is_backup(directory: &Path) -> bool {
    directory.join(MANIFEST_FILE).is_file()
}

/// Refuses a backup inside of its data directory, and the other way round.
///
/// # Errors
/// A text that says which of them is inside of the other.
pub(super) fn check_not_nested(place: &Path, data: &Path) -> anyhow::Result<()> {
    let (place, data) = (disk::resolve_path(place)?, disk::resolve_path(data)?);
    if place.starts_with(&data) {
        bail!(
            "{} is inside the data directory {}: choose a directory outside of it",
            place.display(),
            data.display()
        );
    }
    if data.starts_with(&place) {
        bail!(
            "the data directory {} is inside {}: choose a directory of its own for the backup",
            data.display(),
            place.display()
        );
    }
    Ok(())
}

impl BackupDirectory {
    /// Opens a directory to make a backup in: one that is missing or empty, or that of an earlier backup.
    ///
    /// # Errors
    /// When it is something else, or another backup is being made in it.
    pub(super) fn open_for_writing(path: &Path) -> anyhow::Result<Self> {
        create_private_dir(path).with_context(|| format!("making {}", path.display()))?;
        let path = path.canonicalize()?;
        let dir =
            disk::open_directory(&path).with_context(|| format!("opening {}", path.display()))?;
        let empty = dir.entries()?.next().is_none();
        if !empty && !dir.is_file(MANIFEST_FILE) && !dir.is_file(LOCK_FILE) {
            bail!(
                "{} is not empty and is no backup: choose a directory of its own",
                path.display()
            );
        }
        permissions::restrict(&path, &BACKUP_LAYOUT)?;
        let lock = FileLock::try_exclusive(FileLock::open_file(&path.join(LOCK_FILE))?)?;
        let lock =
            lock.with_context(|| format!("{} is being written by another backup", path.display()))?;
        let place = Self {
            path,
            dir,
            _lock: Some(lock),
        };
        if is_backup(&place.path) {
            // A backup of a newer program must not be replaced.
            place.manifest()?;
        }
        Ok(place)
    }

    /// Opens a backup to read it.
    ///
    /// # Errors
    /// When there is no complete backup, or one is being made.
    pub(super) fn open_for_reading(path: &Path) -> anyhow::Result<Self> {
        if !is_backup(path) {
            bail!(
                "{} is no backup: there is no complete one in it",
                path.display()
            );
        }
        let path = path.canonicalize()?;
        let dir = disk::open_directory(&path)?;
        let lock =
            match File::open(path.join(LOCK_FILE)) {
                Ok(file) => {
                    let lock = FileLock::try_shared(file)?;
                    Some(lock.with_context(|| {
                        format!("{} is being written by a backup", path.display())
                    })?)
                }
                // A copy of a backup need not have the lock's file.
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(error.into()),
            };
        Ok(Self {
            path,
            dir,
            _lock: lock,
        })
    }

    /// Reads the manifest of the complete backup.
    ///
    /// # Errors
    /// When it is damaged, or made by a newer program.
    pub(super) fn manifest(&self) -> anyhow::Result<BackupManifest> {
        BackupManifest::parse(&self.dir.read(MANIFEST_FILE)?)
    }

    /// Makes a directory for the databases of a new backup, beside those of the complete one.
    pub(super) fn new_state(&self) -> anyhow::Result<String> {
        let complete = match is_backup(&self.path) {
            true => Some(self.manifest()?.state),
            false => None,
        };
        self.remove_states(complete.as_deref())?;
        let number = |name: &str| name.strip_prefix(STATE_PREFIX)?.parse::<u64>().ok();
        let last = complete.as_deref().and_then(number).unwrap_or(0);
        let name = format!("{STATE_PREFIX}{}", last + 1);
        disk::ensure_subdirectory(&self.dir, &name)?;
        Ok(name)
    }

    /// Removes the databases of a failed backup, unless it was published.
    ///
    /// # Errors
    /// The disk's; the next backup removes them.
    pub(super) fn discard(&self, state: &str) -> anyhow::Result<()> {
        if is_backup(&self.path) && self.manifest()?.state == state {
            return Ok(());
        }
        Ok(disk::remove_directory(&self.dir, state)?)
    }

    /// Removes all states but one.
    pub(super) fn remove_states(&self, but: Option<&str>) -> io::Result<()> {
        for entry in self.dir.entries()? {
            let name = entry?.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(STATE_PREFIX) && Some(&*name) != but {
                disk::remove_directory(&self.dir, &name)?;
            }
        }
        Ok(())
    }

    /// Returns the directory of a state's databases.
    pub(super) fn state(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Returns the directory of the objects.
    pub(super) fn content_path(&self) -> PathBuf {
        self.path.join(CONTENT)
    }

    /// Opens the directory of the objects.
    pub(super) fn content(&self) -> io::Result<ObjectDirectory> {
        Ok(ObjectDirectory::new(disk::ensure_subdirectory(
            &self.dir, CONTENT,
        )?))
    }

    /// Opens the directory of the guests.
    pub(super) fn guests(&self) -> io::Result<ObjectDirectory> {
        Ok(ObjectDirectory::new(disk::ensure_subdirectory(
            &self.dir,
            GUESTS_DIRECTORY,
        )?))
    }

    /// Makes a state the complete backup, atomically.
    pub(super) fn publish(&self, manifest: &BackupManifest) -> anyhow::Result<()> {
        disk::sync_tree(&self.dir.open_dir(&manifest.state)?)?;
        disk::sync_directory(&self.dir)?;
        fault::point("backup.publishing");
        disk::replace_file(&self.dir, MANIFEST_FILE, &manifest.text()?)?;
        fault::point("backup.published");
        Ok(())
    }

    /// Removes states, objects and guests that the complete backup does not need.
    ///
    /// # Errors
    /// The disk's; the backup is complete all the same, and the next one repeats this.
    pub(super) fn remove_unneeded(
        &self,
        manifest: &BackupManifest,
        content: &BTreeSet<Digest>,
    ) -> io::Result<()> {
        self.remove_states(Some(&manifest.state))?;
        fault::point("backup.tidying");
        self.content()?.retain_only(content)?;
        let guests = manifest
            .guests
            .iter()
            .filter_map(ManifestEntry::parse_digest)
            .collect();
        self.guests()?.retain_only(&guests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_and_its_data_lie_apart() {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data");
        std::fs::create_dir(&data).unwrap();
        std::os::unix::fs::symlink(&data, root.path().join("link")).unwrap();
        let at = |name: &str| root.path().join(name);
        check_not_nested(&at("backup"), &data).unwrap();
        check_not_nested(&at("data-backup"), &data).unwrap();
        for inside in [
            "data",
            "data/backup",
            "data/a/b",
            "link/backup",
            "data/../data/c",
        ] {
            let refused = check_not_nested(&at(inside), &data)
                .unwrap_err()
                .to_string();
            assert!(refused.contains("inside the data directory"), "{refused}");
        }
        let refused = check_not_nested(root.path(), &data)
            .unwrap_err()
            .to_string();
        assert!(refused.contains("of its own"), "{refused}");
    }

    #[test]
    fn only_what_is_empty_or_ours_is_written_to() {
        let root = tempfile::tempdir().unwrap();
        let (ours, other) = (root.path().join("ours"), root.path().join("other"));
        let first = BackupDirectory::open_for_writing(&ours).unwrap();
        let second = BackupDirectory::open_for_writing(&ours)
            .unwrap_err()
            .to_string();
        assert!(second.contains("another backup"), "{second}");
        drop(first);
        BackupDirectory::open_for_writing(&ours).unwrap();
        let unread = BackupDirectory::open_for_reading(&ours)
            .unwrap_err()
            .to_string();
        assert!(unread.contains("no complete one"), "{unread}");
        std::fs::create_dir(&other).unwrap();
        std::fs::write(other.join("holiday.jpg"), b"").unwrap();
        let refused = BackupDirectory::open_for_writing(&other)
            .unwrap_err()
            .to_string();
        assert!(refused.contains("no backup"), "{refused}");
        std::fs::write(ours.join(MANIFEST_FILE), br#"{"format":2}"#).unwrap();
        assert!(BackupDirectory::open_for_writing(&ours).is_err());
    }
}
