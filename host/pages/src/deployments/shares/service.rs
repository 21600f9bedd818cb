//! Deleting a share by its token, and claiming one for a project.
//!
//! Both are one transaction after a look: of a deletion, a claim, a reader who burns the share and its expiry, one comes first,
//! and the others find nothing.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use super::store;
use crate::config::Config;
use crate::content::OneTimePages;
use crate::control::audit::AuditAction;
use crate::control::{self, ControlChange};
use crate::deployments::address::{PageAddress, announce_change};
use crate::deployments::files::{ProjectFiles, move_to_project};
use crate::deployments::frontends::{Frontend, FrontendError, active_in};
use crate::deployments::model::Deployment;
use crate::deployments::publication::{
    CapacityChecker, PageSource, PublicationPipeline, PublishError, ReservedSlug, SlugReservations,
};
use crate::deployments::{once_files, store as rows};
use crate::infra::Infra;
use crate::projects::{self, Project};
use svc_base::clock::Timestamp;
use svc_base::fault;
use svc_base::ids::DeploymentId;
use svc_base::names::is_uuid;
use svc_sandbox::Sandbox;

/// Quick shares.
#[derive(Debug)]
pub struct Shares {
    pub(super) infra: Infra,
    pub(super) once: OneTimePages,
    pub(super) sandbox: Sandbox,
    pub(super) pipeline: Arc<PublicationPipeline>,
    pub(super) files: Arc<ProjectFiles>,
    pub(super) capacity: CapacityChecker,
    pub(super) slugs: SlugReservations,
}

/// A share whose token the caller holds.
#[derive(Clone, Copy, Debug)]
pub struct AuthorizedShare(DeploymentId);

