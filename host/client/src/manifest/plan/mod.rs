//! Plans: the steps from the state of a project to that of a folder.

mod decisions;

use serde_json::Value;

use super::authorship::{PartConflict, conflict_failure};
use super::meetings::Meetings;
use super::merge::Precedence;
use super::pages::LocalPage;
use super::parts::{ActionText, PageText};
use super::release::{
    ReleaseLimits, ReleasePart, choose_free_slug, release_body, sort_parts, with_part_files,
};
use super::remote_state::{AppliedMigration, RemoteBackend, RemoteProjectState};
use super::runner::is_too_long;
use super::steps::{Change, PlanStep, PlanStepDescription};
use super::{Manifest, MigrationFile, ProjectFolder};
use crate::api::ApiClient;
use crate::endpoints;
use crate::error::{CliFailure, FailureExitCode, Result};
use crate::output::{escape_line, member_text, server_note};

/// Most lines of a plan for people.
const MAX_SHOWN_LINES: usize = 1_000;

/// Most actions that a note names.
const MAX_SHOWN_ACTIONS: usize = 50;

/// Title of the failure of a folder whose migrations are not those that the server has applied.
pub(super) const MIGRATIONS_DIFFER: &str = "The migrations differ";

/// Rules by which the folder and the server are compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlanRules<'a> {
    /// Texts that both had when they last met.
    pub(super) meetings: &'a Meetings,
    /// Rule for what the folder and the server have differently.
    pub(super) precedence: Precedence,
    /// Whether pages and prices that have left the manifest end.
    pub(super) prune: bool,
}

/// Steps of a plan, with their description.
#[derive(Clone, Debug, Default)]
pub(super) struct ApplyPlan {
    pub(super) steps: Vec<PlanStep>,
    /// A line for each part that changes, and for each that the server has newer.
    lines: Vec<PlanStepDescription>,
    /// Notes for the user.
    pub(super) notes: Vec<String>,
    /// Parts of the release.
    parts: Vec<ReleasePart>,
    /// Home page of the release.
    home: Option<String>,
    /// Parts that cannot be applied.
    conflicts: Vec<PartConflict>,
}

impl ApplyPlan {
    /// Plans the changes. It only reads from the server.
    ///
    /// # Errors
    /// What both have changed, and refusals of the platform that can be known before.
    pub(super) async fn make(
        api: &ApiClient,
        folder: &ProjectFolder,
        state: Option<&RemoteProjectState>,
        rules: PlanRules<'_>,
    ) -> Result<Self> {
        let mut plan = Self::default();
        if state.is_none() {
            let line =
                PlanStepDescription::new(Change::Create, "project", &folder.manifest.project);
            plan.add_step(PlanStep::CreateProject, line);
        }
        let backend = state.and_then(|state| state.backend.as_ref());
        plan.plan_migrations(folder, backend)?;
        let mut planner = decisions::Planner {
            api,
            folder,
            state,
            rules,
            plan,
        };
        planner.plan_actions().await?;
        planner.plan_pages().await?;
        let later = planner.plan_settings()?;
        let prices = planner.plan_prices();
        let domains = planner.plan_domains().await?;
        let mut plan = planner.plan;
        if let (false, Some(state)) = (plan.conflicts.is_empty(), state) {
            return Err(conflict_failure(api, state, plan.conflicts).await);
        }
        // The files of sites are not sent before somebody has said yes.
        let is_site = |part: &mut ReleasePart| part.site(folder).is_some();
        let sites: Vec<_> = plan.parts.extract_if(.., is_site).collect();
        sort_parts(&mut plan.parts);
        if let (false, Some(state)) = (plan.parts.is_empty(), state) {
            let home = plan.home.take_if(|_| !sites.is_empty());
            plan.dry_run(api, folder, &state.project.id).await?;
            plan.home = home.or(plan.home);
        }
        plan.parts.extend(sites);
        sort_parts(&mut plan.parts);
        plan.add_release(folder);
        plan.steps
            .extend(later.into_iter().chain(prices).chain(domains));
        Ok(plan)
    }

