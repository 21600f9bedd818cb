//! Pages made again by the guest that serves: one after the other, behind everything else, from where a crash has left off.
//!
//! Live pages are: quick shares that have a source, and frontends, with the newest runtime. Previews are not, because what a preview
//! shows was promised never to change; promote and rollback make their pages anew anyway. A page that is published anew meanwhile is left alone: it
//! was made by the guest that served when that began.

mod store;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use store::RerenderCandidate;

use super::address::announce_change;
use super::publication::{
    CapacityChecker, PagePlacement, PageSource, PublicationPipeline, PublishError, RenderedPage,
    RendererAndRuntime, StoredPublication, runtime,
};
use crate::control::{self, ControlDatabase, ErrandWork, Tx};
use crate::infra::Infra;
use svc_base::Stopwatch;
use svc_base::clock::{Clock, Timestamp};
use svc_base::fault;
use svc_base::ids::DeploymentId;
use svc_sandbox::{GuestDigest, Sandbox};

/// Pause after a page, as a multiple of its rendering time: at most a fifth of one thread is used.
const PAUSE_FACTOR: u32 = 4;
const MIN_PAUSE: Duration = Duration::from_millis(5);
/// Pause when the server has no free thread or no room.
const BUSY_PAUSE: Duration = Duration::from_secs(2);

/// Progress of a rerender.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RerenderProgress {
    /// When it was asked for.
    pub requested_at: Timestamp,
    /// Pages that were to be made again when the server began; 0 before.
    pub total: u64,
    /// Pages whose bytes are others now.
    pub changed: u64,
    /// Pages that did not change.
    pub unchanged: u64,
    /// Pages that the guest has failed to render: they stay as they are.
    pub failed: u64,
    /// Pages that were published anew or deleted meanwhile.
    pub skipped: u64,
    /// When the last one was done.
    pub finished_at: Option<Timestamp>,
    /// Version of the runtime that frontends get; none until the server begins.
    #[serde(skip)]
    made_by: Option<String>,
    #[serde(skip)]
    last: Option<DeploymentId>,
}

impl RerenderProgress {
    fn new(requested_at: Timestamp) -> Self {
        Self {
            requested_at,
            total: 0,
            changed: 0,
            unchanged: 0,
            failed: 0,
            skipped: 0,
            finished_at: None,
            made_by: None,
            last: None,
        }
    }

    /// Whether all pages are done.
    pub fn is_finished(&self) -> bool {
        self.finished_at.is_some()
    }

    /// Whether a guest renders its pages.
    fn is_made_by(&self, guest: GuestDigest) -> bool {
        let by = self.made_by.as_deref().unwrap_or_default();
        by.starts_with(RendererAndRuntime::new(guest, None).as_str())
    }

    /// Returns the number of pages that are done.
    pub fn pages_done(&self) -> u64 {
        self.changed + self.unchanged + self.failed + self.skipped
    }
}

/// Outcome for a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageRerenderOutcome {
    Changed,
    Unchanged,
    Failed,
    Skipped,
}

/// Asks for a rerender. One that is under way begins anew: pages that it has done are not done again.
pub async fn request(
    control: &ControlDatabase,
    clock: &Clock,
) -> Result<RerenderProgress, control::Error> {
    let progress = RerenderProgress::new(clock.now());
    let kept = progress.clone();
    control.write(move |tx| store::insert(tx, &kept)).await?;
    Ok(progress)
}

/// Asks again for the latest rerender if a guest that fell has made pages in it, finished or not: by the guest that serves now.
pub async fn request_again_without(
    control: &ControlDatabase,
    clock: &Clock,
    fallen: GuestDigest,
) -> Result<(), control::Error> {
    let errand = RerenderWithout {
        fallen,
        at: clock.now(),
    };
    control.run_errand(errand).await
}

