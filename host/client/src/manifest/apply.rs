//! `svc apply`: makes the server like the folder.

use std::path::PathBuf;

use serde_json::json;

use super::authorship::{ConflictReason, PartConflict, ReleaseOfPart, conflict_failure};
use super::meetings::Meetings;
use super::merge::Precedence;
use super::parts::{ActionText, PageText};
use super::plan::{ApplyPlan, PlanRules};
use super::remote_state::RemoteProjectState;
use super::runner::PlanRunner;
use super::{AcceptedOwners, ProjectFolder};
use crate::api::ApiClient;
use crate::error::{CliFailure, Result};
use crate::files::DirectoryHandle;
use crate::progress::TerminalProgressBar;
use crate::projects::EnvironmentArgs;
use crate::question::ChangeQuestion;
use crate::{CommonArgs, endpoints, run_until_interrupt};
use svc_base::pluralize;

/// Advice after a plan that failed halfway.
const RESUME_HINT: &str = "What was done stays; `svc apply` goes on from there.";
/// Note of a plan that no server has judged.
const NEW_PROJECT_NOTE: &str = "The project is new: the server judges the folder when it is applied. If it refuses something, nothing is left of the project.";
/// How often a plan is made anew because somebody else has released the same meanwhile.
const MAX_RACES: u32 = 3;

/// Makes the server like the folder: what the folder never had stays.
#[derive(Debug, clap::Args)]
pub struct ApplyCommand {
    /// The folder with svc.toml
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// Do what is planned without asking
    #[arg(long)]
    yes: bool,
    /// Only show the plan
    #[arg(long, conflicts_with = "yes")]
    plan: bool,
    /// Apply what the folder has where both have changed, or where it is older; what only the server has changed stays
    #[arg(long)]
    force: bool,
    /// Delete the pages, and withdraw the prices, that svc.toml names no more
    #[arg(long)]
    prune: bool,
    /// Why it changes, for the history of the pages
    #[arg(long, short)]
    message: Option<String>,
    #[command(flatten)]
    environment: EnvironmentArgs,
    #[command(flatten)]
    owners: AcceptedOwners,
    #[command(flatten)]
    common: CommonArgs,
}

/// A folder that is being applied to a server.
struct Applying<'a> {
    command: &'a ApplyCommand,
    directory: DirectoryHandle,
    folder: ProjectFolder,
    api: ApiClient,
    state: Option<RemoteProjectState>,
    meetings: Meetings,
    /// Notes before the plan.
    notes: Vec<String>,
    /// Releases of others that came in between.
    races: u32,
}

impl ApplyCommand {
    pub(crate) async fn run(self) -> Result<()> {
        let out = self.common.output();
        let mut applying = Applying::begin(&self).await?;
        let mut plan = applying.make_plan().await?;
        if self.plan && applying.state.is_none() {
            plan.notes.push(NEW_PROJECT_NOTE.to_owned());
        }
        for note in &plan.notes {
            out.print_note(note);
        }
        out.print_note(&plan.to_text());
        if plan.steps.is_empty() {
            if !self.plan {
                applying.write_meeting();
            }
            let text = match plan.to_json().is_empty() {
                true => "nothing to do: the server is as the folder says",
                false => "nothing to do: nothing in the folder has changed",
            };
            return self.print_plan(&plan, true, text);
        }
        if self.plan {
            return self.print_plan(&plan, false, "");
        }
        if let Err(failure) = applying.ask(&plan).await {
            // Programs get the plan, and the exit code says that it was not applied.
            self.print_plan(&plan, false, "")?;
            return Err(failure);
        }
        applying.apply(&plan).await?;
        let done = format!("done: {}", pluralize(plan.count(), "change"));
        self.print_plan(&plan, true, &done)
    }

    fn print_plan(&self, plan: &ApplyPlan, applied: bool, text: &str) -> Result<()> {
        let document = json!({ "plan": plan.to_json(), "applied": applied, "notes": plan.notes });
        self.common.output().print_answer(&document, text)
    }
}

impl<'a> Applying<'a> {
    /// Reads the folder, and the state of its project.
    async fn begin(command: &'a ApplyCommand) -> Result<Self> {
        let directory = DirectoryHandle::open(&command.folder)?;
        let mut folder = ProjectFolder::read(&directory, command.owners)?;
        let environment = command.environment.name();
        folder.manifest = folder.manifest.in_environment(environment.as_deref())?;
        let target = folder.manifest.target()?;
        let api = ApiClient::for_folder(&command.common.remote, &target)?.with_retries();
        let mut applying = Self {
            command,
            directory,
            folder,
            api,
            state: None,
            meetings: Meetings::default(),
            notes: Vec::new(),
            races: 0,
        };
        applying.look().await?;
        Ok(applying)
    }

