//! Decisions of a plan: what becomes of each part of a project.

use super::super::ProjectFolder;
use super::super::authorship::{
    ConflictReason, PartConflict, ReleaseOfPart, action_history, first_revision, page_history,
};
use super::super::domains::{fetch_domains, find_domain};
use super::super::meetings::{MetPart, PartDecision};
use super::super::merge::{Decision, Precedence};
use super::super::pages::{FrontendType, LocalPage, LocalSite};
use super::super::parts::{ActionText, Comparable, PageText, PriceTerms};
use super::super::remote_state::{RemoteFrontend, RemoteProjectState, fetch_site};
use super::super::settings::{
    DESCRIPTION, HOME, ROOMS, SETTINGS, local_setting, remote_setting, switch_text,
};
use super::super::steps::{Change, PlanStep, PlanStepDescription};
use super::super::suffixes::unknown_page;
use super::{ApplyPlan, MAX_SHOWN_ACTIONS, PlanRules, ReleasePart};
use crate::api::ApiClient;
use crate::domains::domain_text;
use crate::error::{CliFailure, Result};
use crate::sites::{RemoteSite, SiteDifference};

/// A plan that is being made.
pub(super) struct Planner<'a> {
    pub(super) api: &'a ApiClient,
    pub(super) folder: &'a ProjectFolder,
    pub(super) state: Option<&'a RemoteProjectState>,
    pub(super) rules: PlanRules<'a>,
    pub(super) plan: ApplyPlan,
}

/// A part of the folder beside the same part of the server.
struct Compared<'a, T> {
    met: Option<&'a MetPart<T>>,
    local: Option<&'a T>,
    remote: Option<&'a T>,
}

impl<'a> Planner<'a> {
    /// Decides about a part without its history; `None` if that is needed.
    fn decide<T: Comparable>(
        &self,
        part: &Compared<'_, T>,
        earlier: Option<&[T]>,
    ) -> Option<Decision> {
        let (meetings, rule) = (self.rules.meetings, self.rules.precedence);
        let decision = match meetings.decide(part.met, part.local, part.remote, earlier) {
            PartDecision::Made(decision) => decision,
            // The folder's counts, also if it is older.
            PartDecision::NeedsHistory if rule.takes_older() => Decision::Apply,
            PartDecision::NeedsHistory => return None,
        };
        Some(decision.by(rule, part.local.is_some()))
    }

    /// Adds what a decision says of a part that is not changed. Returns whether it is changed or ends.
    fn is_changed(
        &mut self,
        decision: Decision,
        kind: &'static str,
        name: &str,
        release: ReleaseOfPart,
    ) -> bool {
        let reason = match decision {
            Decision::Apply | Decision::End => return true,
            Decision::Same | Decision::OnlyServer => return false,
            Decision::ServerNewer => {
                let line = PlanStepDescription::new(Change::Keep, kind, name);
                let detail = format!("server is newer{}", release.moment());
                self.plan.lines.push(line.with_detail(detail));
                return false;
            }
            Decision::Conflict => ConflictReason::BothChanged,
            Decision::Stale => ConflictReason::Stale,
        };
        let conflict = PartConflict::new(kind, name, reason, release);
        self.plan.conflicts.push(conflict);
        false
    }

    pub(super) async fn plan_actions(&mut self) -> Result<()> {
        let (folder, state) = (self.folder, self.state);
        for (number, action) in folder.actions.iter().enumerate() {
            let remote = state.and_then(|state| state.action(&action.name));
            let local = ActionText::of_folder(action);
            let text = remote.map(ActionText::of_server);
            let part = Compared {
                met: self.rules.meetings.actions.get(&action.name),
                local: Some(&local),
                remote: text.as_ref(),
            };
            let decision = match (self.decide(&part, None), state) {
                (Some(decision), _) => decision,
                (None, Some(state)) => {
                    let earlier = action_history(self.api, &state.project.id, &action.name).await?;
                    self.decide(&part, Some(&earlier))
                        .unwrap_or(Decision::Apply)
                }
                (None, None) => Decision::Apply,
            };
            let release = state.map(|state| ReleaseOfPart::of_action(&action.name, state));
            let release = release.unwrap_or_default();
            if !self.is_changed(decision, "action", &action.name, release) {
                continue;
            }
            let change = Change::of(remote.is_none());
            let line = PlanStepDescription::new(change, "action", &action.name);
            self.plan.lines.push(line.with_file(&action.path));
            self.plan.parts.push(ReleasePart::Action {
                number,
                expected: remote.map_or(0, |remote| remote.version),
            });
        }
        if let Some(state) = state {
            self.plan_gone_actions(state);
            self.name_other_actions(state);
        }
        Ok(())
    }

