//! Previews: revisions at an address of their own, before or after they were live. Immutable, unlisted, static.

use super::model::Revision;
use super::service::Revisions;
use super::store;
use crate::config::Config;
use crate::content::Digest;
use crate::control;
use crate::deployments::model::Deployment;
use crate::deployments::publication::{PageSource, PublishError};
use crate::deployments::serving::LookupError;
use crate::deployments::serving::pages::Page;
use crate::deployments::store as rows;
use svc_base::ids::{DeploymentId, RevisionId};

/// Why a preview is not shown.
#[derive(Debug, thiserror::Error)]
pub enum PreviewError {
    /// There is nothing to show.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// The preview could not be rendered.
    #[error(transparent)]
    Render(#[from] PublishError),
}

/// Composes the address of a revision's preview.
pub(super) fn preview_url(
    config: &Config,
    deployment: DeploymentId,
    revision: RevisionId,
) -> String {
    format!("{}/_preview/{deployment}/{revision}/", config.sites_url)
}

impl Revisions {
    /// Finds a revision with its frontend, if it may be previewed.
    ///
    /// # Errors
    /// [`LookupError`].
    pub async fn find_previewable(
        &self,
        deployment: DeploymentId,
        revision: RevisionId,
    ) -> Result<(Deployment, Revision), LookupError> {
        let found = self
            .infra
            .control
            .read(move |c| {
                let Some(deployment) = rows::find_by_id(c, &deployment)? else {
                    return Ok(None);
                };
                let revision = store::find_by_id(c, &deployment.id, &revision)?;
                Ok(revision.map(|revision| (deployment, revision)))
            })
            .await;
        let (deployment, revision) = found
            .map_err(anyhow::Error::from)?
            .ok_or(LookupError::NotFound)?;
        self.serving
            .check_deployment_available(deployment.expires_at, deployment.disabled)?;
        Ok((deployment, revision))
    }

    /// Returns the page of a revision; renders it at the first preview if it was never a draft.
    ///
    /// # Errors
    /// [`PreviewError`].
    pub async fn preview(
        &self,
        deployment: DeploymentId,
        revision: RevisionId,
    ) -> Result<Page, PreviewError> {
        let (deployment, revision) = self.find_previewable(deployment, revision).await?;
        let digest = match revision.preview {
            Some(digest) => digest,
            None => self.render_preview(&deployment, &revision).await?,
        };
        let artifact = self.serving.load_artifact(digest).await;
        let artifact = artifact.map_err(LookupError::from)?;
        Ok(Page::preview(
            &deployment,
            artifact,
            self.serving.page_policy(),
        ))
    }

    /// Renders and stores the page of a revision that was never previewed.
    async fn render_preview(
        &self,
        deployment: &Deployment,
        revision: &Revision,
    ) -> Result<Digest, PublishError> {
        self.capacity.check_disk()?;
        let text = self.pipeline.source_text(revision.source).await?;
        let page = self
            .pipeline
            .render(PageSource::titled(
                deployment.content_type,
                &revision.title,
                &text,
            ))
            .await?;
        let stored = self.pipeline.store_page(text.into(), page.html).await?;
        let (id, digest, bytes) = (revision.id, stored.page.digest(), stored.bytes);
        let kept: Result<(), control::Error> = self
            .infra
            .control
            .write(move |tx| store::set_preview(tx, &id, &digest, bytes))
            .await;
        kept?;
        Ok(digest)
    }
}
