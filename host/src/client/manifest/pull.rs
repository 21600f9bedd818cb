//! `svc pull`: makes the folder like the server.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::state::{Frontend, State};
use super::{FILE, Manifest, PageEntry, SQL, outside, sql_files, within};
use crate::client::api::Api;
use crate::client::error::{Exit, Failure, Result};
use crate::client::source::{self, Source};
use crate::client::{Common, calls, confirm, projects};
use crate::content::Digest;

/// Makes the folder like the server: what is not on the server stays.
#[derive(Debug, clap::Args)]
pub struct Pull {
    /// The folder; it is made if need be
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// The project, for a folder without svc.toml: its id, its name or its label
    #[arg(long)]
    project: Option<String>,
    /// Replace files that differ without asking
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    common: Common,
}

/// A file to write.
#[derive(Debug)]
struct File {
    path: PathBuf,
    text: String,
    /// Whether there is none yet.
    new: bool,
}

/// Files that a folder lacks.
#[derive(Debug, Default)]
struct Files {
    files: Vec<File>,
    notes: Vec<String>,
}

impl Pull {
    pub(in crate::client) async fn run(self) -> Result<()> {
        let out = self.common.out();
        let api = Api::new(&self.common.remote)?.patient();
        let there = self.folder.join(FILE).exists();
        let (mut manifest, state) = match (there, &self.project) {
            (true, None) => {
                let manifest = Manifest::read(&self.folder)?;
                let state = State::of(&api, &manifest.project)
                    .await?
                    .ok_or_else(|| missing(&manifest.project))?;
                (manifest, state)
            }
            (false, wanted) => {
                let project = projects::find(&api, wanted.as_deref()).await?;
                let state = State::read(&api, project).await?;
                (Manifest::default(), state)
            }
            (true, Some(_)) => {
                return Err(Failure::here(format!(
                    "{} names its project: leave `--project` out, or pull into another folder.",
                    self.folder.join(FILE).display()
                )));
            }
        };
        std::fs::create_dir_all(&self.folder)
            .map_err(|error| Failure::file("Making", &self.folder, &error))?;
        let mut files = Files::default();
        files.manifest(&self.folder, &mut manifest, &state, there)?;
        files.pages(&api, &self.folder, &manifest, &state).await?;
        files.sql(&self.folder, &manifest, &state)?;
        self.write(&files, out)
    }

    fn write(&self, files: &Files, out: crate::client::Out) -> Result<()> {
        for file in &files.files {
            file.check(&self.folder)?;
        }
        for note in &files.notes {
            out.note(note);
        }
        let lines = files.files.iter().map(|file| {
            format!(
                "{} {}",
                if file.new { '+' } else { '~' },
                file.path.display()
            )
        });
        let text = lines.collect::<Vec<_>>().join("\n");
        let document = |written: bool| {
            let names = |new: bool| {
                let files = files.files.iter().filter(|file| file.new == new);
                files
                    .map(|file| Value::from(file.path.display().to_string()))
                    .collect::<Vec<_>>()
            };
            json!({ "new": names(true), "changed": names(false), "written": written, "notes": files.notes })
        };
        if files.files.is_empty() {
            return out.answer(
                &document(true),
                "nothing to do: the folder is as the server says",
            );
        }
        if files.files.iter().any(|file| !file.new) {
            out.note(&text);
            if let Err(failure) = confirm(out, self.yes, "Replace what differs (~) here?") {
                out.answer(&document(false), "")?;
                return Err(failure);
            }
        }
        for file in &files.files {
            file.write()?;
        }
        out.answer(&document(true), &text)
    }
}

impl File {
    /// Refuses what would be written outside of the folder, be it by its name or through a link.
    fn check(&self, folder: &Path) -> Result<()> {
        let there = self.path.ancestors().find(|path| path.exists());
        there.map_or_else(
            || Err(outside(folder, &self.path)),
            |there| within(folder, there),
        )
    }

    /// Writes it in one step, with the user's own mode for new files.
    fn write(&self) -> Result<()> {
        let failed = |error: std::io::Error| Failure::file("Writing", &self.path, &error);
        let folder = self.path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(failed)?;
        let mut file = tempfile::Builder::new()
            .permissions(std::fs::Permissions::from_mode(0o666))
            .prefix(".svc-")
            .tempfile_in(folder)
            .map_err(failed)?;
        file.write_all(self.text.as_bytes()).map_err(failed)?;
        file.persist(&self.path)
            .map_err(|error| failed(error.error))?;
        Ok(())
    }
}

impl Files {
    fn add(&mut self, path: PathBuf, text: &str) {
        if source::has(&path, text.as_bytes()) {
            return;
        }
        self.files.push(File {
            new: !path.exists(),
            path,
            text: text.to_owned(),
        });
    }

