//! The data directory: its layout, its permissions, and the clean-up after a failed first start.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::data_lock::DataLock;
use crate::permissions::{self, DirectoryLayout};

/// File by which a data directory is recognized.
const DATABASE: &str = "control.db";
/// Layout of a data directory, with the file of settings, which is often kept there.
pub const DATA_DIRECTORY_LAYOUT: DirectoryLayout = DirectoryLayout {
    what: "data directory",
    names: &[
        "control.db",
        "control.db-wal",
        "control.db-shm",
        "control.db-journal",
        "counters.db",
        "counters.db-wal",
        "counters.db-shm",
        "counters.db-journal",
        "content",
        "once",
        "backends",
        "guests",
        "cache",
        "tls",
        "svc.toml",
        "tmp",
        "lock",
        "content.lock",
        "content.url",
        "content.id",
        "cluster.id",
        "serving.lock",
        "operators.sock",
        "guests.status",
        "server.status",
        "backup.status",
        "restoring",
        RESTORE_JOURNAL_FILE,
    ],
    prefixes: &[
        "before-restore-",
        ".guests.status",
        ".server.status",
        ".backup.status",
    ],
    owned: &[
        "control.db",
        "control.db-wal",
        "control.db-shm",
        "counters.db",
        "counters.db-wal",
        "counters.db-shm",
        "content",
        "once",
        "backends",
        "tls",
        "lock",
    ],
    vast: &["backends", "content"],
};

/// Journal of a restore, which exists from its commit to its end.
pub const RESTORE_JOURNAL_FILE: &str = "restore.json";

/// Whether a restore was committed here and is not finished.
pub fn is_unfinished(data: &Path) -> bool {
    data.join(RESTORE_JOURNAL_FILE).exists()
}

/// Whether a directory has an installation, or an unfinished restore of one.
pub fn is_installation(data: &Path) -> bool {
    data.join(DATABASE).is_file() || is_unfinished(data)
}

/// Closes a data directory to other users; returns a warning if it was open to them.
///
/// # Errors
/// When it belongs to another user, or is shared with foreign files, or the disk's.
pub fn restrict(data: &Path) -> anyhow::Result<Option<String>> {
    let was = permissions::restrict(data, &DATA_DIRECTORY_LAYOUT)?;
    Ok(was.map(|mode| {
        format!(
            "the data directory {} was open to other users (mode {mode:04o}): what is ours in it is closed to them now",
            data.display()
        )
    }))
}

/// Guard of a data directory that this start may create: dropping it without [`NewDirectoryGuard::disarm`] removes a new one.
#[derive(Debug)]
pub struct NewDirectoryGuard {
    data: PathBuf,
    /// Missing directories, the innermost first.
    missing: Vec<PathBuf>,
    /// Whether this start has created the directory's content.
    ours: bool,
}

impl NewDirectoryGuard {
    /// Notes which directories are missing, before any is created.
    ///
    /// # Errors
    /// When the current directory does not exist.
    pub fn begin(data: &Path) -> io::Result<Self> {
        let path = std::path::absolute(data)?;
        let missing = path.ancestors().take_while(|path| !path.exists());
        Ok(Self {
            missing: missing.map(Path::to_owned).collect(),
            data: path,
            ours: false,
        })
    }

    /// Decides whether the directory is new: then the lock's file is the only one in it.
    pub fn check_if_new(&mut self, _: &DataLock) -> io::Result<()> {
        self.ours = fs::read_dir(&self.data)?.count() == 1;
        Ok(())
    }

    /// Keeps the directory.
    pub fn disarm(mut self) {
        self.ours = false;
    }

    fn remove(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.data)? {
            let path = entry?.path();
            let removed = match path.is_dir() {
                true => fs::remove_dir_all(path),
                false => fs::remove_file(path),
            };
            match removed {
                // A database that is being closed removes its log itself.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed?,
            }
        }
        self.missing.iter().try_for_each(fs::remove_dir)
    }
}

impl Drop for NewDirectoryGuard {
    fn drop(&mut self) {
        if self.ours
            && let Err(error) = self.remove()
        {
            tracing::warn!(data = %self.data.display(), %error, "a start that failed left something behind");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_that_fails_leaves_what_it_found() {
        let root = tempfile::tempdir().unwrap();
        let (data, inner) = (root.path().join("a/b"), root.path().join("a/b/once"));
        let begun = |data: &Path| {
            let mut guard = NewDirectoryGuard::begin(data).unwrap();
            let lock = DataLock::take(data).unwrap();
            guard.check_if_new(&lock).unwrap();
            fs::create_dir_all(&inner).unwrap();
            (guard, lock)
        };
        drop(begun(&data));
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
        fs::create_dir_all(&data).unwrap();
        drop(begun(&data));
        assert_eq!(fs::read_dir(&data).unwrap().count(), 0, "it was empty");
        begun(&data).0.disarm();
        assert!(inner.exists());
        drop(begun(&data));
        assert!(inner.exists(), "somebody was here before");
    }
}