    /// Plans the end of the actions whose files are gone.
    fn plan_gone_actions(&mut self, state: &RemoteProjectState) {
        let (folder, known) = (self.folder, &self.rules.meetings.actions);
        let gone = known
            .iter()
            .filter(|(name, _)| folder.action(name).is_none());
        for (name, met) in gone {
            let remote = state.action(name);
            let text = remote.map(ActionText::of_server);
            let part = Compared {
                met: Some(met),
                local: None,
                remote: text.as_ref(),
            };
            let Some(decision) = self.decide(&part, Some(&[])) else {
                continue;
            };
            let release = ReleaseOfPart::of_action(name, state);
            let is_changed = self.is_changed(decision, "action", name, release);
            if let (true, Some(remote)) = (is_changed, remote) {
                let line = PlanStepDescription::new(Change::Remove, "action", name);
                self.plan.lines.push(line.with_detail("its file is gone"));
                self.plan.parts.push(ReleasePart::RemoveAction {
                    name: name.clone(),
                    expected: remote.version,
                });
            }
        }
    }

    /// Notes the actions that only the server has.
    fn name_other_actions(&mut self, state: &RemoteProjectState) {
        let known = &self.rules.meetings.actions;
        let actions = state.backend.iter().flat_map(|backend| &backend.actions);
        let others = actions.filter(|there| {
            self.folder.action(&there.name).is_none() && !known.contains_key(&there.name)
        });
        let others: Vec<_> = others.map(|there| format!("`{}`", there.name)).collect();
        if others.is_empty() {
            return;
        }
        let shown = &others[..others.len().min(MAX_SHOWN_ACTIONS)];
        let more = if shown.len() < others.len() {
            ", …"
        } else {
            ""
        };
        self.plan.notes.push(format!(
            "Actions that only the server has stay: {}{more}.",
            shown.join(", ")
        ));
    }

    pub(super) async fn plan_pages(&mut self) -> Result<()> {
        let (folder, state) = (self.folder, self.state);
        let mut taken = Vec::new();
        for (number, page) in folder.pages.iter().enumerate() {
            let frontend = match state {
                Some(state) => state.find_frontend(page, folder)?,
                None => None,
            };
            match (frontend, state) {
                (Some(frontend), _) => {
                    check_type(page, frontend.frontend_type)?;
                    taken.push(frontend.slug.as_str());
                }
                (None, Some(state)) => self.check_apart(page, state)?,
                (None, None) => {}
            }
            let local = PageText::of_folder(page);
            let text = frontend.map(PageText::of_server);
            let part = Compared {
                met: self.rules.meetings.pages.get(&page.slug),
                local: Some(&local),
                remote: text.as_ref(),
            };
            let decision = match (self.decide(&part, None), state, frontend) {
                (Some(decision), _, _) => decision,
                (None, Some(state), Some(frontend)) => {
                    let project = &state.project.id;
                    let earlier = page_history(self.api, project, &frontend.slug).await?;
                    self.decide(&part, Some(&earlier))
                        .unwrap_or(Decision::Apply)
                }
                (None, _, _) => Decision::Apply,
            };
            self.plan_page(number, decision, frontend).await?;
        }
        match state {
            Some(state) => self.plan_left_pages(state, &taken).await,
            None => Ok(()),
        }
    }

    /// Checks that a new page is not one that the server has with a suffix. A page that was met is known by its slug.
    fn check_apart(&self, page: &LocalPage, state: &RemoteProjectState) -> Result<()> {
        let met = self.rules.meetings.pages.get(&page.slug);
        let is_known = met.is_some_and(|met| met.slug.is_some());
        match state.apart.of(&page.slug) {
            [] => Ok(()),
            _ if is_known => Ok(()),
            slugs => Err(unknown_page(&page.slug, slugs)),
        }
    }

    /// Returns the revision of a page that a release expects.
    async fn expected_revision(&self, frontend: &RemoteFrontend) -> Result<Option<String>> {
        match (&frontend.active_revision_id, self.state) {
            (None, Some(state)) => first_revision(self.api, &state.project.id, frontend).await,
            (revision, _) => Ok(revision.clone()),
        }
    }

