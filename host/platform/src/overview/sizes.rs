//! Disk usage of an installation, and free space.

use std::io;
use std::path::Path;

use cap_std::fs::Dir;
use serde::Serialize;

use crate::content::{ContentLocation, Digest, ObjectDirectory};
use svc_base::disk;
use svc_base::ids::{BackendId, DeploymentId};
use svc_database::DatabasesDirectory;

/// Sizes on the disk, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DiskSizes {
    /// The control database with its log.
    pub control: u64,
    /// Sources and pages.
    pub content: u64,
    /// Private files of one-time shares.
    pub once: u64,
    /// Projects' databases with their logs.
    pub databases: u64,
    /// Size of the databases' histories, in bytes.
    pub history: u64,
    /// Everything in the data directory.
    pub total: u64,
    /// Free bytes where the data directory is.
    pub free: u64,
}

/// Measures an installation, also beside a running server. Blocks.
pub fn measure(data: &Path) -> io::Result<DiskSizes> {
    let dir = disk::open_directory(data)?;
    let mut sizes = DiskSizes {
        free: disk::free_bytes(data)?,
        ..DiskSizes::default()
    };
    for entry in dir.entries()? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let bytes = match entry.open_dir() {
            Ok(inner) => bytes_below(&inner)?,
            Err(_) => file_bytes(&dir, &name)?,
        };
        sizes.total += bytes;
        match name.as_str() {
            "once" => sizes.once = bytes,
            "backends" => sizes.history = bytes,
            name if name.starts_with("control.db") => sizes.control += bytes,
            _ => {}
        }
    }
    sizes.content = match content_directory(data)? {
        Some(content) => bytes_below(&content)?,
        None => 0,
    };
    if dir.is_dir("backends") {
        let files = DatabasesDirectory::open(&data.join("backends"))?;
        for id in files.list()? {
            sizes.databases += database_bytes(&files, &id)?;
        }
        sizes.history = sizes.history.saturating_sub(sizes.databases);
    }
    Ok(sizes)
}

/// Returns the size of a database with its log; 0 if it was just deleted.
fn database_bytes(files: &DatabasesDirectory, id: &BackendId) -> io::Result<u64> {
    match files.disk_bytes(id) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        bytes => bytes,
    }
}

/// Returns the sizes of a backend's database and of its history.
pub fn backend_bytes(data: &Path, id: &BackendId) -> io::Result<(u64, u64)> {
    let files = DatabasesDirectory::open(&data.join("backends"))?;
    let bytes = database_bytes(&files, id)?;
    let all = bytes_below(&files.directory(id)?)?;
    Ok((bytes, all.saturating_sub(bytes)))
}

/// Returns the size of an object, if it is there.
pub fn object_bytes(data: &Path, digest: Option<&Digest>) -> io::Result<Option<u64>> {
    let Some(digest) = digest else {
        return Ok(None);
    };
    content_directory(data)?.map_or(Ok(None), |dir| ObjectDirectory::new(dir).bytes(digest))
}

/// Opens the directory of content, if content is in one.
fn content_directory(data: &Path) -> io::Result<Option<Dir>> {
    let place = ContentLocation::read_recorded(data).map_err(io::Error::other)?;
    match place
        .directory()
        .map(|at| disk::open_directory(&at))
        .transpose()
    {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        directory => directory,
    }
}

/// Returns the size of a one-time share's page, if such pages are in a directory of the machine.
pub fn one_time_share_bytes(data: &Path, id: &DeploymentId) -> io::Result<Option<u64>> {
    match disk::open_directory(&data.join("once")) {
        // A node has them in the bucket.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        directory => file_bytes(&directory?, &id.to_string()).map(Some),
    }
}

fn bytes_below(dir: &Dir) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in dir.entries()? {
        let entry = entry?;
        bytes += match entry.open_dir() {
            Ok(inner) => bytes_below(&inner)?,
            Err(_) => match entry.metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
                found => found?.len(),
            },
        };
    }
    Ok(bytes)
}

/// Returns the length of a file; 0 if it was just deleted.
fn file_bytes(dir: &Dir, name: &str) -> io::Result<u64> {
    match dir.symlink_metadata(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        found => found.map(|found| found.len()),
    }
}