/// Why nothing was done to a share.
#[derive(Debug, thiserror::Error)]
pub enum ShareError {
    /// There is no such share, or this is not its token: nothing tells the two apart.
    #[error("there is no such share, or this is not its token")]
    NotFound,
    /// The operator has taken it down.
    #[error("disabled by the operator")]
    Disabled,
    /// Only what everybody may read as often as they like becomes a frontend.
    #[error(
        "a {0} share cannot become a frontend, which everybody may read: publish its content as one instead"
    )]
    Guarded(&'static str),
    /// It is deleted, and a page of it may be left in a bucket that does not answer.
    #[error("a page of the share may be left: {0}")]
    HalfDeleted(io::Error),
    /// Everything else.
    #[error(transparent)]
    Frontend(#[from] FrontendError),
}

impl From<control::Error> for ShareError {
    fn from(error: control::Error) -> Self {
        Self::Frontend(error.into())
    }
}

impl From<PublishError> for ShareError {
    fn from(error: PublishError) -> Self {
        Self::Frontend(error.into())
    }
}

impl Shares {
    /// Makes the service of a server; `once` has the pages of one-time shares.
    pub fn new(
        infra: Infra,
        once: OneTimePages,
        sandbox: Sandbox,
        pipeline: Arc<PublicationPipeline>,
        files: Arc<ProjectFiles>,
        capacity: CapacityChecker,
        slugs: SlugReservations,
    ) -> Self {
        Self {
            infra,
            once,
            sandbox,
            pipeline,
            files,
            capacity,
            slugs,
        }
    }

    /// Returns the settings.
    pub(super) fn config(&self) -> &Arc<Config> {
        &self.infra.config
    }

    /// Deletes the pages of one-time shares that have no row: burnt, or never answered for. Runs before serving,
    /// when no publish is between its file and its row.
    ///
    /// # Errors
    /// The database's or the disk's.
    pub async fn finish_burning(&self) -> anyhow::Result<()> {
        let pages = once_files::list(&self.once).await?;
        self.burn_unowned(pages).await
    }

    /// Removes those of these pages that belong to no share.
    ///
    /// # Errors
    /// The database's or the disk's.
    pub async fn burn_unowned(&self, pages: Vec<DeploymentId>) -> anyhow::Result<()> {
        let rows = self.infra.control.read(rows::one_time_ids).await?;
        let rows: HashSet<_> = rows.into_iter().collect();
        for id in pages.into_iter().filter(|id| !rows.contains(id)) {
            once_files::burn(&self.once, id).await?;
        }
        Ok(())
    }

    /// Forgets tokens of shares that have been gone for long.
    pub async fn forget_old_tokens(&self) -> Result<(), control::Error> {
        let now = self.infra.clock.now();
        self.infra
            .control
            .write(move |tx| store::forget_tokens(tx, now))
            .await
    }

    /// Deletes a share for the holder of its token. One that is gone already is answered alike; durable when it answers.
    ///
    /// # Errors
    /// The database's or the disk's.
    pub async fn delete(&self, AuthorizedShare(id): AuthorizedShare) -> Result<(), ShareError> {
        let (config, now) = (Arc::clone(&self.infra.config), self.infra.clock.now());
        let deleted = self
            .infra
            .control
            .write(move |tx| {
                let Some(share) = store::find_with_token(tx, &id)? else {
                    return Ok::<_, control::Error>(None);
                };
                if share.disabled {
                    // Or its publisher would have the slug back at once, with the links to it that are out there.
                    store::end_disabled_share(tx, &id, now)?;
                } else {
                    rows::remove(tx, &id, now)?;
                }
                let address = PageAddress {
                    slug: share.slug,
                    host_label: None,
                };
                announce_change(tx, &config, &address, now)?;
                Ok(Some(share.one_time))
            })
            .await?;
        fault::point("share.deleted");
        if deleted == Some(false) {
            return Ok(());
        }
        // The file goes even if there was no row: an earlier deletion may have failed between the two.
        let burnt = once_files::burn(&self.once, id).await;
        // The row is gone by now, whatever failed.
        burnt.map_err(|error| match &self.once {
            OneTimePages::Files(_) => PublishError::Internal(error.into()).into(),
            OneTimePages::Objects(_) => ShareError::HalfDeleted(error),
        })
    }

    /// Makes a share a frontend of a project, for the holder of its token: its slug, its source and its visits move.
    ///
    /// # Errors
    /// [`ShareError`]; the share is as it was then.
    pub async fn claim(
        &self,
        project: Project,
        AuthorizedShare(id): AuthorizedShare,
    ) -> Result<Frontend, ShareError> {
        let found = self
            .infra
            .control
            .read(move |c| rows::find_by_id(c, &id))
            .await?;
        let share = check_claimable(found, self.infra.clock.now())?;
        self.capacity.check_content(project.workspace.id).await?;
        if share.content_type.is_site() {
            return self.claim_site(project, share).await;
        }
        let source = share.source.ok_or(ShareError::NotFound)?;
        let text = self.pipeline.source_text(source).await?;
        // A slug in the form of an id, as they were given out once, stays behind.
        let fresh = match is_uuid(&share.slug) {
            true => Some(self.slugs.reserve(None).await?),
            false => None,
        };
        let slug = fresh.as_ref().map_or(&*share.slug, ReservedSlug::as_str);
        let slug = slug.to_owned();
        let content_type = share.content_type.page().ok_or(ShareError::NotFound)?;
        let source = PageSource::titled(content_type, &share.title, &text);
        let (stored, _) = self
            .pipeline
            .render_and_store_live(source, &slug, project.expires_at)
            .await?;
        fault::point("claim.stored");
        let (now, caps) = (self.infra.clock.now(), self.capacity.cap_check());
        let address = PageAddress {
            slug: slug.clone(),
            host_label: Some(project.host_label.clone()),
        };
        let claimed = self
            .pipeline
            .publish(stored, address, now, move |tx, published| {
                if !projects::is_live(tx, &project.id, now)? {
                    return Err(FrontendError::NotFound.into());
                }
                let found = rows::find_by_id(tx, &id).map_err(control::Error::from)?;
                check_claimable(found, now)?;
                caps.check_claim(tx, &project.workspace.id)?;
                store::move_to_project(tx, &id, (&project.id, &slug), published, now)?;
                tx.note(ControlChange::Slug(share.slug));
                projects::record_audit(tx, &project.id, AuditAction::FrontendClaim, &id, now)?;
                Ok::<_, ShareError>(active_in(tx, &project.id, &id)?)
            })
            .await?;
        fault::point("claim.committed");
        Ok(claimed)
    }

    /// Makes a share that is a site a frontend of a project: nothing is made anew, and its files move, too.
    async fn claim_site(
        &self,
        project: Project,
        share: Deployment,
    ) -> Result<Frontend, ShareError> {
        let (now, caps) = (self.infra.clock.now(), self.capacity.cap_check());
        let config = Arc::clone(&self.infra.config);
        let claimed = self.pipeline.commit(move |tx| {
            if !projects::is_live(tx, &project.id, now)? {
                return Err(FrontendError::NotFound.into());
            }
            let (id, slug) = (share.id, share.slug);
            let found = rows::find_by_id(tx, &id).map_err(control::Error::from)?;
            check_claimable(found, now)?;
            let published = store::published_site(tx, &id).map_err(control::Error::from)?;
            let published = published.ok_or(ShareError::NotFound)?;
            caps.check_claim(tx, &project.workspace.id)?;
            move_to_project(tx, &id, &project, &config.limits, now).map_err(FrontendError::from)?;
            store::move_to_project(tx, &id, (&project.id, &slug), &published, now)?;
            let address = PageAddress {
                slug,
                host_label: Some(project.host_label.clone()),
            };
            announce_change(tx, &config, &address, now)?;
            projects::record_audit(tx, &project.id, AuditAction::FrontendClaim, &id, now)?;
            Ok::<_, ShareError>(active_in(tx, &project.id, &id)?)
        });
        let claimed = claimed.await?;
        fault::point("claim.committed");
        Ok(claimed)
    }

    /// Checks the token of a share, which may be deleted already.
    ///
    /// # Errors
    /// `NotFound`; the database's.
    pub async fn authorize(&self, id: &str, token: &str) -> Result<AuthorizedShare, ShareError> {
        let id: DeploymentId = id.parse().map_err(|_| ShareError::NotFound)?;
        let held = self
            .infra
            .control
            .read(move |c| store::token_digest(c, &id))
            .await?;
        match held {
            Some(digest) if digest.is_digest_of(token.as_bytes()) => Ok(AuthorizedShare(id)),
            _ => Err(ShareError::NotFound),
        }
    }
}

/// Checks that a share may become a frontend.
fn check_claimable(found: Option<Deployment>, now: Timestamp) -> Result<Deployment, ShareError> {
    let share = found
        .filter(|share| share.delete_token.is_some() && share.is_live(now))
        .ok_or(ShareError::NotFound)?;
    match &share {
        share if share.disabled => Err(ShareError::Disabled),
        share if share.one_time => Err(ShareError::Guarded("one-time")),
        share if share.password_hash.is_some() => Err(ShareError::Guarded("protected")),
        _ => Ok(share),
    }
}
