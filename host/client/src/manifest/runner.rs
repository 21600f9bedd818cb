//! Runs the steps of a plan on the server.

use std::path::Path;

use serde_json::{Value, json};

use super::ProjectFolder;
use super::idempotent_create::create_or_replay;
use super::plan::ApplyPlan;
use super::release::{ReleaseLimits, ReleasePart, choose_free_slug, release_body, with_part_files};
use super::remote_state::RemoteProjectState;
use super::steps::PlanStep;
use crate::OutputFormat;
use crate::api::ApiClient;
use crate::domains::domain_text;
use crate::endpoints;
use crate::error::{CliFailure, FailureExitCode, Result};
use crate::output::{escape_line, member_text, server_note};
use crate::progress::TerminalProgressBar;
use crate::projects::RemoteProject;
use crate::sites::{MAX_ROUNDS, SiteFolder, SitePublisher, publishing_hints};
use svc_base::fault;

/// Fault point after the answer to a release, at which tests end the process.
const RELEASE_ANSWERED: &str = "apply.release";

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
    ///
    /// # Errors
    /// The first failure; the code of a release that somebody else has overtaken is `release_conflict`.
    pub(super) async fn run(
        &self,
        state: Option<&RemoteProjectState>,
        plan: &ApplyPlan,
    ) -> Result<()> {
        let mut project = state.map(|state| state.project.clone());
        let mut is_new = false;
        for (number, step) in plan.steps.iter().enumerate() {
            let done = match (step, &project) {
                (PlanStep::CreateProject, _) => self.create_project().await.map(|made| {
                    is_new = made.1;
                    project = Some(made.0);
                }),
                (step, Some(project)) => self.apply_step(step, project).await,
                (_, None) => Err(CliFailure::local("The plan has no project.")),
            };
            if let Err(failure) = done {
                let made = project.filter(|_| is_new && is_refusal(&failure));
                return Err(match made {
                    Some(made) if self.end_empty(&made).await => failure,
                    _ if number == 0 => failure,
                    _ => failure.with_hint(self.failure_hint),
                });
            }
            fault::point(step.fault_point());
            self.progress.add(1);
        }
        Ok(())
    }

    /// Deletes a project that this run has made, if nothing has come into it; returns whether it is gone.
    async fn end_empty(&self, made: &RemoteProject) -> bool {
        let at = [made.id.as_str()];
        let Ok(found) = self
            .api
            .call(&endpoints::PROJECT, &at)
            .send_and_parse()
            .await
        else {
            return false;
        };
        match RemoteProjectState::read(self.api, found).await {
            Ok(state) if state.backend.is_none() && state.frontends.is_empty() => {
                let ended = self.api.call(&endpoints::DELETE_PROJECT, &at).send();
                ended.await.is_ok()
            }
            _ => false,
        }
    }

    async fn create_project(&self) -> Result<(RemoteProject, bool)> {
        let manifest = &self.folder.manifest;
        let body = json!({
            "name": manifest.project,
            "description": manifest.description,
            "workspace": manifest.workspace,
        });
        let (made, is_new) = create_or_replay(
            self.api,
            &endpoints::CREATE_PROJECT,
            &[],
            body,
            &endpoints::PROJECT,
        )
        .await?;
        let project = serde_json::from_value(made).map_err(|error| {
            CliFailure::local(format!("The server made a project, and says: {error}"))
        })?;
        Ok((project, is_new))
    }

    async fn apply_step(&self, step: &PlanStep, project: &RemoteProject) -> Result<()> {
        let at = [project.id.as_str()];
        let update_backend = |body| self.api.call(&endpoints::UPDATE_BACKEND, &at).body(body);
        match step {
            PlanStep::CreateProject => Ok(()),
            PlanStep::Release { parts, home } => {
                self.release(parts, home.as_deref(), project).await
            }
            PlanStep::SwitchRooms(on) => {
                let asked = update_backend(json!({ "realtime": on }));
                asked.send().await.map(drop)
            }
            PlanStep::SwitchTools(on) => {
                let asked = update_backend(json!({ "agents": on }));
                asked.send().await.map(drop)
            }
            PlanStep::AddPrice { price, replaces } => {
                let price = &self.folder.manifest.prices[*price];
                let body = json!({
                    "key": price.key, "product_name": price.product, "description": price.description, "label": price.label,
                    "amount": price.amount, "currency": price.currency, "recurring": price.interval().is_some(), "interval": price.interval(), "replaces": replaces,
                });
                let asked = self.api.call(&endpoints::ADD_PRICE, &at).body(body);
                asked.send().await.map(drop)
            }
            PlanStep::WithdrawPrice(id) => {
                let asked = self
                    .api
                    .call(&endpoints::WITHDRAW_PRICE, &[&project.id, id]);
                asked.send().await.map(drop)
            }
            PlanStep::AddDomain(name) => {
                let asked = self.api.call(&endpoints::ADD_DOMAIN, &at);
                let added = asked.body(json!({ "name": name })).send().await?;
                self.note(&domain_text(&added));
                Ok(())
            }
            PlanStep::UpdateProject { description, home } => {
                let body = json!({ "description": description, "home": home });
                let asked = self.api.call(&endpoints::UPDATE_PROJECT, &at).body(body);
                asked.send().await.map(drop)
            }
        }
    }

    /// Releases parts: at once, or one release after the other where they are too many.
    async fn release(
        &self,
        parts: &[ReleasePart],
        home: Option<&str>,
        project: &RemoteProject,
    ) -> Result<()> {
        let mut parts = parts.to_vec();
        let mut limits = ReleaseLimits::DEFAULT;
        let (mut done, mut rounds) = (0, 0);
        self.send_few_files(&parts, project).await?;
        while done < parts.len() {
            let count = limits.fitting(self.folder, &parts[done..]);
            let is_last = done + count == parts.len();
            let sent = &mut parts[done..done + count];
            let body = release_body(self.folder, sent, home.filter(|_| is_last), self.message);
            let asked = self.api.call(&endpoints::RELEASE, &[&project.id]);
            match asked.body(body).send().await {
                Ok(answer) => {
                    self.tell_pages(sent, &answer);
                    (done, rounds) = (done + count, 0);
                    fault::point(RELEASE_ANSWERED);
                }
                Err(failure) if is_too_long(&failure) && count > 1 => limits.halve(),
                Err(failure) if failure.code() == "files_missing" && rounds < MAX_ROUNDS => {
                    rounds += 1;
                    self.send_missing_files(sent, &failure, project).await?;
                }
                Err(failure) => {
                    if choose_free_slug(&failure, sent, self.folder)?.is_none() {
                        let failure = with_part_files(failure, sent, self.folder);
                        return Err(match done {
                            0 => failure,
                            _ => failure.with_hint(self.failure_hint),
                        });
                    }
                }
            }
        }
        Ok(())
    }

    /// Sends the new files of sites that have few.
    async fn send_few_files(&self, parts: &[ReleasePart], project: &RemoteProject) -> Result<()> {
        for (site, base) in parts.iter().filter_map(|part| part.site(self.folder)) {
            if let Some(base) = base {
                let publisher = self.publisher(&site.folder, project);
                publisher.send_few(base).await?;
            }
        }
        Ok(())
    }

    /// Sends the files of sites that the server has said to be missing.
    async fn send_missing_files(
        &self,
        parts: &[ReleasePart],
        failure: &CliFailure,
        project: &RemoteProject,
    ) -> Result<()> {
        for (site, _) in parts.iter().filter_map(|part| part.site(self.folder)) {
            let publisher = self.publisher(&site.folder, project);
            publisher.send_missing(failure).await?;
        }
        Ok(())
    }

    fn publisher<'a>(
        &'a self,
        site: &'a SiteFolder,
        project: &'a RemoteProject,
    ) -> SitePublisher<'a> {
        SitePublisher {
            api: self.api,
            project: &project.id,
            site,
        }
    }

    /// Says where new pages are, and what the server warns of.
    fn tell_pages(&self, parts: &[ReleasePart], answer: &Value) {
        for part in parts {
            let ReleasePart::Page {
                number,
                slug,
                is_new,
                ..
            } = part
            else {
                continue;
            };
            let mut pages = answer["pages"].as_array().into_iter().flatten();
            let Some(answered) = pages.find(|page| page["slug"] == slug.as_str()) else {
                continue;
            };
            let page = &self.folder.pages[*number];
            self.warn(page.path(), answered);
            let url = member_text(answered, "url");
            if *is_new {
                if *slug != page.slug {
                    self.note(&format!("`{}` was taken: the page is `{slug}`.", page.slug));
                }
                self.note(&format!("{} is at {url}", page.slug));
            }
            if let Some(site) = page.site() {
                let hints = publishing_hints(&site.folder, slug, &url, false);
                hints.iter().for_each(|hint| self.note(hint));
            }
        }
    }

    fn warn(&self, file: &Path, page: &Value) {
        for warning in page["warnings"].as_array().into_iter().flatten() {
            let line = warning["line"].as_u64();
            self.note(&format!(
                "warning: {}{}: {}",
                escape_line(&file.display().to_string()),
                line.map_or_else(String::new, |line| format!(":{line}")),
                server_note(&member_text(warning, "detail"))
            ));
        }
    }

    /// Prints a note above the progress bar.
    fn note(&self, text: &str) {
        self.progress.suspend(|| self.out.print_note(text));
    }
}

/// Whether the server has refused a request, so that another one like it is refused, too.
fn is_refusal(failure: &CliFailure) -> bool {
    failure.exit == FailureExitCode::Failed && !failure.code().is_empty()
}

/// Whether a release as a whole is too long for the server, and none of its parts by itself.
pub(super) fn is_too_long(failure: &CliFailure) -> bool {
    failure.code() == "payload_too_large" && failure.member("part").is_none()
}
