//! `svc apply`: makes the server like the folder.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::idempotent_create::create_or_replay;
use super::plan::{ApplyPlan, action_batches, home_slug};
use super::remote_state::RemoteProjectState;
use super::steps::PlanStep;
use super::{AcceptedOwners, ProjectFolder};
use crate::actions::ActionFile;
use crate::api::ApiClient;
use crate::error::{CliFailure, FailureExitCode, Result};
use crate::files::DirectoryHandle;
use crate::frontends::FrontendHandle;
use crate::output::{escape_line, member_text, server_note};
use crate::progress::TerminalProgressBar;
use crate::projects::RemoteProject;
use crate::push::NewFrontendSource;
use crate::question::ChangeQuestion;
use crate::{CommonArgs, OutputFormat, endpoints, run_until_interrupt};
use svc_base::fault;

/// Advice after a plan that failed halfway.
const RESUME_HINT: &str = "What was done stays; `svc apply` goes on from there.";

/// Makes the server like the folder: what is not in the folder stays.
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
    /// Why it changes, for the history of the pages
    #[arg(long, short)]
    message: Option<String>,
    #[command(flatten)]
    owners: AcceptedOwners,
    #[command(flatten)]
    common: CommonArgs,
}

impl ApplyCommand {
    pub(crate) async fn run(self) -> Result<()> {
        let out = self.common.output();
        let folder = ProjectFolder::read(&DirectoryHandle::open(&self.folder)?, self.owners)?;
        let api = ApiClient::new(&self.common.remote)?.with_retries();
        let state = RemoteProjectState::find(&api, &folder.manifest).await?;
        let plan = ApplyPlan::make(&api, &folder, state.as_ref()).await?;
        for note in &plan.notes {
            out.print_note(note);
        }
        if plan.steps.is_empty() {
            return self.print_plan(
                &plan,
                true,
                "nothing to do: the server is as the folder says",
            );
        }
        out.print_note(&plan.to_text());
        if self.plan {
            return self.print_plan(&plan, false, "");
        }
        let change = match plan.lines.len() {
            1 => "Make this change".to_owned(),
            several => format!("Make these {several} changes"),
        };
        // Others may add the user to a workspace with a project of this name.
        let found = state.as_ref().map(|state| &state.project);
        let workspace = match found {
            Some(project) => project.workspace.as_ref().map(|one| one.slug.as_str()),
            None => folder.manifest.workspace.as_deref(),
        };
        let question = ChangeQuestion {
            change: &change,
            server: api.server_address(),
            workspace,
            project: &folder.manifest.project,
            environment: None,
        };
        if let Err(failure) = question.confirm(out, self.yes) {
            // Programs get the plan, and the exit code says that it was not applied.
            self.print_plan(&plan, false, "")?;
            return Err(failure);
        }
        let applying = PlanRunner {
            api: &api,
            folder: &folder,
            out,
            message: self.message.as_deref(),
            progress: TerminalProgressBar::steps("apply", plan.steps.len()),
            failure_hint: RESUME_HINT,
        };
        run_until_interrupt(applying.run(state, &plan), RESUME_HINT).await?;
        drop(applying);
        self.print_plan(&plan, true, &format!("done: {} changes", plan.lines.len()))
    }

    fn print_plan(&self, plan: &ApplyPlan, applied: bool, text: &str) -> Result<()> {
        let document = json!({ "plan": plan.to_json(), "applied": applied, "notes": plan.notes });
        self.common.output().print_answer(&document, text)
    }
}

/// Runs the steps of a plan. After an interruption, a new plan has the steps that are left.
#[derive(Debug)]
pub(super) struct PlanRunner<'a> {
    pub(super) api: &'a ApiClient,
    pub(super) folder: &'a ProjectFolder,
    pub(super) out: OutputFormat,
    pub(super) message: Option<&'a str>,
    pub(super) progress: TerminalProgressBar,
    /// Advice after a failed step, if earlier ones succeeded.
    pub(super) failure_hint: &'static str,
}

