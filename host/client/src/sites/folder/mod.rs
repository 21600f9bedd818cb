//! A folder of this machine that is published as a site: its files by their paths, and what is left out.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::paths::{WELL_KNOWN, path_fault, to_nfc};
use super::texts::name_some;
use super::{SiteOptions, content_digest};
use crate::error::{CliFailure, FailureExitCode, Result};
use crate::files::{DirectoryHandle, EntryKind};
use crate::source::slug_of;
use svc_base::digest::Digest;
use svc_base::names::slugify;
use svc_base::pluralize;

/// Title of the failure of a folder without files.
pub(crate) const NOTHING_TO_PUBLISH: &str = "Nothing to publish";
/// Most files of a folder; a server has less room.
const MAX_FILES: usize = 100_000;
/// Most bytes of a file, all of which are in memory while it is sent.
const MAX_FILE_BYTES: u64 = 256 << 20;
/// Folder of packages, which is never published.
const PACKAGES: &str = "node_modules";
/// Manifest of a project, which is none of a site's files.
const MANIFEST: &str = "svc.toml";

/// A file of a site on this machine.
#[derive(Clone, Debug)]
pub(crate) struct LocalFile {
    pub(crate) digest: Digest,
    pub(crate) bytes: u64,
    place: FilePlace,
}

/// Place of a file's bytes.
#[derive(Clone, Debug)]
enum FilePlace {
    /// A file, by its name in the folder.
    Disk(PathBuf),
    Memory(Arc<[u8]>),
}

/// Files that are published as a site.
#[derive(Clone, Debug)]
pub(crate) struct SiteFolder {
    /// Path of the folder for messages.
    pub(crate) path: PathBuf,
    /// Files by their paths in the site.
    pub(crate) files: BTreeMap<String, LocalFile>,
    /// Notes about what is left out, for the user.
    pub(crate) notes: Vec<String>,
    /// Paths that are links, with those that they lead to within the folder.
    links: BTreeMap<String, Option<String>>,
    folder: Option<Arc<DirectoryHandle>>,
}

/// A folder that is being read.
struct FolderReader {
    folder: DirectoryHandle,
    /// Names of the files by their paths.
    names: BTreeMap<String, PathBuf>,
    hidden: Vec<String>,
    others: Vec<String>,
    renamed: Vec<String>,
    links: Vec<PathBuf>,
    /// Paths of the links, with those that they lead to within the folder.
    targets: BTreeMap<String, Option<String>>,
    /// Entries that may still be read.
    left: usize,
}

