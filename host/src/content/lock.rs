//! Lock on taking content away: the collector or a restore holds it alone, and a backup shares it while it copies.

use std::io;
use std::path::Path;
use std::time::Duration;

use svc_base::file_lock::FileLock;

/// The name of the file in the data directory.
const FILE: &str = "content.lock";
/// How often the lock is asked for, and how often at most: half a minute.
const LOCK_POLL: Duration = Duration::from_millis(20);
const LOCK_POLLS: u32 = 1500;

/// A hold on a data directory's content, until it is dropped.
#[derive(Debug)]
pub struct ContentLock {
    _locked: FileLock,
}

impl ContentLock {
    /// Keeps all content where it is. Waits for a collector, which needs a moment; `None` when it is a restore that has
    /// the content. Blocks.
    pub fn shared(data: &Path) -> io::Result<Option<Self>> {
        for _ in 0..LOCK_POLLS {
            if let Some(_locked) = FileLock::try_shared(FileLock::open_file(&data.join(FILE))?)? {
                return Ok(Some(Self { _locked }));
            }
            std::thread::sleep(LOCK_POLL);
        }
        Ok(None)
    }

    /// The right to take content away; `None` while somebody keeps it.
    pub fn exclusive(data: &Path) -> io::Result<Option<Self>> {
        let locked = FileLock::try_exclusive(FileLock::open_file(&data.join(FILE))?)?;
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
