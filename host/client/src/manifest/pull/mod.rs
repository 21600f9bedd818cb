//! `svc pull`: makes the folder like the server.

mod notes;
mod scripts;
mod sites;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use self::sites::read_local_site;
use super::meetings::Meetings;
use super::pages::FrontendType;
use super::prices::{PriceEntry, Recurrence};
use super::remote_state::{RemotePrice, RemoteProjectState};
use super::{AcceptedOwners, MANIFEST_FILE, Manifest, ManifestPageEntry, ProjectFolder};
use crate::api::ApiClient;
use crate::error::{CliFailure, FailureExitCode, Result};
use crate::files::{DirectoryHandle, FileComparison};
use crate::frontends::FrontendSource;
use crate::output::escape_line;
use crate::progress::TerminalProgressBar;
use crate::projects::ProjectSelectionArgs;
use crate::question::ChangeQuestion;
use crate::sites::RemoteSite;
use crate::source::SourceToPublish;
use crate::{CommonArgs, endpoints};
use svc_base::digest::Digest;

/// The most bytes of a pull, all of which are held in memory until they are complete.
const MAX_BYTES: usize = 256 << 20;
/// Most files of a pull, but for those of sites.
const MAX_FILES: usize = 10_000;
/// Most files of a pull with those of sites, as many as a folder that is published may have.
const MAX_ALL_FILES: usize = 100_000;

/// Makes the folder like the server: what is not on the server stays.
#[derive(Debug, clap::Args)]
pub struct PullCommand {
    /// The folder; it is made if need be
    #[arg(default_value = ".")]
    folder: PathBuf,
    #[command(flatten)]
    project_option: ProjectSelectionArgs,
    /// Replace files that differ without asking
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    owners: AcceptedOwners,
    #[command(flatten)]
    common: CommonArgs,
}

/// A file to write.
#[derive(Debug)]
struct PlannedFileWrite {
    /// Name relative to the folder.
    name: PathBuf,
    bytes: Vec<u8>,
    /// Whether the file does not exist yet.
    is_new: bool,
}

/// Files that a pull will write.
#[derive(Debug)]
struct PullPlan {
    folder: DirectoryHandle,
    files: Vec<PlannedFileWrite>,
    /// Names of all files of the pull, to find duplicates.
    names: BTreeSet<PathBuf>,
    bytes: usize,
    notes: Vec<String>,
    /// Sites that the folder does not have as the server has them, by their slugs there.
    sites: BTreeMap<String, RemoteSite>,
}

impl PullCommand {
    pub(crate) async fn run(self) -> Result<()> {
        let (api, manifest, mut state) = self.find().await?;
        // A manifest that is written anew has the prices.
        if manifest.is_none() && state.prices.is_none() {
            state.fetch_prices(&api).await?;
        }
        check_count(&state)?;
        let mut files = PullPlan {
            folder: DirectoryHandle::create(&self.folder)?,
            files: Vec::new(),
            names: BTreeSet::new(),
            bytes: 0,
            notes: Vec::new(),
            sites: BTreeMap::new(),
        };
        let (project, server) = (&state.project.id, api.server_url());
        let (meetings, note) = Meetings::read(&files.folder, self.owners, server, project);
        files.notes.extend(note);
        if let Some(manifest) = &manifest {
            files
                .set_apart(&api, manifest, &mut state, &meetings)
                .await?;
        }
        files.read_sites(&api, manifest.as_ref(), &state).await?;
        let manifest = files.add_manifest(manifest, &state)?;
        files.add_pages(&api, &manifest, &state).await?;
        files.add_sql(&manifest, &state)?;
        files.note_differences(&manifest, &state, &meetings)?;
        self.write(&files, &api, &state)?;
        self.write_meeting(&files.folder, meetings, &state)
    }

    /// Finds the project of the folder, else the one that is named; returns it with a client of its server, and with the folder's manifest.
    async fn find(&self) -> Result<(ApiClient, Option<Manifest>, RemoteProjectState)> {
        let named = &self.project_option.project;
        let Some(manifest) = self.read_manifest()? else {
            let (api, project) = self.project_option.open(&self.common.remote).await?;
            let api = api.with_retries();
            let state = RemoteProjectState::read(&api, project).await?;
            return Ok((api, None, state));
        };
        if named.is_some() {
            return Err(CliFailure::local(format!(
                "{} names its project: leave `--project` out, or pull into another folder.",
                self.folder.join(MANIFEST_FILE).display()
            )));
        }
        let environment = self.project_option.environment();
        let manifest = manifest.in_environment(environment.as_deref())?;
        let api = ApiClient::for_folder(&self.common.remote, &manifest.target()?)?.with_retries();
        let state = RemoteProjectState::find(&api, &manifest).await?;
        let state = state.ok_or_else(|| no_such_project(&manifest.project))?;
        Ok((api, Some(manifest), state))
    }

