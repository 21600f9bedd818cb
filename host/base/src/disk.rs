//! Directories and files of the host's own: private to its user, and durable where that is promised.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirBuilder, DirBuilderExt, OpenOptions, OpenOptionsExt};

/// Opens a directory that is there.
pub fn open_directory(directory: &Path) -> io::Result<Dir> {
    Dir::open_ambient_dir(directory, ambient_authority())
}

/// Opens a directory below another, made where it is missing.
pub fn ensure_subdirectory(dir: &Dir, name: &str) -> io::Result<Dir> {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    match dir.create_dir_with(name, &builder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => dir.open_dir(name),
    }
}

/// The mode of a file that nobody else may read.
const PRIVATE_MODE: u32 = 0o600;

/// How to make a new file, which nobody else may read.
pub fn private_file_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(PRIVATE_MODE);
    options
}

/// Makes an empty file that nobody else may read, whatever the process's umask is.
///
/// # Errors
/// The disk's; a file that is there.
pub fn create_private_file(path: &Path) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options
        .write(true)
        .create_new(true)
        .mode(PRIVATE_MODE)
        .open(path)?;
    Ok(())
}

/// Makes the names in a directory durable.
pub fn sync_directory(dir: &Dir) -> io::Result<()> {
    // A directory that is opened to look into it is synced through a name of its own.
    dir.open(".")?.sync_all()
}

/// Makes a directory durable with everything below it.
pub fn sync_tree(dir: &Dir) -> io::Result<()> {
    for entry in dir.entries()? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_tree(&entry.open_dir()?)?;
        } else {
            entry.open()?.sync_all()?;
        }
    }
    sync_directory(dir)
}

/// Writes a file, durably: a reader finds the old one or the new one.
///
/// # Errors
/// The disk's; the old one is there then.
pub fn replace_file(dir: &Dir, name: &str, bytes: &[u8]) -> io::Result<()> {
    let new = format!(".{name}.new");
    remove_file(dir, &new)?;
    let mut file = dir.open_with(&new, &private_file_options())?;
    file.write_all(bytes)?;
    file.sync_all()?;
    dir.rename(&new, dir, name)?;
    sync_directory(dir)
}

/// Writes a file that nobody relies on after a power cut, so it is not synced; a reader finds the old one or the new one.
///
/// # Errors
/// The disk's; the old one is there then.
pub fn replace_file_unsynced(directory: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let new = directory.join(format!(".{name}.new"));
    let mut options = fs::OpenOptions::new();
    let options = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(PRIVATE_MODE);
    let mut file = options.open(&new)?;
    // One that was left behind keeps its mode when it is opened.
    file.set_permissions(Permissions::from_mode(PRIVATE_MODE))?;
    file.write_all(bytes)?;
    fs::rename(&new, directory.join(name))
}

/// Returns the free bytes where a directory is.
///
/// # Errors
/// The disk's.
pub fn free_bytes(directory: &Path) -> io::Result<u64> {
    free_bytes_in(fs::File::open(directory)?)
}

/// Returns the free bytes where an open directory is.
///
/// # Errors
/// The disk's.
pub fn free_bytes_in(directory: impl AsFd) -> io::Result<u64> {
    let disk = rustix::fs::fstatvfs(directory)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Whether a directory has something of this name, wherever it leads.
pub fn has_entry(dir: &Dir, name: &str) -> bool {
    dir.symlink_metadata(name).is_ok()
}

/// The path that a name resolves to, whether or not all of it is there yet.
///
/// # Errors
/// An empty name, or a current directory that is gone.
pub fn resolve_path(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    for (depth, there) in path.ancestors().enumerate() {
        if let Ok(resolved) = there.canonicalize() {
            let missing: Vec<Component<'_>> = path.components().rev().take(depth).collect();
            return Ok(missing
                .into_iter()
                .rev()
                .fold(resolved, |path, name| path.join(name)));
        }
    }
    Ok(path)
}

/// Removes a file; one that is gone is removed already.
pub fn remove_file(dir: &Dir, name: &str) -> io::Result<()> {
    match dir.remove_file(name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes a directory with everything below it; one that is gone is removed already.
pub fn remove_directory(dir: &Dir, name: &str) -> io::Result<()> {
    match dir.remove_dir_all(name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
