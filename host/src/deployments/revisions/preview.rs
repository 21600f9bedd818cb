//! Previews: revisions at an address of their own, before or after they were live. Immutable, unlisted, static.

use super::model::Revision;
use super::store;
use crate::content::Digest;
use crate::control;
use crate::deployments::model::Deployment;
use crate::deployments::pages::Page;
use crate::deployments::publish::{PageSource, PublishError};
use crate::deployments::serve::LookupError;
use crate::deployments::{self, Deployments};
use svc_base::ids::{DeploymentId, RevisionId};

impl Deployments {
    /// The address of a revision's preview.
    pub fn preview_url(&self, deployment: DeploymentId, revision: RevisionId) -> String {
        format!(
            "{}/_preview/{deployment}/{revision}/",
            self.config.sites_url
        )
    }

    /// A revision with its frontend, if it may be looked at.
    ///
    /// # Errors
    /// [`LookupError`].
    pub async fn previewed(
        &self,
        deployment: DeploymentId,
        revision: RevisionId,
    ) -> Result<(Deployment, Revision), LookupError> {
        let found = self
            .control
            .read(move |c| {
                let Some(deployment) = deployments::store::by_id(c, &deployment)? else {
                    return Ok(None);
                };
                let revision = store::by_id(c, &deployment.id, &revision)?;
                Ok(revision.map(|revision| (deployment, revision)))
            })
            .await;
        let (deployment, revision) = found
            .map_err(anyhow::Error::from)?
            .ok_or(LookupError::NotFound)?;
        self.check_state(deployment.expires_at, deployment.disabled)?;
        Ok((deployment, revision))
    }

    /// The page of a revision; rendered at the first look where it was never a draft.
    ///
    /// # Errors
    /// [`LookupError`].
    pub async fn preview(
        &self,
        deployment: DeploymentId,
        revision: RevisionId,
    ) -> Result<Page, LookupError> {
        let (deployment, revision) = self.previewed(deployment, revision).await?;
        let digest = match revision.preview {
            Some(digest) => digest,
            None => self.render_preview(&deployment, &revision).await?,
        };
        let artifact = self.artifact(digest).await?;
        Ok(Page::preview(&deployment, artifact, self.page_policy()))
    }

    /// Renders and keeps the page of a revision that nobody has looked at.
    async fn render_preview(
        &self,
        deployment: &Deployment,
        revision: &Revision,
    ) -> Result<Digest, PublishError> {
        self.check_disk()?;
        let text = self.text_of(revision.source).await?;
        let page = self
            .render(PageSource::titled(
                deployment.content_type,
                &revision.title,
                &text,
            ))
            .await?;
        let stored = self.store_page(text.into(), page.html).await?;
        let (id, digest, bytes) = (revision.id, stored.page.digest(), stored.bytes);
        let kept: Result<(), control::Error> = self
            .control
            .write(move |tx| store::set_preview(tx, &id, &digest, bytes))
            .await;
        kept?;
        Ok(digest)
    }
}
