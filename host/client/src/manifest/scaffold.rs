//! Beginnings of a folder: `svc init`, which writes a template, and a first manifest for the pages that are there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::templates::{FolderTemplate, GITIGNORE};
use super::{MANIFEST_FILE, Manifest, ManifestPageEntry};
use crate::OutputFormat;
use crate::error::{CliFailure, FailureExitCode, Result};
use crate::files::DirectoryHandle;
use crate::output::quote_shell_word;
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

/// File that a template shares with other tools: one that is there stays.
const GITIGNORE_FILE: &str = ".gitignore";
/// File that every repository begins with: one that is there stays.
const README_FILE: &str = "README.md";

/// Makes a folder that `svc dev` serves as it is. Files that are there are never replaced.
#[derive(Debug, clap::Args)]
pub struct InitCommand {
    /// The folder, which is made if need be
    #[arg(default_value = ".", value_name = "DIR")]
    folder: PathBuf,
    /// Template: one page, a guest book, a board for several people, a survey, or pages of documents
    #[arg(long, value_enum, default_value_t)]
    template: FolderTemplate,
    /// Answer with one JSON document
    #[arg(long)]
    json: bool,
}

impl InitCommand {
    pub(crate) fn run(self) -> Result<()> {
        let out = OutputFormat { json: self.json };
        let folder = DirectoryHandle::create(&self.folder)?;
        let mut files = self.template.files(&project_name(&self.folder));
        let has_gitignore = folder.has_entry(Path::new(GITIGNORE_FILE))?;
        let has_readme = folder.has_entry(Path::new(README_FILE))?;
        files.retain(|(name, _)| *name != README_FILE || !has_readme);
        let mut taken = Vec::new();
        for (name, _) in &files {
            if folder.has_entry(Path::new(name))? {
                taken.push(format!("`{name}`"));
            }
        }
        if !taken.is_empty() {
            let verb = if taken.len() == 1 { "is" } else { "are" };
            return Err(CliFailure::new(
                FailureExitCode::Conflict,
                "Nothing was written",
                format!(
                    "{} {verb} in {} already, and nothing is replaced. Name another folder: `svc init DIR`.",
                    taken.join(", "),
                    self.folder.display()
                ),
            ));
        }
        if has_readme {
            out.print_note("`README.md` stays as it is.");
        }
        let mut written = Vec::new();
        for (name, text) in &files {
            folder.write(Path::new(name), text.as_bytes(), false)?;
            written.push(*name);
        }
        if has_gitignore {
            out.print_note("`.gitignore` stays as it is: add the line `.svc/` to it, where `svc dev` keeps its data.");
        } else {
            folder.write(Path::new(GITIGNORE_FILE), GITIGNORE.as_bytes(), false)?;
            written.push(GITIGNORE_FILE);
        }
        self.print_written(&written, out)
    }

    /// Says what was written, and what to do next.
    fn print_written(&self, written: &[&str], out: OutputFormat) -> Result<()> {
        let template = self.template.name();
        let document = json!({ "folder": self.folder.display().to_string(), "template": template, "files": written });
        let shown = self.folder.display();
        let (here, dev) = match self.folder == Path::new(".") {
            true => ("this folder".to_owned(), "svc dev".to_owned()),
            false => {
                let word = quote_shell_word(&shown.to_string());
                (shown.to_string(), format!("cd {word} && svc dev"))
            }
        };
        let apply = "svc login URL && svc apply";
        let width = dev.chars().count().max(apply.len());
        let text = format!(
            "{here} has the template `{template}` now: {}\n\n  {dev:width$}   serves it here, and shows each save at once\n  {apply:width$}   puts it on a server",
            written.join(", ")
        );
        out.print_answer(&document, &text)
    }
}

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
