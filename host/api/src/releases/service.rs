//! Releases: everything is judged, rendered and stored first; then migrations run; then one transaction changes actions, pages and home.
//!
//! ```text
//! turn ─► compare ─► render, store ─► schema's turn ─► judge, try ─► compare ─► migrate ─► one transaction ─────────► answered
//!                    durable, pinned                                            each alone   compares once more, rows,
//!                  │ a crash before the migrations leaves                      │             purges, audit, answer kept
//!                  │ content that no row names: the collector                  │ a crash here leaves migrations: the same body goes on
//!                  │ removes it
//! ```
//!
//! Releases of a project wait for each other's turn; migrations and restores wait for the schema's, which is held to the end.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::{StreamExt as _, stream};
use tokio::sync::{OwnedMutexGuard, Semaphore};

use super::model::{NewRelease, ReleaseConflicts, ReleaseError, ReleaseOutcome, ReleasePart};
use crate::access::run_while_client_waits;
use crate::backends::BackendError;
use crate::backends::model::MigrationStatus;
use crate::backends::releases::{
    ActionRelease, DefinitionPart, DefinitionReleases, DefinitionsError, JudgedDefinitions,
    NewDefinitions, ReleasedActions, SchemaTurn,
};
use crate::config::Config;
use crate::control::audit::AuditAction;
use crate::control::kept_answers::AnswerRecorder;
use crate::control::{ControlDatabase, Tx};
use crate::deployments::publication::PublishError;
use crate::deployments::revisions::sites::first_page_missing;
use crate::deployments::revisions::{
    ExpectedPage, LivePages, PageRelease, PageReleaseError, PageToRelease, PreparedPage, Revisions,
    page_conflicts,
};
use crate::http::byte_budget::BytePermit;
use crate::infra::Infra;
use crate::projects::model::ProjectChanges;
use crate::projects::{self, Project, ProjectError, Projects};
use svc_base::fault;
use svc_base::ids::ProjectId;

/// Pages of a release that are worked on at once: while some are rendered, others are synced. Other callers have their turns between
/// them, and each page is in memory until it is stored.
pub(super) const PAGES_AT_ONCE: u32 = 4;

/// Turns of the releases of each project: one is judged, rendered and made at a time.
type ReleaseTurns = Mutex<HashMap<ProjectId, Arc<tokio::sync::Mutex<()>>>>;

/// Releases of projects.
#[derive(Debug)]
pub struct ProjectReleases {
    infra: Infra,
    projects: Projects,
    pub(super) revisions: Arc<Revisions>,
    pub(super) definitions: DefinitionReleases,
    turns: ReleaseTurns,
}

/// Migrations of a release that are applied, with what is left to do. Nobody changes the schema while this lives.
struct MigratedRelease {
    schema: SchemaTurn,
    judged: JudgedDefinitions,
    /// Version and status of each migration.
    migrations: Vec<(u32, MigrationStatus)>,
}

/// Parts of a release that its transaction changes.
struct ReleaseChanges {
    project: Project,
    expected_pages: Vec<ExpectedPage>,
    pages: Arc<Vec<PreparedPage>>,
    page_removals: Vec<String>,
    home: Option<String>,
    /// Version and status of each migration, which are applied by now.
    migrations: Vec<(u32, MigrationStatus)>,
    actions: Option<ActionRelease>,
    page_release: PageRelease,
}

impl ProjectReleases {
    /// Makes the service of a server.
    pub fn new(
        infra: Infra,
        projects: Projects,
        revisions: Arc<Revisions>,
        definitions: DefinitionReleases,
    ) -> Self {
        Self {
            infra,
            projects,
            revisions,
            definitions,
            turns: ReleaseTurns::default(),
        }
    }

    pub(super) fn config(&self) -> &Arc<Config> {
        &self.infra.config
    }

    fn control(&self) -> &ControlDatabase {
        &self.infra.control
    }

    /// Counts the body of a release, or of a tool's call as large as one, against `page_work_bytes` for as long as it is in memory.
    ///
    /// # Errors
    /// `Capacity` if there is no room for it in time.
    pub(crate) async fn reserve_body(&self, bytes: usize) -> Result<BytePermit, PublishError> {
        self.revisions.reserve(bytes).await
    }

