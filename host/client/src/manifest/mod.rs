//! The manifest `svc.toml` of a project's folder, with its pages, migrations and actions.

mod apply;
mod authorship;
mod dev;
mod domains;
mod environments;
mod faults;
mod idempotent_create;
mod meetings;
mod merge;
mod pages;
mod parts;
mod plan;
mod prices;
mod pull;
mod release;
mod remote_state;
mod runner;
mod scaffold;
mod settings;
mod steps;
mod suffixes;
mod templates;

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::actions::ActionFile;
use super::error::{CliFailure, FailureExitCode, Result};
use super::files::DirectoryHandle;
use super::sites::SiteFolder;
use super::source::{self, SourceToPublish};
use svc_base::digest::Digest;
use svc_base::names::is_slug;

use environments::Environments;
use faults::{ManifestFault, offset_of};
use pages::{LocalContent, LocalPage, LocalSite, ManifestPageEntry};
use prices::PriceEntry;

pub(super) use apply::ApplyCommand;
pub use dev::{DevServerSettings, FolderDevCommand, StartedDevServer};
pub(super) use environments::no_manifest_for;
pub(super) use meetings::{IGNORE_FILE, file_name as state_file_name};
pub(super) use pull::PullCommand;
pub(super) use scaffold::InitCommand;

/// Name of the manifest.
pub(super) const MANIFEST_FILE: &str = "svc.toml";
/// Default folder of migrations.
const DEFAULT_MIGRATIONS: &str = "migrations";
/// Default folder of actions.
const DEFAULT_ACTIONS: &str = "actions";
/// The most bytes of a manifest.
const MAX_MANIFEST_BYTES: u64 = 1 << 20;
/// The most bytes of the files of a folder, all of which are held in memory.
const MAX_FOLDER_BYTES: usize = 256 << 20;
/// The most files of a folder.
const MAX_FOLDER_FILES: usize = 10_000;
/// Title of the failure of a folder that is not there.
const NO_SUCH_FOLDER: &str = "No such folder";
/// Extension of SQL files.
const SQL_EXTENSION: &str = "sql";

/// Users whose manifests are taken. A manifest says which files are published and in which project, so that one of another user,
/// as in `/tmp` or in a shared folder, could use the caller's credential.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(super) struct AcceptedOwners {
    /// Take svc.toml although it belongs to another user
    #[arg(long)]
    any_owner: bool,
}

/// Content of a manifest.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    /// The project's name.
    pub(super) project: String,
    /// Description of the project; unchanged if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
    /// Server that the folder is for: it is applied to no other.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    /// The profile of `svc login` to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<String>,
    /// Workspace that owns the project; needed only if the caller has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) workspace: Option<String>,
    /// Home page of the project; unchanged if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) home: Option<String>,
    /// Whether the rooms are open; unchanged if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) realtime: Option<bool>,
    /// Whether agents get the actions as tools; unchanged if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) agents: Option<bool>,
    /// The folder of migrations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) migrations: Option<PathBuf>,
    /// The folder of actions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) actions: Option<PathBuf>,
    /// Host names at which the project answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    domains: Vec<String>,
    /// The pages by their slugs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) pages: BTreeMap<String, ManifestPageEntry>,
    /// Prices that the project sells for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    prices: Vec<PriceEntry>,
    /// Other servers, and what differs there.
    #[serde(default, skip_serializing_if = "Environments::is_empty")]
    env: Environments,
    /// Name of the environment that was chosen.
    #[serde(skip)]
    environment: Option<String>,
}

/// A migration in a file.
#[derive(Clone, Debug)]
pub(super) struct MigrationFile {
    /// The file's name.
    pub(super) name: String,
    /// Path of the file for messages.
    pub(super) path: PathBuf,
    pub(super) sql: String,
    pub(super) checksum: String,
}

/// Files and bytes that a folder may still have. A few names in a manifest can stand for more than the memory holds.
#[derive(Debug)]
struct FolderBudget {
    files: usize,
    bytes: usize,
}

/// A project's folder, read as a whole.
#[derive(Clone, Debug)]
pub(super) struct ProjectFolder {
    pub(super) manifest: Manifest,
    /// Sorted by file name.
    pub(super) migrations: Vec<MigrationFile>,
    pub(super) actions: Vec<ActionFile>,
    pages: Vec<LocalPage>,
}

