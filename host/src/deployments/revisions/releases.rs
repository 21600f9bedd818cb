//! Releases: what is live changes by one row, so that nobody ever sees a mixture of two revisions.

use std::sync::Arc;

use bytes::Bytes;

use super::model::{Revision, RevisionKind, RevisionState};
use super::store;
use crate::clock::Timestamp;
use crate::content::Digest;
use crate::control::{self, Tx};
use crate::deployments::Deployments;
use crate::deployments::frontends::{Frontend, FrontendError, Target, set_live};
use crate::deployments::publish::{Address, MadeBy, PageSource};
use crate::fault;
use crate::ids::RevisionId;
use crate::projects::Project;

/// A release that somebody wants.
#[derive(Clone, Debug)]
pub struct NewRelease {
    /// What shall be live; none if what was sent is no id.
    pub revision: Option<RevisionId>,
    /// What they believe is live now; none if what was sent is no id.
    pub expected: Option<RevisionId>,
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
pub(in crate::deployments) struct Released<'a> {
    pub(in crate::deployments) revision: RevisionId,
    pub(in crate::deployments) kind: RevisionKind,
    pub(in crate::deployments) message: Option<&'a str>,
    pub(in crate::deployments) title: &'a str,
    pub(in crate::deployments) source: Digest,
    pub(in crate::deployments) artifact: Digest,
    pub(in crate::deployments) made_by: &'a MadeBy,
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
        let id = new.revision.ok_or(FrontendError::NoRevision)?;
        let revision = self.revision_of(frontend.id, id).await?;
        if new.kind == RevisionKind::Rollback && revision.promoted_at.is_none() {
            return Err(FrontendError::NeverReleased);
        }
        if new.expected != Some(active) {
            return Err(FrontendError::Conflict(active));
        }
        if revision.id == active {
            return Ok((frontend, revision));
        }
        self.check_disk()?;
        let text = self.text_of(revision.source).await?;
        let page = self
            .render_live(
                PageSource::titled(frontend.content_type, &revision.title, &text),
                Address::open(&frontend.slug, project.expires_at),
            )
            .await?;
        let (source, artifact) = self.store_page(Bytes::from(text), page.html).await?;
        fault::point("release.stored");
        let (config, now) = (Arc::clone(&self.config), self.clock.now());
        let (source, artifact) = ((source.digest(), source), (artifact.digest(), artifact));
        let (slug, id, warnings) = (frontend.slug, frontend.id, page.warnings.clone());
        let forget = slug.clone();
        let (mut frontend, revision) = self
            .control
            .write(move |tx| {
                let frontend = Self::active_in(tx, &project.id, &id)?;
                let active = frontend.active_revision.ok_or(FrontendError::NotFound)?;
                if new.expected != Some(active) {
                    return Err(FrontendError::Conflict(active));
                }
                let released = Released {
                    revision: revision.id,
                    kind: new.kind,
                    message: new.message.as_deref(),
                    title: &page.title,
                    source: source.0,
                    artifact: artifact.0,
                    made_by: &page.by,
                };
                release(tx, &frontend, &released, now)?;
                Self::purge(tx, &config, &project.host_label, &slug, now)?;
                let revision = store::by_id(tx, &id, &revision.id);
                let revision = revision
                    .map_err(control::Error::from)?
                    .ok_or(FrontendError::NoRevision)?;
                Ok((Self::active_in(tx, &project.id, &id)?, revision))
            })
            .await?;
        fault::point("release.committed");
        self.pages.forget(&forget);
        frontend.warnings = warnings;
        Ok((frontend, revision))
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
