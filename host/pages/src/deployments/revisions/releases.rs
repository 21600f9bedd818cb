//! Releases: one row names the live revision, so no visitor sees a mixture of two revisions.

use std::sync::Arc;

use super::model::{Revision, RevisionError, RevisionKind, RevisionState};
use super::service::{Revisions, revision_in};
use super::store;
use crate::control::audit::AuditAction;
use crate::control::{self, Tx};
use crate::deployments::address::announce_change;
use crate::deployments::files::{
    FileError, ImmutableVerdict, JudgedImmutables, release_immutables,
};
use crate::deployments::frontends::{
    Frontend, FrontendError, FrontendSelector, active_in, address_of,
};
use crate::deployments::open_tabs::{self, OpenTabs};
use crate::deployments::publication::{PageSource, PublishedDigests};
use crate::deployments::store::mark_garbage;
use crate::projects::{self, Project};
use svc_base::clock::Timestamp;
use svc_base::fault;
use svc_base::ids::{DeploymentId, ProjectId, RevisionId};

/// Times that a release is tried because other immutable files of the site became live meanwhile.
const RELEASE_ATTEMPTS: usize = 16;

/// Release to make.
#[derive(Clone, Debug)]
pub struct NewRelease {
    /// Revision to make live; `None` if the sent text is not an id.
    pub revision: Option<RevisionId>,
    /// Revision that the caller believes is live; `None` if the sent text is not an id.
    pub expected: Option<RevisionId>,
    /// Reason for the release.
    pub message: Option<String>,
    /// Promote or rollback.
    pub kind: RevisionKind,
    /// Whether files of a site that were live before serve no open tab any more.
    pub forget: bool,
}

/// Something that became live.
#[derive(Clone, Debug)]
pub struct ReleaseEntry {
    /// Revision that became live.
    pub revision: RevisionId,
    /// Kind of the release.
    pub kind: String,
    /// Why: as its promote or rollback said, else as its revision does.
    pub message: Option<String>,
    /// Time of the release.
    pub at: Timestamp,
}

/// Outcome of a release.
#[derive(Clone, Debug)]
pub struct ReleaseOutcome {
    /// The frontend as it is now.
    pub frontend: Frontend,
    /// Live revision.
    pub revision: Revision,
    /// Revisions that it leaves out, if it was made from something older.
    pub omitted: Option<OmittedRevisions>,
}

impl ReleaseOutcome {
    /// Makes the outcome for a revision that is live already.
    fn unchanged(mut frontend: Frontend, revision: Revision) -> Self {
        frontend.warnings.clone_from(&revision.warnings);
        Self {
            frontend,
            revision,
            omitted: None,
        }
    }
}

/// Revisions that a draft leaves out, because it was made from one which is no longer live.
#[derive(Clone, Debug)]
pub struct OmittedRevisions {
    /// Revision that the draft was made from.
    pub base: RevisionId,
    /// Revision that was live when the draft was promoted.
    pub active: RevisionId,
    /// Revisions that became live in between, newest first.
    pub since: Vec<RevisionId>,
}

impl OmittedRevisions {
    /// Finds the revisions that promoting a draft leaves out; `None` if the draft is based on the live revision.
    fn find(
        tx: &Tx<'_>,
        deployment: &DeploymentId,
        draft: &RevisionId,
        active: RevisionId,
    ) -> Result<Option<Self>, control::Error> {
        let Some(base) = store::outdated_base(tx, draft, &active)? else {
            return Ok(None);
        };
        Ok(Some(Self {
            since: store::released_since(tx, deployment, &base)?,
            base,
            active,
        }))
    }
}

/// Revision that becomes live, inside the transaction.
pub(super) struct RevisionToRelease<'a> {
    pub(super) revision: RevisionId,
    pub(super) kind: RevisionKind,
    pub(super) message: Option<&'a str>,
    pub(super) title: &'a str,
    pub(super) published: &'a PublishedDigests,
    /// Fate of a site's files that were live before.
    pub(super) tabs: OpenTabs,
}