    /// Reads the manifest of the folder, if there is one.
    fn read_manifest(&self) -> Result<Option<Manifest>> {
        if !self.folder.exists() {
            return Ok(None);
        }
        let folder = DirectoryHandle::open(&self.folder)?;
        match folder.exists(Path::new(MANIFEST_FILE))? {
            true => Manifest::read(&folder, self.owners).map(Some),
            false => Ok(None),
        }
    }

    /// Writes down what the folder and the server both have now.
    fn write_meeting(
        &self,
        directory: &DirectoryHandle,
        mut meetings: Meetings,
        state: &RemoteProjectState,
    ) -> Result<()> {
        let mut folder = ProjectFolder::read(directory, self.owners)?;
        let environment = self.project_option.environment();
        folder.manifest = folder.manifest.in_environment(environment.as_deref())?;
        let before = meetings.clone();
        meetings.meet(&folder, state)?;
        meetings.take_actions(&folder, state);
        meetings.take_sites(&folder, state)?;
        match meetings == before {
            true => Ok(()),
            false => meetings.write(directory),
        }
    }

    fn write(&self, files: &PullPlan, api: &ApiClient, state: &RemoteProjectState) -> Result<()> {
        let out = self.common.output();
        for note in &files.notes {
            out.print_note(&escape_line(note));
        }
        let shown =
            |file: &PlannedFileWrite| files.folder.display_path(&file.name).display().to_string();
        let line = |file: &PlannedFileWrite| {
            let sign = if file.is_new { '+' } else { '~' };
            format!("{sign} {}", escape_line(&shown(file)))
        };
        let text = files.files.iter().map(line).collect::<Vec<_>>();
        let text = text.join("\n");
        let document = |written: bool| {
            let names = |is_new: bool| {
                let files = files.files.iter().filter(|file| file.is_new == is_new);
                files
                    .map(|file| Value::from(shown(file)))
                    .collect::<Vec<_>>()
            };
            json!({ "new": names(true), "changed": names(false), "written": written, "notes": files.notes })
        };
        if files.files.is_empty() {
            return out.print_answer(
                &document(true),
                "nothing to do: the folder is as the server says",
            );
        }
        let changed = files.files.iter().filter(|file| !file.is_new).count();
        if changed > 0 {
            out.print_note(&text);
            let change = format!(
                "Replace {changed} {} (~) in {} by what the server has",
                if changed == 1 { "file" } else { "files" },
                self.folder.display(),
            );
            let question = ChangeQuestion::about(api, &state.project, &change);
            if let Err(failure) = question.confirm(out, self.yes) {
                out.print_answer(&document(false), "")?;
                return Err(failure);
            }
        }
        for file in &files.files {
            files.folder.write(&file.name, &file.bytes, !file.is_new)?;
        }
        out.print_answer(&document(true), &text)
    }
}

impl PullPlan {
    /// Sets the frontends apart that only look like the folder's pages: they are brought as pages of their own.
    async fn set_apart(
        &mut self,
        api: &ApiClient,
        manifest: &Manifest,
        state: &mut RemoteProjectState,
        meetings: &Meetings,
    ) -> Result<()> {
        let folder = &self.folder;
        let digest_of = |slug: &str| match manifest.pages.get(slug) {
            Some(entry) => Ok(local_page(folder, entry)?.map(|(_, digest)| digest)),
            None => Ok(None),
        };
        state.set_apart(api, manifest, meetings, digest_of).await?;
        for (wanted, slugs) in state.apart.iter() {
            let is_known = meetings
                .pages
                .get(wanted)
                .is_some_and(|met| met.slug.is_some());
            for slug in slugs.iter().filter(|_| !is_known) {
                self.notes.push(format!(
                    "The page `{slug}` never had the text of `{wanted}`: it counts as another page."
                ));
            }
        }
        Ok(())
    }

    /// Adds a file, unless the folder has the same content.
    ///
    /// # Errors
    /// When two files have the same name, the name leads outside of the folder, or the pull is too large.
    fn add(&mut self, name: PathBuf, text: &str) -> Result<()> {
        self.count(&name, text.len())?;
        let is_new = match self.folder.compare(&name, text.as_bytes())? {
            FileComparison::Same => return Ok(()),
            FileComparison::Missing => true,
            FileComparison::Different => false,
        };
        self.files.push(PlannedFileWrite {
            is_new,
            name,
            bytes: text.as_bytes().to_vec(),
        });
        Ok(())
    }

