//! The directories of tenants' databases. Each is named by an id of ours, so that no path contains anything that a tenant sent.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirBuilder, DirBuilderExt as _, Metadata, MetadataExt as _};

use svc_base::clock::Timestamp;
use svc_base::ids::BackendId;

/// The name of every database file.
pub(super) const DATABASE_FILE: &str = "default.db";
/// Seconds after which a write is seen by readers, and a later one has another stamp: a commit is seen once it is synced, for which a
/// disk may take long.
const STAMP_SECONDS: i64 = 30;
/// The name of its write-ahead log. The `-shm` file beside it is only shared memory.
pub(super) const LOG_FILE: &str = "default.db-wal";

/// Sizes and times of a database's files: with equal ones nothing has been written meanwhile, if they were old enough before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamps {
    database: FileStamp,
    /// That of the log; `None` for an empty log and for none.
    log: Option<FileStamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileStamp {
    bytes: u64,
    /// Seconds and nanoseconds of the last write.
    written: (i64, i64),
    inode: u64,
}

impl FileStamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            bytes: metadata.len(),
            written: (metadata.mtime(), metadata.mtime_nsec()),
            inode: metadata.ino(),
        }
    }
}

impl FileStamps {
    /// Whether the last write was so long before a time that all of it is seen, and a later one has another stamp: file systems stamp in
    /// steps of milliseconds, some in seconds.
    pub fn are_older_than(&self, now: Timestamp) -> bool {
        let stamps = [Some(self.database), self.log];
        let newest = stamps.iter().flatten().map(|stamp| stamp.written.0).max();
        newest.is_some_and(|seconds| seconds.saturating_add(STAMP_SECONDS) < now.0 / 1000)
    }
}

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
        self.make_directory(id)?;
        sync(&self.dir)
    }

    fn make_directory(&self, id: &BackendId) -> io::Result<()> {
        let mut private = DirBuilder::new();
        private.mode(0o700);
        self.dir.create_dir_with(id.to_string(), &private)
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

    /// Reads what the files of a database look like.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn stamps(&self, id: &BackendId) -> io::Result<FileStamps> {
        let dir = self.directory(id)?;
        let database = FileStamp::of(&dir.metadata(DATABASE_FILE)?);
        let log = match dir.metadata(LOG_FILE) {
            Ok(log) => Some(FileStamp::of(&log)).filter(|log| log.bytes > 0),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Ok(FileStamps { database, log })
    }

    /// Makes an empty directory for a database, in place of what is there. It is not durable yet.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn make_empty_directory(&self, id: &BackendId) -> io::Result<()> {
        match self.dir.remove_dir_all(id.to_string()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.make_directory(id)
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
