//! Files of the user, opened relative to the handle of a folder. No name leads outside, no link is followed, and only regular files
//! are opened, so that no read blocks.

mod tree;

use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, MetadataExt as _, OpenOptions, OpenOptionsExt as _};
use rustix::fs::RenameFlags;

use super::error::{CliFailure, FailureExitCode, Result};
use super::source::{self, MAX_BYTES, irregular_kind};
use svc_base::random::Random;

pub(crate) use tree::EntryKind;

/// The most entries of a folder that is listed.
const MAX_ENTRIES: usize = 10_000;
/// Mode of a new file, before the umask.
pub(super) const DEFAULT_FILE_MODE: u32 = 0o666;
/// Mode of a file that only the user may read.
pub(super) const PRIVATE_MODE: u32 = 0o600;

/// A folder; its files are reached by relative names.
#[derive(Debug)]
pub(super) struct DirectoryHandle {
    handle: Dir,
    path: PathBuf,
}

/// Comparison of a file with new content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileComparison {
    /// The file does not exist.
    Missing,
    /// The file has exactly these bytes.
    Same,
    /// The file has other bytes.
    Different,
}

/// A file that is being written under a temporary name. Dropping it removes it.
#[derive(Debug)]
pub(super) struct TemporaryFile {
    folder: DirectoryHandle,
    /// Final name of the file.
    name: OsString,
    temporary: String,
    pub(super) file: File,
}

