//! Lock on the deletion of content: the collector or a restore holds it exclusively, and backups share it while they copy.

use std::io;
use std::path::Path;
use std::time::Duration;

use svc_base::file_lock::FileLock;

/// The name of the file in the data directory.
const LOCK_FILE: &str = "content.lock";
/// Pause between two attempts at the lock, and most attempts: half a minute.
const LOCK_POLL: Duration = Duration::from_millis(20);
const LOCK_POLLS: u32 = 1500;

/// The lock on the content of a data directory, held until it is dropped.
#[derive(Debug)]
pub struct ContentLock {
    _locked: FileLock,
}

impl ContentLock {
    /// Takes the lock shared, so that nothing is deleted. Waits for a collector, which is quick; `None` while a restore has the
    /// lock. Blocks.
    pub fn shared(data: &Path) -> io::Result<Option<Self>> {
        for _ in 0..LOCK_POLLS {
            if let Some(_locked) =
                FileLock::try_shared(FileLock::open_file(&data.join(LOCK_FILE))?)?
            {
                return Ok(Some(Self { _locked }));
            }
            std::thread::sleep(LOCK_POLL);
        }
        Ok(None)
    }

    /// Takes the lock exclusively, for deletions; `None` while it is taken.
    pub fn exclusive(data: &Path) -> io::Result<Option<Self>> {
        let locked = FileLock::try_exclusive(FileLock::open_file(&data.join(LOCK_FILE))?)?;
        Ok(locked.map(|_locked| Self { _locked }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_not_taken() {
        let data = tempfile::tempdir().unwrap();
        let backups = [
            ContentLock::shared(data.path()),
            ContentLock::shared(data.path()),
        ];
        assert!(backups.iter().all(|kept| matches!(kept, Ok(Some(_)))));
        assert!(ContentLock::exclusive(data.path()).unwrap().is_none());
        drop(backups);
        let collector = ContentLock::exclusive(data.path()).unwrap();
        assert!(collector.is_some());
        assert!(ContentLock::exclusive(data.path()).unwrap().is_none());
    }
}
