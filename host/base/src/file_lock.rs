//! Advisory locks on files. The operating system releases a lock when its process ends, however it ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::ops::Deref;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// A locked file. Dropping it releases the lock.
#[derive(Debug)]
pub struct FileLock(File);

impl FileLock {
    /// Opens a file to be locked; a missing file is created, readable by its owner alone.
    pub fn open_file(path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        options.mode(0o600).open(path)
    }

    /// Tries to take the exclusive lock; `None` while another process has any lock on the file.
    pub fn try_exclusive(file: File) -> io::Result<Option<Self>> {
        Self::from_attempt(file.try_lock(), file)
    }

    /// Tries to take a shared lock; `None` while another process has the exclusive one.
    pub fn try_shared(file: File) -> io::Result<Option<Self>> {
        Self::from_attempt(file.try_lock_shared(), file)
    }

    fn from_attempt(tried: Result<(), TryLockError>, file: File) -> io::Result<Option<Self>> {
        match tried {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl Deref for FileLock {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Closing the file is not enough: a child process that is just being started may have inherited it.
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_ends_with_its_holder_though_somebody_else_has_the_file_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let file = || FileLock::open_file(&path).unwrap();
        let alone = FileLock::try_exclusive(file()).unwrap().unwrap();
        // Stands for a file handle that a forked child inherited.
        let inherited = alone.try_clone().unwrap();
        assert!(FileLock::try_exclusive(file()).unwrap().is_none());
        assert!(FileLock::try_shared(file()).unwrap().is_none());
        drop(alone);
        let shared = [file(), file()].map(|file| FileLock::try_shared(file).unwrap().unwrap());
        assert!(FileLock::try_exclusive(file()).unwrap().is_none());
        drop(shared);
        assert!(FileLock::try_exclusive(file()).unwrap().is_some());
        drop(inherited);
    }
}