    /// Makes a release. Durable when it returns.
    ///
    /// # Errors
    /// [`ReleaseError`]; nothing is released then.
    pub async fn release(
        &self,
        project: &Project,
        mut new: NewRelease,
        keep: AnswerRecorder<ReleaseOutcome>,
    ) -> Result<ReleaseOutcome, ReleaseError> {
        let definitions = take_definitions(&mut new);
        let _turn = self.take_turn(project).await?;
        let live = self.check(project, &new, &definitions).await?;
        let pages = self.prepare_pages(project, &new.pages, &live).await?;
        new.pages.clear();
        fault::point("project_release.stored");
        let pages = Arc::new(pages);
        let made = self.make_live(project, (new, &definitions), Arc::clone(&pages), keep);
        let made = made.await;
        if made.is_err() {
            self.revisions.give_up_pages(&pages).await?;
        }
        made
    }

    /// Applies the migrations of a release whose pages are prepared, and makes the rest of it.
    async fn make_live(
        &self,
        project: &Project,
        (new, definitions): (NewRelease, &NewDefinitions),
        pages: Arc<Vec<PreparedPage>>,
        keep: AnswerRecorder<ReleaseOutcome>,
    ) -> Result<ReleaseOutcome, ReleaseError> {
        let migrated = self.migrate(project, &new.expected_pages, definitions);
        let migrated = match migrated.await {
            // A backend that was made meanwhile takes the first script as a migration like any other.
            Err(error) if error.is_backend_there() => {
                let again = self.migrate(project, &new.expected_pages, definitions);
                again.await?
            }
            migrated => migrated?,
        };
        let changes = ReleaseChanges {
            project: project.clone(),
            expected_pages: new.expected_pages,
            pages,
            page_removals: new.page_removals,
            home: new.home,
            migrations: migrated.migrations,
            actions: self
                .definitions
                .action_release(project, &migrated.schema, migrated.judged),
            page_release: self.revisions.page_release(project, new.message),
        };
        let made = self.commit(changes, definitions, keep).await?;
        fault::point("project_release.committed");
        Ok(made)
    }

    /// Judges the definitions of a release, and applies its migrations.
    async fn migrate(
        &self,
        project: &Project,
        expected_pages: &[ExpectedPage],
        definitions: &NewDefinitions,
    ) -> Result<MigratedRelease, ReleaseError> {
        let mut schema = self.definitions.take_turn(project.id, definitions).await?;
        let mut judged = self
            .definitions
            .judge(project, &schema, definitions.clone(), false)
            .await?;
        fault::point("project_release.judged");
        // Compares again before the migrations, because they stay: pages and actions may have changed meanwhile.
        self.compare(project, expected_pages, definitions).await?;
        let migrations = self
            .definitions
            .migrate(project, &mut schema, &mut judged)
            .await?;
        Ok(MigratedRelease {
            schema,
            judged,
            migrations: migrations
                .iter()
                .map(|one| (one.version, one.status))
                .collect(),
        })
    }

    /// Makes the changes of a release in one transaction.
    async fn commit(
        &self,
        changes: ReleaseChanges,
        asked: &NewDefinitions,
        keep: AnswerRecorder<ReleaseOutcome>,
    ) -> Result<ReleaseOutcome, ReleaseError> {
        let (project, expected) = (changes.project.clone(), changes.expected_pages.clone());
        let pins = Arc::clone(&changes.pages);
        let write = self.control().write(move |tx| {
            let made = changes.apply(tx)?;
            keep.store(tx, &made)?;
            fault::point("project_release.committing");
            Ok::<_, ReleaseError>(made)
        });
        let committed = write.await;
        // The rows hold the content from here on.
        drop(pins);
        if matches!(committed, Err(ReleaseError::Conflict(_))) {
            // Told again from outside of the transaction, where the histories that name the revisions can begin.
            self.compare(&project, &expected, asked).await?;
        }
        committed
    }