/// Errand: a guest that rendered pages was rolled back. Pages that it made in the latest rerender are made again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RerenderWithout {
    pub fallen: GuestDigest,
    pub at: Timestamp,
}

impl ErrandWork for RerenderWithout {
    const KIND: &'static str = "rerender_without";
    type Answer = ();

    fn perform(self, tx: &Tx<'_>) -> Result<(), control::Error> {
        let latest = store::progress(tx)?.filter(|latest| latest.is_made_by(self.fallen));
        let Some(latest) = latest else { return Ok(()) };
        tracing::warn!(guest = %self.fallen, "pages are rendered again: the guest that made them was rolled back");
        // A rerender that is still under way must not take this for its own.
        let requested_at = self.at.max(Timestamp(latest.requested_at.0 + 1));
        store::insert(tx, &RerenderProgress::new(requested_at))
    }
}

/// Returns the progress of the latest rerender, if there was one.
pub async fn progress(
    control: &ControlDatabase,
) -> Result<Option<RerenderProgress>, control::Error> {
    control.read(store::progress).await
}

/// Renders pages again that another guest has rendered.
#[derive(Debug)]
pub struct Rerenderer {
    infra: Infra,
    sandbox: Sandbox,
    pipeline: Arc<PublicationPipeline>,
    capacity: CapacityChecker,
}

impl Rerenderer {
    /// Makes the service of a server.
    pub fn new(
        infra: Infra,
        sandbox: Sandbox,
        pipeline: Arc<PublicationPipeline>,
        capacity: CapacityChecker,
    ) -> Self {
        Self {
            infra,
            sandbox,
            pipeline,
            capacity,
        }
    }

    /// Renders the next page again, if a rerender is under way; returns how long to rest before another. `None` if nothing is left to do.
    ///
    /// # Errors
    /// Ours; the page comes again.
    pub async fn render_next(&self) -> anyhow::Result<Option<Duration>> {
        let Some(mut progress) = progress(&self.infra.control).await? else {
            return Ok(None);
        };
        let Some(guest) = self
            .sandbox
            .renderer_digest()
            .filter(|_| !progress.is_finished())
        else {
            return Ok(None);
        };
        if self.capacity.check_disk().is_err() {
            return Ok(Some(BUSY_PAUSE));
        }
        let (share, live) = (
            RendererAndRuntime::new(guest, None),
            RendererAndRuntime::new(guest, Some(&runtime::newest_name())),
        );
        if progress.made_by.as_deref() != Some(live.as_str()) {
            // Another guest serves than the one that this began with: what that one made is made again, too.
            self.begin_rerender(&mut progress, &share, &live).await?;
        }
        let (now, last) = (self.infra.clock.now(), progress.last);
        let next = self
            .infra
            .control
            .read(move |c| store::next_candidate(c, now, last, &share, &live))
            .await?;
        let stopwatch = Stopwatch::start();
        match next {
            Some(page) => {
                if !self.rerender(progress, page).await? {
                    return Ok(Some(BUSY_PAUSE));
                }
            }
            None => {
                progress.finished_at = Some(now);
                tracing::info!(
                    changed = progress.changed,
                    unchanged = progress.unchanged,
                    failed = progress.failed,
                    "pages were rendered again"
                );
                self.infra
                    .control
                    .write(move |tx| store::save_progress(tx, &progress))
                    .await?;
            }
        }
        Ok(Some(MIN_PAUSE.max(stopwatch.elapsed() * PAUSE_FACTOR)))
    }

    async fn begin_rerender(
        &self,
        progress: &mut RerenderProgress,
        share: &RendererAndRuntime,
        live: &RendererAndRuntime,
    ) -> Result<(), control::Error> {
        let (now, share, live) = (self.infra.clock.now(), share.clone(), live.clone());
        progress.made_by = Some(live.as_str().to_owned());
        progress.last = None;
        let left = self
            .infra
            .control
            .read(move |c| store::count_candidates(c, now, &share, &live))
            .await?;
        progress.total = progress.pages_done() + left;
        let kept = progress.clone();
        self.infra
            .control
            .write(move |tx| store::save_progress(tx, &kept))
            .await
    }

