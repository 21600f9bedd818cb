//! The data directory as commands find it: there or not, closed to others, and left as it was when a first start fails.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::data_lock::DataLock;
use crate::permissions::{self, DirectoryLayout};

/// File by which a directory is known as one of ours.
const DATABASE: &str = "control.db";
/// Layout of a data directory, with the file of settings, which many keep there.
pub const LAYOUT: DirectoryLayout = DirectoryLayout {
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
        "serving.lock",
        "operators.sock",
        "guests.status",
        "server.status",
        "backup.status",
        "restoring",
        JOURNAL,
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
};

/// The journal of a restore, which is there from its decision to its end.
pub const JOURNAL: &str = "restore.json";

/// Whether a restore was decided here that is not finished.
pub fn is_unfinished(data: &Path) -> bool {
    data.join(JOURNAL).exists()
}

/// Whether an installation is in a directory, or a restore of one that is to be finished.
pub fn is_installation(data: &Path) -> bool {
    data.join(DATABASE).is_file() || is_unfinished(data)
}

/// Closes a data directory to other users; a line for the operator if it was open to them.
///
/// # Errors
/// When it belongs to somebody else, or holds other things, or the disk's.
pub fn restrict(data: &Path) -> anyhow::Result<Option<String>> {
    let was = permissions::restrict(data, &LAYOUT)?;
    Ok(was.map(|mode| {
        format!(
            "the data directory {} was open to other users (mode {mode:04o}): what is ours in it is closed to them now",
            data.display()
        )
    }))
}

/// A start that may be the first: until it is [`NewDirectoryGuard::disarm`], dropping it removes what was made.
#[derive(Debug)]
pub struct NewDirectoryGuard {
    data: PathBuf,
    /// Directories that were not there, the innermost first.
    missing: Vec<PathBuf>,
    /// Whether what is there now was made by this start.
    ours: bool,
}

impl NewDirectoryGuard {
    /// Looks before anything is made.
    ///
    /// # Errors
    /// A current directory that is gone.
    pub fn begin(data: &Path) -> io::Result<Self> {
        let path = std::path::absolute(data)?;
        let missing = path.ancestors().take_while(|path| !path.exists());
        Ok(Self {
            missing: missing.map(Path::to_owned).collect(),
            data: path,
            ours: false,
        })
    }

    /// Looks once more, with the lock, which is the only thing there if nobody was here before.
    pub fn check_if_new(&mut self, _: &DataLock) -> io::Result<()> {
        self.ours = fs::read_dir(&self.data)?.count() == 1;
        Ok(())
    }

    /// Keeps what was made.
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
                // A database that is being closed removes its log by itself.
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