    /// Refuses a release by what costs little to know: what is live, the caps, and the home.
    pub(super) async fn check(
        &self,
        project: &Project,
        new: &NewRelease,
        definitions: &NewDefinitions,
    ) -> Result<LivePages, ReleaseError> {
        let live = self
            .compare(project, &new.expected_pages, definitions)
            .await?;
        let is_live = |slug: &&String| live.contains_key(*slug);
        let ending = new.page_removals.iter().filter(is_live).count();
        let made = new
            .pages
            .iter()
            .filter(|page| !live.contains_key(&page.slug));
        self.revisions
            .check_release_capacity(project, (made.count(), ending), !new.pages.is_empty())
            .await?;
        self.check_home(project, new).await?;
        let pages = &new.pages;
        let checked = self.revisions.check_release_files(project, pages).await;
        checked.map_err(|error| match first_page_missing(pages, &error) {
            Some(page) => ReleaseError::of_part(ReleasePart::Page(page), error),
            None => error.into(),
        })?;
        Ok(live)
    }

    /// Compares what is live with what the caller expects; returns the pages at the slugs of the release.
    pub(super) async fn compare(
        &self,
        project: &Project,
        expected: &[ExpectedPage],
        definitions: &NewDefinitions,
    ) -> Result<LivePages, ReleaseError> {
        let slugs = expected.iter().map(|page| page.slug.clone()).collect();
        let live = self.revisions.live_pages(project, slugs).await?;
        let conflicts = ReleaseConflicts {
            pages: page_conflicts(expected, &live),
            actions: self.definitions.conflicts(project.id, definitions).await?,
        };
        match conflicts.is_empty() {
            true => Ok(live),
            false => Err(ReleaseError::Conflict(Box::new(conflicts))),
        }
    }

    /// Refuses a home that would not be a page of the project after the release.
    async fn check_home(&self, project: &Project, new: &NewRelease) -> Result<(), ReleaseError> {
        let Some(home) = new.home.as_ref().filter(|home| !home.is_empty()) else {
            return Ok(());
        };
        if new.pages.iter().any(|page| page.slug == *home) {
            return Ok(());
        }
        let (id, slug) = (project.id, home.clone());
        let ends = new.page_removals.contains(home);
        if ends || !self.projects.has_frontend(id, slug).await? {
            let error = ProjectError::NoSuchHome(home.clone());
            return Err(ReleaseError::of_part(ReleasePart::Home, error));
        }
        Ok(())
    }

    /// Renders and stores the pages of a release, some of them side by side. Of several at fault the first one is told. One for which
    /// there was no room beside the others is prepared alone, and may wait for room then.
    async fn prepare_pages(
        &self,
        project: &Project,
        pages: &[PageToRelease],
        live: &LivePages,
    ) -> Result<Vec<PreparedPage>, ReleaseError> {
        let (places, has_failed) = (
            Semaphore::new(PAGES_AT_ONCE as usize),
            AtomicBool::new(false),
        );
        let (places, has_failed, revisions) = (&places, &has_failed, &self.revisions);
        // Collected before any begins: the compiler does not see that a stream which makes them may move between threads.
        let preparing: Vec<_> = pages
            .iter()
            .enumerate()
            .map(|(index, page)| async move {
                if has_failed.load(Ordering::Relaxed) {
                    return None;
                }
                let prepare =
                    || Box::pin(revisions.prepare_page(project, page, live.get(&page.slug)));
                let beside_others = places.acquire().await;
                let mut ready = prepare().await;
                drop(beside_others);
                if ready.as_ref().is_err_and(PageReleaseError::is_capacity) {
                    let _alone = places.acquire_many(PAGES_AT_ONCE).await;
                    ready = prepare().await;
                }
                has_failed.fetch_or(ready.is_err(), Ordering::Relaxed);
                let of_part = |error| ReleaseError::of_part(ReleasePart::Page(index), error);
                Some(ready.map_err(of_part))
            })
            .collect();
        // None is dropped while it stores files, which nobody would look for then.
        let preparing = stream::iter(preparing).buffered(PAGES_AT_ONCE as usize);
        let prepared: Vec<_> = preparing.collect().await;
        let (mut pages, mut refusal) = (Vec::with_capacity(prepared.len()), None);
        for ready in prepared.into_iter().flatten() {
            match ready {
                Ok(page) => pages.push(page),
                Err(error) => refusal = refusal.or(Some(error)),
            }
        }
        let Some(refusal) = refusal else {
            return Ok(pages);
        };
        self.revisions.give_up_pages(&pages).await?;
        Err(refusal)
    }

