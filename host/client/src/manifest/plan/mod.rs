//! Plans: the steps from the state of a project to that of a folder. Steps only add or change, and never delete.

use serde_json::{Value, json};

use super::remote_state::{RemoteBackend, RemoteProjectState};
use super::steps::{PlanStep, PlanStepDescription};
use super::{LocalPage, ProjectFolder};
use crate::actions::ActionFile;
use crate::api::ApiClient;
use crate::backends::dry_run_text;
use crate::difference::TextDifference;
use crate::endpoints;
use crate::error::{CliFailure, FailureExitCode, Result};
use svc_base::digest::Digest;

/// Most lines of a plan for people.
const MAX_SHOWN_LINES: usize = 1_000;

/// Most actions that a note names.
const MAX_SHOWN_ACTIONS: usize = 50;

/// Title of the failure of a folder whose migrations are not those that the server has applied.
pub(super) const MIGRATIONS_DIFFER: &str = "The migrations differ";

/// Steps of a plan, with their description.
#[derive(Clone, Debug, Default)]
pub(super) struct ApplyPlan {
    pub(super) steps: Vec<PlanStep>,
    /// A line for each change.
    pub(super) lines: Vec<PlanStepDescription>,
    /// Notes for the user.
    pub(super) notes: Vec<String>,
}

impl ApplyPlan {
    /// Plans the changes. It only reads from the server.
    ///
    /// # Errors
    /// Refusals of the platform that can be known before.
    pub(super) async fn make(
        api: &ApiClient,
        folder: &ProjectFolder,
        state: Option<&RemoteProjectState>,
    ) -> Result<Self> {
        let mut plan = Self::default();
        if state.is_none() {
            let line = PlanStepDescription::new(true, "project", &folder.manifest.project);
            plan.add_step(PlanStep::CreateProject, line);
        }
        let backend = state.and_then(|state| state.backend.as_ref());
        let pending = plan.plan_migrations(folder, backend)?;
        plan.plan_actions(folder, backend)?;
        plan.plan_switches(folder, backend);
        plan.plan_pages(api, folder, state).await?;
        plan.plan_details(folder, state)?;
        if let Some(state) = state {
            plan.dry_run(api, folder, state, &pending).await?;
        }
        Ok(plan)
    }

    fn add_step(&mut self, step: PlanStep, line: PlanStepDescription) {
        self.steps.push(step);
        self.lines.push(line);
    }

    /// Plans the migrations that are not applied; returns their indexes.
    fn plan_migrations(
        &mut self,
        folder: &ProjectFolder,
        backend: Option<&RemoteBackend>,
    ) -> Result<Vec<usize>> {
        let applied = backend.map_or(&[][..], |backend| &backend.migrations);
        let pending = pending_migrations(folder, applied)?;
        for &number in &pending {
            let migration = &folder.migrations[number];
            let (step, line) = match (number, backend) {
                (0, None) => {
                    let name = format!("from {}", migration.name);
                    let line = PlanStepDescription::new(true, "database", &name);
                    (PlanStep::CreateBackend, line)
                }
                _ => {
                    let line = PlanStepDescription::new(true, "migration", &migration.name);
                    (PlanStep::Migrate(number), line)
                }
            };
            self.add_step(step, line.with_file(&migration.path));
        }
        if backend.is_none() && pending.is_empty() && folder.has_actions_or_switches() {
            return Err(CliFailure::local(
                "The folder has actions, `realtime` or `agents`, and no migration: the first migration makes the database.",
            ));
        }
        Ok(pending)
    }

    fn plan_actions(
        &mut self,
        folder: &ProjectFolder,
        backend: Option<&RemoteBackend>,
    ) -> Result<()> {
        let known = backend.map_or(&[][..], |backend| &backend.actions);
        let mut changed = Vec::new();
        for (number, action) in folder.actions.iter().enumerate() {
            let checksum = Digest::of(action.sql.as_bytes()).to_string();
            let there = known.iter().find(|there| there.name == action.name);
            if there.is_some_and(|there| there.checksum == checksum) {
                continue;
            }
            changed.push(number);
            let line = PlanStepDescription::new(there.is_none(), "action", &action.name);
            self.lines.push(line.with_file(&action.path));
        }
        let elsewhere = known.iter().filter(|there| {
            !folder
                .actions
                .iter()
                .any(|action| action.name == there.name)
        });
        let elsewhere: Vec<_> = elsewhere.map(|there| format!("`{}`", there.name)).collect();
        if !elsewhere.is_empty() {
            let shown = &elsewhere[..elsewhere.len().min(MAX_SHOWN_ACTIONS)];
            let more = if shown.len() < elsewhere.len() {
                ", …"
            } else {
                ""
            };
            self.notes.push(format!(
                "Actions that only the server has stay: {}{more}.",
                shown.join(", ")
            ));
        }
        if !changed.is_empty() {
            self.steps.push(PlanStep::DefineActions(changed));
        }
        Ok(())
    }