/// Makes a stored revision live, and the previous live revision history.
pub(super) fn apply_release(
    tx: &Tx<'_>,
    frontend: &Frontend,
    released: &RevisionToRelease<'_>,
    now: Timestamp,
) -> Result<(), control::Error> {
    let displaced = match released.kind {
        RevisionKind::Rollback => RevisionState::RolledBack,
        _ => RevisionState::Superseded,
    };
    store::displace_active(tx, &frontend.id, displaced)?;
    if frontend.content_type.is_site() {
        displace_files(tx, frontend, released, now)?;
    }
    store::make_active(tx, &released.revision, released.kind, now)?;
    store::insert_release(
        tx,
        &frontend.id,
        &released.revision,
        released.kind,
        released.message,
        now,
    )?;
    store::set_live_page(tx, &frontend.id, released, now)
}

/// Has the files of the displaced revision serve open tabs, unless a rollback displaces it or the release says otherwise. Files that it
/// has deleted by name stay away in any case.
fn displace_files(
    tx: &Tx<'_>,
    frontend: &Frontend,
    released: &RevisionToRelease<'_>,
    now: Timestamp,
) -> Result<(), control::Error> {
    let id = &frontend.id;
    open_tabs::take_back(tx, id, &released.revision)?;
    let unnamed = match (released.tabs, frontend.active_revision) {
        (OpenTabs::Forgotten, _) => open_tabs::forget_all(tx, id)?,
        (OpenTabs::ServedUntil(until), Some(displaced)) => match released.kind {
            RevisionKind::Rollback => open_tabs::keep_deletions(tx, id, &displaced, until)?,
            _ => open_tabs::add(tx, id, &displaced, until)?,
        },
        (OpenTabs::ServedUntil(_), None) => Vec::new(),
    };
    let mut unnamed = unnamed.iter();
    unnamed.try_for_each(|manifest| mark_garbage(tx, manifest, now))
}

/// Makes a revision live, if what its caller expects is, inside a transaction.
fn release_in(
    tx: &Tx<'_>,
    (project, id): (&ProjectId, &DeploymentId),
    (revision, new): (&RevisionId, &NewRelease),
    (title, published): (&str, &PublishedDigests),
    (now, tabs): (Timestamp, OpenTabs),
) -> Result<ReleaseOutcome, RevisionError> {
    let frontend = active_in(tx, project, id)?;
    let active = frontend.active_revision.ok_or(FrontendError::NotFound)?;
    if new.expected != Some(active) {
        return Err(RevisionError::Conflict(active));
    }
    let omitted = OmittedRevisions::find(tx, id, revision, active)?;
    let released = RevisionToRelease {
        revision: *revision,
        kind: new.kind,
        message: new.message.as_deref(),
        title,
        published,
        tabs,
    };
    apply_release(tx, &frontend, &released, now)?;
    projects::record_audit(tx, project, audit_act(new.kind), revision, now)?;
    Ok(ReleaseOutcome {
        frontend: active_in(tx, project, id)?,
        revision: revision_in(tx, id, revision)?,
        omitted,
    })
}

/// Returns the name of a release in the audit.
fn audit_act(kind: RevisionKind) -> AuditAction {
    match kind {
        RevisionKind::Rollback => AuditAction::RevisionRollback,
        _ => AuditAction::RevisionPromote,
    }
}

impl Revisions {
    /// Returns what a release makes of a site's files that were live before, by what its caller says.
    pub(super) fn open_tabs(&self, now: Timestamp, forget: bool) -> OpenTabs {
        OpenTabs::of_release(&self.config().limits, now, forget)
    }

