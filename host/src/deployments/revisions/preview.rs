//! Previews: revisions at an address of their own, before or after they were live. Immutable, unlisted, static.

use super::store;
use crate::control;
use crate::deployments::pages::Page;
use crate::deployments::serve::LookupError;
use crate::deployments::{self, Deployments};
use crate::ids::{DeploymentId, RevisionId};

impl Deployments {
    /// The address of a revision's preview.
    pub fn preview_url(&self, deployment: DeploymentId, revision: RevisionId) -> String {
        format!(
            "{}/_preview/{deployment}/{revision}/",
            self.config.sites_url
        )
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
        let page = |artifact| Page::preview(&deployment, artifact, self.page_policy());
        if let Some(digest) = revision.preview {
            let page = page(self.artifact(digest).await?);
            self.check(&page)?;
            return Ok(page);
        }
        let text = self
            .text_of(revision.source)
            .await
            .map_err(anyhow::Error::from)?;
        let rendered = self
            .render(deployment.content_type, &revision.title, &text)
            .await;
        let rendered = rendered.map_err(anyhow::Error::from)?;
        let stored = self
            .store_page(text.into(), rendered)
            .await
            .map_err(anyhow::Error::from)?;
        let (_source, preview) = stored;
        let (id, digest) = (revision.id, preview.digest());
        let kept: Result<(), control::Error> = self
            .control
            .write(move |tx| store::set_preview(tx, &id, &digest))
            .await;
        kept.map_err(anyhow::Error::from)?;
        let page = page(self.artifact(digest).await?);
        self.check(&page)?;
        Ok(page)
    }
}