    /// Plans the switches of rooms and tools.
    fn plan_switches(&mut self, folder: &ProjectFolder, backend: Option<&RemoteBackend>) {
        let manifest = &folder.manifest;
        let rooms = backend.is_some_and(|backend| backend.realtime.enabled);
        let tools = backend.is_some_and(|backend| backend.agents);
        let state = |on: bool| if on { "on" } else { "off" };
        if let Some(on) = manifest.realtime.filter(|on| *on != rooms) {
            let line = PlanStepDescription::new(false, "rooms", state(on));
            self.add_step(PlanStep::SwitchRooms(on), line);
        }
        if let Some(on) = manifest.agents.filter(|on| *on != tools) {
            let line = PlanStepDescription::new(false, "tools", state(on));
            self.add_step(PlanStep::SwitchTools(on), line);
        }
    }

    async fn plan_pages(
        &mut self,
        api: &ApiClient,
        folder: &ProjectFolder,
        state: Option<&RemoteProjectState>,
    ) -> Result<()> {
        for (number, page) in folder.pages.iter().enumerate() {
            let there = match state {
                Some(state) => state
                    .find_frontend(page, folder)?
                    .map(|frontend| (state, frontend)),
                None => None,
            };
            let Some((state, frontend)) = there else {
                let line =
                    PlanStepDescription::new(true, "page", &page.slug).with_file(&page.source.path);
                self.add_step(PlanStep::CreatePage(number), line);
                continue;
            };
            check_type(page, frontend.content_type)?;
            let digest = Digest::of(page.source.content.as_bytes()).to_string();
            let same = frontend.content_sha256.as_ref() == Some(&digest);
            let retitled = page
                .title
                .as_ref()
                .is_some_and(|title| *title != frontend.title);
            if same && !retitled {
                continue;
            }
            let mut more = Vec::new();
            if !same {
                more.push(change_size(api, &state.project.id, &frontend.slug, page).await?);
            }
            if retitled {
                more.push("title".to_owned());
            }
            let step = PlanStep::ChangePage {
                page: number,
                slug: frontend.slug.clone(),
                live: frontend.content_sha256.clone(),
            };
            if frontend.slug != page.slug {
                more.push(format!("taken for `{}`", page.slug));
            }
            let line = PlanStepDescription::new(false, "page", &frontend.slug);
            let line = line.with_detail(more.join(", "));
            self.add_step(step, line.with_file(&page.source.path));
        }
        Ok(())
    }

    fn plan_details(
        &mut self,
        folder: &ProjectFolder,
        state: Option<&RemoteProjectState>,
    ) -> Result<()> {
        let manifest = &folder.manifest;
        let mut changed = Vec::new();
        // A new project is created with its description.
        if let (Some(wanted), Some(state)) = (&manifest.description, state) {
            let is = state.project.description.as_deref().unwrap_or_default();
            if wanted != is {
                changed.push("description");
            }
        }
        if let Some(wanted) = &manifest.home {
            let is = state
                .and_then(|state| state.project.home.as_deref())
                .unwrap_or_default();
            let slug = match state {
                Some(state) => home_slug(folder, state, wanted)?,
                None => None,
            };
            if slug.as_deref() != Some(is) {
                changed.push("home");
            }
        }
        if !changed.is_empty() {
            let line = PlanStepDescription::new(false, "project", &changed.join(", "));
            self.add_step(PlanStep::UpdateProject, line);
        }
        Ok(())
    }