    /// Plans a page of the folder.
    async fn plan_page(
        &mut self,
        number: usize,
        decision: Decision,
        frontend: Option<&RemoteFrontend>,
    ) -> Result<()> {
        let page = &self.folder.pages[number];
        let slug = frontend.map_or(&page.slug, |frontend| &frontend.slug);
        let met = self.rules.meetings.pages.get(&page.slug);
        let release = ReleaseOfPart::of_page(frontend, met);
        if !self.is_changed(decision, page.kind(), slug, release) {
            return Ok(());
        }
        let expected = match frontend {
            Some(frontend) => self.expected_revision(frontend).await?,
            None => None,
        };
        let base = self.base_of(page, frontend, expected.as_deref()).await?;
        let mut line = PlanStepDescription::new(Change::of(frontend.is_none()), page.kind(), slug);
        if let Some(site) = page.site() {
            let notes = site.folder.notes.iter().cloned();
            self.plan.notes.extend(notes);
            line = line.with_detail(site_size(site, base.as_ref()));
        }
        if let Some(frontend) = frontend {
            let titles = page
                .title
                .as_ref()
                .filter(|title| **title != frontend.title);
            if titles.is_some() {
                line = line.with_detail("title");
            }
        }
        if *slug != page.slug {
            line = line.with_detail(format!("taken for `{}`", page.slug));
        }
        self.plan.lines.push(line.with_file(page.path()));
        self.plan.parts.push(ReleasePart::Page {
            number,
            slug: slug.clone(),
            expected,
            is_new: frontend.is_none(),
            base,
        });
        Ok(())
    }