impl AcceptedOwners {
    /// Takes manifests of all users: for a server that keeps nothing and has no credential of the user.
    pub(super) const ALL: Self = Self { any_owner: true };

    /// Checks that the owner of a manifest is the user or root; `remedy` says how to do without.
    pub(super) fn check(self, owner: u32, path: &Path, remedy: &str) -> Result<()> {
        let user = rustix::process::geteuid().as_raw();
        if self.any_owner || is_trusted_owner(owner, user, sudo_user()) {
            return Ok(());
        }
        Err(CliFailure::new(
            FailureExitCode::Failed,
            "Another user's manifest",
            format!(
                "{} belongs to the user {owner}, who could publish by it with your credential. {remedy}",
                path.display()
            ),
        ))
    }
}

/// Whether a manifest of `owner` is taken unasked: the user's, root's, and as root that of the user who called `sudo`.
fn is_trusted_owner(owner: u32, user: u32, sudo_user: Option<u32>) -> bool {
    owner == user || owner == 0 || (user == 0 && sudo_user == Some(owner))
}

/// User who called `sudo`. Only root believes the variable.
#[allow(
    clippy::disallowed_methods,
    reason = "`sudo` says by its environment alone who has called it"
)]
fn sudo_user() -> Option<u32> {
    std::env::var("SUDO_UID").ok()?.parse().ok()
}

impl Manifest {
    /// Manifest of the working directory in an environment, if there is one. A file of that name without a project belongs to another
    /// program, such as a server's settings.
    ///
    /// # Errors
    /// When it names a project and is no valid manifest, is another user's, is no regular file, or lacks the environment.
    pub(super) fn find_here(environment: Option<&str>) -> Result<Option<Self>> {
        let here = DirectoryHandle::open(Path::new("."))?;
        let path = Path::new(MANIFEST_FILE);
        let remedy = "Name the project with `--project`, and the file is not read.";
        let hinted = |failure: CliFailure| failure.with_hint(remedy);
        // A server's settings may be readable only by another user.
        if !here.exists(path).map_err(hinted)? || here.is_unreadable(path) {
            return Ok(None);
        }
        let read = here.read_with_owner(path, MAX_MANIFEST_BYTES);
        let Some((bytes, owner)) = read.map_err(hinted)? else {
            return Ok(None);
        };
        let Ok(text) = String::from_utf8(bytes) else {
            return Ok(None);
        };
        let names_one =
            toml::from_str::<toml::Table>(&text).is_ok_and(|table| table.contains_key("project"));
        if !names_one {
            return Ok(None);
        }
        AcceptedOwners::default().check(owner, path, remedy)?;
        let manifest = Self::parse(&text, path)?;
        manifest.in_environment(environment).map(Some)
    }

    /// Reads the manifest of a folder.
    ///
    /// # Errors
    /// When there is no manifest, it is another user's, or it is not valid.
    pub(super) fn read(folder: &DirectoryHandle, owners: AcceptedOwners) -> Result<Self> {
        let name = Path::new(MANIFEST_FILE);
        let path = folder.display_path(name);
        let Some((bytes, owner)) = folder.read_with_owner(name, MAX_MANIFEST_BYTES)? else {
            return Err(CliFailure::new(
                FailureExitCode::NotFound,
                "No manifest",
                format!(
                    "{} is not there, which says what the project is. `svc init` makes a folder to begin with, `svc dev --begin` writes one for the pages of the folder, `svc pull --project P` one for a project that is on a server.",
                    path.display()
                ),
            ));
        };
        let remedy = "If you trust that user, `--any-owner` takes the file all the same.";
        owners.check(owner, &path, remedy)?;
        Self::parse(&source::parse_utf8(bytes, &path)?, &path)
    }