    /// Adds what the manifest lacks. One that is there is only ever longer: what its author wrote stays.
    fn manifest(
        &mut self,
        folder: &Path,
        manifest: &mut Manifest,
        state: &State,
        there: bool,
    ) -> Result<()> {
        let mut missing = Vec::new();
        for frontend in &state.frontends {
            if !is_named(manifest, state, frontend)? {
                missing.push(frontend);
            }
        }
        let entries = missing.iter().map(|frontend| {
            let file = PathBuf::from(format!(
                "{}.{}",
                frontend.slug,
                frontend.content_type.extensions()[0]
            ));
            (frontend.slug.clone(), PageEntry::File(file))
        });
        let entries: Vec<_> = entries.collect();
        if !there {
            *manifest = fresh(state);
            manifest.pages.extend(entries);
            let text =
                toml::to_string(manifest).map_err(|error| Failure::here(error.to_string()))?;
            self.add(folder.join(FILE), &text);
            return Ok(());
        }
        if entries.is_empty() {
            return Ok(());
        }
        let path = folder.join(FILE);
        let mut text = source::text(&path)?;
        for (slug, entry) in &entries {
            text.push_str(&format!(
                "\n[pages.{slug}]\nfile = \"{}\"\n",
                entry.file().display()
            ));
        }
        match Manifest::parse(&text, &path) {
            Ok(longer) => {
                *manifest = longer;
                self.add(path, &text);
            }
            Err(_) => self.notes.push(format!(
                "Name these pages in {} yourself, which has `pages` in one line: {}.",
                path.display(),
                entries
                    .iter()
                    .map(|(slug, _)| format!("`{slug}`"))
                    .collect::<Vec<_>>()
                    .join(", ")
            )),
        }
        Ok(())
    }

    async fn pages(
        &mut self,
        api: &Api,
        folder: &Path,
        manifest: &Manifest,
        state: &State,
    ) -> Result<()> {
        for (slug, entry) in &manifest.pages {
            let is_other = |slug: &str| manifest.pages.contains_key(slug);
            let Some(frontend) = state.frontend_of(slug, is_other)? else {
                continue;
            };
            let path = folder.join(entry.file());
            if path.exists() {
                within(folder, &path)?;
                let source = Source::read(&path, None)?;
                let digest = Digest::of(source.content.as_bytes()).to_string();
                if frontend.content_sha256.as_ref() == Some(&digest) {
                    continue;
                }
                if !source::has(&path, source.content.as_bytes()) {
                    let note =
                        "is published in another form than it has, and differs: it is not replaced";
                    self.notes.push(format!("{} {note}.", path.display()));
                    continue;
                }
            }
            let parts = [state.project.id.as_str(), &frontend.slug];
            let content = api.call(&calls::CONTENT, &parts).answer().await?;
            self.add(path, content["content"].as_str().unwrap_or_default());
        }
        Ok(())
    }

    /// The migrations that no file has, after those that are there, and the actions.
    fn sql(&mut self, folder: &Path, manifest: &Manifest, state: &State) -> Result<()> {
        let Some(backend) = &state.backend else {
            return Ok(());
        };
        let (migrations, actions) = (manifest.migrations_in(folder), manifest.actions_in(folder));
        let mut known = Vec::new();
        for file in sql_files(folder, &migrations, false)? {
            known.push((super::migration(&file)?, file));
        }
        for applied in &backend.migrations {
            if known
                .iter()
                .any(|(one, _)| one.checksum == applied.checksum)
            {
                continue;
            }
            let path = migrations.join(format!("{:04}.{SQL}", applied.version));
            for (one, file) in &known {
                let version = backend.version(&one.checksum);
                let before = version.is_some_and(|version| version < applied.version);
                if *file == path || (*file < path) != before {
                    return Err(misplaced(file, before, &path, applied.version));
                }
            }
            self.add(path, &applied.sql);
        }
        for action in &backend.actions {
            self.add(actions.join(format!("{}.{SQL}", action.name)), &action.sql);
        }
        Ok(())
    }
}

/// The refusal of a file that is on the wrong side of a migration which the server has and the folder does not.
fn misplaced(file: &Path, before: bool, path: &Path, version: u32) -> Failure {
    let side = if before { "before" } else { "behind" };
    Failure::new(
        Exit::Conflict,
        "The migrations differ",
        format!(
            "Migration {version} of the server belongs at {}: give {} a name that comes {side} it, and pull again.",
            path.display(),
            file.display()
        ),
    )
}

/// A manifest for a project as it is.
fn fresh(state: &State) -> Manifest {
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
        ..Manifest::default()
    }
}

/// Whether a manifest has a page for a frontend.
fn is_named(manifest: &Manifest, state: &State, frontend: &Frontend) -> Result<bool> {
    for slug in manifest.pages.keys() {
        let is_other = |slug: &str| manifest.pages.contains_key(slug);
        let found = state.frontend_of(slug, is_other)?;
        if found.is_some_and(|found| found.slug == frontend.slug) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn missing(name: &str) -> Failure {
    Failure::new(
        Exit::NotFound,
        "No such project",
        format!("You have no project `{name}`: `svc apply` makes it from the folder."),
    )
}