    /// Counts a file of the pull.
    fn count(&mut self, name: &Path, bytes: usize) -> Result<()> {
        if !self.names.insert(name.to_owned()) {
            return Err(CliFailure::new(
                FailureExitCode::NoAnswer,
                "Not an answer",
                format!(
                    "The server has two things that would both be {}. Nothing was written.",
                    self.folder.display_path(name).display()
                ),
            ));
        }
        if self.names.len() > MAX_ALL_FILES {
            return Err(too_many_files(MAX_ALL_FILES));
        }
        self.bytes = self.bytes.saturating_add(bytes);
        match self.bytes > MAX_BYTES {
            false => Ok(()),
            true => Err(project_too_large(format!(
                "It has more than {} MB, and so much is not pulled at once. Nothing was written; `svc frontend content` has single pages.",
                MAX_BYTES >> 20
            ))),
        }
    }

    /// Adds missing pages to the manifest and returns it. Text that is already there stays.
    fn add_manifest(
        &mut self,
        there: Option<Manifest>,
        state: &RemoteProjectState,
    ) -> Result<Manifest> {
        let is_there = there.is_some();
        let manifest = there.unwrap_or_else(|| new_manifest(state));
        let entries = match is_there {
            true => self.unnamed_pages(&manifest, state)?,
            // A new manifest has no other pages, so each frontend gets an entry.
            false => {
                let frontends = state.frontends.iter();
                frontends.map(|frontend| self.new_entry(frontend)).collect()
            }
        };
        if !is_there {
            let mut manifest = manifest;
            manifest.pages.extend(entries);
            let text =
                toml::to_string(&manifest).map_err(|error| CliFailure::local(error.to_string()))?;
            self.add(MANIFEST_FILE.into(), &text)?;
            return Ok(manifest);
        }
        if entries.is_empty() {
            return Ok(manifest);
        }
        let path = self.folder.display_path(Path::new(MANIFEST_FILE));
        let mut text = self.folder.read_text(Path::new(MANIFEST_FILE))?;
        for (slug, entry) in &entries {
            let table = toml::to_string(&entry.as_table());
            let table = table.map_err(|error| CliFailure::local(error.to_string()))?;
            text.push_str(&format!("\n[pages.{slug}]\n{table}"));
        }
        if let Ok(longer) = Manifest::parse(&text, &path) {
            self.add(MANIFEST_FILE.into(), &text)?;
            return Ok(longer);
        }
        let slugs: Vec<_> = entries
            .iter()
            .map(|(slug, _)| format!("`{slug}`"))
            .collect();
        self.notes.push(format!(
            "Name these pages in {} yourself, which has `pages` in one line: {}.",
            path.display(),
            slugs.join(", ")
        ));
        Ok(manifest)
    }

    /// Lists the pages that a manifest does not name. One whose file is there with another content is left to the user: the file may be
    /// another program's, such as `package.json`, and everybody who publishes in the project would write it.
    fn unnamed_pages(
        &mut self,
        manifest: &Manifest,
        state: &RemoteProjectState,
    ) -> Result<Vec<(String, ManifestPageEntry)>> {
        let named = named_slugs(manifest, state)?;
        let mut entries = Vec::new();
        for frontend in &state.frontends {
            if named.contains(frontend.slug.as_str()) {
                continue;
            }
            let (slug, entry) = self.new_entry(frontend);
            let digest = match entry.site() {
                Some(site) => self.digest_of_site(site)?,
                None => {
                    let there = self.folder.read_if_exists(entry.path())?;
                    there.map(|bytes| Digest::of(&bytes).to_string())
                }
            };
            if digest.is_some() && digest != frontend.content_sha256 {
                let path = self.folder.display_path(entry.path());
                self.notes.push(format!(
                    "{} is there, and svc.toml names it for no page: the page `{slug}` is not written over it. Name a file for that page in svc.toml.",
                    path.display()
                ));
                continue;
            }
            entries.push((slug, entry));
        }
        Ok(entries)
    }

