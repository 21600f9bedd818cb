//! Previews: revisions at an address of their own, before or after they were live. Immutable, unlisted, static.

use std::sync::Arc;
use std::time::Duration;

use quick_cache::sync::Cache;

use super::model::Revision;
use super::service::Revisions;
use super::store;
use crate::config::Config;
use crate::content::Digest;
use crate::control;
use crate::deployments::model::Deployment;
use crate::deployments::publication::{PageSource, PublishError};
use crate::deployments::serving::PageLookupError;
use crate::deployments::serving::pages::ServedPage;
use crate::deployments::store as rows;
use crate::http::rate_limit::RateLimitExceeded;
use svc_base::ids::{DeploymentId, RevisionId};
use svc_sandbox::{CallerFlow, LaneBusy};

/// Time for which a failure is kept: the source fails again, unless another guest serves by then.
const FAILURE_LIFETIME: Duration = Duration::from_secs(60);
/// Longest wait for a rendering that another client began. Each that fails is followed by one of a waiter, the newest first.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// Number of revisions whose outcome is kept.
const KEPT_OUTCOMES: usize = 1_024;

/// Why a preview is not shown.
#[derive(Debug, thiserror::Error)]
pub enum PreviewError {
    /// There is nothing to show.
    #[error(transparent)]
    Lookup(#[from] PageLookupError),
    /// The preview could not be rendered.
    #[error(transparent)]
    Render(#[from] PublishError),
    /// The source failed to render, now or a short time ago.
    #[error("{0}")]
    Failed(Arc<PublishError>),
    /// The client has asked for too many that were not rendered yet.
    #[error(transparent)]
    Limited(#[from] RateLimitExceeded),
}

/// Outcome of rendering a preview.
#[derive(Clone, Debug)]
enum Outcome {
    /// Digest of the stored page.
    Stored(Digest),
    /// Failure of the source, and the time until which it is kept.
    Failed(Arc<PublishError>, Duration),
}

/// Renderings of previews: one of a revision at a time, for all who ask for it meanwhile, and failures for a while.
#[derive(Debug)]
pub(super) struct PreviewRenders(Cache<RevisionId, Outcome>);

impl Default for PreviewRenders {
    fn default() -> Self {
        Self(Cache::new(KEPT_OUTCOMES))
    }
}

impl PreviewRenders {
    /// Returns the outcome that is kept of a revision.
    fn kept(&self, revision: &RevisionId, now: Duration) -> Option<Outcome> {
        let is_over =
            |outcome: &Outcome| matches!(outcome, Outcome::Failed(_, until) if *until <= now);
        self.0.remove_if(revision, is_over);
        self.0.get(revision)
    }

    /// Returns the outcome of a rendering, or of the one that is under way, if it ends within `wait`. If that is dropped, as with a
    /// client that hangs up, the next one goes on in its place.
    async fn run_once(
        &self,
        revision: &RevisionId,
        wait: Duration,
        rendering: impl Future<Output = Result<Outcome, PublishError>>,
    ) -> Result<Outcome, PublishError> {
        let found = tokio::time::timeout(wait, self.0.get_value_or_guard_async(revision));
        match found.await.map_err(|_| LaneBusy)? {
            Ok(outcome) => Ok(outcome),
            Err(guard) => {
                let outcome = rendering.await?;
                // The place is gone if the cache has no room for it.
                let _ = guard.insert(outcome.clone());
                Ok(outcome)
            }
        }
    }
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
    /// [`PageLookupError`].
    pub async fn find_previewable(
        &self,
        deployment: DeploymentId,
        revision: RevisionId,
    ) -> Result<(Deployment, Revision), PageLookupError> {
        self.find_previewable_by(Some(deployment), revision).await
    }

    /// Finds a revision with its frontend, which may be named, too, if it may be previewed.
    async fn find_previewable_by(
        &self,
        deployment: Option<DeploymentId>,
        revision: RevisionId,
    ) -> Result<(Deployment, Revision), PageLookupError> {
        let found = self
            .infra
            .control
            .read(move |c| {
                let named = match deployment {
                    None => store::find_deployment(c, &revision)?,
                    named => named,
                };
                let Some(deployment) = named else {
                    return Ok(None);
                };
                let Some(deployment) = rows::find_by_id(c, &deployment)? else {
                    return Ok(None);
                };
                let revision = store::find_by_id(c, &deployment.id, &revision)?;
                Ok(revision.map(|revision| (deployment, revision)))
            })
            .await;
        let (deployment, revision) = found
            .map_err(anyhow::Error::from)?
            .ok_or(PageLookupError::NotFound)?;
        self.serving
            .check_deployment_available(deployment.expires_at, deployment.disabled)?;
        Ok((deployment, revision))
    }

    /// Returns the page of a revision; renders it at the first preview if it was never a draft, and if `admit` lets the client.
    ///
    /// # Errors
    /// [`PreviewError`].
    pub async fn preview(
        &self,
        deployment: DeploymentId,
        revision: RevisionId,
        admit: impl FnOnce() -> Result<(), RateLimitExceeded>,
    ) -> Result<Arc<ServedPage>, PreviewError> {
        let (deployment, revision) = self.find_previewable(deployment, revision).await?;
        self.check_previewed(&revision).await?;
        if let Some(page) = self.site_preview_of(&deployment, &revision).await? {
            return Ok(page);
        }
        let policy = self.serving.page_policy();
        let digest = match revision.preview {
            Some(digest) => digest,
            None => self.render_once(&deployment, &revision, admit).await?,
        };
        let artifact = self.serving.load_artifact(digest).await?;
        let page = ServedPage::preview(&deployment, artifact, policy);
        Ok(Arc::new(page))
    }

    /// Returns a revision of a site for its preview at an origin of its own, by its id alone.
    ///
    /// # Errors
    /// [`PageLookupError`]; `NotFound` for one that is no site's.
    pub async fn site_preview(
        &self,
        revision: RevisionId,
    ) -> Result<Arc<ServedPage>, PageLookupError> {
        let (deployment, revision) = self.find_previewable_by(None, revision).await?;
        self.check_previewed(&revision).await?;
        let page = self.site_preview_of(&deployment, &revision).await?;
        page.ok_or(PageLookupError::NotFound)
    }

    /// Refuses a revision whose content the operator has blocked.
    async fn check_previewed(&self, revision: &Revision) -> Result<(), PageLookupError> {
        let named = [&revision.source].into_iter().chain(&revision.preview);
        self.serving.check_content(named).await
    }

    /// Returns the preview of a revision, if that is a site's.
    async fn site_preview_of(
        &self,
        deployment: &Deployment,
        revision: &Revision,
    ) -> Result<Option<Arc<ServedPage>>, PageLookupError> {
        let Some(manifest) = revision.site.and(revision.preview) else {
            return Ok(None);
        };
        let named = (revision.id, manifest);
        let page = self.serving.site_preview(deployment, named).await?;
        Ok(Some(page))
    }

    /// Renders the page of a revision that was never previewed, unless it failed a short time ago or is being rendered.
    async fn render_once(
        &self,
        deployment: &Deployment,
        revision: &Revision,
        admit: impl FnOnce() -> Result<(), RateLimitExceeded>,
    ) -> Result<Digest, PreviewError> {
        let now = self.infra.clock.elapsed();
        let outcome = match self.previews.kept(&revision.id, now) {
            Some(outcome) => outcome,
            None => {
                admit()?;
                let rendering = self.render_preview(deployment, revision);
                // Publications come first, because this page has no visitors yet. It has the whole budget, because it is kept for good.
                let rendering = Box::pin(CallerFlow::current().preview().scope(rendering));
                let rendered = self.previews.run_once(&revision.id, MAX_WAIT, rendering);
                rendered.await?
            }
        };
        match outcome {
            Outcome::Stored(digest) => Ok(digest),
            Outcome::Failed(error, _) => Err(PreviewError::Failed(error)),
        }
    }

    /// Renders and stores the page of a revision.
    async fn render_preview(
        &self,
        deployment: &Deployment,
        revision: &Revision,
    ) -> Result<Outcome, PublishError> {
        self.capacity.check_disk()?;
        let text = self.pipeline.source_text(revision.source).await?;
        let content_type = deployment
            .content_type
            .page()
            .ok_or_else(|| PublishError::Internal(anyhow::anyhow!("a site is not rendered")))?;
        let source = PageSource::titled(content_type, &revision.title, &text);
        let page = match self.pipeline.render(source).await {
            Ok(page) => page,
            Err(error) if error.is_lasting() => {
                let until = self.infra.clock.elapsed() + FAILURE_LIFETIME;
                return Ok(Outcome::Failed(Arc::new(error), until));
            }
            Err(error) => return Err(error),
        };
        let stored = self.pipeline.store_page(text.into(), page.html).await?;
        let (id, digest, bytes) = (revision.id, stored.page.digest(), stored.bytes);
        let kept: Result<(), control::Error> = self
            .infra
            .control
            .write(move |tx| store::set_preview(tx, &id, &digest, bytes))
            .await;
        kept?;
        Ok(Outcome::Stored(digest))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::FutureExt as _;

    use super::*;
    use svc_base::clock::{Clock, Timestamp};
    use svc_base::random::Random;

    fn revision() -> RevisionId {
        RevisionId::new(&Clock::manual(Timestamp(0)), &Random::system()).unwrap()
    }

    /// A rendering that is counted, and lets others run meanwhile.
    async fn render(count: &AtomicUsize) -> Result<Outcome, PublishError> {
        count.fetch_add(1, Ordering::SeqCst);
        tokio::task::yield_now().await;
        Ok(Outcome::Stored(Digest::of(b"page")))
    }

    #[tokio::test]
    async fn a_revision_is_rendered_once_for_all_who_ask() {
        let (renders, revision, count) =
            (PreviewRenders::default(), revision(), AtomicUsize::new(0));
        let ask = || renders.run_once(&revision, MAX_WAIT, render(&count));
        let (first, second, third) = tokio::join!(ask(), ask(), ask());
        for outcome in [first, second, third] {
            assert!(matches!(outcome.unwrap(), Outcome::Stored(_)));
        }
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn nobody_waits_for_ever_for_what_another_renders() {
        let (renders, revision, count) =
            (PreviewRenders::default(), revision(), AtomicUsize::new(0));
        let never = std::future::pending();
        let mut first = Box::pin(renders.run_once(&revision, MAX_WAIT, never));
        assert!(first.as_mut().now_or_never().is_none());
        let late = renders.run_once(&revision, Duration::ZERO, render(&count));
        assert!(matches!(late.await, Err(PublishError::Capacity(_))));
        // The place of one who is gone is free at once.
        drop(first);
        let next = renders.run_once(&revision, Duration::ZERO, render(&count));
        assert!(next.await.is_ok());
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_failure_is_kept_for_a_while_and_want_of_room_is_not() {
        let (renders, revision) = (PreviewRenders::default(), revision());
        let busy = async { Err(PublishError::disk_full()) };
        assert!(renders.run_once(&revision, MAX_WAIT, busy).await.is_err());
        assert!(renders.kept(&revision, Duration::ZERO).is_none());
        let error = Arc::new(PublishError::Unsupported(svc_sandbox::ContentType::Csv));
        let failed = async { Ok(Outcome::Failed(error, FAILURE_LIFETIME)) };
        renders.run_once(&revision, MAX_WAIT, failed).await.unwrap();
        let early = FAILURE_LIFETIME - Duration::from_millis(1);
        assert!(renders.kept(&revision, early).is_some());
        assert!(renders.kept(&revision, FAILURE_LIFETIME).is_none());
    }
}
