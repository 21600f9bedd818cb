//! Releases: what is live changes by one row, so that nobody ever sees a mixture of two revisions.

use bytes::Bytes;

use super::frontends::{Frontend, FrontendError, Target};
use super::revisions::{Revision, RevisionKind, RevisionState};
use super::{Deployments, revision_store, store};
use crate::clock::Timestamp;
use crate::content::Digest;
use crate::control::{self, Tx};
use crate::fault;
use crate::ids::RevisionId;
use crate::projects::Project;

/// A release that somebody wants.
#[derive(Clone, Debug)]
pub struct NewRelease {
    /// What shall be live.
    pub revision: RevisionId,
    /// What they believe is live now.
    pub expected: RevisionId,
    /// Why.
    pub message: Option<String>,
    /// Promote or rollback.
    pub kind: RevisionKind,
}

/// Something that became live.
#[derive(Clone, Debug)]
pub struct ReleaseEntry {
    /// What.
    pub revision: RevisionId,
    /// How.
    pub kind: String,
    /// Why.
    pub message: Option<String>,
    /// When.
    pub at: Timestamp,
}

/// What becomes live, inside the transaction.
pub(super) struct Released<'a> {
    pub(super) revision: RevisionId,
    pub(super) kind: RevisionKind,
    pub(super) message: Option<&'a str>,
    pub(super) title: &'a str,
    pub(super) source: Digest,
    pub(super) artifact: Digest,
}

/// Makes a stored revision live and what was live history.
pub(super) fn release(
    tx: &Tx<'_>,
    frontend: &Frontend,
    released: &Released<'_>,
    now: Timestamp,
) -> Result<(), control::Error> {
    let displaced = match released.kind {
        RevisionKind::Rollback => RevisionState::RolledBack,
        _ => RevisionState::Superseded,
    };
    revision_store::displace_active(tx, &frontend.id, displaced)?;
    revision_store::make_active(tx, &released.revision, released.kind, now)?;
    revision_store::insert_release(
        tx,
        &frontend.id,
        &released.revision,
        released.kind,
        released.message,
        now,
    )?;
    store::set_live(tx, &frontend.id, released, now)
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
    ) -> Result<(Frontend, Revision), FrontendError> {
        let (frontend, active) = self.in_workflow(&project, &target).await?;
        let revision = self.revision_of(frontend.id, new.revision).await?;
        if new.kind == RevisionKind::Rollback && revision.promoted_at.is_none() {
            return Err(FrontendError::NeverReleased);
        }
        if new.expected != active {
            return Err(FrontendError::Conflict(active));
        }
        if new.revision == active {
            return Ok((frontend, revision));
        }
        let text = self.text_of(revision.source).await?;
        let page = self
            .render_live(
                frontend.content_type,
                &revision.title,
                &text,
                &frontend.slug,
            )
            .await?;
        let (source, artifact) = self.store_page(Bytes::from(text), page).await?;
        fault::point("release.stored");
        let (config, now) = (std::sync::Arc::clone(&self.config), self.clock.now());
        let (source, artifact) = ((source.digest(), source), (artifact.digest(), artifact));
        let (slug, id) = (frontend.slug, frontend.id);
        let forget = slug.clone();
        let done = self
            .control
            .write(move |tx| {
                let frontend = Self::active_in(tx, &project.id, &id)?;
                let active = frontend.active_revision.ok_or(FrontendError::NotFound)?;
                if new.expected != active {
                    return Err(FrontendError::Conflict(active));
                }
                let released = Released {
                    revision: revision.id,
                    kind: new.kind,
                    message: new.message.as_deref(),
                    title: &revision.title,
                    source: source.0,
                    artifact: artifact.0,
                };
                release(tx, &frontend, &released, now)?;
                Self::purge(tx, &config, &project.host_label, &slug, now)?;
                let revision = revision_store::by_id(tx, &id, &revision.id);
                let revision = revision
                    .map_err(control::Error::from)?
                    .ok_or(FrontendError::NoRevision)?;
                Ok((Self::active_in(tx, &project.id, &id)?, revision))
            })
            .await?;
        fault::point("release.committed");
        self.pages.forget(&forget);
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
            .read(move |c| revision_store::releases(c, &frontend.id))
            .await?)
    }
}