/// Whether a path that the user has named is a folder. A link to one is none.
pub(crate) fn is_folder(path: &Path) -> bool {
    // A slash at the end would follow a link.
    let path = path.components().as_path();
    std::fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// Slug by the name of a folder, or of a file without its ending; `None` if no character of it fits.
pub(crate) fn slug_of_site(path: &Path) -> Option<String> {
    match path.is_dir() {
        true => {
            let path = path.canonicalize().ok()?;
            let slug = slugify(path.file_name()?.to_str()?);
            (!slug.is_empty()).then_some(slug)
        }
        false => slug_of(path),
    }
}

impl LocalFile {
    /// Makes a file of bytes.
    pub(super) fn of_bytes(bytes: &[u8]) -> Self {
        Self {
            digest: Digest::of(bytes),
            bytes: bytes.len() as u64,
            place: FilePlace::Memory(bytes.into()),
        }
    }
}

impl SiteFolder {
    /// Reads a folder that the user has named.
    ///
    /// # Errors
    /// When something in it cannot be read or published, or there is nothing.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        Self::of_handle(DirectoryHandle::open(path.components().as_path())?)
    }

    /// Reads the folder of a handle.
    ///
    /// # Errors
    /// As of [`Self::read`].
    pub(crate) fn of_handle(folder: DirectoryHandle) -> Result<Self> {
        let path = path_of(&folder);
        let mut reader = FolderReader {
            folder,
            names: BTreeMap::new(),
            hidden: Vec::new(),
            others: Vec::new(),
            renamed: Vec::new(),
            links: Vec::new(),
            targets: BTreeMap::new(),
            left: MAX_FILES,
        };
        reader.walk()?;
        reader.resolve_links()?;
        let notes = reader.notes();
        let FolderReader {
            folder,
            names,
            targets,
            ..
        } = reader;
        if names.is_empty() {
            return Err(CliFailure::new(
                FailureExitCode::Failed,
                NOTHING_TO_PUBLISH,
                format!(
                    "{} has no file that could be published. Has the build run?",
                    shown(&path)
                ),
            ));
        }
        let mut files = BTreeMap::new();
        for (path, name) in names {
            let (digest, bytes) = folder.digest_of(&name, MAX_FILE_BYTES)?;
            let place = FilePlace::Disk(name);
            let file = LocalFile {
                digest,
                bytes,
                place,
            };
            files.insert(path, file);
        }
        Ok(Self {
            path,
            files,
            notes,
            links: targets,
            folder: Some(Arc::new(folder)),
        })
    }

    /// Makes a site of files that are in memory.
    pub(super) fn of_files(path: &Path, files: BTreeMap<String, LocalFile>) -> Self {
        Self {
            path: path.to_owned(),
            files,
            notes: Vec::new(),
            links: BTreeMap::new(),
            folder: None,
        }
    }

    /// Slug by the name of the folder or file; `None` if no character of it fits.
    pub(crate) fn slug(&self) -> Option<String> {
        slug_of_site(&self.path)
    }

    /// Returns the number of bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        self.files.values().map(|file| file.bytes).sum()
    }

    /// Describes how much the site is.
    pub(crate) fn size(&self) -> String {
        let files = pluralize(self.files.len(), "file");
        format!("{files}, {}", super::size_text(self.bytes()))
    }

    /// Computes the digest of the content with options.
    pub(crate) fn content_digest(&self, options: &SiteOptions) -> String {
        let files = self.files.iter();
        content_digest(
            files.map(|(path, file)| (path.as_str(), file.digest)),
            options,
        )
    }

    /// Checks that the fallback is one of the files.
    ///
    /// # Errors
    /// When it is none.
    pub(crate) fn check_options(&self, options: &SiteOptions) -> Result<()> {
        match &options.fallback {
            Some(fallback) if !self.files.contains_key(fallback) => {
                Err(CliFailure::local(format!(
                    "{} has no file `{fallback}`, which `fallback` names.",
                    shown(&self.path)
                )))
            }
            _ => Ok(()),
        }
    }

    /// Returns the name that a path of the site has in the folder, if it is there.
    pub(crate) fn name_of(&self, path: &str) -> Option<&Path> {
        match &self.files.get(path)?.place {
            FilePlace::Disk(name) => Some(name),
            FilePlace::Memory(_) => None,
        }
    }

    /// Returns the path that the folder's links lead a path to: itself, where none is on its way. `None` if they lead to no file of the
    /// folder.
    pub(crate) fn linked_path<'p>(&self, path: &'p str) -> Option<Cow<'p, str>> {
        let ends = path.match_indices('/').map(|(end, _)| end);
        for end in ends.chain([path.len()]) {
            if let Some(target) = self.links.get(&path[..end]) {
                let target = target.as_ref()?;
                return Some(format!("{target}{}", &path[end..]).into());
            }
        }
        Some(path.into())
    }

    /// Reads a file again, which must be as it was.
    ///
    /// # Errors
    /// When it cannot be read, or has changed.
    pub(super) fn read_file(&self, path: &str) -> Result<Vec<u8>> {
        let Some(file) = self.files.get(path) else {
            return Err(CliFailure::local(format!(
                "`{path}` is no file of the site."
            )));
        };
        let bytes = match (&file.place, &self.folder) {
            (FilePlace::Memory(bytes), _) => bytes.to_vec(),
            (FilePlace::Disk(name), Some(folder)) => {
                let read = folder.read_with_owner(name, MAX_FILE_BYTES)?;
                read.map(|(bytes, _)| bytes).unwrap_or_default()
            }
            (FilePlace::Disk(_), None) => Vec::new(),
        };
        match Digest::of(&bytes) == file.digest {
            true => Ok(bytes),
            false => Err(CliFailure::new(
                FailureExitCode::Failed,
                "A file has changed meanwhile",
                format!(
                    "{} was written while it was read. Run the command again once the build has ended.",
                    self.path.join(path).display()
                ),
            )),
        }
    }
}

