//! The end of revisions: deleted by name, or drafts that nobody released in time.

use std::sync::Arc;

use crate::content::Digest;
use crate::control::audit::AuditAction;
use crate::control::{self, Tx};
use crate::deployments::address::announce_change;
use crate::deployments::frontends::{FrontendSelector, active_in, address_of};
use crate::deployments::open_tabs;
use crate::deployments::revisions::service::Revisions;
use crate::deployments::revisions::{RevisionError, store};
use crate::deployments::store::{look_through_files, mark_garbage};
use crate::projects::{self, Project};
use svc_base::clock::Timestamp;
use svc_base::fault;
use svc_base::ids::{ProjectId, RevisionId};

/// Drafts that one transaction ends at most, so that none holds the writer for long.
const DRAFTS_PER_STEP: u32 = 100;

impl Revisions {
    /// Deletes a revision that is not live; one that is gone already is deleted.
    ///
    /// # Errors
    /// A conflict for the live one.
    pub async fn delete(
        &self,
        project: &Project,
        target: &FrontendSelector,
        id: RevisionId,
    ) -> Result<(), RevisionError> {
        let frontend = self.frontends.find_active(project.id, target).await?;
        let (address, config) = (address_of(&frontend, project), Arc::clone(self.config()));
        let (project, deployment, now) = (project.id, frontend.id, self.now());
        let deleted = self.infra.control.write(move |tx| {
            let frontend = active_in(tx, &project, &deployment)?;
            if frontend.active_revision == Some(id) {
                return Err(RevisionError::Conflict(id));
            }
            if open_tabs::forget_revision(tx, &deployment, &id)? {
                announce_change(tx, &config, &address, now)?;
            }
            if let Some(named) = store::delete(tx, &deployment, &id)? {
                mark_ended(tx, &project, named, now)?;
                projects::record_audit(tx, &project, AuditAction::RevisionDelete, &id, now)?;
            }
            Ok(())
        });
        deleted.await?;
        fault::point("revision.committed");
        Ok(())
    }

    /// Ends drafts of sites that were never live, and that nobody has made or asked for in a long time.
    ///
    /// # Errors
    /// Those of the database; the next call goes on.
    pub async fn end_old_drafts(&self) -> Result<(), control::Error> {
        let now = self.now();
        let seconds = self.infra.config.limits.draft_seconds;
        let before = now.plus_seconds(-i64::try_from(seconds).unwrap_or(i64::MAX));
        loop {
            let listed = self
                .infra
                .control
                .read(move |c| store::list_old_drafts(c, before, DRAFTS_PER_STEP));
            let drafts = listed.await?;
            if drafts.is_empty() {
                return Ok(());
            }
            let is_last = drafts.len() < DRAFTS_PER_STEP as usize;
            let ended = self.infra.control.write(move |tx| {
                for (project, id) in &drafts {
                    // It may have been released, or asked for again, since it was listed.
                    if let Some(named) = store::delete_old_draft(tx, id, before)? {
                        mark_ended(tx, project, named, now)?;
                    }
                }
                Ok::<_, control::Error>(())
            });
            ended.await?;
            if is_last {
                return Ok(());
            }
        }
    }

    /// Forgets former revisions of sites whose files serve no open tab any more.
    ///
    /// # Errors
    /// Those of the database; the next call goes on.
    pub async fn forget_former(&self) -> Result<(), control::Error> {
        let now = self.now();
        self.infra
            .control
            .write(move |tx| {
                let unnamed = open_tabs::forget_old(tx, now)?;
                let mut unnamed = unnamed.iter();
                unnamed.try_for_each(|manifest| mark_garbage(tx, manifest, now))
            })
            .await
    }
}

/// Marks the content of a revision that has ended, inside the transaction that ends it.
fn mark_ended(
    tx: &Tx<'_>,
    project: &ProjectId,
    named: [Option<Digest>; 3],
    now: Timestamp,
) -> Result<(), control::Error> {
    for digest in named.iter().flatten() {
        mark_garbage(tx, digest, now)?;
    }
    look_through_files(tx, &project.to_string())
}
