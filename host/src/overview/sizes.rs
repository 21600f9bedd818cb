//! How much disk an installation takes, and how much there is.

use std::io;
use std::path::Path;

use cap_std::fs::Dir;
use serde::Serialize;

use crate::content::{Digest, Place, Shelf};
use svc_base::disk;
use svc_base::ids::{BackendId, DeploymentId};
use svc_database::DatabaseFiles;

/// Bytes on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sizes {
    /// The control database with its log.
    pub control: u64,
    /// Sources and pages.
    pub content: u64,
    /// Shares that are read once.
    pub once: u64,
    /// Projects' databases with their logs.
    pub databases: u64,
    /// Size of the databases' histories, in bytes.
    pub history: u64,
    /// Everything in the data directory, whatever it is.
    pub total: u64,
    /// Free bytes where the data directory is.
    pub free: u64,
}

/// The sizes of an installation, beside a server that may be at work. Blocks.
pub fn of(data: &Path) -> io::Result<Sizes> {
    let dir = disk::open(data)?;
    let mut sizes = Sizes {
        free: disk::free(data)?,
        ..Sizes::default()
    };
    for entry in dir.entries()? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let bytes = match entry.open_dir() {
            Ok(inner) => below(&inner)?,
            Err(_) => length(&dir, &name)?,
        };
        sizes.total += bytes;
        match name.as_str() {
            "once" => sizes.once = bytes,
            "backends" => sizes.history = bytes,
            name if name.starts_with("control.db") => sizes.control += bytes,
            _ => {}
        }
    }
    sizes.content = match content(data)? {
        Some(content) => below(&content)?,
        None => 0,
    };
    if dir.is_dir("backends") {
        let files = DatabaseFiles::open(&data.join("backends"))?;
        for id in files.list()? {
            sizes.databases += database(&files, &id)?;
        }
        sizes.history = sizes.history.saturating_sub(sizes.databases);
    }
    Ok(sizes)
}

/// The bytes of a database with its log; of one that has just gone, none.
fn database(files: &DatabaseFiles, id: &BackendId) -> io::Result<u64> {
    match files.disk_bytes(id) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        bytes => bytes,
    }
}

/// The bytes of a backend: of its database, and of its history.
pub fn of_backend(data: &Path, id: &BackendId) -> io::Result<(u64, u64)> {
    let files = DatabaseFiles::open(&data.join("backends"))?;
    let bytes = database(&files, id)?;
    let all = below(&files.directory(id)?)?;
    Ok((bytes, all.saturating_sub(bytes)))
}

/// The bytes of an object, if it is there.
pub fn of_object(data: &Path, digest: Option<&Digest>) -> io::Result<Option<u64>> {
    let Some(digest) = digest else {
        return Ok(None);
    };
    content(data)?.map_or(Ok(None), |dir| Shelf::new(dir).bytes(digest))
}

/// The directory of content, if content is in one.
fn content(data: &Path) -> io::Result<Option<Dir>> {
    let place = Place::noted(data).map_err(io::Error::other)?;
    match place.directory().map(|at| disk::open(&at)).transpose() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        directory => directory,
    }
}

/// The bytes of the page of a share that is read once.
pub fn of_once(data: &Path, id: &DeploymentId) -> io::Result<u64> {
    length(&disk::open(&data.join("once"))?, &id.to_string())
}

fn below(dir: &Dir) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in dir.entries()? {
        let entry = entry?;
        bytes += match entry.open_dir() {
            Ok(inner) => below(&inner)?,
            Err(_) => match entry.metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
                found => found?.len(),
            },
        };
    }
    Ok(bytes)
}

/// The length of a file; of one that has just gone, none.
fn length(dir: &Dir, name: &str) -> io::Result<u64> {
    match dir.symlink_metadata(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        found => found.map(|found| found.len()),
    }
}