impl DirectoryHandle {
    /// Opens an existing folder.
    ///
    /// # Errors
    /// When it does not exist, or is no folder.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let handle = Dir::open_ambient_dir(path, ambient_authority())
            .map_err(|error| CliFailure::file_system("Reading", path, &error))?;
        Ok(Self {
            handle,
            path: path.to_owned(),
        })
    }

    /// Opens a folder, and creates it if need be.
    pub(super) fn create(path: &Path) -> Result<Self> {
        std::fs::create_dir_all(path)
            .map_err(|error| CliFailure::file_system("Making", path, &error))?;
        Self::open(path)
    }

    /// Opens the folder of a file; returns it with the file's own name.
    ///
    /// # Errors
    /// When the path names no file, or its folder does not exist.
    pub(super) fn open_parent(path: &Path) -> Result<(Self, PathBuf)> {
        let Some(name) = path.file_name() else {
            return Err(CliFailure::local(format!(
                "{} is no name of a file.",
                path.display()
            )));
        };
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let folder = Self::open(folder.unwrap_or(Path::new(".")))?;
        Ok((folder, name.into()))
    }

    /// Path of a file for messages, relative to where the command was run.
    pub(super) fn display_path(&self, name: &Path) -> PathBuf {
        let path = self.path.join(name);
        path.strip_prefix(".").map(Path::to_owned).unwrap_or(path)
    }

    /// Whether a regular file has this name.
    pub(super) fn exists(&self, name: &Path) -> Result<bool> {
        Ok(self.check_regular(name)?.is_some())
    }

    /// Whether anything has this name, be it a file, a folder or a link.
    ///
    /// # Errors
    /// When it lies outside of the folder, or a part of its name is no folder.
    pub(super) fn has_entry(&self, name: &Path) -> Result<bool> {
        match self.find(name)? {
            None => Ok(false),
            Some((folder, part)) => match folder.symlink_metadata(part) {
                Ok(_) => Ok(true),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
                Err(error) => Err(self.file_failure("Reading", name, &error)),
            },
        }
    }

    /// Whether the user has no permission to read a file.
    pub(super) fn is_unreadable(&self, name: &Path) -> bool {
        let Ok(Some((folder, file))) = self.find(name) else {
            return false;
        };
        open_without_following(&folder, file)
            .is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    }

    /// Reads an existing file.
    ///
    /// # Errors
    /// When it does not exist, is no regular file, lies outside of the folder, or is too large.
    pub(super) fn read(&self, name: &Path) -> Result<Vec<u8>> {
        let missing = || {
            let error = io::Error::from(io::ErrorKind::NotFound);
            self.file_failure("Reading", name, &error)
        };
        self.read_if_exists(name)?.ok_or_else(missing)
    }

    /// Reads a text file.
    ///
    /// # Errors
    /// As of `read`, and when the file is not UTF-8.
    pub(super) fn read_text(&self, name: &Path) -> Result<String> {
        source::parse_utf8(self.read(name)?, &self.display_path(name))
    }

    /// Reads a file; `None` if it does not exist.
    ///
    /// # Errors
    /// When it is no regular file, lies outside of the folder, or is too large.
    pub(super) fn read_if_exists(&self, name: &Path) -> Result<Option<Vec<u8>>> {
        let read = self.read_with_owner(name, MAX_BYTES)?;
        Ok(read.map(|(bytes, _)| bytes))
    }

    /// Reads a file of at most `most` bytes, with the id of the user who owns it; `None` if it does not exist.
    ///
    /// # Errors
    /// When it is no regular file, lies outside of the folder, or is too large.
    pub(super) fn read_with_owner(&self, name: &Path, most: u64) -> Result<Option<(Vec<u8>, u32)>> {
        let Some(file) = self.open_regular(name)? else {
            return Ok(None);
        };
        let failed = |error: io::Error| self.file_failure("Reading", name, &error);
        let found = file.metadata().map_err(failed)?;
        let mut bytes = Vec::new();
        let read = file.take(most + 1).read_to_end(&mut bytes);
        read.map_err(failed)?;
        match bytes.len() as u64 <= most {
            true => Ok(Some((bytes, found.uid()))),
            false => {
                let length = found.len().max(most);
                Err(source::too_large(&self.display_path(name), length))
            }
        }
    }

    /// Compares a file with new content. A file of another length is not read.
    ///
    /// # Errors
    /// When it is no regular file, or lies outside of the folder.
    pub(super) fn compare(&self, name: &Path, bytes: &[u8]) -> Result<FileComparison> {
        let Some(file) = self.open_regular(name)? else {
            return Ok(FileComparison::Missing);
        };
        let length = file.metadata().map(|found| found.len());
        let length = length.map_err(|error| self.file_failure("Reading", name, &error))?;
        if length != bytes.len() as u64 {
            return Ok(FileComparison::Different);
        }
        match self.read(name)? == bytes {
            true => Ok(FileComparison::Same),
            false => Ok(FileComparison::Different),
        }
    }

    /// Lists the files of a subfolder with an extension, sorted by name and without hidden ones; `None` if the folder does not
    /// exist.
    ///
    /// # Errors
    /// When it lies outside of this folder, a part of its name is a link, or it has too many entries.
    pub(super) fn list(&self, folder: &Path, extension: &str) -> Result<Option<Vec<PathBuf>>> {
        let failed = |error: io::Error| self.file_failure("Reading", folder, &error);
        let Some(handle) = self.descend(folder, &self.parts(folder)?, false)? else {
            return Ok(None);
        };
        let mut files = Vec::new();
        for entry in handle.entries().map_err(failed)? {
            let path = PathBuf::from(entry.map_err(failed)?.file_name());
            let is_hidden = path.to_string_lossy().starts_with('.');
            if path.extension().is_some_and(|found| found == extension) && !is_hidden {
                files.push(folder.join(path));
            }
            if files.len() > MAX_ENTRIES {
                return Err(CliFailure::local(format!(
                    "{} has more than {MAX_ENTRIES} files: a folder of this size is not read.",
                    self.display_path(folder).display()
                )));
            }
        }
        files.sort();
        Ok(Some(files))
    }

    /// Writes a file atomically, and creates its folders.
    ///
    /// # Errors
    /// When the file exists and must not be replaced, or lies outside of the folder.
    pub(super) fn write(&self, name: &Path, bytes: &[u8], replaces: bool) -> Result<()> {
        let mut draft = self.create_temporary(name, DEFAULT_FILE_MODE)?;
        let written = draft.file.write_all(bytes);
        written.map_err(|error| self.file_failure("Writing", name, &error))?;
        draft.persist(replaces)
    }

    /// Creates a temporary file for `name`, with a mode.
    ///
    /// # Errors
    /// When the name leads outside of the folder or through a link, or the folder cannot be written to.
    pub(super) fn create_temporary(&self, name: &Path, mode: u32) -> Result<TemporaryFile> {
        let failed = |error: io::Error| self.file_failure("Writing", name, &error);
        let (target, parents) = self.split(name)?;
        let Some(handle) = self.descend(name, &parents, true)? else {
            return Err(failed(io::ErrorKind::NotFound.into()));
        };
        let mut path = self.path.clone();
        path.extend(&parents);
        let folder = Self { handle, path };
        let random = Random::system().slug(12);
        let random = random.map_err(|_| CliFailure::local("The system has no randomness."))?;
        let temporary = format!(".svc-{random}");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(mode);
        let file = folder.handle.open_with(&temporary, &options);
        Ok(TemporaryFile {
            name: target.to_owned(),
            file: file.map_err(failed)?.into_std(),
            folder,
            temporary,
        })
    }

    /// Opens a regular file for reading; `None` if it does not exist.
    fn open_regular(&self, name: &Path) -> Result<Option<File>> {
        let Some((folder, part)) = self.find(name)? else {
            return Ok(None);
        };
        // Checked before opening, since opening a device may have effects.
        if self.check_regular_in(&folder, part, name)?.is_none() {
            return Ok(None);
        }
        let failed = |error: io::Error| self.file_failure("Reading", name, &error);
        let file = match open_without_following(&folder, part) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(failed)?,
        };
        match file.metadata().map_err(failed)?.is_file() {
            true => Ok(Some(file)),
            false => Err(self.not_regular_failure(name, "changing as it is read")),
        }
    }

    /// Splits a name into its parts.
    ///
    /// # Errors
    /// When it is absolute, or has the part `..`.
    fn parts<'a>(&self, name: &'a Path) -> Result<Vec<&'a OsStr>> {
        let parts = name.components().filter(|part| *part != Component::CurDir);
        let parts = parts.map(|part| match part {
            Component::Normal(part) => Some(part),
            _ => None,
        });
        let parts: Option<_> = parts.collect();
        parts.ok_or_else(|| self.outside_failure(name))
    }

    /// Splits the name of a file into its last part and the folders before it.
    ///
    /// # Errors
    /// When it leads outside of the folder, or names the folder itself.
    fn split<'a>(&self, name: &'a Path) -> Result<(&'a OsStr, Vec<&'a OsStr>)> {
        let mut parts = self.parts(name)?;
        match parts.pop() {
            Some(last) => Ok((last, parts)),
            None => Err(self.not_regular_failure(name, "a directory")),
        }
    }

    /// Opens the folder of a file; returns it with the file's own name there. `None` if the folder does not exist.
    ///
    /// # Errors
    /// When the name leads outside of the folder or through a link.
    fn find<'a>(&self, name: &'a Path) -> Result<Option<(Dir, &'a OsStr)>> {
        let (last, parents) = self.split(name)?;
        let folder = self.descend(name, &parents, false)?;
        Ok(folder.map(|folder| (folder, last)))
    }

    /// Opens a folder below this one, part by part; `None` if it does not exist. No link is followed, not even to a folder inside: it
    /// may lead to hidden files, such as those of `.git`, behind a name that is not hidden.
    ///
    /// # Errors
    /// When a part is no folder.
    fn descend(&self, name: &Path, parts: &[&OsStr], creates: bool) -> Result<Option<Dir>> {
        let doing = if creates { "Writing" } else { "Reading" };
        let failed = |error: io::Error| self.file_failure(doing, name, &error);
        let mut folder = self.handle.try_clone().map_err(failed)?;
        let mut path = PathBuf::new();
        for part in parts {
            path.push(part);
            if creates {
                match folder.create_dir(part) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    created => created.map_err(failed)?,
                }
            }
            folder = match folder.open_dir_nofollow(part) {
                Ok(below) => below,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => {
                    let found = folder.symlink_metadata(part);
                    return Err(match found.is_ok_and(|found| found.is_symlink()) {
                        true => self.link_failure(&path),
                        false => failed(error),
                    });
                }
            };
        }
        Ok(Some(folder))
    }

    /// Checks that a name is a regular file; `None` if nothing has it.
    ///
    /// # Errors
    /// When it is no regular file, or lies outside of the folder.
    fn check_regular(&self, name: &Path) -> Result<Option<()>> {
        match self.find(name)? {
            Some((folder, part)) => self.check_regular_in(&folder, part, name),
            None => Ok(None),
        }
    }

    /// Checks that a part of a name is a regular file in the folder that has it.
    fn check_regular_in(&self, folder: &Dir, part: &OsStr, name: &Path) -> Result<Option<()>> {
        let found = match folder.symlink_metadata(part) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            found => found.map_err(|error| self.file_failure("Reading", name, &error))?,
        };
        match irregular_kind(found.mode()) {
            None => Ok(Some(())),
            Some(what) => Err(self.not_regular_failure(name, what)),
        }
    }

    /// Failure of a link in place of a folder.
    fn link_failure(&self, folder: &Path) -> CliFailure {
        CliFailure::new(
            FailureExitCode::Failed,
            "Not a folder",
            format!(
                "{} is a symbolic link: links are not followed here, for they may lead to hidden files. Name the folder itself.",
                self.display_path(folder).display()
            ),
        )
    }

    fn not_regular_failure(&self, name: &Path, what: &str) -> CliFailure {
        CliFailure::new(
            FailureExitCode::Failed,
            "Not a regular file",
            format!(
                "{} is {what}: only regular files are read and written here.",
                self.display_path(name).display()
            ),
        )
    }

    fn file_failure(&self, doing: &str, name: &Path, error: &io::Error) -> CliFailure {
        // A refusal of the folder's handle has no error number of the system.
        let escapes =
            error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none();
        match escapes {
            true => self.outside_failure(name),
            false => CliFailure::file_system(doing, &self.display_path(name), error),
        }
    }

    /// Failure of a name that leads out of the folder. A manifest by another author must not publish the user's other files.
    fn outside_failure(&self, name: &Path) -> CliFailure {
        CliFailure::new(
            FailureExitCode::Failed,
            "Outside of the folder",
            format!(
                "{} is not in {}: a manifest names what lies beside it, without `..`.",
                self.display_path(name).display(),
                self.path.display()
            ),
        )
    }
}

