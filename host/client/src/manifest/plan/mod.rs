//! Plans: the steps from a project as it is to what a folder says. They only ever add.

use serde_json::{Value, json};

use super::remote_state::{RemoteBackend, RemoteState};
use super::steps::{PlanLine, PlanStep};
use super::{Folder, LocalPage};
use crate::actions::ActionFile;
use crate::api::Api;
use crate::backends::dry_run_text;
use crate::difference::Difference;
use crate::endpoints;
use crate::error::{Failure, FailureCode, Result};
use crate::output;
use svc_base::digest::Digest;

/// The steps, and what a person is shown of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    pub(super) steps: Vec<PlanStep>,
    /// A line for each thing that changes: whether it is new, of which kind it is, and which one.
    pub(super) lines: Vec<PlanLine>,
    /// Notes for the user.
    pub(super) notes: Vec<String>,
}

impl Plan {
    /// Makes the plan of changes on a server. Nothing is changed by looking.
    ///
    /// # Errors
    /// What the platform would refuse, where that can be known before.
    pub(super) async fn make(
        api: &Api,
        folder: &Folder,
        state: Option<&RemoteState>,
    ) -> Result<Self> {
        let mut plan = Self::default();
        if state.is_none() {
            plan.add_step(
                PlanStep::CreateProject,
                true,
                "project",
                &folder.manifest.project,
                "",
            );
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

    fn add_step(&mut self, step: PlanStep, new: bool, kind: &'static str, name: &str, more: &str) {
        self.steps.push(step);
        self.add_line(new, kind, name, more);
    }

    fn add_line(&mut self, new: bool, kind: &'static str, name: &str, more: &str) {
        self.lines.push(PlanLine {
            is_new: new,
            kind,
            name: name.to_owned(),
            detail: more.to_owned(),
        });
    }

    /// Plans the migrations that are not applied; returns their numbers.
    fn plan_migrations(
        &mut self,
        folder: &Folder,
        backend: Option<&RemoteBackend>,
    ) -> Result<Vec<usize>> {
        let applied = backend.map_or(&[][..], |backend| &backend.migrations);
        let pending = pending_migrations(folder, applied)?;
        for &number in &pending {
            let name = &folder.migrations[number].name;
            match (number, backend) {
                (0, None) => {
                    self.add_step(
                        PlanStep::CreateBackend,
                        true,
                        "database",
                        &format!("from {name}"),
                        "",
                    );
                }
                _ => self.add_step(PlanStep::Migrate(number), true, "migration", name, ""),
            }
        }
        if backend.is_none() && pending.is_empty() && folder.needs_backend() {
            return Err(Failure::local(
                "The folder has actions, `realtime` or `agents`, and no migration: the first migration makes the database.",
            ));
        }
        Ok(pending)
    }

    fn plan_actions(&mut self, folder: &Folder, backend: Option<&RemoteBackend>) -> Result<()> {
        let known = backend.map_or(&[][..], |backend| &backend.actions);
        let mut changed = Vec::new();
        for (number, action) in folder.actions.iter().enumerate() {
            let checksum = Digest::of(action.sql.as_bytes()).to_string();
            let there = known.iter().find(|there| there.name == action.name);
            if there.is_some_and(|there| there.checksum == checksum) {
                continue;
            }
            changed.push(number);
            self.add_line(there.is_none(), "action", &action.name, "");
        }
        let elsewhere = known.iter().filter(|there| {
            !folder
                .actions
                .iter()
                .any(|action| action.name == there.name)
        });
        let elsewhere: Vec<_> = elsewhere.map(|there| format!("`{}`", there.name)).collect();
        if !elsewhere.is_empty() {
            self.notes.push(format!(
                "Actions that only the server has stay: {}.",
                elsewhere.join(", ")
            ));
        }
        if !changed.is_empty() {
            self.steps.push(PlanStep::DefineActions(changed));
        }
        Ok(())
    }

    /// Plans what is switched on or off.
    fn plan_switches(&mut self, folder: &Folder, backend: Option<&RemoteBackend>) {
        let manifest = &folder.manifest;
        let rooms = backend.is_some_and(|backend| backend.realtime.enabled);
        let tools = backend.is_some_and(|backend| backend.agents);
        let state = |on: bool| if on { "on" } else { "off" };
        if let Some(on) = manifest.realtime.filter(|on| *on != rooms) {
            self.add_step(PlanStep::SwitchRooms(on), false, "rooms", state(on), "");
        }
        if let Some(on) = manifest.agents.filter(|on| *on != tools) {
            self.add_step(PlanStep::SwitchTools(on), false, "tools", state(on), "");
        }
    }

    async fn plan_pages(
        &mut self,
        api: &Api,
        folder: &Folder,
        state: Option<&RemoteState>,
    ) -> Result<()> {
        for (number, page) in folder.pages.iter().enumerate() {
            let there = match state {
                Some(state) => state
                    .find_frontend(page, folder)?
                    .map(|frontend| (state, frontend)),
                None => None,
            };
            let Some((state, frontend)) = there else {
                self.add_step(PlanStep::CreatePage(number), true, "page", &page.slug, "");
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
            self.add_step(step, false, "page", &frontend.slug, &more.join(", "));
        }
        Ok(())
    }

    fn plan_details(&mut self, folder: &Folder, state: Option<&RemoteState>) -> Result<()> {
        let manifest = &folder.manifest;
        let mut changed = Vec::new();
        // A new project is made with its description.
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
            self.add_step(
                PlanStep::UpdateProject,
                false,
                "project",
                &changed.join(", "),
                "",
            );
        }
        Ok(())
    }

    /// Lets the server try what it can: what it refuses is said before anything has changed.
    async fn dry_run(
        &mut self,
        api: &Api,
        folder: &Folder,
        state: &RemoteState,
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
                for batch in batches(folder, changed) {
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

    /// The plan for people.
    pub(super) fn to_text(&self) -> String {
        let lines = self.lines.iter().map(|line| {
            let sign = if line.is_new { '+' } else { '~' };
            let more = match line.detail.as_str() {
                "" => String::new(),
                more => format!(" ({more})"),
            };
            output::escape_line(&format!("{sign} {:9} {}{more}", line.kind, line.name))
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The plan for programs.
    pub(super) fn to_json(&self) -> Vec<Value> {
        let change = |line: &PlanLine| if line.is_new { "create" } else { "update" };
        self.lines
            .iter()
            .map(|line| json!({ "change": change(line), "kind": line.kind, "name": line.name }))
            .collect()
    }
}

/// The slug that the home page has on the server; `None` where it is not there yet.
pub(super) fn home_slug(
    folder: &Folder,
    state: &RemoteState,
    wanted: &str,
) -> Result<Option<String>> {
    if wanted.is_empty() {
        return Ok(Some(String::new()));
    }
    let is_other = |slug: &str| folder.manifest.pages.contains_key(slug);
    let frontend = state.find_frontend_by_slug(wanted, is_other)?;
    Ok(frontend.map(|frontend| frontend.slug.clone()))
}

/// Actions as the server takes them: so many, and so many bytes, at once.
pub(super) fn batches(folder: &Folder, numbers: &[usize]) -> Vec<Value> {
    /// The most actions of a batch.
    const MAX_ACTIONS: usize = 200;
    /// About the most bytes of a batch, far below what a body may have.
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

/// The numbers of the migrations that are not in the ledger, which must be the last ones.
fn pending_migrations(
    folder: &Folder,
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
        return Err(Failure::new(
            FailureCode::Conflict,
            "The migrations differ",
            detail,
        ));
    }
    let later = folder.migrations[first..]
        .iter()
        .find(|one| is_applied(&one.checksum));
    match later {
        Some(later) => Err(Failure::new(
            FailureCode::Conflict,
            "The migrations differ",
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
    Err(Failure::local(format!(
        "{} is {} by its name, and the page `{}` is {there} for good: give it another slug.",
        page.source.path.display(),
        page.source.content_type,
        page.slug
    )))
}

/// How much of a page changes.
async fn change_size(api: &Api, project: &str, slug: &str, page: &LocalPage) -> Result<String> {
    let live = api
        .call(&endpoints::CONTENT, &[project, slug])
        .send()
        .await?;
    let old = live["content"].as_str().unwrap_or_default();
    Ok(Difference::between((slug, old), (slug, &page.source.content)).size())
}

#[cfg(test)]
mod tests;
