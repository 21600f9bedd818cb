//! Service of the pages at their slugs: the hot path, which touches neither a disk nor a guest once a page is in memory.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use prometheus_client::registry::Registry;
use ring::hmac;

use super::origins::OriginCache;
use super::page_cache::{CacheKey, PageCache};
use super::pages::{PageKind, PagePolicy, PageProtection, ServedPage};
use super::password;
use super::visits::VisitCounters;
use crate::activity::{Activity, PageActivity};
use crate::config::Config;
use crate::content::{self, ContentStore, Digest, EncodedPage, Encoding, gzip_quickly};
use crate::deployments::blocked::BlockedContent;
use crate::deployments::model::{Deployment, display_title};
use crate::deployments::sites::SiteManifest;
use crate::deployments::store;
use crate::http::byte_budget::{ByteBudget, ByteBudgetFull, BytePermit};
use crate::http::hosts::HostKind;
use crate::infra::Infra;
use crate::telemetry::PolledGauge;
use svc_base::clock::{Clock, Timestamp};
use svc_base::ids::{BackendId, DeploymentId, RevisionId};
use svc_base::names::is_slug;
use svc_base::random::RandomSourceError;
use svc_sandbox::{CallerFlow, Lane, Sandbox};

/// Smallest page of one reader that is counted, in bytes: as large as an object that is counted (`content/shared_objects.rs`).
const LARGE_PAGE_BYTES: usize = 64 << 10;

/// Why there is nothing to show.
#[derive(Debug, thiserror::Error)]
pub enum PageLookupError {
    /// Nothing lives at the slug.
    #[error("nothing is at this slug")]
    NotFound,
    /// The operator has taken it down.
    #[error("disabled by the operator")]
    Disabled,
    /// Readers hold too many large pages for another to be read from the store.
    #[error("too many large pages are being read")]
    Busy,
    /// Everything else, for the log.
    #[error(transparent)]
    Internal(#[from] anyhow::Error),
}

impl From<content::Error> for PageLookupError {
    fn from(error: content::Error) -> Self {
        Self::Internal(error.into())
    }
}

impl From<ByteBudgetFull> for PageLookupError {
    fn from(_: ByteBudgetFull) -> Self {
        Self::Busy
    }
}

/// Why a page stays locked.
#[derive(Debug, thiserror::Error)]
pub enum UnlockError {
    /// There is no page, or it has no password.
    #[error(transparent)]
    Lookup(#[from] PageLookupError),
    /// Not the password.
    #[error("wrong password")]
    Wrong,
    /// No worker was free to compare.
    #[error("no worker is free")]
    Busy,
}

/// Why a source could not be encoded.
#[derive(Debug, thiserror::Error)]
pub(super) enum SourceEncodeError {
    /// No worker was free to encode.
    #[error("no worker is free")]
    Busy,
    /// The encoder's.
    #[error(transparent)]
    Failed(#[from] std::io::Error),
}

/// Source of a page, as it is answered.
#[derive(Debug)]
pub struct RawSource {
    /// Digest of the source.
    pub(super) digest: Digest,
    /// Encoding of the bytes.
    pub(super) encoding: Encoding,
    /// Bytes of the source in that encoding.
    pub(super) bytes: Bytes,
}

/// Bytes of a stream that count until it ends; few are not counted.
#[derive(Debug)]
pub(in crate::deployments) struct StreamPermit {
    _counted: Option<BytePermit>,
}

impl StreamPermit {
    /// Has the bytes count for as long as a stream lives.
    pub(in crate::deployments) fn attach<S: Stream>(
        self,
        stream: S,
    ) -> impl Stream<Item = S::Item> + use<S> {
        stream.map(move |item| {
            let _held = &self;
            item
        })
    }
}

/// Token by which a browser proves that it knows a page's password.
#[derive(Debug)]
pub struct UnlockToken {
    /// The cookie's value.
    pub token: String,
}

/// Pages at their slugs, in memory and in the content store, with the views of each.
#[derive(Debug)]
pub struct PageService {
    pub(super) infra: Infra,
    pub(super) content: ContentStore,
    pub(super) blocked: BlockedContent,
    pub(super) sandbox: Sandbox,
    /// Signs the cookies that unlock protected pages.
    unlock_key: hmac::Key,
    pub(super) pages: Arc<PageCache>,
    pub(super) origins: Arc<OriginCache>,
    /// Bytes of large objects in memory, for the flow that read each first. Slow readers keep them after the cache forgets them.
    reading: Arc<ByteBudget>,
    pub(super) visits: VisitCounters,
    activity: Arc<Activity>,
}

impl PageService {
    /// Makes the service of a server; no page is in memory yet. It follows changes from now on, before every service that is made later.
    ///
    /// # Errors
    /// When there is no randomness.
    pub fn new(
        infra: Infra,
        (content, blocked): (ContentStore, BlockedContent),
        sandbox: Sandbox,
        (unlock_key, activity): (hmac::Key, Arc<Activity>),
    ) -> Result<Self, RandomSourceError> {
        let limits = &infra.config.limits;
        let (cache_bytes, page_bytes) = (limits.page_cache_bytes, limits.page_bytes);
        let pages = PageCache::following(&infra.control, cache_bytes, page_bytes);
        let origins = OriginCache::following(&infra.control);
        // What the cache keeps of large files is not counted: no page is ever in its place.
        let cached = pages.bytes_for_pages();
        let reading = limits.page_work_bytes.saturating_add(cached);
        let reading = limits.divide_cap("page_work_bytes", reading);
        let visits = VisitCounters::new(u64::from_le_bytes(infra.random.bytes()?));
        Ok(Self {
            infra,
            content,
            blocked,
            sandbox,
            unlock_key,
            pages,
            origins,
            reading: ByteBudget::beside_cache(reading, cached),
            visits,
            activity,
        })
    }