    /// Plans the changes to a server that only this folder is for: the folder's counts, and an action without a file ends.
    ///
    /// # Errors
    /// As of `make`.
    pub(super) async fn make_for_own_server(
        api: &ApiClient,
        folder: &ProjectFolder,
        state: Option<&RemoteProjectState>,
    ) -> Result<Self> {
        let rules = PlanRules {
            meetings: &state.map(Meetings::of_own_server).unwrap_or_default(),
            precedence: Precedence::Folder,
            prune: false,
        };
        Self::make(api, folder, state, rules).await
    }

    /// Tries the migrations and the actions of a folder in an empty project, where nothing is kept of them.
    ///
    /// # Errors
    /// Refusal of the server, with its place.
    pub(super) async fn try_database(
        api: &ApiClient,
        folder: &ProjectFolder,
        project: &str,
    ) -> Result<()> {
        let migrations = (0..folder.migrations.len()).map(ReleasePart::Migration);
        let actions = (0..folder.actions.len()).map(|number| ReleasePart::Action {
            number,
            expected: 0,
        });
        let mut plan = Self {
            parts: migrations.chain(actions).collect(),
            ..Self::default()
        };
        plan.dry_run(api, folder, project).await
    }

    fn add_step(&mut self, step: PlanStep, line: PlanStepDescription) {
        self.steps.push(step);
        self.lines.push(line);
    }

    /// Plans the migrations that are not applied.
    fn plan_migrations(
        &mut self,
        folder: &ProjectFolder,
        backend: Option<&RemoteBackend>,
    ) -> Result<()> {
        let applied = backend.map_or(&[][..], |backend| &backend.migrations);
        let pending = pending_migrations(folder, applied)?;
        for &number in &pending {
            let migration = &folder.migrations[number];
            let (kind, name) = match (number, backend) {
                (0, None) => ("database", format!("from {}", migration.name)),
                _ => ("migration", migration.name.clone()),
            };
            let line = PlanStepDescription::new(Change::Create, kind, &name);
            self.lines.push(line.with_file(&migration.path));
            self.parts.push(ReleasePart::Migration(number));
        }
        if backend.is_none() && pending.is_empty() && folder.has_actions_or_switches() {
            return Err(CliFailure::local(
                "The folder has actions, `realtime` or `agents`, and no migration: the first migration makes the database.",
            ));
        }
        Ok(())
    }

    /// Adds the step of the release, with a note where it takes several.
    fn add_release(&mut self, folder: &ProjectFolder) {
        let parts = std::mem::take(&mut self.parts);
        let home = self.home.take();
        match (parts.is_empty(), home) {
            (true, None) => {}
            // A release has a part at least.
            (true, home) => self.steps.push(PlanStep::UpdateProject {
                description: None,
                home,
            }),
            (false, home) => {
                let count = ReleaseLimits::DEFAULT.count(folder, &parts);
                if count > 1 {
                    self.notes.push(format!(
                        "This takes {count} releases, one after the other, because one would be too large: migrations first, then actions, then pages, and at last what ends."
                    ));
                }
                self.steps.push(PlanStep::Release { parts, home });
            }
        }
    }

    /// Makes a dry run of the release on the server, so that refusals come before any change. Of several releases it is the first: the
    /// others build on it.
    async fn dry_run(
        &mut self,
        api: &ApiClient,
        folder: &ProjectFolder,
        project: &str,
    ) -> Result<()> {
        let mut limits = ReleaseLimits::DEFAULT;
        let answer = loop {
            let count = limits.fitting(folder, &self.parts);
            let is_whole = count == self.parts.len();
            let sent = &mut self.parts[..count];
            let home = self.home.as_deref().filter(|_| is_whole);
            let mut body = release_body(folder, sent, home, None);
            body["dry_run"] = true.into();
            let asked = api.call(&endpoints::RELEASE, &[project]);
            match asked.body(body).send().await {
                Ok(answer) => break answer,
                Err(failure) if is_too_long(&failure) && count > 1 => limits.halve(),
                Err(failure) => match choose_free_slug(&failure, sent, folder)? {
                    Some((number, slug)) => self.rename_page(&folder.pages[number], &slug),
                    None => return Err(with_part_files(failure, sent, folder)),
                },
            }
        };
        self.add_sizes(&answer);
        let broken = answer["broken_actions"].as_array().into_iter().flatten();
        for action in broken {
            self.notes.push(format!(
                "The action `{}` will not work any more: {}",
                escape_line(&member_text(action, "name")),
                server_note(&member_text(action, "detail"))
            ));
        }
        Ok(())
    }