    fn parse(text: &str, path: &Path) -> Result<Self> {
        let manifest: Self = toml::from_str(text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            CliFailure::in_text("Not valid", error.message(), (path, text), offset)
        })?;
        if let Some(slug) = manifest.pages.keys().find(|slug| !is_slug(slug)) {
            let detail = format!(
                "The page `{slug}` cannot have that slug: use 1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit."
            );
            return Err(ManifestFault::new(slug, detail).in_text(path, text));
        }
        if let Some(site) = manifest.site_of_everything() {
            let detail = "A site is a folder in this one, such as `dist`: what lies beside svc.toml is not published as a whole.";
            return Err(ManifestFault::new(site, detail.to_owned()).in_text(path, text));
        }
        let pages = manifest.pages.values().map(ManifestPageEntry::path);
        let hidden = pages
            .chain([manifest.migrations(), manifest.actions()])
            .find(|name| is_hidden(name));
        if let Some(name) = hidden {
            let name = name.display().to_string();
            let detail = format!(
                "{name} is hidden, and hidden files are neither published nor written: settings and keys are kept in such. Give it another name."
            );
            return Err(ManifestFault::new(&name, detail).in_text(path, text));
        }
        match manifest.fault_of_environments() {
            Some(fault) => Err(fault.in_text(path, text)),
            None => Ok(manifest),
        }
    }

    /// Slug of a site whose folder is that of the manifest itself.
    fn site_of_everything(&self) -> Option<&str> {
        let mut pages = self.pages.iter();
        let is_everything = |entry: &ManifestPageEntry| {
            let mut parts = entry.path().components();
            entry.site().is_some() && parts.all(|part| part == Component::CurDir)
        };
        pages
            .find(|(_, entry)| is_everything(entry))
            .map(|(slug, _)| slug.as_str())
    }

    /// The folder of migrations.
    pub(super) fn migrations(&self) -> &Path {
        self.migrations
            .as_deref()
            .unwrap_or(Path::new(DEFAULT_MIGRATIONS))
    }

    /// The folder of actions.
    pub(super) fn actions(&self) -> &Path {
        self.actions
            .as_deref()
            .unwrap_or(Path::new(DEFAULT_ACTIONS))
    }
}

/// Whether a relative path has a hidden part. `GIT~1` is the short name that some file systems give to `.git`, and others leave
/// characters out that are not seen.
fn is_hidden(path: &Path) -> bool {
    let is_short_name = |name: &str| {
        name.get(..4)
            .is_some_and(|begin| begin.eq_ignore_ascii_case("git~"))
    };
    let mut parts = path.components();
    path.is_relative()
        && parts.any(|part| match part {
            Component::Normal(part) => {
                let name = part.to_string_lossy();
                let name = name.trim_start_matches(is_left_out);
                name.starts_with('.') || is_short_name(name)
            }
            _ => false,
        })
}