    /// Reads the state of the project, and at first what it and the folder had when they last met.
    async fn look(&mut self) -> Result<()> {
        self.state = RemoteProjectState::find(&self.api, &self.folder.manifest).await?;
        let Some(state) = &mut self.state else {
            return Ok(());
        };
        if !self.meetings.is_of(&state.project.id) {
            let (meetings, note) = Meetings::read(
                &self.directory,
                self.command.owners,
                self.api.server_url(),
                &state.project.id,
            );
            self.meetings = meetings;
            self.notes.extend(note);
        }
        if state.prices.is_none() && !self.meetings.prices.is_empty() {
            state.fetch_prices(&self.api).await?;
        }
        let folder = &self.folder;
        let digest_of = |slug: &str| {
            let page = folder.pages.iter().find(|page| page.slug == slug);
            Ok(page.map(|page| PageText::of_folder(page).sha256))
        };
        state
            .set_apart(&self.api, &folder.manifest, &self.meetings, digest_of)
            .await
    }

    /// Makes the plan. A dry run that somebody else's release has overtaken is made anew.
    async fn make_plan(&mut self) -> Result<ApplyPlan> {
        loop {
            match self.try_plan().await {
                Err(failure) if self.is_race(&failure) => self.look_after(&failure).await?,
                made => return made,
            }
        }
    }

    /// Counts a failure that may be a race with somebody else's release; returns whether it is one, unless there were too many.
    fn is_race(&mut self, failure: &CliFailure) -> bool {
        let is_race = failure.code() == "release_conflict" && self.races < MAX_RACES;
        self.races += u32::from(is_race);
        is_race
    }

    /// Looks at the server again after a race.
    ///
    /// # Errors
    /// When what was released meanwhile is not what the folder has.
    async fn look_after(&mut self, failure: &CliFailure) -> Result<()> {
        self.look().await?;
        self.check_overtaken(failure).await
    }

    async fn try_plan(&mut self) -> Result<ApplyPlan> {
        let rules = PlanRules {
            meetings: &self.meetings,
            precedence: match self.command.force {
                true => Precedence::FolderInConflicts,
                false => Precedence::Refuse,
            },
            prune: self.command.prune,
        };
        let made = ApplyPlan::make(&self.api, &self.folder, self.state.as_ref(), rules).await;
        let notes = std::mem::take(&mut self.notes);
        match made {
            Ok(mut plan) => {
                plan.notes.splice(0..0, notes);
                Ok(plan)
            }
            Err(failure) => {
                let out = self.command.common.output();
                notes.iter().for_each(|note| out.print_note(note));
                Err(failure)
            }
        }
    }

    /// Asks whether to apply a plan.
    async fn ask(&self, plan: &ApplyPlan) -> Result<()> {
        let (out, yes) = (self.command.common.output(), self.command.yes);
        let mut change = match plan.count() {
            1 => "Make this change".to_owned(),
            several => format!("Make these {several} changes"),
        };
        match plan.count_ends() {
            0 => {}
            1 => change += ", of which one ends something for good",
            several => change += &format!(", of which {several} end something for good"),
        }
        // Others may add the user to a workspace with a project of this name.
        let found = self.state.as_ref().map(|state| &state.project);
        let workspace = match (found, &self.folder.manifest.workspace) {
            (Some(project), _) => project.workspace.as_ref().map(|one| one.slug.clone()),
            (None, Some(named)) => Some(named.clone()),
            (None, None) if out.is_interactive() && !yes => self.only_workspace().await,
            (None, None) => None,
        };
        let question = ChangeQuestion {
            change: &change,
            server: self.api.server_address(),
            workspace: workspace.as_deref(),
            project: &self.folder.manifest.project,
            environment: self.api.environment(),
        };
        question.confirm(out, yes)
    }

    /// Finds the workspace in which a new project is made: the caller's only one.
    async fn only_workspace(&self) -> Option<String> {
        let listed = self.api.call(&endpoints::WORKSPACES, &[]).send().await;
        match listed.ok()?["workspaces"].as_array()?.as_slice() {
            [only] => only["slug"].as_str().map(str::to_owned),
            _ => None,
        }
    }

    /// Applies a plan, and writes down that the folder and the server have met. If somebody else has released the same meanwhile, the
    /// rest is planned anew.
    async fn apply(&mut self, plan: &ApplyPlan) -> Result<()> {
        let mut newer = None;
        loop {
            let plan = newer.as_ref().unwrap_or(plan);
            self.write_expectations(plan);
            match self.run_plan(plan).await {
                Err(failure) if self.is_race(&failure) => {
                    self.look_after(&failure).await?;
                    newer = Some(self.make_plan().await?);
                }
                done => {
                    done?;
                    break;
                }
            }
        }
        self.look().await?;
        self.write_meeting();
        Ok(())
    }