    async fn add_pages(
        &mut self,
        api: &ApiClient,
        manifest: &Manifest,
        state: &RemoteProjectState,
    ) -> Result<()> {
        let bar = TerminalProgressBar::steps("pull", manifest.pages.len());
        for (slug, entry) in &manifest.pages {
            bar.add(1);
            let is_other = |slug: &str| manifest.pages.contains_key(slug);
            let Some(frontend) = state.find_frontend_by_slug(slug, is_other)? else {
                continue;
            };
            let path = self.folder.display_path(entry.path());
            let is_site = frontend.frontend_type == FrontendType::SITE;
            match entry.site() {
                Some(site) if is_site => {
                    self.add_site(api, (&state.project.id, frontend), site)
                        .await?;
                    continue;
                }
                None if !is_site => {}
                _ => {
                    self.notes.push(format!(
                        "`{slug}` is {} on the server, and something else in svc.toml: it is not pulled.",
                        frontend.frontend_type
                    ));
                    continue;
                }
            }
            if let Some((is_as_published, digest)) = local_page(&self.folder, entry)? {
                if frontend.content_sha256.as_ref() == Some(&digest) {
                    continue;
                }
                if !is_as_published {
                    let note =
                        "is published in another form than it has, and differs: it is not replaced";
                    self.notes.push(format!("{} {note}.", path.display()));
                    continue;
                }
            }
            let parts = [state.project.id.as_str(), &frontend.slug];
            let source: FrontendSource = api
                .call(&endpoints::CONTENT, &parts)
                .send_and_parse()
                .await?;
            self.add(entry.path().to_owned(), &source.content)?;
        }
        Ok(())
    }
}

/// Reads the file of a page; returns whether it is published as it is, and the digest of what is published. `None` if there is none.
fn local_page(
    folder: &DirectoryHandle,
    entry: &ManifestPageEntry,
) -> Result<Option<(bool, String)>> {
    if let Some(site) = entry.site() {
        let local = read_local_site(folder, site)?;
        return Ok(local.map(|local| (true, local.content_digest(&site.options()))));
    }
    let Some(bytes) = folder.read_if_exists(entry.path())? else {
        return Ok(None);
    };
    let path = folder.display_path(entry.path());
    let source = SourceToPublish::from_bytes(&path, &bytes, None)?;
    let digest = Digest::of(source.content.as_bytes()).to_string();
    Ok(Some((bytes == source.content.as_bytes(), digest)))
}

/// Entry of a price that no manifest has.
fn price_entry(price: &RemotePrice) -> PriceEntry {
    PriceEntry {
        key: price.key.clone(),
        product: price.product.clone(),
        label: price.label.clone(),
        amount: price.amount,
        currency: price.currency.clone(),
        recurring: price.interval.map(Recurrence::Every),
        description: price.description.clone(),
    }
}

/// Checks how many files a project would be, before a request for each of its pages.
fn check_count(state: &RemoteProjectState) -> Result<()> {
    let backend = state.backend.as_ref();
    let scripts = backend.map_or(0, |backend| {
        backend.scripts().count() + backend.actions.len()
    });
    match state.frontends.len() + scripts <= MAX_FILES {
        true => Ok(()),
        false => Err(too_many_files(MAX_FILES)),
    }
}

fn too_many_files(most: usize) -> CliFailure {
    project_too_large(format!(
        "It has more than {most} files, and so many are not pulled at once. Nothing was written."
    ))
}

fn project_too_large(detail: String) -> CliFailure {
    CliFailure::new(
        FailureExitCode::NoAnswer,
        "The project is too large",
        detail,
    )
}

/// Builds a manifest for a project.
fn new_manifest(state: &RemoteProjectState) -> Manifest {
    let text = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let backend = state.backend.as_ref();
    let rooms = backend.map(|backend| backend.realtime.enabled);
    let tools = backend.map(|backend| backend.agents);
    Manifest {
        project: state.project.name.clone(),
        description: text(&state.project.description),
        home: text(&state.project.home),
        realtime: rooms.filter(|on| *on),
        agents: tools.filter(|on| *on),
        prices: state.prices.iter().flatten().map(price_entry).collect(),
        ..Manifest::default()
    }
}

/// Slugs of the frontends that a manifest has pages for.
fn named_slugs<'a>(
    manifest: &Manifest,
    state: &'a RemoteProjectState,
) -> Result<BTreeSet<&'a str>> {
    let mut named = BTreeSet::new();
    for slug in manifest.pages.keys() {
        let is_other = |slug: &str| manifest.pages.contains_key(slug);
        let found = state.find_frontend_by_slug(slug, is_other)?;
        named.extend(found.map(|frontend| frontend.slug.as_str()));
    }
    Ok(named)
}

fn no_such_project(name: &str) -> CliFailure {
    CliFailure::new(
        FailureExitCode::NotFound,
        "No such project",
        format!("You have no project `{name}`: `svc apply` makes it from the folder."),
    )
}
