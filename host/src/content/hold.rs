//! Lock on taking content away: the collector or a restore holds it alone, and a backup shares it while it copies.
//!
//! A lock of the operating system's, because it ends with the process that has it, however that ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// The name of the file in the data directory.
const FILE: &str = "content.lock";
/// How often the lock is asked for, and how often at most: half a minute.
const ASK: Duration = Duration::from_millis(20);
const ASKED: u32 = 1500;

/// A hold on a data directory's content, until it is dropped.
#[derive(Debug)]
pub struct Hold {
    _locked: File,
}

impl Hold {
    /// Keeps all content where it is. Waits for a collector, which needs a moment; `None` when it is a restore that has
    /// the content. Blocks.
    pub fn keep(data: &Path) -> io::Result<Option<Self>> {
        let file = open(data)?;
        for _ in 0..ASKED {
            match file.try_lock_shared() {
                Ok(()) => return Ok(Some(Self { _locked: file })),
                Err(TryLockError::WouldBlock) => std::thread::sleep(ASK),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(None)
    }

    /// The right to take content away; `None` while somebody keeps it.
    pub fn take(data: &Path) -> io::Result<Option<Self>> {
        let file = open(data)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _locked: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

fn open(data: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create(true).truncate(false);
    options.mode(0o600).open(data.join(FILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_not_taken() {
        let data = tempfile::tempdir().unwrap();
        let backups = [Hold::keep(data.path()), Hold::keep(data.path())];
        assert!(backups.iter().all(|kept| matches!(kept, Ok(Some(_)))));
        assert!(Hold::take(data.path()).unwrap().is_none());
        drop(backups);
        let collector = Hold::take(data.path()).unwrap();
        assert!(collector.is_some());
        assert!(Hold::take(data.path()).unwrap().is_none());
    }
}