    async fn run_plan(&self, plan: &ApplyPlan) -> Result<()> {
        let runner = PlanRunner {
            api: &self.api,
            folder: &self.folder,
            out: self.command.common.output(),
            message: self.command.message.as_deref(),
            progress: TerminalProgressBar::steps("apply", plan.steps.len()),
            failure_hint: RESUME_HINT,
        };
        run_until_interrupt(runner.run(self.state.as_ref(), plan), RESUME_HINT).await
    }

    /// Checks that what overtook a release is what the folder has, as where another run of the same folder was still under way.
    ///
    /// # Errors
    /// When it is something else, with who released it.
    async fn check_overtaken(&self, failure: &CliFailure) -> Result<()> {
        let (Some(state), false) = (&self.state, self.command.force) else {
            return Ok(());
        };
        let named = failure.member("conflicts").and_then(|list| list.as_array());
        let mut lost = Vec::new();
        for entry in named.into_iter().flatten() {
            let name = entry["name"].as_str().unwrap_or_default();
            let (kind, is_same, release) = match entry["kind"].as_str() {
                Some("action") => {
                    let local = self.folder.action(name).map(ActionText::of_folder);
                    let remote = state.action(name);
                    let is_same = local == remote.map(ActionText::of_server);
                    ("action", is_same, ReleaseOfPart::of_action(name, state))
                }
                _ => {
                    let frontend = state.frontends.iter().find(|one| one.slug == name);
                    let is_same =
                        self.page_text_at(state, name)? == frontend.map(PageText::of_server);
                    ("page", is_same, ReleaseOfPart::of_page(frontend, None))
                }
            };
            if !is_same {
                let reason = ConflictReason::BothChanged;
                lost.push(PartConflict::new(kind, name, reason, release));
            }
        }
        match lost.is_empty() {
            true => Ok(()),
            false => Err(conflict_failure(&self.api, state, lost).await),
        }
    }

    /// Returns what the folder has for the page at a slug of the server, with the server's title where the folder gives none.
    fn page_text_at(&self, state: &RemoteProjectState, slug: &str) -> Result<Option<PageText>> {
        for page in &self.folder.pages {
            let frontend = state.find_frontend(page, &self.folder)?;
            if frontend.map_or(&page.slug, |frontend| &frontend.slug) == slug {
                let mut text = PageText::of_folder(page);
                let title = frontend.map(|frontend| frontend.title.clone());
                text.title = text.title.or(title);
                return Ok(Some(text));
            }
        }
        Ok(None)
    }

    /// Writes down what is about to be released. Without that, a release whose answer is lost would later pass for somebody else's.
    fn write_expectations(&mut self, plan: &ApplyPlan) {
        if self.state.is_some() && plan.expect(&self.folder, &mut self.meetings) {
            self.write_meetings_file();
        }
    }

    /// Writes down what the folder and the server both have.
    fn write_meeting(&mut self) {
        let Some(state) = &self.state else {
            return;
        };
        let before = self.meetings.clone();
        // Pages that cannot be told apart were refused before.
        let met = self.meetings.meet(&self.folder, state);
        if met.is_ok() && self.meetings != before {
            self.write_meetings_file();
        }
    }

    /// Writes the file of the meetings. What was released is released, so a folder that cannot be written to is no failure.
    fn write_meetings_file(&self) {
        if let Err(failure) = self.meetings.write(&self.directory) {
            let text = format!(
                "warning: what the folder and the server have in common is not written down: {}",
                failure.detail()
            );
            self.command.common.output().print_note(&text);
        }
    }
}

/// Address of a page of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PageAddress {
    /// Slug in the folder.
    pub(super) slug: String,
    /// Slug on the server, which may have a suffix.
    pub(super) real_slug: String,
    pub(super) url: String,
}

/// Lists the pages of a folder with their addresses.
pub(super) async fn page_addresses(
    api: &ApiClient,
    folder: &ProjectFolder,
) -> Result<Vec<PageAddress>> {
    let Some(state) = RemoteProjectState::find(api, &folder.manifest).await? else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for page in &folder.pages {
        if let Some(frontend) = state.find_frontend(page, folder)? {
            found.push(PageAddress {
                slug: page.slug.clone(),
                real_slug: frontend.slug.clone(),
                url: frontend.url.clone(),
            });
        }
    }
    Ok(found)
}