    /// Makes a revision live if the caller's expected live revision is the current one: compare and set.
    ///
    /// # Errors
    /// [`RevisionError`]: a conflict names the live revision.
    pub async fn release(
        &self,
        project: Project,
        target: FrontendSelector,
        new: NewRelease,
    ) -> Result<ReleaseOutcome, RevisionError> {
        let (frontend, active) = self.frontend_with_history(&project, &target).await?;
        let id = new.revision.ok_or(RevisionError::NoRevision)?;
        let revision = self.find_revision(frontend.id, id).await?;
        if new.kind == RevisionKind::Rollback && revision.promoted_at.is_none() {
            return Err(RevisionError::NeverReleased);
        }
        if new.expected != Some(active) {
            return Err(RevisionError::Conflict(active));
        }
        if revision.id == active {
            return Ok(ReleaseOutcome::unchanged(frontend, revision));
        }
        self.capacity.check_disk()?;
        let Some(content_type) = frontend.content_type.page() else {
            return self.release_site(project, frontend, revision, new).await;
        };
        let text = self.pipeline.source_text(revision.source).await?;
        let source = PageSource::titled(content_type, &revision.title, &text);
        let (stored, page) = self
            .pipeline
            .render_and_store_live(source, &frontend.slug, project.expires_at)
            .await?;
        let (title, warnings) = (page.title, page.warnings);
        fault::point("release.stored");
        let (id, now) = (frontend.id, self.infra.clock.now());
        let (address, tabs) = (
            address_of(&frontend, &project),
            self.open_tabs(now, new.forget),
        );
        let mut done = self
            .pipeline
            .publish(stored, address, now, move |tx, published| {
                let page = (title.as_str(), published);
                let released = (&revision.id, &new);
                release_in(tx, (&project.id, &id), released, page, (now, tabs))
            })
            .await?;
        fault::point("release.committed");
        done.frontend.warnings = warnings;
        Ok(done)
    }

    /// Makes a revision of a site live: one row names its manifest, however many files it has. A draft whose immutable files were compared
    /// with others than those that were live by now is compared anew.
    async fn release_site(
        &self,
        project: Project,
        frontend: Frontend,
        revision: Revision,
        new: NewRelease,
    ) -> Result<ReleaseOutcome, RevisionError> {
        let manifest = revision.preview.ok_or(RevisionError::NoRevision)?;
        let (mut judged, mut lists): (Option<JudgedImmutables>, _) = (None, Vec::new());
        let mut released = Err(FileError::ImmutablesMoved.into());
        for _ in 0..RELEASE_ATTEMPTS {
            let verdict = judged.as_ref().map(JudgedImmutables::verdict);
            let tried = self.try_release_site((&project, &frontend), &revision, &new, verdict);
            released = tried.await;
            if !released.as_ref().is_err_and(RevisionError::is_moved) {
                break;
            }
            match self.files.judge_stored(frontend.id, manifest).await {
                Ok(again) => {
                    lists.extend(again.as_ref().map(JudgedImmutables::object));
                    judged = again;
                }
                Err(error) => {
                    released = Err(error.into());
                    break;
                }
            }
        }
        if !lists.is_empty() {
            // The one that the site's row names by now stays.
            self.files.forget(lists).await?;
        }
        released
    }

    async fn try_release_site(
        &self,
        (project, frontend): (&Project, &Frontend),
        revision: &Revision,
        new: &NewRelease,
        judged: Option<ImmutableVerdict>,
    ) -> Result<ReleaseOutcome, RevisionError> {
        let (id, now, project_id) = (frontend.id, self.now(), project.id);
        let (address, config) = (address_of(frontend, project), Arc::clone(self.config()));
        let (revision, title) = (revision.id, revision.title.clone());
        let (new, tabs) = (new.clone(), self.open_tabs(now, new.forget));
        let released = self.pipeline.commit(move |tx| {
            let found = store::stored_site(tx, &id, &revision).map_err(control::Error::from)?;
            let published = found.ok_or(RevisionError::NoRevision)?;
            let page = (title.as_str(), &published);
            let released = (&revision, &new);
            let done = release_in(tx, (&project_id, &id), released, page, (now, tabs))?;
            release_immutables(tx, (&id, &revision), judged, now)?;
            announce_change(tx, &config, &address, now)?;
            Ok::<_, RevisionError>(done)
        });
        let mut done = released.await?;
        done.frontend.warnings.clone_from(&done.revision.warnings);
        fault::point("release.committed");
        Ok(done)
    }

    /// Lists all releases, newest first.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn releases(
        &self,
        project: &Project,
        target: &FrontendSelector,
    ) -> Result<Vec<ReleaseEntry>, RevisionError> {
        let (frontend, _) = self.frontend_with_history(project, target).await?;
        Ok(self
            .infra
            .control
            .read(move |c| store::releases(c, &frontend.id))
            .await?)
    }
}
