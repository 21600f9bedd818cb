//! Content in a directory of this machine, which is the default: what only a directory needs.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use object_store::local::LocalFileSystem;

use svc_base::disk;

/// Written at each start, to learn the disk's time.
pub(super) const MARKER: &str = ".opened";

/// A directory of objects.
#[derive(Clone, Debug)]
pub(super) struct LocalDirectory {
    directory: PathBuf,
    /// When it was opened, by the file system's own time, against which it stamps files.
    opened: SystemTime,
}

impl LocalDirectory {
    /// Opens `directory`, which is made if it is missing. What the store has written is synced, with the names on the way to it.
    ///
    /// # Errors
    /// When the directory cannot be made or read.
    pub(super) fn open(directory: &Path) -> anyhow::Result<(LocalFileSystem, Self)> {
        std::fs::create_dir_all(directory)?;
        let store = LocalFileSystem::new_with_prefix(directory)?.with_fsync(true);
        let local = Self {
            directory: directory.to_owned(),
            opened: marker_time(directory)?,
        };
        Ok((store, local))
    }

    /// Returns the free bytes of its disk.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn free_bytes(&self) -> std::io::Result<u64> {
        disk::free_bytes(&self.directory)
    }

    /// Deletes uploads that were left unfinished before it was opened. One that is not finished lies beside its object-to-be,
    /// with a `#` in its name.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn remove_stale_uploads(&self) -> std::io::Result<()> {
        for shard in std::fs::read_dir(&self.directory)? {
            let shard = shard?;
            if !shard.file_type()?.is_dir() {
                continue;
            }
            for file in std::fs::read_dir(shard.path())? {
                let file = file?;
                let name = file.file_name();
                let unfinished = name.to_str().is_some_and(|name| name.contains('#'));
                if unfinished && file.metadata()?.modified()? < self.opened {
                    std::fs::remove_file(file.path())?;
                }
            }
        }
        Ok(())
    }
}

/// The time of the disk now, as it stamps a file that is written now.
fn marker_time(directory: &Path) -> std::io::Result<SystemTime> {
    let marker = directory.join(MARKER);
    std::fs::write(&marker, b"")?;
    std::fs::metadata(&marker)?.modified()
}