/// Whether HFS+ leaves a character out where it compares names.
fn is_left_out(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

impl FolderBudget {
    fn new() -> Self {
        Self {
            files: MAX_FOLDER_FILES,
            bytes: MAX_FOLDER_BYTES,
        }
    }

    /// Reads a file within the budget.
    ///
    /// # Errors
    /// When it cannot be read, or the folder has too much.
    fn read(&mut self, folder: &DirectoryHandle, name: &Path) -> Result<Vec<u8>> {
        let too_much = || {
            CliFailure::local(format!(
                "svc.toml names more than {MAX_FOLDER_FILES} files, or more than {} MiB of them: a folder of this size is not read. Nothing was sent.",
                MAX_FOLDER_BYTES >> 20
            ))
        };
        self.files = self.files.checked_sub(1).ok_or_else(too_much)?;
        let bytes = folder.read(name)?;
        self.bytes = self.bytes.checked_sub(bytes.len()).ok_or_else(too_much)?;
        Ok(bytes)
    }

    /// Reads a text file within the budget.
    fn read_text(&mut self, folder: &DirectoryHandle, name: &Path) -> Result<String> {
        source::parse_utf8(self.read(folder, name)?, &folder.display_path(name))
    }
}

impl ProjectFolder {
    /// Reads a folder with everything that its manifest names.
    ///
    /// # Errors
    /// When something cannot be read, is no regular file, or lies outside of the folder.
    pub(super) fn read(folder: &DirectoryHandle, owners: AcceptedOwners) -> Result<Self> {
        let manifest = Manifest::read(folder, owners)?;
        let mut budget = FolderBudget::new();
        let mut migrations = Vec::new();
        for name in sql_files(folder, manifest.migrations(), manifest.migrations.is_some())? {
            let sql = budget.read_text(folder, &name)?;
            migrations.push(MigrationFile::new(folder, &name, sql));
        }
        let mut actions = Vec::new();
        for name in sql_files(folder, manifest.actions(), manifest.actions.is_some())? {
            let sql = budget.read_text(folder, &name)?;
            actions.push(ActionFile::new(&folder.display_path(&name), sql)?);
        }
        let mut pages = Vec::new();
        for (slug, entry) in &manifest.pages {
            let content = read_page(folder, entry, &mut budget);
            pages.push(LocalPage {
                slug: slug.clone(),
                title: entry.title().map(str::to_owned),
                content: content.map_err(|failure| missing_page(failure, folder, entry))?,
            });
        }
        Ok(Self {
            manifest,
            migrations,
            actions,
            pages,
        })
    }

    /// Finds an action by its name.
    fn action(&self, name: &str) -> Option<&ActionFile> {
        self.actions.iter().find(|action| action.name == name)
    }

    /// Finds a price by its key.
    fn price(&self, key: &str) -> Option<&PriceEntry> {
        self.manifest.prices.iter().find(|price| price.key == key)
    }

    /// Whether the folder has anything that needs a database.
    fn has_actions_or_switches(&self) -> bool {
        let switched = [self.manifest.realtime, self.manifest.agents];
        !self.actions.is_empty() || switched.contains(&Some(true))
    }
}

/// Reads the file or the folder of a page.
fn read_page(
    folder: &DirectoryHandle,
    entry: &ManifestPageEntry,
    budget: &mut FolderBudget,
) -> Result<LocalContent> {
    let Some(site) = entry.site() else {
        let bytes = budget.read(folder, entry.path())?;
        let path = folder.display_path(entry.path());
        return SourceToPublish::from_bytes(&path, &bytes, None).map(LocalContent::Page);
    };
    let path = folder.display_path(&site.folder);
    let missing = || {
        let detail = format!("{} is not there.", path.display());
        CliFailure::new(FailureExitCode::NotFound, NO_SUCH_FOLDER, detail)
    };
    let opened = folder.open_folder(&site.folder)?.ok_or_else(missing)?;
    let (site, options) = (SiteFolder::of_handle(opened)?, site.options());
    let manifest = folder.display_path(Path::new(MANIFEST_FILE));
    site.check_options(&options)
        .map_err(|failure| failure.with_file(&manifest))?;
    Ok(LocalContent::Site(LocalSite {
        folder: site,
        options,
    }))
}

/// Failure of a page whose file is not there, with the place where svc.toml names it.
fn missing_page(
    failure: CliFailure,
    folder: &DirectoryHandle,
    entry: &ManifestPageEntry,
) -> CliFailure {
    let is_site = entry.site().is_some();
    // A file that a build takes away while its folder is read is none that svc.toml names.
    if !failure.is_not_found() || (is_site && !failure.is_titled(NO_SUCH_FOLDER)) {
        return failure;
    }
    let file = entry.path();
    let manifest = Path::new(MANIFEST_FILE);
    let text = folder.read_text(manifest).unwrap_or_default();
    let offset = offset_of(&text, &file.to_string_lossy());
    let detail = format!("{} is not there.", folder.display_path(file).display());
    let place = (&*folder.display_path(manifest), &*text);
    let title = if is_site {
        NO_SUCH_FOLDER
    } else {
        "No such file"
    };
    let mut failure = CliFailure::in_text(title, detail, place, offset);
    failure.exit = FailureExitCode::NotFound;
    match is_site {
        true => failure.with_hint("Has the build run?"),
        false => failure,
    }
}

/// Lists the SQL files of a folder, sorted by name. A missing folder is an error only if the manifest names it.
fn sql_files(folder: &DirectoryHandle, below: &Path, is_named: bool) -> Result<Vec<PathBuf>> {
    match folder.list(below, SQL_EXTENSION)? {
        Some(files) => Ok(files),
        None if !is_named => Ok(Vec::new()),
        None => Err(CliFailure::new(
            FailureExitCode::NotFound,
            NO_SUCH_FOLDER,
            format!(
                "{} is not there, and svc.toml names it.",
                folder.display_path(below).display()
            ),
        )),
    }
}

impl MigrationFile {
    fn new(folder: &DirectoryHandle, name: &Path, sql: String) -> Self {
        let file = name.file_name().unwrap_or_default();
        Self {
            name: file.to_string_lossy().into_owned(),
            path: folder.display_path(name),
            checksum: Digest::of(sql.as_bytes()).to_string(),
            sql,
        }
    }
}

#[cfg(test)]
mod tests;
