//! Locks on files, the operating system's own: each ends with the process that has it, however that ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::ops::Deref;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// A locked file, until it is dropped.
#[derive(Debug)]
pub struct FileLock(File);

impl FileLock {
    /// Opens a file to be locked; one that is missing is made, for its owner alone.
    pub fn open_file(path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        options.mode(0o600).open(path)
    }

    /// Takes the lock alone; `None` while somebody else has it.
    pub fn try_exclusive(file: File) -> io::Result<Option<Self>> {
        Self::from_attempt(file.try_lock(), file)
    }

    /// Takes the lock together with others that share it; `None` while another process has it alone.
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
        // Closing alone would not do where a process that is just being started has the file, too, for a moment.
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
        // As a process has it that was just forked.
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
