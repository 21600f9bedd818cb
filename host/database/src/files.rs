//! The directories of tenants' databases: one each, its name an id of ours, so that no path is made of what a tenant sends.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirBuilder, DirBuilderExt as _};

use svc_base::ids::BackendId;

/// The name of every database file.
pub(super) const DATABASE_FILE: &str = "default.db";
/// The name of its log. The log's index beside it is memory that happens to have a name.
pub(super) const LOG_FILE: &str = "default.db-wal";

/// The directory of all databases; clones share it. Its functions block on the disk.
#[derive(Clone, Debug)]
pub struct DatabaseFiles {
    dir: Arc<Dir>,
    /// Where `dir` is, resolved once.
    root: PathBuf,
}

impl DatabaseFiles {
    /// The name of a database's file in its directory.
    pub const NAME: &'static str = DATABASE_FILE;

    /// Opens `directory`, which is made if it is missing.
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

    /// Makes the directory of a new database, durably.
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

    /// Where a database's file is: an absolute path, as SQLite needs one.
    pub fn path(&self, id: &BackendId) -> PathBuf {
        self.root.join(id.to_string()).join(DATABASE_FILE)
    }

    /// The directory of a database: of its file, its log, and its history.
    pub fn directory(&self, id: &BackendId) -> io::Result<Dir> {
        self.dir.open_dir(id.to_string())
    }

    /// How many bytes a database takes on the disk, its log included; its history is accounted for by itself.
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

    /// Removes a database with its directory, durably; one that is gone is removed already.
    pub fn remove(&self, id: &BackendId) -> io::Result<()> {
        match self.dir.remove_dir_all(id.to_string()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => sync(&self.dir),
        }
    }

    /// The ids of all databases that have a directory.
    pub fn list(&self) -> io::Result<Vec<BackendId>> {
        let mut ids = Vec::new();
        for entry in self.dir.entries()? {
            // What is not an id is not ours to touch.
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
    // A directory that is opened to look into it is synced through a name of its own.
    dir.open(".")?.sync_all()
}
