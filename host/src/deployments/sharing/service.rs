//! Deleting a share by its token, and claiming one for a project.
//!
//! Both are one transaction after a look: of a deletion, a claim, a reader who burns the share and its expiry, one comes first,
//! and the others find nothing.

use std::sync::Arc;

use super::store;
use crate::control::audit::AuditAction;
use crate::control::{self, Change};
use crate::deployments::frontends::{Frontend, FrontendError};
use crate::deployments::model::Deployment;
use crate::deployments::publication::{Address, announce};
use crate::deployments::publish::{PageSource, PublishError, ReservedSlug};
use crate::deployments::room::Room;
use crate::deployments::{self, Deployments};
use crate::projects::{self, Project};
use svc_base::clock::Timestamp;
use svc_base::fault;
use svc_base::ids::DeploymentId;
use svc_base::names::is_uuid;

/// A share whose token the caller holds.
#[derive(Clone, Copy, Debug)]
pub struct ProvenShare(DeploymentId);

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

impl Deployments {
    /// Deletes a share for who holds its token. One that is gone already is answered alike; durable when it answers.
    ///
    /// # Errors
    /// The database's or the disk's.
    pub async fn delete_share(&self, ProvenShare(id): ProvenShare) -> Result<(), ShareError> {
        let (config, now) = (Arc::clone(&self.config), self.clock.now());
        self.control
            .write(move |tx| {
                let Some(share) = store::held(tx, &id)? else {
                    return Ok(());
                };
                if share.disabled {
                    // Or its publisher would have the slug back at once, with the links to it that are out there.
                    store::empty(tx, &id, now)?;
                } else {
                    deployments::store::remove(tx, &id, now)?;
                }
                let address = Address {
                    slug: share.slug,
                    host_label: None,
                };
                announce(tx, &config, &address, now)
            })
            .await?;
        fault::point("share.deleted");
        // Whether or not its row was there: an earlier deletion may have failed between the two.
        Ok(self.burn_file(id).await?)
    }

    /// Makes a share a frontend of a project, for who holds its token: its slug, its source and its visits move.
    ///
    /// # Errors
    /// [`ShareError`]; the share is as it was then.
    pub async fn claim_share(
        &self,
        project: Project,
        ProvenShare(id): ProvenShare,
    ) -> Result<Frontend, ShareError> {
        let found = self
            .control
            .read(move |c| deployments::store::by_id(c, &id))
            .await?;
        let share = claimable(found, self.clock.now())?;
        self.check_room(project.workspace.id, Room::for_content)
            .await?;
        let source = share.source.ok_or(ShareError::NotFound)?;
        let text = self.text_of(source).await?;
        // A slug in the form of an id, as they were given out once, stays behind.
        let fresh = match is_uuid(&share.slug) {
            true => Some(self.reserve_slug(None).await?),
            false => None,
        };
        let slug = fresh.as_ref().map_or(&*share.slug, ReservedSlug::as_str);
        let slug = slug.to_owned();
        let source = PageSource::titled(share.content_type, &share.title, &text);
        let (stored, _) = self.make_live(source, &slug, project.expires_at).await?;
        fault::point("claim.stored");
        let (now, room) = (self.clock.now(), self.room());
        let address = Address {
            slug: slug.clone(),
            host_label: Some(project.host_label.clone()),
        };
        let claimed = self
            .publish(stored, address, now, move |tx, published| {
                if !projects::is_live(tx, &project.id, now)? {
                    return Err(FrontendError::NotFound.into());
                }
                let found = deployments::store::by_id(tx, &id).map_err(control::Error::from)?;
                claimable(found, now)?;
                room.for_claim(tx, &project.workspace.id)?;
                store::move_to(tx, &id, (&project.id, &slug), published, now)?;
                tx.note(Change::Slug(share.slug));
                projects::record_audit(tx, &project.id, AuditAction::FrontendClaim, &id, now)?;
                Ok::<_, ShareError>(Self::active_in(tx, &project.id, &id)?)
            })
            .await?;
        fault::point("claim.committed");
        Ok(claimed)
    }

    /// Proves that a token is that of a share, which may be gone.
    ///
    /// # Errors
    /// `NotFound`; the database's.
    pub async fn prove_share(&self, id: &str, token: &str) -> Result<ProvenShare, ShareError> {
        let id: DeploymentId = id.parse().map_err(|_| ShareError::NotFound)?;
        let held = self.control.read(move |c| store::token(c, &id)).await?;
        match held {
            Some(digest) if digest.is_digest_of(token.as_bytes()) => Ok(ProvenShare(id)),
            _ => Err(ShareError::NotFound),
        }
    }
}

/// A share that may become a frontend.
fn claimable(found: Option<Deployment>, now: Timestamp) -> Result<Deployment, ShareError> {
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