    /// Returns the pages in memory.
    pub fn pages(&self) -> &PageCache {
        &self.pages
    }

    /// Returns the settings.
    pub(super) fn config(&self) -> &Arc<Config> {
        &self.infra.config
    }

    /// Returns the time.
    pub(super) fn now(&self) -> Timestamp {
        self.infra.clock.now()
    }

    /// Counts a view of a page.
    pub(super) fn count_view(&self, page: &ServedPage, now: Timestamp) {
        self.visits.count(&page.visits);
        if let Some(activity) = &page.activity {
            activity.count_view(now);
        }
    }

    /// Returns the activity of all projects.
    pub fn activity(&self) -> &Activity {
        &self.activity
    }

    /// Returns the clock that requests are measured by.
    pub fn clock(&self) -> &Clock {
        &self.infra.clock
    }

    /// Returns the counters of the page at a slug for a host, if the page is in memory and belongs to a project.
    pub fn known_activity(&self, host: &HostKind, slug: &str) -> Option<Arc<PageActivity>> {
        let page = self.pages.get(slug)?;
        match self.check_on_host(host, &page) {
            Ok(()) | Err(PageLookupError::Disabled) => page.activity.clone(),
            Err(_) => None,
        }
    }

    /// Adds the numbers of pages and views to the metrics of the server.
    pub fn register(&self, registry: &mut Registry) {
        let pages = &self.pages;
        registry.register(
            "svc_page_cache_hits",
            "Pages found in memory",
            pages.hits.clone(),
        );
        registry.register(
            "svc_page_cache_misses",
            "Pages loaded from disk",
            pages.misses.clone(),
        );
        let cache = Arc::clone(pages);
        let bytes = PolledGauge::new(
            "svc_page_cache_bytes",
            "Bytes of pages in memory",
            move || cache.size().1,
        );
        registry.register_collector(Box::new(bytes));
        let cache = Arc::clone(pages);
        let entries = PolledGauge::new("svc_page_cache_pages", "Pages in memory", move || {
            cache.size().0 as u64
        });
        registry.register_collector(Box::new(entries));
        registry.register("svc_visits", "Views counted", self.visits.total.clone());
    }