    /// Waits for the turn of a release: if two make the same page, the later one finds it.
    async fn take_turn(&self, project: &Project) -> Result<OwnedMutexGuard<()>, ReleaseError> {
        let turn = {
            let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
            // A turn that only the map holds is nobody's.
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(turns.entry(project.id).or_default())
        };
        let mine = run_while_client_waits(turn.lock_owned()).await;
        Ok(mine.map_err(PublishError::from)?)
    }
}

/// Takes the migrations and actions out of a release.
pub(super) fn take_definitions(new: &mut NewRelease) -> NewDefinitions {
    NewDefinitions {
        migrations: std::mem::take(&mut new.migrations),
        actions: std::mem::take(&mut new.actions),
        removals: std::mem::take(&mut new.action_removals),
    }
}

impl ReleaseChanges {
    /// Makes all changes in one transaction, so that nobody finds some of them without the others.
    fn apply(&self, tx: &Tx<'_>) -> Result<ReleaseOutcome, ReleaseError> {
        let (project, now) = (&self.project, self.page_release.now());
        if !projects::is_live(tx, &project.id, now)? {
            return Err(ProjectError::NotFound.into());
        }
        let actions = self.actions.as_ref();
        let conflicts = ReleaseConflicts {
            pages: self.page_release.conflicts(tx, &self.expected_pages)?,
            actions: actions.map_or(Ok(Vec::new()), |actions| actions.conflicts(tx))?,
        };
        if !conflicts.is_empty() {
            return Err(ReleaseError::Conflict(Box::new(conflicts)));
        }
        let actions = match actions {
            Some(actions) => actions.apply(tx)?,
            None => ReleasedActions::default(),
        };
        let mut removed_pages = Vec::new();
        for slug in &self.page_removals {
            if self.page_release.remove(tx, slug)? {
                removed_pages.push(slug.clone());
            }
        }
        let mut pages = Vec::with_capacity(self.pages.len());
        for (index, page) in self.pages.iter().enumerate() {
            let live = self.page_release.publish(tx, page);
            let part = ReleasePart::Page(index);
            pages.push(live.map_err(|error| ReleaseError::of_part(part, error))?);
        }
        if let Some(home) = &self.home {
            let changes = ProjectChanges {
                home: Some(home.clone()),
                ..ProjectChanges::default()
            };
            let changed = projects::apply_changes(tx, &project.id, changes, now);
            changed.map_err(|error| ReleaseError::of_part(ReleasePart::Home, error))?;
            self.page_release.announce_home(tx)?;
        }
        self.page_release.find_root(tx, &mut pages)?;
        let act = AuditAction::ReleasePublish;
        projects::record_audit(tx, &project.id, act, &project.id, now)?;
        Ok(ReleaseOutcome {
            migrations: self.migrations.clone(),
            actions: actions.defined,
            pages,
            ended_actions: actions.ended,
            removed_pages,
        })
    }
}

impl From<DefinitionsError> for ReleaseError {
    fn from(DefinitionsError { part, error }: DefinitionsError) -> Self {
        let part = match part {
            Some(DefinitionPart::Migration(index)) => ReleasePart::Migration(index),
            Some(DefinitionPart::Action(index)) => ReleasePart::Action(index),
            Some(DefinitionPart::Removal(index)) => ReleasePart::ActionRemoval(index),
            None => return Self::Backend(error),
        };
        // A client that has hung up reads no problem, so it needs no part.
        match error {
            BackendError::Abandoned(_) => Self::Backend(error),
            error => Self::of_part(part, error),
        }
    }
}
