//! First manifest of a folder, with the pages that are there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{MANIFEST_FILE, Manifest, ManifestPageEntry};
use crate::error::{CliFailure, Result};
use crate::files::DirectoryHandle;
use crate::source::slug_of;
use svc_base::names::PROJECT_NAME_LENGTH;
use svc_sources::ContentType;

/// The most pages of a first manifest.
const MAX_PAGES: usize = 50;
/// First page for a folder without pages.
const FIRST_PAGE: (&str, &str) = (
    "home.md",
    "# Hello\n\nThis page is `home.md`. Change the file, and the page changes.\n",
);

/// Writes a manifest with the pages of a folder, or with a first page; returns the names of the written files.
///
/// # Errors
/// When a file exists already, or cannot be written.
pub(super) fn write_first_manifest(folder: &DirectoryHandle, path: &Path) -> Result<Vec<PathBuf>> {
    let mut written = Vec::new();
    let mut pages = page_entries(folder)?;
    if pages.is_empty() {
        let (name, text) = FIRST_PAGE;
        folder.write(Path::new(name), text.as_bytes(), false)?;
        pages.insert("home".to_owned(), ManifestPageEntry::File(name.into()));
        written.push(name.into());
    }
    let home = ["home", "index"]
        .into_iter()
        .find(|slug| pages.contains_key(*slug));
    let manifest = Manifest {
        project: project_name(path),
        home: home.map(str::to_owned),
        pages,
        ..Manifest::default()
    };
    let text = toml::to_string(&manifest).map_err(|error| CliFailure::local(error.to_string()))?;
    folder.write(Path::new(MANIFEST_FILE), text.as_bytes(), false)?;
    written.push(MANIFEST_FILE.into());
    Ok(written)
}

/// Lists the files of a folder that are pages, by their slugs.
fn page_entries(folder: &DirectoryHandle) -> Result<BTreeMap<String, ManifestPageEntry>> {
    let mut pages = BTreeMap::new();
    for extension in ContentType::ALL.iter().flat_map(|kind| kind.extensions()) {
        for file in folder.list(Path::new("."), extension)?.unwrap_or_default() {
            let name = PathBuf::from(file.file_name().unwrap_or_default());
            if let Some(slug) = slug_of(&name)
                && pages.len() < MAX_PAGES
                && name.to_str().is_some()
                && folder.exists(&name).unwrap_or(false)
            {
                pages.entry(slug).or_insert(ManifestPageEntry::File(name));
            }
        }
    }
    Ok(pages)
}

/// Name of the project: the name of the folder.
fn project_name(path: &Path) -> String {
    let path = path.canonicalize().unwrap_or_default();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name: String = name.trim().chars().take(PROJECT_NAME_LENGTH).collect();
    match name.is_empty() {
        true => "My project".to_owned(),
        false => name,
    }
}