    /// Returns the page at a slug, from memory or loaded into it; see [`PageService::check_available`].
    ///
    /// # Errors
    /// [`PageLookupError`].
    pub async fn page(&self, slug: &str) -> Result<Arc<ServedPage>, PageLookupError> {
        match self.pages.get(slug) {
            Some(page) => Ok(page),
            // Boxed, so that a view that finds its page does not carry the state of a load around.
            None => Box::pin(self.pages.get_or_load(slug, self.load_page(slug))).await,
        }
    }

    /// Returns the page at a slug for a host: a project's origin has its own frontends and nothing else.
    ///
    /// # Errors
    /// [`PageLookupError`].
    pub async fn page_on_host(
        &self,
        host: &HostKind,
        slug: &str,
    ) -> Result<Arc<ServedPage>, PageLookupError> {
        if !is_slug(slug) {
            return Err(PageLookupError::NotFound);
        }
        let page = self.page(slug).await?;
        self.check_on_host(host, &page)?;
        Ok(page)
    }

    /// Returns the backend of the page at a slug for a host, if the page is in memory.
    pub fn known_backend(&self, host: &HostKind, slug: &str) -> Option<BackendId> {
        let page = self.pages.get(slug)?;
        self.check_on_host(host, &page).ok()?;
        page.backend
    }

    /// Checks that a page is one of a host, and may still be shown.
    pub(super) fn check_on_host(
        &self,
        host: &HostKind,
        page: &ServedPage,
    ) -> Result<(), PageLookupError> {
        let here = match host {
            HostKind::Project(label) => is_of_project(page, label),
            HostKind::Domain(host) => is_of_project(page, &host.domain.host_label),
            HostKind::Api | HostKind::Sites | HostKind::Landing => true,
            HostKind::Preview(_) | HostKind::Console => false,
        };
        if !here {
            return Err(PageLookupError::NotFound);
        }
        self.check_available(page)
    }

    /// Whether a page is asked for away from the origin that its project has.
    pub(in crate::deployments) fn is_off_project_origin(
        &self,
        host: &HostKind,
        page: &ServedPage,
    ) -> bool {
        page.is_frontend()
            && host.project_label().is_none()
            && self.infra.config.sites_domain.is_some()
    }

    /// Checks the state of a deployment that is no page yet.
    pub(in crate::deployments) fn check_deployment_available(
        &self,
        expires_at: Option<Timestamp>,
        disabled: bool,
    ) -> Result<(), PageLookupError> {
        if expires_at.is_some_and(|at| at <= self.infra.clock.now()) {
            return Err(PageLookupError::NotFound);
        }
        if disabled {
            Err(PageLookupError::Disabled)
        } else {
            Ok(())
        }
    }

    async fn load_page(&self, slug: &str) -> Result<Arc<ServedPage>, PageLookupError> {
        // No page is in memory before it is known what may not be shown.
        self.blocked.load().await.map_err(anyhow::Error::from)?;
        let wanted = slug.to_owned();
        let found = self
            .infra
            .control
            .read(move |c| store::find_by_slug(c, &wanted))
            .await;
        let now = self.infra.clock.now();
        let deployment = found
            .map_err(anyhow::Error::from)?
            .filter(|deployment| deployment.is_live(now))
            .ok_or(PageLookupError::NotFound)?;
        let is_frontend = deployment.host_label.is_some();
        let activity = is_frontend.then(|| self.activity.page(deployment.project, slug));
        if let Some(digest) = deployment.artifact
            && deployment.content_type.is_site()
            && !deployment.disabled
        {
            let has_former_files = self.has_former_files(deployment.id).await?;
            let site = (self.load_site(digest).await?, has_former_files);
            return Ok(Arc::new(ServedPage {
                activity,
                ..ServedPage::site(&deployment, site, self.page_policy())
            }));
        }
        let artifact = match deployment.artifact {
            // A disabled page is not shown, so its bytes may be missing.
            Some(digest) if !deployment.disabled => Some(self.load_artifact(digest).await?),
            _ => None,
        };
        Ok(Arc::new(ServedPage {
            activity,
            ..ServedPage::new(&deployment, artifact, self.page_policy())
        }))
    }