    /// Renders one page again; returns whether its outcome is recorded.
    async fn rerender(
        &self,
        progress: RerenderProgress,
        page: RerenderCandidate,
    ) -> anyhow::Result<bool> {
        let made = match self.render_candidate(&page).await {
            Ok(made) => made,
            Err(PublishError::Capacity(_)) => return Ok(false),
            Err(error) => {
                // The log gets the kind of failure only, never the author's text.
                let why = match error {
                    PublishError::Malformed(_) => "the guest calls its source malformed",
                    PublishError::Budget(_) => "it takes more than its budget",
                    _ => "the guest or the store failed",
                };
                tracing::warn!(
                    slug = page.slug,
                    why,
                    "a page cannot be rendered again and stays as it is"
                );
                self.record_outcome(progress, page, PageRerenderOutcome::Failed)
                    .await?;
                return Ok(true);
            }
        };
        let (text, made) = made;
        let stored = match self.pipeline.store_rendered(text, &made).await {
            Err(PublishError::Capacity(_)) => return Ok(false),
            stored => stored.map_err(anyhow::Error::from)?,
        };
        fault::point("rerender.stored");
        self.replace_page(progress, page, stored).await?;
        fault::point("rerender.committed");
        Ok(true)
    }

    async fn render_candidate(
        &self,
        page: &RerenderCandidate,
    ) -> Result<(String, RenderedPage), PublishError> {
        let text = self.pipeline.source_text(page.source).await?;
        let draft = PageSource::titled(page.content_type, &page.title, &text);
        let placement = PagePlacement {
            is_private: page.is_protected,
            ..PagePlacement::public(&page.slug, page.expires_at)
        };
        let made = match page.host_label {
            Some(_) => self.pipeline.render_live(draft, placement).await?,
            None => self.pipeline.render_share(draft, placement).await?,
        };
        Ok((text, made))
    }

    /// Replaces a page by the one that was rendered again, if it is still there; the edge is purged of it.
    async fn replace_page(
        &self,
        mut progress: RerenderProgress,
        page: RerenderCandidate,
        stored: StoredPublication,
    ) -> Result<(), control::Error> {
        let (config, now) = (Arc::clone(&self.infra.config), self.infra.clock.now());
        let published = stored.published();
        let switched = self
            .infra
            .control
            .write(move |tx| {
                let outcome = if !store::replace_page(tx, &page, &published, now)? {
                    PageRerenderOutcome::Skipped
                } else if published.artifact == page.artifact {
                    PageRerenderOutcome::Unchanged
                } else {
                    announce_change(tx, &config, &page.address(), now)?;
                    PageRerenderOutcome::Changed
                };
                progress.count_outcome(page.id, outcome);
                store::save_progress(tx, &progress)
            })
            .await;
        // The rows hold the content from here on.
        drop(stored);
        switched
    }

    async fn record_outcome(
        &self,
        mut progress: RerenderProgress,
        page: RerenderCandidate,
        outcome: PageRerenderOutcome,
    ) -> Result<(), control::Error> {
        progress.count_outcome(page.id, outcome);
        self.infra
            .control
            .write(move |tx| store::save_progress(tx, &progress))
            .await
    }
}

impl RerenderProgress {
    fn count_outcome(&mut self, page: DeploymentId, outcome: PageRerenderOutcome) {
        self.last = Some(page);
        *match outcome {
            PageRerenderOutcome::Changed => &mut self.changed,
            PageRerenderOutcome::Unchanged => &mut self.unchanged,
            PageRerenderOutcome::Failed => &mut self.failed,
            PageRerenderOutcome::Skipped => &mut self.skipped,
        } += 1;
    }
}
