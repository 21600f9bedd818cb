//! Pipeline from a source to stored, finished bytes: render, compress, store.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use svc_base::names::{numbered_slugs, with_suffix};

use super::model::is_reserved;
pub use super::page_source::PageSource;
pub(super) use super::page_source::Placement;
use super::timings::Stage;
use super::views::Warning;
use super::{Deployments, runtime, store};
use crate::access::{ClientGone, while_client_waits};
use crate::config::CapReached;
use crate::content::{self, Artifact, Digest, Pin};
use crate::control;
use svc_base::ProcessorStopwatch;
use svc_base::random::NoRandomness;
use svc_sandbox::{
    Budget, Busy, ContentType, Foot, GuestDigest, Malformed, RenderFailure, RuntimeScript, Source,
    StopSignal,
};

/// How long a slug is that the service chooses.
const CHOSEN_LENGTH: usize = 10;
/// How long a random suffix is.
const SUFFIX_LENGTH: usize = 6;
/// How many random names are tried: only a fault could find them taken.
const RANDOM: u32 = 4;

/// The most processor time that the encodings of a page take. One of 16 MB takes less, unless it was made to take more.
const COMPRESSING: Duration = Duration::from_millis(800);

/// Why nothing was published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The source breaks the rules of its type.
    #[error("{0}")]
    Malformed(Malformed),
    /// The source needs more than a budget allows.
    #[error("the {} budget ran out", .0.as_str())]
    Budget(Budget),
    /// No renderer of the server knows the type.
    #[error("no renderer knows {0}")]
    Unsupported(ContentType),
    /// The server has no room for it.
    #[error("{0}")]
    Capacity(&'static str),
    /// A cap is reached.
    #[error(transparent)]
    Cap(#[from] CapReached),
    /// The client has hung up, and nothing was stored.
    #[error(transparent)]
    Abandoned(#[from] ClientGone),
    /// Everything else, for the log.
    #[error(transparent)]
    Internal(anyhow::Error),
}

const DISK_FULL: &str = "The server's disk is nearly full. Try again later.";
const NO_WORKER: &str = "All render workers are busy. Try again in a minute.";
const PREPARING: &str = "The server is still preparing its renderer, as it does after its first start. Try again in a minute.";
const DATABASE_BUSY: &str = "The server is busy with maintenance. Try again in a minute.";

impl PublishError {
    /// Says that the disk is nearly full.
    pub(super) fn disk_full() -> Self {
        Self::Capacity(DISK_FULL)
    }
}

impl From<RenderFailure> for PublishError {
    fn from(failure: RenderFailure) -> Self {
        match failure {
            RenderFailure::Malformed(malformed) => Self::Malformed(malformed),
            RenderFailure::Budget(budget) => Self::Budget(budget),
            RenderFailure::Unsupported(content_type) => Self::Unsupported(content_type),
            RenderFailure::Preparing => Self::Capacity(PREPARING),
            RenderFailure::Busy => Self::Capacity(NO_WORKER),
            RenderFailure::Broken(error) => Self::Internal(error),
        }
    }
}

impl From<Busy> for PublishError {
    fn from(_: Busy) -> Self {
        Self::Capacity(NO_WORKER)
    }
}

impl From<content::Error> for PublishError {
    fn from(error: content::Error) -> Self {
        match error {
            content::Error::Full => Self::Capacity(DISK_FULL),
            other => Self::Internal(other.into()),
        }
    }
}

impl From<control::Error> for PublishError {
    fn from(error: control::Error) -> Self {
        match error {
            control::Error::Full => Self::Capacity(DISK_FULL),
            control::Error::Busy => Self::Capacity(DATABASE_BUSY),
            other => Self::Internal(other.into()),
        }
    }
}

impl From<NoRandomness> for PublishError {
    fn from(error: NoRandomness) -> Self {
        Self::Internal(error.into())
    }
}

impl From<std::io::Error> for PublishError {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::StorageFull {
            return Self::Capacity(DISK_FULL);
        }
        Self::Internal(error.into())
    }
}

/// Guest and runtime that a page was made with: another of either would make another page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedBy(String);

impl RenderedBy {
    /// Names a guest, and the runtime if the page has one.
    pub fn new(guest: GuestDigest, runtime: Option<&str>) -> Self {
        Self(match runtime {
            Some(runtime) => format!("{guest}/{runtime}"),
            None => guest.to_string(),
        })
    }

    /// Returns the text that rows keep.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A finished page.
#[derive(Clone, Debug)]
pub struct RenderedPage {
    /// A complete HTML5 document.
    pub html: Bytes,
    /// Title of the page; empty where there is none.
    pub title: String,
    /// Warnings for the author.
    pub warnings: Vec<Warning>,
    /// Guest that rendered the page.
    pub by: RenderedBy,
}

/// A source and its page in all encodings, stored. While this lives the collector keeps them.
#[derive(Debug)]
pub(super) struct StoredPage {
    /// The source.
    pub(super) source: Pin,
    /// The page.
    pub(super) page: Pin,
    /// Bytes of both.
    pub(super) bytes: u64,
}

/// Slug that no other publication can take while this lives.
#[derive(Debug)]
pub struct ReservedSlug {
    slug: String,
    reserved: Arc<Mutex<HashSet<String>>>,
}

impl ReservedSlug {
    /// Returns the slug.
    pub fn as_str(&self) -> &str {
        &self.slug
    }
}

impl Drop for ReservedSlug {
    fn drop(&mut self) {
        self.reserved
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.slug);
    }
}

/// Slugs of publications under way, which no row holds yet.
pub type SlugReservations = Arc<Mutex<HashSet<String>>>;

impl Deployments {
    /// Reserves the wanted slug or, where it is taken or ours, one with a suffix; or one of our choosing.
    pub(super) async fn reserve_slug(
        &self,
        wanted: Option<&str>,
    ) -> Result<ReservedSlug, PublishError> {
        if let Some(wanted) = wanted {
            if !is_reserved(wanted)
                && let Some(reserved) = self.try_reserve(wanted.to_owned()).await?
            {
                return Ok(reserved);
            }
            for slug in numbered_slugs(wanted) {
                if let Some(reserved) = self.try_reserve(slug).await? {
                    return Ok(reserved);
                }
            }
        }
        for _ in 0..RANDOM {
            let slug = match wanted {
                Some(wanted) => with_suffix(wanted, &self.random.slug(SUFFIX_LENGTH)?),
                None => self.random.slug(CHOSEN_LENGTH)?,
            };
            if let Some(reserved) = self.try_reserve(slug).await? {
                return Ok(reserved);
            }
        }
        Err(PublishError::Internal(anyhow::anyhow!(
            "every random slug was taken"
        )))
    }

    /// Reserves exactly this slug if it is free.
    async fn try_reserve(&self, slug: String) -> Result<Option<ReservedSlug>, PublishError> {
        let reservations = Arc::clone(&self.reservations);
        let new = reservations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(slug.clone());
        if !new {
            return Ok(None);
        }
        // From here on no other publication can take it; a row may have it already.
        let reserved = ReservedSlug {
            slug: slug.clone(),
            reserved: reservations,
        };
        let taken = self.is_taken(&slug).await?;
        if !taken {
            return Ok(Some(reserved));
        }
        // Its time may be over and only the sweep has not come by yet: to its visitors the slug is free.
        self.sweep().await.map_err(PublishError::Internal)?;
        let taken = self.is_taken(&slug).await?;
        Ok((!taken).then_some(reserved))
    }

    /// Whether a row has a slug.
    async fn is_taken(&self, slug: &str) -> Result<bool, PublishError> {
        let slug = slug.to_owned();
        Ok(self
            .control
            .read(move |c| store::is_taken(c, &slug))
            .await?)
    }

    /// Renders a source to a page without a runtime: a quick share, or a preview.
    ///
    /// # Errors
    /// See [`PublishError`].
    pub async fn render(&self, draft: PageSource<'_>) -> Result<RenderedPage, PublishError> {
        self.render_with(draft, None, None).await
    }

    /// Renders a source to the page of a share.
    pub(super) async fn render_share(
        &self,
        draft: PageSource<'_>,
        placement: Placement<'_>,
    ) -> Result<RenderedPage, PublishError> {
        self.render_with(draft, Some(placement), None).await
    }

    /// Renders a source to the live page of a frontend, with its runtime.
    pub(super) async fn render_live(
        &self,
        draft: PageSource<'_>,
        placement: Placement<'_>,
    ) -> Result<RenderedPage, PublishError> {
        let src = self.runtime_path().await?;
        let runtime = RuntimeScript {
            src,
            slug: placement.slug.to_owned(),
        };
        self.render_with(draft, Some(placement), Some(runtime))
            .await
    }

    async fn render_with(
        &self,
        draft: PageSource<'_>,
        placement: Option<Placement<'_>>,
        runtime: Option<RuntimeScript>,
    ) -> Result<RenderedPage, PublishError> {
        let page_bytes = usize::try_from(self.config.limits.page_bytes).unwrap_or(usize::MAX);
        let source = Source {
            content_type: draft.content_type,
            title: Some(draft.title.to_owned()).filter(|title| !title.is_empty()),
            name: draft.name.map(str::to_owned),
            text: draft.text.to_owned(),
            runtime,
            page_bytes,
            foot: placement.and_then(|placement| self.foot(placement)),
            is_private: placement
                .is_some_and(|placement| placement.is_private || placement.one_time),
        };
        let name = source.runtime.as_ref().map(|_| runtime::newest());
        // Its future is large, and part of those of many routes.
        let rendering = Box::pin(while_client_waits(self.sandbox.render(source)));
        let rendered = self.timings.time(Stage::Render, rendering).await??;
        Ok(RenderedPage {
            html: rendered.html,
            title: rendered.title.unwrap_or_default(),
            warnings: rendered.undrawn.into_iter().map(Warning::from).collect(),
            by: RenderedBy::new(rendered.guest, name.as_deref()),
        })
    }

    /// Composes the lines below a page's content. A page that is gone once it is read has nothing to lead to.
    fn foot(&self, placement: Placement<'_>) -> Option<Foot> {
        let slug = placement.slug;
        (!placement.one_time).then(|| Foot {
            raw: Some(format!("/{slug}/raw")),
            expires_at: placement.expires_at.map(|at| at.to_string()),
            report: Some(format!("{}/_svc/report/{slug}", self.config.sites_url)),
        })
    }

    /// Compresses and hashes a page and stores it with its source; both are durable and pinned when this answers.
    pub(super) async fn store_page(
        &self,
        source: Bytes,
        page: Bytes,
    ) -> Result<StoredPage, PublishError> {
        let work = move |stop: &StopSignal| {
            let spent = ProcessorStopwatch::start();
            let goes_on = || !stop.is_set() && spent.elapsed() < COMPRESSING;
            let object = Artifact::compress(page, goes_on)?.to_object()?;
            let digests = (Digest::of(&source), Digest::of(&object));
            Ok::<_, std::io::Error>((digests, source, object))
        };
        let compressing = while_client_waits(self.sandbox.page_lane().run(work));
        let compressed = self.timings.time(Stage::Compress, compressing).await??;
        let (digests, source, object) = compressed?;
        let bytes = (source.len() + object.len()) as u64;
        let storing = async {
            tokio::try_join!(
                self.content.put_as(digests.0, source),
                self.content.put_as(digests.1, object)
            )
        };
        let (source, page) = self.timings.time(Stage::Store, storing).await?;
        Ok(StoredPage {
            source,
            page,
            bytes,
        })
    }
}