impl FolderReader {
    /// Finds all files.
    fn walk(&mut self) -> Result<()> {
        let mut open = vec![PathBuf::new()];
        while let Some(below) = open.pop() {
            let entries = self.folder.entries(&below, self.left)?;
            self.left = self
                .left
                .checked_sub(entries.len())
                .ok_or_else(|| self.too_many())?;
            for entry in entries {
                let name = below.join(&entry.name);
                if is_left_out(&name) {
                    self.hidden.push(name.display().to_string());
                    continue;
                }
                match entry.kind {
                    EntryKind::Folder => open.push(name),
                    EntryKind::File => self.add(&name, &name)?,
                    EntryKind::Link => self.links.push(name),
                    EntryKind::Other(kind) => {
                        self.others.push(format!("{} is {kind}", name.display()));
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds a file under the path that a name makes.
    fn add(&mut self, name: &Path, file: &Path) -> Result<()> {
        let refused = |why: &str| {
            let shown = self.folder.display_path(name);
            CliFailure::new(
                FailureExitCode::Failed,
                "A file cannot be published",
                format!("{} {why}. Rename it. Nothing was sent.", shown.display()),
            )
        };
        let Some(path) = site_path(name) else {
            return Err(refused("has a name that is no text in UTF-8"));
        };
        let normal = to_nfc(&path);
        if let Some(fault) = path_fault(&normal) {
            return Err(refused(fault));
        }
        if normal != path {
            self.renamed.push(normal.clone());
        }
        if self.names.contains_key(&normal) {
            return Err(refused(
                "has the name of another file in Unicode's normal form",
            ));
        }
        self.names.insert(normal, file.to_owned());
        if self.names.len() > MAX_FILES {
            return Err(self.too_many());
        }
        Ok(())
    }

    /// Publishes what links to files and folders of the site lead to. Where another leads is not looked at, so that none publishes what
    /// is hidden, or lies elsewhere.
    fn resolve_links(&mut self) -> Result<()> {
        for link in std::mem::take(&mut self.links) {
            let target = self.folder.link_target(&link)?;
            let inside = lexical_target(&link, &target).and_then(|target| site_path(&target));
            let inside = inside.map(|target| to_nfc(&target));
            let found = inside.as_ref().map(|target| self.files_at(&link, target));
            if let Some(path) = site_path(&link) {
                self.targets.insert(to_nfc(&path), inside);
            }
            match found {
                Some(found) if !found.is_empty() => {
                    for (name, file) in found {
                        self.add(&name, &file)?;
                    }
                }
                _ => self.others.push(format!(
                    "{} is a link to {}, which is no file of the site",
                    link.display(),
                    target.display()
                )),
            }
        }
        Ok(())
    }

    /// Lists the files that a link stands for, each with the name that it has by the link.
    fn files_at(&self, link: &Path, target: &str) -> Vec<(PathBuf, PathBuf)> {
        if let Some(file) = self.names.get(target) {
            return vec![(link.to_owned(), file.clone())];
        }
        let folder = format!("{target}/");
        // A link to a folder that it lies in would go on for ever.
        if site_path(link).is_none_or(|link| to_nfc(&link).starts_with(&folder)) {
            return Vec::new();
        }
        let below = self.names.range(folder.clone()..);
        let below = below.take_while(|(path, _)| path.starts_with(&folder));
        below
            .map(|(path, file)| (link.join(&path[folder.len()..]), file.clone()))
            .collect()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.hidden.is_empty() {
            let names = name_some(self.hidden.iter().map(String::as_str));
            notes.push(format!(
                "Left out: {names}. Hidden files, {PACKAGES} and {MANIFEST} are not published."
            ));
        }
        if !self.others.is_empty() {
            let names = name_some(self.others.iter().map(String::as_str));
            notes.push(format!(
                "warning: left out: {names}. Put the files themselves there."
            ));
        }
        if !self.renamed.is_empty() {
            let names = name_some(self.renamed.iter().map(String::as_str));
            notes.push(format!(
                "Published in Unicode's normal form NFC, as addresses are written: {names}."
            ));
        }
        notes
    }

    fn too_many(&self) -> CliFailure {
        CliFailure::local(format!(
            "{} has more than {MAX_FILES} files and folders: a site of this size is not read. Nothing was sent.",
            shown(&path_of(&self.folder))
        ))
    }
}

/// Whether a name is never published.
fn is_left_out(name: &Path) -> bool {
    let last = name.file_name().unwrap_or_default();
    let is_hidden = last.to_string_lossy().starts_with('.') && last != OsStr::new(WELL_KNOWN);
    is_hidden || last == OsStr::new(PACKAGES) || name == Path::new(MANIFEST)
}

/// Whether a path of a site is one that no folder publishes.
pub(crate) fn is_path_left_out(path: &str) -> bool {
    Path::new(path).ancestors().any(is_left_out)
}

/// Path in the site of a name in the folder; `None` if it is no text in UTF-8.
fn site_path(name: &Path) -> Option<String> {
    let parts = name.components().map(|part| part.as_os_str().to_str());
    let parts: Option<Vec<_>> = parts.collect();
    parts.map(|parts| parts.join("/"))
}

/// Name in the folder that a link leads to, by its text alone; `None` if it leads out of the folder.
fn lexical_target(link: &Path, target: &Path) -> Option<PathBuf> {
    let mut name = link.parent()?.to_owned();
    for part in target.components() {
        match part {
            Component::Normal(part) => name.push(part),
            Component::CurDir => {}
            Component::ParentDir => {
                if !name.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(name)
}

/// Path of a folder, relative to where the command was run.
fn path_of(folder: &DirectoryHandle) -> PathBuf {
    match folder.display_path(Path::new("")) {
        path if path.as_os_str().is_empty() => PathBuf::from("."),
        path => path,
    }
}

/// Path of a folder for a sentence.
fn shown(path: &Path) -> String {
    match path == Path::new(".") {
        true => "This folder".to_owned(),
        false => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests;