impl PlanRunner<'_> {
    /// Runs all steps of a plan.
    pub(super) async fn run(
        &self,
        state: Option<RemoteProjectState>,
        plan: &ApplyPlan,
    ) -> Result<()> {
        let mut project = state.map(|state| state.project);
        for (number, step) in plan.steps.iter().enumerate() {
            let done = self.run_step(step, &mut project).await;
            done.map_err(|failure| match number {
                0 => failure,
                _ => failure.with_hint(self.failure_hint),
            })?;
            fault::point(step.fault_point());
            self.progress.add(1);
        }
        Ok(())
    }

    async fn run_step(&self, step: &PlanStep, project: &mut Option<RemoteProject>) -> Result<()> {
        match (step, &project) {
            (PlanStep::CreateProject, _) => *project = Some(self.create_project().await?),
            (step, Some(project)) => self.apply_step(step, project).await?,
            (_, None) => return Err(CliFailure::local("The plan has no project.")),
        }
        Ok(())
    }

    async fn create_project(&self) -> Result<RemoteProject> {
        let manifest = &self.folder.manifest;
        let body = json!({
            "name": manifest.project,
            "description": manifest.description,
            "workspace": manifest.workspace,
        });
        let made = create_or_replay(
            self.api,
            &endpoints::CREATE_PROJECT,
            &[],
            body,
            &endpoints::PROJECT,
        )
        .await?;
        serde_json::from_value(made).map_err(|error| {
            CliFailure::local(format!("The server made a project, and says: {error}"))
        })
    }

    async fn apply_step(&self, step: &PlanStep, project: &RemoteProject) -> Result<()> {
        let at = [project.id.as_str()];
        match step {
            PlanStep::CreateProject => Ok(()),
            PlanStep::CreateBackend => {
                let first = self.folder.migrations.first();
                let first = first.ok_or_else(|| CliFailure::local("The plan has no migration."))?;
                let body = json!({ "ddl": first.sql });
                create_or_replay(
                    self.api,
                    &endpoints::CREATE_BACKEND,
                    &at,
                    body,
                    &endpoints::BACKEND,
                )
                .await
                .map_err(|failure| failure.with_file(&first.path))
                .map(drop)
            }
            PlanStep::Migrate(number) => {
                let migration = &self.folder.migrations[*number];
                let asked = self.api.call(&endpoints::UPDATE_BACKEND, &at);
                // The file's name identifies the migration in the ledger.
                let body = json!({ "ddl": migration.sql, "note": migration.name });
                asked
                    .body(body)
                    .send()
                    .await
                    .map_err(|failure| failure.with_file(&migration.path))
                    .map(drop)
            }
            PlanStep::DefineActions(numbers) => {
                for batch in action_batches(self.folder, numbers) {
                    self.api
                        .call(&endpoints::DEFINE_ACTIONS, &at)
                        .body(batch)
                        .send()
                        .await
                        .map_err(|failure| {
                            ActionFile::with_action_files(failure, &self.folder.actions)
                        })?;
                }
                Ok(())
            }
            PlanStep::SwitchRooms(on) => {
                let asked = self.api.call(&endpoints::UPDATE_BACKEND, &at);
                asked.body(json!({ "realtime": on })).send().await.map(drop)
            }
            PlanStep::SwitchTools(on) => {
                let asked = self.api.call(&endpoints::UPDATE_BACKEND, &at);
                asked.body(json!({ "agents": on })).send().await.map(drop)
            }
            PlanStep::CreatePage(number) => self.create_page(*number, project).await,
            PlanStep::ChangePage { page, slug, live } => {
                self.change_page(*page, slug, live.as_deref(), project)
                    .await
            }
            PlanStep::UpdateProject => self.update_project(project).await,
        }
    }

    async fn create_page(&self, number: usize, project: &RemoteProject) -> Result<()> {
        let page = &self.folder.pages[number];
        let body = json!({
            "type": page.source.content_type,
            "content": page.source.content,
            "requested_slug": page.slug,
            "title": page.title.as_ref().or(page.source.title.as_ref()),
        });
        let at = [project.id.as_str()];
        let made = create_or_replay(
            self.api,
            &endpoints::CREATE_FRONTEND,
            &at,
            body,
            &endpoints::FRONTEND,
        )
        .await;
        let made = made.map_err(|failure| failure.with_file(&page.source.path))?;
        self.warn(&page.source.path, &made);
        let slug = member_text(&made, "slug");
        if slug != page.slug {
            self.note(&format!("`{}` was taken: the page is `{slug}`.", page.slug));
        }
        self.note(&format!(
            "{} is at {}",
            page.slug,
            member_text(&made, "url")
        ));
        Ok(())
    }

    /// Changes a page by a draft, only if its live source is the one that the plan has seen.
    async fn change_page(
        &self,
        number: usize,
        slug: &str,
        live: Option<&str>,
        project: &RemoteProject,
    ) -> Result<()> {
        let page = &self.folder.pages[number];
        let found = FrontendHandle {
            api: self.api.clone(),
            project: project.clone(),
            slug: slug.to_owned(),
        };
        let base = found.active_revision().await?;
        let revision = self
            .api
            .call(&endpoints::REVISION, &[&project.id, slug, &base])
            .send()
            .await?;
        if revision["content_sha256"].as_str() != live {
            return Err(CliFailure::new(
                FailureExitCode::Conflict,
                "Somebody else has published",
                format!(
                    "`{slug}` is not any more what was planned for. `svc apply` makes a new plan; `svc pull` brings what is there."
                ),
            ));
        }
        let new = NewFrontendSource {
            content: &page.source.content,
            title: page.title.as_deref(),
            message: self.message,
        };
        let draft = found.draft(&base, new).await;
        let draft = draft.map_err(|failure| failure.with_file(&page.source.path))?;
        let done = found.promote(&base, &draft, self.message).await?;
        self.warn(&page.source.path, &done["frontend"]);
        Ok(())
    }

    async fn update_project(&self, project: &RemoteProject) -> Result<()> {
        let manifest = &self.folder.manifest;
        let home = match &manifest.home {
            // An earlier step may just have created the page.
            Some(wanted) => {
                let state = RemoteProjectState::read(self.api, project.clone()).await?;
                home_slug(self.folder, &state, wanted)?
            }
            None => None,
        };
        let body = json!({ "description": manifest.description, "home": home });
        self.api
            .call(&endpoints::UPDATE_PROJECT, &[&project.id])
            .body(body)
            .send()
            .await
            .map(drop)
    }

    /// Prints a note above the progress bar.
    fn note(&self, text: &str) {
        self.progress.suspend(|| self.out.print_note(text));
    }

    fn warn(&self, file: &Path, made: &Value) {
        for warning in made["warnings"].as_array().into_iter().flatten() {
            self.note(&format!(
                "warning: {}:{}: {}",
                escape_line(&file.display().to_string()),
                server_note(&member_text(warning, "line")),
                server_note(&member_text(warning, "detail"))
            ));
        }
    }
}

/// Lists the pages of a folder with their URLs.
pub(super) async fn page_urls(
    api: &ApiClient,
    folder: &ProjectFolder,
) -> Result<Vec<(String, String)>> {
    let Some(state) = RemoteProjectState::find(api, &folder.manifest).await? else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for page in &folder.pages {
        if let Some(frontend) = state.find_frontend(page, folder)? {
            found.push((page.slug.clone(), frontend.url.clone()));
        }
    }
    Ok(found)
}
