//! The directories of tenants' databases. Each is named by an id of ours, so that no path contains anything that a tenant sent.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirBuilder, DirBuilderExt as _};

use svc_base::ids::BackendId;

/// The name of every database file.
pub(super) const DATABASE_FILE: &str = "default.db";
/// The name of its write-ahead log. The `-shm` file beside it is only shared memory.
pub(super) const LOG_FILE: &str = "default.db-wal";

/// The directory of all databases; clones share it. Its functions block on the disk.
#[derive(Clone, Debug)]
pub struct DatabasesDirectory {
    dir: Arc<Dir>,
    /// Path of `dir`, resolved once.
    root: PathBuf,
}

impl DatabasesDirectory {
    /// The name of the database file in its directory.
    pub const NAME: &'static str = DATABASE_FILE;
    /// The name of its write-ahead log.
    pub const LOG_NAME: &'static str = LOG_FILE;

    /// Opens `directory`, and creates it if need be.
    ///
    /// # Errors
    /// When it cannot be made or opened.
    pub fn open(directory: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(directory)?;
        Ok(Self {
            dir: Arc::new(Dir::open_ambient_dir(directory, ambient_authority())?),
            root: directory.canonicalize()?,
        })
    }

    /// Creates the directory of a new database, durably.
    pub fn create_directory(&self, id: &BackendId) -> io::Result<()> {
        let mut private = DirBuilder::new();
        private.mode(0o700);
        self.dir.create_dir_with(id.to_string(), &private)?;
        sync(&self.dir)
    }

    /// Makes a new database's file durable under its name.
    pub fn sync(&self, id: &BackendId) -> io::Result<()> {
        sync(&self.directory(id)?)
    }

    /// Absolute path of a database's file, for SQLite.
    pub fn path(&self, id: &BackendId) -> PathBuf {
        self.root.join(id.to_string()).join(DATABASE_FILE)
    }

    /// Opens the directory of a database: with its file, its log, and its history.
    pub fn directory(&self, id: &BackendId) -> io::Result<Dir> {
        self.dir.open_dir(id.to_string())
    }

    /// Bytes of a database on the disk, with its log and without its history.
    pub fn disk_bytes(&self, id: &BackendId) -> io::Result<u64> {
        let dir = self.directory(id)?;
        let mut bytes = 0;
        for name in [DATABASE_FILE, LOG_FILE] {
            match dir.metadata(name) {
                Ok(metadata) => bytes += metadata.len(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(bytes)
    }

    /// Removes a database with its directory, durably. A missing one is no error.
    pub fn remove(&self, id: &BackendId) -> io::Result<()> {
        match self.dir.remove_dir_all(id.to_string()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => sync(&self.dir),
        }
    }

    /// Lists the ids of all databases that have a directory.
    pub fn list(&self) -> io::Result<Vec<BackendId>> {
        let mut ids = Vec::new();
        for entry in self.dir.entries()? {
            // Entries whose names are no ids are left alone.
            let name = entry?.file_name();
            let id = name
                .to_str()
                .and_then(|name| name.parse::<BackendId>().ok());
            ids.extend(id);
        }
        Ok(ids)
    }
}

fn sync(dir: &Dir) -> io::Result<()> {
    // A handle for look-ups cannot be synced, so the directory is opened once more.
    dir.open(".")?.sync_all()
}