/// Opens a file without following a link and without blocking.
fn open_without_following(folder: &Dir, part: &OsStr) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).follow(FollowSymlinks::No).nonblock(true);
    Ok(folder.open_with(part, &options)?.into_std())
}

impl TemporaryFile {
    /// Renames the file to its final name.
    ///
    /// # Errors
    /// When the file exists and must not be replaced, or is no regular file.
    pub(super) fn persist(self, replaces: bool) -> Result<()> {
        let name = Path::new(&self.name);
        let is_there = self.folder.exists(name)?;
        if is_there && !replaces {
            return Err(self.taken_failure());
        }
        let handle = &self.folder.handle;
        if is_there {
            let narrowed = self.narrow_permissions(name);
            narrowed.map_err(|error| self.folder.file_failure("Writing", name, &error))?;
        }
        let kept = match replaces {
            true => handle.rename(&self.temporary, handle, name),
            false => self.rename_without_replacing(),
        };
        kept.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => self.taken_failure(),
            _ => self.folder.file_failure("Writing", name, &error),
        })
    }

    /// Takes from the new file the permissions that the one in its place does not give: what was private stays so.
    fn narrow_permissions(&self, name: &Path) -> io::Result<()> {
        let old = self.folder.handle.symlink_metadata(name)?.mode();
        let new = self.file.metadata()?.permissions().mode() & 0o777;
        // Some file systems have no permissions to set.
        match new & old {
            both if both == new => Ok(()),
            both => self.file.set_permissions(Permissions::from_mode(both)),
        }
    }

    /// Renames the file atomically; fails if the name is taken.
    fn rename_without_replacing(&self) -> io::Result<()> {
        let handle = &self.folder.handle;
        let new = RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(handle, &self.temporary, handle, &self.name, new) {
            // The file system does not support this.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
                handle.hard_link(&self.temporary, handle, &self.name)
            }
            renamed => Ok(renamed?),
        }
    }

    fn taken_failure(&self) -> CliFailure {
        let path = self.folder.display_path(Path::new(&self.name));
        CliFailure::local(format!("{} is there already.", path.display()))
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // After a rename, there is no file of this name.
        let _ = self.folder.handle.remove_file(&self.temporary);
    }
}

#[cfg(test)]
mod tests;