    /// Says in the line of a page that its slug is taken, and which it gets.
    fn rename_page(&mut self, page: &LocalPage, slug: &str) {
        let mut lines = self.lines.iter_mut();
        if let Some(line) = lines.find(|line| line.is_for(page.path())) {
            line.rename(slug, format!("`{}` is taken", page.slug));
        }
    }

    /// Adds to the lines of pages how much changes.
    fn add_sizes(&mut self, answer: &Value) {
        let pages = answer["pages"].as_array().into_iter().flatten();
        for page in pages.filter(|page| page["change"] == "changed") {
            let slug = page["slug"].as_str().unwrap_or_default();
            let (added, removed) = (page["added_lines"].as_u64(), page["removed_lines"].as_u64());
            let mut lines = self.lines.iter_mut();
            let line = lines.find(|line| line.is_about("page", slug) && line.is_change());
            if let (Some(line), Some(added), Some(removed)) = (line, added, removed)
                && added + removed > 0
            {
                line.add_first(format!("+{added} −{removed} lines"));
            }
        }
    }

    /// Writes down what the plan is about to release; returns whether that is anything.
    pub(super) fn expect(&self, folder: &ProjectFolder, meetings: &mut Meetings) -> bool {
        let parts = self.steps.iter().flat_map(|step| match step {
            PlanStep::Release { parts, .. } => &parts[..],
            _ => &[],
        });
        let mut is_any = false;
        for part in parts {
            match part {
                ReleasePart::Page { number, .. } => {
                    let page = &folder.pages[*number];
                    meetings.expect_page(&page.slug, PageText::of_folder(page));
                }
                ReleasePart::Action { number, .. } => {
                    let action = &folder.actions[*number];
                    meetings.expect_action(&action.name, ActionText::of_folder(action));
                }
                _ => continue,
            }
            is_any = true;
        }
        is_any
    }

    /// Counts the changes.
    pub(super) fn count(&self) -> usize {
        self.lines.iter().filter(|line| line.is_change()).count()
    }

    /// Counts what ends for good.
    pub(super) fn count_ends(&self) -> usize {
        self.lines.iter().filter(|line| line.is_end()).count()
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
    manifest: &Manifest,
    state: &RemoteProjectState,
    wanted: &str,
) -> Result<Option<String>> {
    if wanted.is_empty() {
        return Ok(Some(String::new()));
    }
    let is_other = |slug: &str| manifest.pages.contains_key(slug);
    let frontend = state.find_frontend_by_slug(wanted, is_other)?;
    Ok(frontend.map(|frontend| frontend.slug.clone()))
}

/// Lists the indexes of the migrations that are not in the ledger. They must come last.
fn pending_migrations(folder: &ProjectFolder, applied: &[AppliedMigration]) -> Result<Vec<usize>> {
    let is_applied = |checksum: &str| applied.iter().any(|one| one.checksum == checksum);
    let pending: Vec<_> = (0..folder.migrations.len())
        .filter(|number| !is_applied(&folder.migrations[*number].checksum))
        .collect();
    let Some(&first) = pending.first() else {
        return Ok(pending);
    };
    let MigrationFile {
        name, path, sql, ..
    } = &folder.migrations[first];
    let differ = |detail: String| {
        let mut failure = CliFailure::in_text(MIGRATIONS_DIFFER, detail, (path, sql), 0);
        failure.exit = FailureExitCode::Conflict;
        Err(failure)
    };
    let in_folder = |checksum: &str| folder.migrations.iter().any(|one| one.checksum == checksum);
    let mut scripts = applied.iter().filter(|one| one.has_statement());
    let foreign = scripts.find(|one| !in_folder(&one.checksum));
    if let Some(foreign) = foreign {
        return differ(format!(
            "The server has applied migration {}, which is none of the folder's, and {name} is none of the server's. If {name} was changed after it was applied, put it back, and the change into a new file; if somebody else has migrated, `svc pull` brings their file.",
            foreign.version
        ));
    }
    let later = folder.migrations[first..]
        .iter()
        .find(|one| is_applied(&one.checksum));
    match later {
        Some(later) => differ(format!(
            "{} is applied, and {name}, which comes before it, is not: give {name} a name that comes after all others.",
            later.name
        )),
        None => Ok(pending),
    }
}

#[cfg(test)]
mod tests;
