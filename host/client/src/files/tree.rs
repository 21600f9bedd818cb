//! Folders below a folder: what is in them, without following links.

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use cap_std::fs::MetadataExt as _;

use super::DirectoryHandle;
use crate::error::{CliFailure, Result};
use crate::source::irregular_kind;
use svc_base::digest::Digest;

/// Kind of an entry of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    File,
    Folder,
    Link,
    /// Neither, with what it is.
    Other(&'static str),
}

/// Entry of a folder.
#[derive(Clone, Debug)]
pub(crate) struct FolderEntry {
    pub(crate) name: OsString,
    pub(crate) kind: EntryKind,
}

impl DirectoryHandle {
    /// Opens a folder below this one; `None` if it does not exist.
    ///
    /// # Errors
    /// When it lies outside of this folder, or a part of its name is no folder, such as a link.
    pub(crate) fn open_folder(&self, name: &Path) -> Result<Option<Self>> {
        let parts = self.parts(name)?;
        let handle = self.descend(name, &parts, false)?;
        Ok(handle.map(|handle| Self {
            handle,
            path: self.path.join(name),
        }))
    }

    /// Lists the entries of a folder below this one, or of this one for an empty name, sorted by name. At most `most` are read; one more
    /// says that there are others.
    ///
    /// # Errors
    /// When it cannot be read, or lies outside of this folder.
    pub(crate) fn entries(&self, below: &Path, most: usize) -> Result<Vec<FolderEntry>> {
        let failed = |error: io::Error| self.file_failure("Reading", below, &error);
        let missing = || failed(io::ErrorKind::NotFound.into());
        let folder = self.descend(below, &self.parts(below)?, false)?;
        let mut found = Vec::new();
        let entries = folder.ok_or_else(missing)?.entries().map_err(failed)?;
        for entry in entries.take(most.saturating_add(1)) {
            let entry = entry.map_err(failed)?;
            let kind = match entry.metadata() {
                // It has gone since.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(failed(error)),
                Ok(found) if found.is_symlink() => EntryKind::Link,
                Ok(found) if found.is_dir() => EntryKind::Folder,
                Ok(found) => irregular_kind(found.mode()).map_or(EntryKind::File, EntryKind::Other),
            };
            found.push(FolderEntry {
                name: entry.file_name(),
                kind,
            });
        }
        found.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(found)
    }

    /// Reads where a link leads, as it says.
    ///
    /// # Errors
    /// When it is no link, or lies outside of the folder.
    pub(crate) fn link_target(&self, name: &Path) -> Result<PathBuf> {
        let failed = |error: io::Error| self.file_failure("Reading", name, &error);
        match self.find(name)? {
            Some((folder, part)) => folder.read_link_contents(part).map_err(failed),
            None => Err(failed(io::ErrorKind::NotFound.into())),
        }
    }

    /// Computes the digest of a file; returns it with the file's length.
    ///
    /// # Errors
    /// When it is no regular file, lies outside of the folder, or has more than `most` bytes.
    pub(crate) fn digest_of(&self, name: &Path, most: u64) -> Result<(Digest, u64)> {
        let failed = |error: io::Error| self.file_failure("Reading", name, &error);
        let file = self.open_regular(name)?;
        let file = file.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
        let copied = Digest::copy_and_digest(file.take(most.saturating_add(1)), io::sink());
        let (digest, bytes) = copied.map_err(failed)?;
        match bytes <= most {
            true => Ok((digest, bytes)),
            false => Err(CliFailure::local(format!(
                "{} has more than {} MB, and so much is not sent in one file. Nothing was sent.",
                self.display_path(name).display(),
                most >> 20
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_listed_and_no_link_is_followed() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        std::fs::create_dir_all(at("site/docs")).unwrap();
        std::fs::create_dir(at("private")).unwrap();
        std::fs::write(at("private/key"), "secret").unwrap();
        std::fs::write(at("site/a.txt"), "abc").unwrap();
        std::os::unix::fs::symlink("../private", at("site/link")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("site/pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        let folder = DirectoryHandle::open(root.path()).unwrap();
        let site = folder.open_folder(Path::new("site")).unwrap().unwrap();
        let listed = site.entries(Path::new(""), 10).unwrap();
        let kinds: Vec<_> = listed
            .iter()
            .map(|entry| (entry.name.to_str().unwrap(), entry.kind))
            .collect();
        assert_eq!(
            kinds,
            [
                ("a.txt", EntryKind::File),
                ("docs", EntryKind::Folder),
                ("link", EntryKind::Link),
                ("pipe", EntryKind::Other("a named pipe")),
            ]
        );
        assert_eq!(site.entries(Path::new(""), 2).unwrap().len(), 3);
        assert_eq!(
            site.link_target(Path::new("link")).unwrap(),
            Path::new("../private")
        );
        let (digest, bytes) = site.digest_of(Path::new("a.txt"), 3).unwrap();
        assert_eq!((digest, bytes), (Digest::of(b"abc"), 3));
        assert!(site.digest_of(Path::new("a.txt"), 2).is_err());
        for name in ["link/key", "../private/key", "link", "pipe", "docs"] {
            assert!(site.digest_of(Path::new(name), 10).is_err(), "{name}");
        }
        assert!(site.open_folder(Path::new("link")).is_err());
        assert!(site.open_folder(Path::new("none")).unwrap().is_none());
    }
}