    /// Loads a stored page.
    pub(in crate::deployments) async fn load_artifact(
        &self,
        digest: Digest,
    ) -> Result<(Digest, EncodedPage), PageLookupError> {
        let object = self.read_object(&digest).await?;
        let artifact = object.as_ref().and_then(EncodedPage::from_object);
        let artifact =
            artifact.ok_or_else(|| anyhow::anyhow!("artifact {digest} is missing or damaged"))?;
        Ok((digest, artifact))
    }

    /// Loads the manifest of a stored site.
    pub(super) async fn load_site(&self, digest: Digest) -> Result<SiteManifest, PageLookupError> {
        let object = self.read_object(&digest).await?;
        let read = move || SiteManifest::from_object(object.as_deref()?);
        let site = tokio::task::spawn_blocking(read).await;
        let site = site.map_err(anyhow::Error::from)?;
        Ok(site.ok_or_else(|| anyhow::anyhow!("manifest {digest} is missing or damaged"))?)
    }

    /// Returns the preview of a revision of a site, from memory or loaded into it: whoever asks has read the row of the revision.
    ///
    /// # Errors
    /// [`PageLookupError`].
    pub(in crate::deployments) async fn site_preview(
        &self,
        deployment: &Deployment,
        (revision, manifest): (RevisionId, Digest),
    ) -> Result<Arc<ServedPage>, PageLookupError> {
        if let Some(page) = self.pages.preview(&revision, &manifest) {
            return Ok(page);
        }
        let load = async {
            let site = self.load_site(manifest).await?;
            let page = ServedPage::site_preview(deployment, site, self.page_policy());
            Ok::<_, PageLookupError>(Arc::new(page))
        };
        let key = CacheKey::Preview(revision, manifest);
        Box::pin(self.pages.load(key, load)).await
    }

    /// Whether a slug is that of a site, whether or not it may be shown.
    pub(super) async fn is_site(&self, slug: &str) -> bool {
        let page = self.page(slug).await;
        page.is_ok_and(|page| page.content_type.is_site())
    }

    /// Counts the part of a stream that is in memory, for the client, until the stream ends.
    ///
    /// # Errors
    /// `Busy` when readers hold too much.
    pub(in crate::deployments) fn hold_stream(
        &self,
        bytes: usize,
    ) -> Result<StreamPermit, PageLookupError> {
        Ok(StreamPermit {
            _counted: self.hold_page(bytes)?,
        })
    }

    /// Reads an object to be served. A large one that is not in memory yet counts for the client until its last reader is done.
    pub(super) async fn read_object(
        &self,
        digest: &Digest,
    ) -> Result<Option<Bytes>, PageLookupError> {
        let flow = CallerFlow::current();
        let count = |bytes: usize| {
            let permit = self.reading.try_take(flow, bytes)?;
            Ok::<_, PageLookupError>(|object: Bytes| permit.attach(object))
        };
        self.content.get_shared(digest, count).await
    }

    /// Counts a page that has one reader, for the client, until the permit is dropped; `None` for a small one, which is not counted.
    pub(in crate::deployments) fn hold_page(
        &self,
        bytes: usize,
    ) -> Result<Option<BytePermit>, ByteBudgetFull> {
        if bytes < LARGE_PAGE_BYTES {
            return Ok(None);
        }
        let permit = self.reading.try_take(CallerFlow::current(), bytes)?;
        Ok(Some(permit))
    }

    /// Returns the title of a page that answers.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn title(&self, id: DeploymentId) -> Result<String, PageLookupError> {
        let found = self
            .infra
            .control
            .read(move |c| store::find_by_id(c, &id))
            .await;
        let found = found.map_err(anyhow::Error::from)?;
        found
            .map(|deployment| display_title(&deployment.title))
            .ok_or(PageLookupError::NotFound)
    }

    /// Returns the policy of this installation for its pages.
    pub fn page_policy(&self) -> PagePolicy {
        PagePolicy {
            origins: self.infra.config.sites_domain.is_some(),
            edge: self.infra.config.edge.is_some(),
        }
    }

