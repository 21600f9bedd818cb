//! Directories and files of the server itself: private to its user, and durable where a function says so.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirBuilder, DirBuilderExt, OpenOptions, OpenOptionsExt};

/// Opens an existing directory.
pub fn open_directory(directory: &Path) -> io::Result<Dir> {
    Dir::open_ambient_dir(directory, ambient_authority())
}

/// Opens a subdirectory, and creates it first where it is missing.
pub fn ensure_subdirectory(dir: &Dir, name: &str) -> io::Result<Dir> {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    match dir.create_dir_with(name, &builder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => dir.open_dir(name),
    }
}

/// Mode of a private file: only its owner may read it.
const PRIVATE_MODE: u32 = 0o600;

/// Returns the options to create a private file; a file of the name must not exist.
pub fn private_file_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(PRIVATE_MODE);
    options
}

/// Creates an empty private file, whatever the process's umask is.
///
/// # Errors
/// An I/O error, or the file exists already.
pub fn create_private_file(path: &Path) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options
        .write(true)
        .create_new(true)
        .mode(PRIVATE_MODE)
        .open(path)?;
    Ok(())
}

/// Makes the entries of a directory durable.
pub fn sync_directory(dir: &Dir) -> io::Result<()> {
    // The handle of a directory that was opened for listing cannot be synced: a new one is opened.
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

/// Replaces a file durably and atomically: a reader finds the old content or the new one.
///
/// # Errors
/// An I/O error; the old content stays then.
pub fn replace_file(dir: &Dir, name: &str, bytes: &[u8]) -> io::Result<()> {
    let new = format!(".{name}.new");
    remove_file(dir, &new)?;
    let mut file = dir.open_with(&new, &private_file_options())?;
    file.write_all(bytes)?;
    file.sync_all()?;
    dir.rename(&new, dir, name)?;
    sync_directory(dir)
}

/// Replaces a file atomically without a sync: after a power cut it may be lost.
///
/// # Errors
/// An I/O error; the old content stays then.
pub fn replace_file_unsynced(directory: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let new = directory.join(format!(".{name}.new"));
    let mut options = fs::OpenOptions::new();
    let options = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(PRIVATE_MODE);
    let mut file = options.open(&new)?;
    // A temporary file that a crash left behind keeps its mode when it is opened.
    file.set_permissions(Permissions::from_mode(PRIVATE_MODE))?;
    file.write_all(bytes)?;
    fs::rename(&new, directory.join(name))
}

/// Returns the free bytes of the file system that holds a directory.
///
/// # Errors
/// An I/O error.
pub fn free_bytes(directory: &Path) -> io::Result<u64> {
    free_bytes_in(fs::File::open(directory)?)
}

/// Returns the free bytes of the file system that holds an open directory.
///
/// # Errors
/// An I/O error.
pub fn free_bytes_in(directory: impl AsFd) -> io::Result<u64> {
    let disk = rustix::fs::fstatvfs(directory)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Whether a directory has an entry of this name; a dangling symbolic link counts.
pub fn has_entry(dir: &Dir, name: &str) -> bool {
    dir.symlink_metadata(name).is_ok()
}

/// Returns an absolute path with symbolic links resolved. The last parts of the path need not exist.
///
/// # Errors
/// The path is empty, or the current directory was removed.
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

/// Removes a file; a missing file is no error.
pub fn remove_file(dir: &Dir, name: &str) -> io::Result<()> {
    match dir.remove_file(name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes a directory with everything below it; a missing directory is no error.
pub fn remove_directory(dir: &Dir, name: &str) -> io::Result<()> {
    match dir.remove_dir_all(name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
