//! Releases: what is live changes by one row, so that no visitor sees a mixture of two revisions.

use super::model::{Revision, RevisionKind, RevisionState};
use super::store;
use crate::control::audit::AuditAction;
use crate::control::{self, Tx};
use crate::deployments::Deployments;
use crate::deployments::frontends::{Frontend, FrontendError, Target, address_of, set_live};
use crate::deployments::publication::Published;
use crate::deployments::publish::PageSource;
use crate::projects::{self, Project};
use svc_base::clock::Timestamp;
use svc_base::fault;
use svc_base::ids::{DeploymentId, RevisionId};

/// Release to make.
#[derive(Clone, Debug)]
pub struct NewRelease {
    /// Revision to make live; none if what was sent is no id.
    pub revision: Option<RevisionId>,
    /// Revision that the caller believes is live; none if what was sent is no id.
    pub expected: Option<RevisionId>,
    /// Reason for the release.
    pub message: Option<String>,
    /// Promote or rollback.
    pub kind: RevisionKind,
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
    pub dropped: Option<Dropped>,
}

impl ReleaseOutcome {
    /// The outcome where the revision was live already.
    fn unchanged(frontend: Frontend, revision: Revision) -> Self {
        Self {
            frontend,
            revision,
            dropped: None,
        }
    }
}

/// Revisions that a draft leaves out, because it was made from one which is no longer live.
#[derive(Clone, Debug)]
pub struct Dropped {
    /// Revision that the draft was made from.
    pub base: RevisionId,
    /// Revision that was live when the draft was promoted.
    pub active: RevisionId,
    /// Revisions that became live in between, newest first.
    pub since: Vec<RevisionId>,
}

impl Dropped {
    /// Finds the revisions that promoting a draft leaves out; `None` if it was made from what is live.
    fn by(
        tx: &Tx<'_>,
        deployment: &DeploymentId,
        draft: &RevisionId,
        active: RevisionId,
    ) -> Result<Option<Self>, control::Error> {
        let Some(base) = store::stale_base(tx, draft, &active)? else {
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
pub(in crate::deployments) struct Released<'a> {
    pub(in crate::deployments) revision: RevisionId,
    pub(in crate::deployments) kind: RevisionKind,
    pub(in crate::deployments) message: Option<&'a str>,
    pub(in crate::deployments) title: &'a str,
    pub(in crate::deployments) published: &'a Published,
}

/// Makes a stored revision live and what was live history.
pub(in crate::deployments) fn release(
    tx: &Tx<'_>,
    frontend: &Frontend,
    released: &Released<'_>,
    now: Timestamp,
) -> Result<(), control::Error> {
    let displaced = match released.kind {
        RevisionKind::Rollback => RevisionState::RolledBack,
        _ => RevisionState::Superseded,
    };
    store::displace_active(tx, &frontend.id, displaced)?;
    store::make_active(tx, &released.revision, released.kind, now)?;
    store::insert_release(
        tx,
        &frontend.id,
        &released.revision,
        released.kind,
        released.message,
        now,
    )?;
    set_live(tx, &frontend.id, released, now)
}

/// Returns the name of a release in the audit.
fn act_of(kind: RevisionKind) -> AuditAction {
    match kind {
        RevisionKind::Rollback => AuditAction::RevisionRollback,
        _ => AuditAction::RevisionPromote,
    }
}

impl Deployments {
    /// Makes a revision live if what the caller expects to be live is: compare and set.
    ///
    /// # Errors
    /// [`FrontendError`]: a conflict names what is live.
    pub async fn release(
        &self,
        project: Project,
        target: Target,
        new: NewRelease,
    ) -> Result<ReleaseOutcome, FrontendError> {
        let (frontend, active) = self.in_workflow(&project, &target).await?;
        let id = new.revision.ok_or(FrontendError::NoRevision)?;
        let revision = self.revision_of(frontend.id, id).await?;
        if new.kind == RevisionKind::Rollback && revision.promoted_at.is_none() {
            return Err(FrontendError::NeverReleased);
        }
        if new.expected != Some(active) {
            return Err(FrontendError::Conflict(active));
        }
        if revision.id == active {
            return Ok(ReleaseOutcome::unchanged(frontend, revision));
        }
        self.check_disk()?;
        let text = self.text_of(revision.source).await?;
        let source = PageSource::titled(frontend.content_type, &revision.title, &text);
        let (stored, page) = self
            .make_live(source, &frontend.slug, project.expires_at)
            .await?;
        let (title, warnings) = (page.title, page.warnings);
        fault::point("release.stored");
        let (id, now) = (frontend.id, self.clock.now());
        let mut done = self
            .publish(
                stored,
                address_of(&frontend, &project),
                now,
                move |tx, published| {
                    let frontend = Self::active_in(tx, &project.id, &id)?;
                    let active = frontend.active_revision.ok_or(FrontendError::NotFound)?;
                    if new.expected != Some(active) {
                        return Err(FrontendError::Conflict(active));
                    }
                    let dropped = Dropped::by(tx, &id, &revision.id, active)?;
                    let released = Released {
                        revision: revision.id,
                        kind: new.kind,
                        message: new.message.as_deref(),
                        title: &title,
                        published,
                    };
                    release(tx, &frontend, &released, now)?;
                    projects::record_audit(tx, &project.id, act_of(new.kind), &revision.id, now)?;
                    Ok(ReleaseOutcome {
                        frontend: Self::active_in(tx, &project.id, &id)?,
                        revision: Self::revision_in(tx, &id, &revision.id)?,
                        dropped,
                    })
                },
            )
            .await?;
        fault::point("release.committed");
        done.frontend.warnings = warnings;
        Ok(done)
    }

    /// Everything that was ever live, newest first.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn releases(
        &self,
        project: &Project,
        target: &Target,
    ) -> Result<Vec<ReleaseEntry>, FrontendError> {
        let (frontend, _) = self.in_workflow(project, target).await?;
        Ok(self
            .control
            .read(move |c| store::releases(c, &frontend.id))
            .await?)
    }
}