    /// Whether a deployment is there, answering or not.
    pub async fn exists(&self, id: DeploymentId) -> anyhow::Result<bool> {
        let found = self.infra.control.read(move |c| store::exists(c, &id));
        Ok(found.await?)
    }

    /// Whether a request with these tokens may see a page.
    pub fn is_unlocked<'t>(
        &self,
        page: &ServedPage,
        mut tokens: impl Iterator<Item = &'t [u8]>,
    ) -> bool {
        match &page.guard {
            PageProtection::Open => true,
            PageProtection::Password(hash) => tokens.any(|token| {
                password::is_valid_token(
                    &self.unlock_key,
                    &page.id,
                    hash,
                    self.infra.clock.now(),
                    token,
                )
            }),
        }
    }

    /// Compares a password with a page's.
    ///
    /// # Errors
    /// [`UnlockError`].
    pub async fn unlock(
        &self,
        page: &ServedPage,
        password: String,
    ) -> Result<UnlockToken, UnlockError> {
        let PageProtection::Password(hash) = &page.guard else {
            return Err(PageLookupError::NotFound.into());
        };
        if !verify_on_lane(self.sandbox.check_lane(), password, hash.clone()).await? {
            return Err(UnlockError::Wrong);
        }
        let until = self
            .infra
            .clock
            .now()
            .plus_seconds(password::UNLOCKED_SECONDS);
        let token = password::unlock_token(&self.unlock_key, &page.id, hash, until);
        Ok(UnlockToken { token })
    }

    /// Returns the source of a page; a one-time share has none to show.
    ///
    /// # Errors
    /// [`PageLookupError`].
    pub async fn raw_source(&self, page: &ServedPage) -> Result<RawSource, PageLookupError> {
        let digest = page.source.ok_or(PageLookupError::NotFound)?;
        let bytes = self.read_object(&digest).await?;
        let bytes = bytes.ok_or_else(|| anyhow::anyhow!("source {digest} is missing"))?;
        Ok(RawSource {
            digest,
            encoding: Encoding::Identity,
            bytes,
        })
    }

    /// Encodes a source for one answer, by a worker. Sources are kept as they were published and asked for rarely, so their
    /// encodings are not kept. Each reader has a copy of its own, which counts; without room it gets the source as it is, which
    /// readers share.
    ///
    /// # Errors
    /// [`SourceEncodeError`].
    pub(super) async fn encode_source(
        &self,
        source: RawSource,
        encoding: Encoding,
    ) -> Result<RawSource, SourceEncodeError> {
        if encoding == Encoding::Identity {
            return Ok(source);
        }
        self.gzip_source(source, gzip_quickly).await
    }

    /// Compresses a source as [`Self::encode_source`] does, by a function.
    ///
    /// # Errors
    /// [`SourceEncodeError`].
    pub(super) async fn gzip_source(
        &self,
        source: RawSource,
        gzip: fn(&[u8]) -> std::io::Result<Bytes>,
    ) -> Result<RawSource, SourceEncodeError> {
        let original = source.bytes.clone();
        let encoding_job = self.sandbox.page_lane().run(move |_| gzip(&original));
        let bytes = encoding_job.await.map_err(|_| SourceEncodeError::Busy)??;
        let counted = self.reading.try_take(CallerFlow::current(), bytes.len());
        Ok(match counted {
            Ok(permit) => RawSource {
                digest: source.digest,
                encoding: Encoding::Gzip,
                bytes: permit.attach(bytes),
            },
            Err(ByteBudgetFull) => source,
        })
    }
}

async fn verify_on_lane(lane: &Lane, password: String, hash: String) -> Result<bool, UnlockError> {
    lane.run(move |_| password::verify_password(&password, &hash))
        .await
        .map_err(|_| UnlockError::Busy)
}

/// Whether a page is a frontend of the project with a label.
fn is_of_project(page: &ServedPage, label: &str) -> bool {
    matches!(&page.kind, PageKind::Frontend { host_label } if host_label == label)
}