    /// Makes dry runs on the server, so that refusals come before any change.
    async fn dry_run(
        &mut self,
        api: &ApiClient,
        folder: &ProjectFolder,
        state: &RemoteProjectState,
        pending: &[usize],
    ) -> Result<()> {
        if state.backend.is_none() {
            return Ok(());
        }
        let at = [state.project.id.as_str()];
        if let Some(&first) = pending.first() {
            let migration = &folder.migrations[first];
            let asked = api
                .call(&endpoints::UPDATE_BACKEND, &at)
                .query("dry_run", Some(true));
            let run = asked.body(json!({ "ddl": migration.sql })).send().await;
            let run = run.map_err(|failure| failure.with_file(&migration.path))?;
            let broken = run["broken_actions"]
                .as_array()
                .is_some_and(|broken| !broken.is_empty());
            if broken {
                self.notes
                    .push(format!("{}: {}", migration.name, dry_run_text(&run)));
            }
            return Ok(());
        }
        for step in &self.steps {
            if let PlanStep::DefineActions(changed) = step {
                for batch in action_batches(folder, changed) {
                    let asked = api
                        .call(&endpoints::DEFINE_ACTIONS, &at)
                        .query("dry_run", Some(true));
                    let dry_run_text = asked.body(batch).send().await;
                    dry_run_text.map_err(|failure| {
                        ActionFile::with_action_files(failure, &folder.actions)
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Formats the plan for people.
    pub(super) fn to_text(&self) -> String {
        let shown = self.lines.iter().take(MAX_SHOWN_LINES);
        let mut lines: Vec<_> = shown.map(PlanStepDescription::to_text).collect();
        if self.lines.len() > MAX_SHOWN_LINES {
            let more = self.lines.len() - MAX_SHOWN_LINES;
            lines.push(format!(
                "and {more} more, which `svc apply --plan --json` lists"
            ));
        }
        lines.join("\n")
    }

    /// Formats the plan for programs.
    pub(super) fn to_json(&self) -> Vec<Value> {
        self.lines
            .iter()
            .map(PlanStepDescription::to_json)
            .collect()
    }
}

/// Slug of the home page on the server; `None` if it does not exist yet.
pub(super) fn home_slug(
    folder: &ProjectFolder,
    state: &RemoteProjectState,
    wanted: &str,
) -> Result<Option<String>> {
    if wanted.is_empty() {
        return Ok(Some(String::new()));
    }
    let is_other = |slug: &str| folder.manifest.pages.contains_key(slug);
    let frontend = state.find_frontend_by_slug(wanted, is_other)?;
    Ok(frontend.map(|frontend| frontend.slug.clone()))
}

/// Splits actions into batches that the server accepts.
pub(super) fn action_batches(folder: &ProjectFolder, numbers: &[usize]) -> Vec<Value> {
    /// The most actions of a batch.
    const MAX_ACTIONS: usize = 200;
    /// Approximate bytes of a batch, far below the server's limit.
    const MAX_BYTES: usize = 256 << 10;
    let mut batches: Vec<Vec<Value>> = vec![Vec::new()];
    let mut bytes = 0;
    for &number in numbers {
        let action = &folder.actions[number];
        let full = batches.last().is_some_and(|batch| {
            batch.len() == MAX_ACTIONS
                || (bytes + action.sql.len() > MAX_BYTES && !batch.is_empty())
        });
        if full {
            batches.push(Vec::new());
            bytes = 0;
        }
        bytes += action.sql.len();
        if let Some(batch) = batches.last_mut() {
            batch.push(action.to_json());
        }
    }
    batches.retain(|batch| !batch.is_empty());
    batches
        .into_iter()
        .map(|batch| json!({ "actions": batch }))
        .collect()
}

/// Lists the indexes of the migrations that are not in the ledger. They must come last.
fn pending_migrations(
    folder: &ProjectFolder,
    applied: &[super::remote_state::AppliedMigration],
) -> Result<Vec<usize>> {
    let is_applied = |checksum: &str| applied.iter().any(|one| one.checksum == checksum);
    let pending: Vec<_> = (0..folder.migrations.len())
        .filter(|number| !is_applied(&folder.migrations[*number].checksum))
        .collect();
    let Some(&first) = pending.first() else {
        return Ok(pending);
    };
    let name = &folder.migrations[first].name;
    let in_folder = |checksum: &str| folder.migrations.iter().any(|one| one.checksum == checksum);
    let foreign = applied.iter().find(|one| !in_folder(&one.checksum));
    if let Some(foreign) = foreign {
        let detail = format!(
            "The server has applied migration {}, which is none of the folder's, and {name} is none of the server's. If {name} was changed after it was applied, put it back, and the change into a new file; if somebody else has migrated, `svc pull` brings their file.",
            foreign.version
        );
        return Err(CliFailure::new(
            FailureExitCode::Conflict,
            MIGRATIONS_DIFFER,
            detail,
        ));
    }
    let later = folder.migrations[first..]
        .iter()
        .find(|one| is_applied(&one.checksum));
    match later {
        Some(later) => Err(CliFailure::new(
            FailureExitCode::Conflict,
            MIGRATIONS_DIFFER,
            format!(
                "{} is applied, and {name}, which comes before it, is not: give {name} a name that comes after all others.",
                later.name
            ),
        )),
        None => Ok(pending),
    }
}

fn check_type(page: &LocalPage, there: svc_sources::ContentType) -> Result<()> {
    if page.source.content_type == there {
        return Ok(());
    }
    Err(CliFailure::local(format!(
        "{} is {} by its name, and the page `{}` is {there} for good: give it another slug.",
        page.source.path.display(),
        page.source.content_type,
        page.slug
    )))
}

/// Describes how much of a page changes.
async fn change_size(
    api: &ApiClient,
    project: &str,
    slug: &str,
    page: &LocalPage,
) -> Result<String> {
    let live = api
        .call(&endpoints::CONTENT, &[project, slug])
        .send()
        .await?;
    let old = live["content"].as_str().unwrap_or_default();
    Ok(TextDifference::between((slug, old), (slug, &page.source.content)).size())
}

#[cfg(test)]
mod tests;