    /// Reads the files of the revision that a site takes the place of; `None` for a page, and for a new site.
    async fn base_of(
        &self,
        page: &LocalPage,
        frontend: Option<&RemoteFrontend>,
        revision: Option<&str>,
    ) -> Result<Option<RemoteSite>> {
        match (page.site(), frontend, self.state) {
            (Some(_), Some(frontend), Some(state)) => {
                let at = (&*state.project.id, &*frontend.slug);
                fetch_site(self.api, at, revision).await.map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Plans the pages that have left the manifest: they are named, and end only if they are pruned.
    async fn plan_left_pages(&mut self, state: &RemoteProjectState, taken: &[&str]) -> Result<()> {
        let (folder, known) = (self.folder, &self.rules.meetings.pages);
        let left = known
            .iter()
            .filter(|(slug, _)| !folder.manifest.pages.contains_key(*slug));
        for (slug, met) in left {
            let slug = met.slug.as_ref().unwrap_or(slug);
            let mut frontends = state.frontends.iter();
            let frontend = frontends.find(|one| one.slug == *slug && !taken.contains(&&*one.slug));
            let Some(frontend) = frontend else {
                continue;
            };
            if !self.rules.prune {
                let line = PlanStepDescription::new(Change::Keep, "page", slug);
                let detail = "it left svc.toml and stays: `--prune` deletes it";
                self.plan.lines.push(line.with_detail(detail));
                continue;
            }
            let text = PageText::of_server(frontend);
            let part = Compared {
                met: Some(met),
                local: None,
                remote: Some(&text),
            };
            let Some(decision) = self.decide(&part, Some(&[])) else {
                continue;
            };
            let release = ReleaseOfPart::of_page(Some(frontend), Some(met));
            if self.is_changed(decision, "page", slug, release) {
                let line = PlanStepDescription::new(Change::Remove, "page", slug);
                self.plan.lines.push(line.with_detail("it left svc.toml"));
                self.plan.parts.push(ReleasePart::RemovePage {
                    slug: slug.clone(),
                    expected: self.expected_revision(frontend).await?,
                });
            }
        }
        Ok(())
    }

    /// Plans the settings; returns the steps after the release.
    pub(super) fn plan_settings(&mut self) -> Result<Vec<PlanStep>> {
        let mut steps = Vec::new();
        for name in SETTINGS {
            let Some(local) = local_setting(&self.folder.manifest, self.state, name)? else {
                continue;
            };
            // A new project is created with its description.
            if name == DESCRIPTION && self.state.is_none() {
                continue;
            }
            let remote = remote_setting(self.state, name);
            let part = Compared {
                met: self.rules.meetings.settings.get(name),
                local: Some(&local),
                remote: Some(&remote),
            };
            let decision = self.decide(&part, Some(&[])).unwrap_or(Decision::Apply);
            let release = ReleaseOfPart::of_setting(name, self.state);
            if !self.is_changed(decision, "project", name, release) {
                continue;
            }
            let is_on = local == switch_text(true);
            let (kind, shown, step) = match name {
                DESCRIPTION => {
                    let step = PlanStep::UpdateProject {
                        description: Some(local.clone()),
                        home: None,
                    };
                    ("project", name, Some(step))
                }
                HOME => {
                    self.plan.home = Some(local.clone());
                    ("project", name, None)
                }
                ROOMS => ("rooms", &*local, Some(PlanStep::SwitchRooms(is_on))),
                _ => ("tools", &*local, Some(PlanStep::SwitchTools(is_on))),
            };
            let line = PlanStepDescription::new(Change::Update, kind, shown);
            self.plan.lines.push(line);
            steps.extend(step);
        }
        Ok(steps)
    }

    /// Plans the prices; returns their steps.
    pub(super) fn plan_prices(&mut self) -> Vec<PlanStep> {
        let (folder, state) = (self.folder, self.state);
        let mut steps = Vec::new();
        for (number, price) in folder.manifest.prices.iter().enumerate() {
            let remote = state.and_then(|state| state.price(&price.key));
            let local = PriceTerms::of_folder(price);
            let terms = remote.map(PriceTerms::of_server);
            let part = Compared {
                met: self.rules.meetings.prices.get(&price.key),
                local: Some(&local),
                remote: terms.as_ref(),
            };
            let decision = self.decide(&part, Some(&[])).unwrap_or(Decision::Apply);
            let met = self.rules.meetings.prices.get(&price.key);
            let release = ReleaseOfPart::of_price(remote, met);
            if self.is_changed(decision, "price", &price.key, release) {
                let line =
                    PlanStepDescription::new(Change::of(remote.is_none()), "price", &price.key);
                let detail = format!("{} {}", local.amount, local.currency);
                self.plan.lines.push(line.with_detail(detail));
                steps.push(PlanStep::AddPrice {
                    price: number,
                    replaces: remote.map(|remote| remote.id.clone()),
                });
            }
        }
        if let Some(state) = state {
            self.plan_left_prices(state, &mut steps);
        }
        steps
    }

    /// Plans the domains that the server does not have; returns their steps. One that it has stays, whatever the folder says, and what
    /// proves it is noted while it is not served.
    pub(super) async fn plan_domains(&mut self) -> Result<Vec<PlanStep>> {
        let named = &self.folder.manifest.domains;
        // A server for one folder alone, as that of `svc dev`, is at no domain.
        if named.is_empty() || self.rules.precedence == Precedence::Folder {
            return Ok(Vec::new());
        }
        let known = match self.state {
            Some(state) => fetch_domains(self.api, &state.project.id).await?,
            None => Vec::new(),
        };
        let mut steps = Vec::new();
        for name in named {
            match find_domain(&known, name) {
                None => {
                    let line = PlanStepDescription::new(Change::Create, "domain", name);
                    self.plan.lines.push(line);
                    steps.push(PlanStep::AddDomain(name.clone()));
                }
                Some(domain) if domain["state"] == "active" => {}
                Some(domain) => self.plan.notes.push(domain_text(domain)),
            }
        }
        Ok(steps)
    }

    /// Plans the prices that have left the manifest: they are named, and end only if they are pruned.
    fn plan_left_prices(&mut self, state: &RemoteProjectState, steps: &mut Vec<PlanStep>) {
        let (folder, known) = (self.folder, &self.rules.meetings.prices);
        let left = known.iter().filter(|(key, _)| folder.price(key).is_none());
        for (key, met) in left {
            let Some(remote) = state.price(key) else {
                continue;
            };
            if !self.rules.prune {
                let line = PlanStepDescription::new(Change::Keep, "price", key);
                let detail = "it left svc.toml and stays: `--prune` withdraws it";
                self.plan.lines.push(line.with_detail(detail));
                continue;
            }
            let terms = PriceTerms::of_server(remote);
            let part = Compared {
                met: Some(met),
                local: None,
                remote: Some(&terms),
            };
            let Some(decision) = self.decide(&part, Some(&[])) else {
                continue;
            };
            let release = ReleaseOfPart::of_price(Some(remote), Some(met));
            if self.is_changed(decision, "price", key, release) {
                let line = PlanStepDescription::new(Change::Remove, "price", key);
                self.plan.lines.push(line.with_detail("it left svc.toml"));
                steps.push(PlanStep::WithdrawPrice(remote.id.clone()));
            }
        }
    }
}

/// Describes how much of a site is sent, or how much of it changes.
fn site_size(site: &LocalSite, base: Option<&RemoteSite>) -> String {
    match base {
        Some(base) => SiteDifference::of_folder(base, &site.folder, Some(&site.options)).size(),
        None => site.folder.size(),
    }
}

/// Checks that a page keeps its type.
fn check_type(page: &LocalPage, there: FrontendType) -> Result<()> {
    if page.frontend_type() == there {
        return Ok(());
    }
    Err(CliFailure::local(format!(
        "{} is {} by its name, and the page `{}` is {there} for good: give it another slug.",
        page.path().display(),
        page.frontend_type(),
        page.slug
    )))
}
