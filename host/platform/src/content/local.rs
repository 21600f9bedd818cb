//! Content in a directory of this machine, which is the default: what only a directory needs.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use object_store::local::LocalFileSystem;

use svc_base::disk;

/// File that is written at each start, to learn the file system's time.
pub(super) const OPENED_FILE: &str = ".opened";

/// A directory of objects.
#[derive(Clone, Debug)]
pub(super) struct LocalObjectStore {
    directory: PathBuf,
    /// Time of opening by the file system's clock, which also stamps its files.
    opened: SystemTime,
}

impl LocalObjectStore {
    /// Opens `directory`, which is made if it is missing. The store syncs its files and their parent directories.
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

    /// Deletes uploads that were left unfinished before this start. An unfinished upload lies beside its future object, with a `#` in
    /// its name.
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

/// Returns the file system's current time, by the stamp of a file that is written now.
fn marker_time(directory: &Path) -> std::io::Result<SystemTime> {
    let marker = directory.join(OPENED_FILE);
    std::fs::write(&marker, b"")?;
    std::fs::metadata(&marker)?.modified()
}
