//! Finding the page at a slug: the hot path, which touches neither a disk nor a guest once a page is in memory.

use std::sync::Arc;

use bytes::Bytes;

use svc_base::names::is_slug;

use super::model::shown_title;
use super::pages::{Guard, Kind, Page, Policy};
use super::password;
use super::publish::PublishError;
use super::{Deployments, store};
use crate::content::{Artifact, Digest};
use crate::http::hosts::Host;
use svc_base::clock::Timestamp;
use svc_base::ids::DeploymentId;
use svc_sandbox::Lane;

/// Why there is nothing to show.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// Nothing lives at the slug.
    #[error("nothing is at this slug")]
    NotFound,
    /// The operator has taken it down.
    #[error("disabled by the operator")]
    Disabled,
    /// A preview could not be rendered.
    #[error(transparent)]
    Render(#[from] PublishError),
    /// Everything else, for the log.
    #[error(transparent)]
    Internal(#[from] anyhow::Error),
}

/// Why a page stays locked.
#[derive(Debug, thiserror::Error)]
pub enum UnlockError {
    /// There is no page, or it has no password.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// Not the password.
    #[error("wrong password")]
    Wrong,
    /// No worker was free to compare.
    #[error("no worker is free")]
    Busy,
}

/// The source of a page.
#[derive(Debug)]
pub struct RawSource {
    /// Digest of the source.
    pub digest: Digest,
    /// Bytes of the source, as they were published.
    pub bytes: Bytes,
}

/// Proof that a browser knows a page's password.
#[derive(Debug)]
pub struct Unlocked {
    /// The cookie's value.
    pub token: String,
}

impl Deployments {
    /// The page at a slug, from memory or loaded into it; see [`Deployments::check`].
    ///
    /// # Errors
    /// [`LookupError`].
    pub async fn page(&self, slug: &str) -> Result<Arc<Page>, LookupError> {
        match self.pages.get(slug) {
            Some(page) => Ok(page),
            // Boxed, so that a view that finds its page does not carry the state of a load around.
            None => Box::pin(self.pages.get_or_load(slug, self.load(slug))).await,
        }
    }

    /// The page at a slug, on the host that was asked: a project's origin has its own frontends and nothing else.
    ///
    /// # Errors
    /// [`LookupError`].
    pub async fn visited(&self, host: &Host, slug: &str) -> Result<Arc<Page>, LookupError> {
        if !is_slug(slug) {
            return Err(LookupError::NotFound);
        }
        let page = self.page(slug).await?;
        let here = match host {
            Host::Project(label) => {
                matches!(&page.kind, Kind::Frontend { host_label } if host_label == label)
            }
            Host::Api | Host::Sites | Host::Landing => true,
        };
        if !here {
            return Err(LookupError::NotFound);
        }
        self.check(&page)?;
        Ok(page)
    }

    /// Whether a page is asked for elsewhere than on the origin that its project has.
    pub(super) fn is_away(&self, host: &Host, page: &Page) -> bool {
        page.is_frontend()
            && !matches!(host, Host::Project(_))
            && self.config.sites_domain.is_some()
    }

    /// Whether a page may still be shown at all.
    ///
    /// # Errors
    /// `NotFound` when its time is over, `Disabled` when the operator has taken it down.
    pub fn check(&self, page: &Page) -> Result<(), LookupError> {
        self.check_state(page.expires_at, page.disabled)
    }

    /// Checks the state of a deployment that is no page yet.
    pub(super) fn check_state(
        &self,
        expires_at: Option<Timestamp>,
        disabled: bool,
    ) -> Result<(), LookupError> {
        if expires_at.is_some_and(|at| at <= self.clock.now()) {
            return Err(LookupError::NotFound);
        }
        if disabled {
            Err(LookupError::Disabled)
        } else {
            Ok(())
        }
    }

    async fn load(&self, slug: &str) -> Result<Arc<Page>, LookupError> {
        let wanted = slug.to_owned();
        let found = self.control.read(move |c| store::by_slug(c, &wanted)).await;
        let now = self.clock.now();
        let deployment = found
            .map_err(anyhow::Error::from)?
            .filter(|deployment| deployment.is_live(now))
            .ok_or(LookupError::NotFound)?;
        let artifact = match deployment.artifact {
            // What is disabled is not shown, so its bytes need not be there.
            Some(digest) if !deployment.disabled => Some(self.artifact(digest).await?),
            _ => None,
        };
        Ok(Arc::new(Page::new(
            &deployment,
            artifact,
            self.page_policy(),
        )))
    }

    /// A stored page.
    pub(super) async fn artifact(&self, digest: Digest) -> anyhow::Result<(Digest, Artifact)> {
        let object = self.content.get_shared(&digest).await?;
        let artifact = object.as_ref().and_then(Artifact::from_object);
        let artifact =
            artifact.ok_or_else(|| anyhow::anyhow!("artifact {digest} is missing or damaged"))?;
        Ok((digest, artifact))
    }

    /// The title of a page that answers.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn title(&self, id: DeploymentId) -> Result<String, LookupError> {
        let found = self.control.read(move |c| store::by_id(c, &id)).await;
        let found = found.map_err(anyhow::Error::from)?;
        found
            .map(|deployment| shown_title(&deployment.title))
            .ok_or(LookupError::NotFound)
    }

    /// Returns the policy of this installation for its pages.
    pub fn page_policy(&self) -> Policy {
        Policy {
            origins: self.config.sites_domain.is_some(),
            edge: self.config.edge.is_some(),
        }
    }

    /// Whether a deployment is there, answering or not.
    pub async fn exists(&self, id: DeploymentId) -> anyhow::Result<bool> {
        let found = self.control.read(move |c| store::exists(c, &id));
        Ok(found.await?)
    }

    /// Whether a request with these tokens may see a page.
    pub fn is_unlocked<'t>(&self, page: &Page, mut tokens: impl Iterator<Item = &'t [u8]>) -> bool {
        match &page.guard {
            Guard::Open => true,
            Guard::Password(hash) => tokens.any(|token| {
                password::unlocks(
                    &self.secrets.unlock,
                    &page.id,
                    hash,
                    self.clock.now(),
                    token,
                )
            }),
        }
    }

    /// Compares a password with a page's.
    ///
    /// # Errors
    /// [`UnlockError`].
    pub async fn unlock(&self, page: &Page, password: String) -> Result<Unlocked, UnlockError> {
        let Guard::Password(hash) = &page.guard else {
            return Err(LookupError::NotFound.into());
        };
        if !verify(self.sandbox.check_lane(), password, hash.clone()).await? {
            return Err(UnlockError::Wrong);
        }
        let until = self.clock.now().plus_seconds(password::UNLOCKED_SECONDS);
        let token = password::unlock_token(&self.secrets.unlock, &page.id, hash, until);
        Ok(Unlocked { token })
    }

    /// The source of a page; a one-time share has none to show.
    ///
    /// # Errors
    /// [`LookupError`].
    pub async fn raw_source(&self, page: &Page) -> Result<RawSource, LookupError> {
        let digest = page.source.ok_or(LookupError::NotFound)?;
        let bytes = self
            .content
            .get_shared(&digest)
            .await
            .map_err(anyhow::Error::from)?;
        let bytes = bytes.ok_or_else(|| anyhow::anyhow!("source {digest} is missing"))?;
        Ok(RawSource { digest, bytes })
    }
}

async fn verify(lane: &Lane, password: String, hash: String) -> Result<bool, UnlockError> {
    lane.run(move |_| password::verify(&password, &hash))
        .await
        .map_err(|_| UnlockError::Busy)
}
