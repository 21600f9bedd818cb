//! Pipeline from a source to stored, finished bytes, and to what an address answers: render, compress, store, publish.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use prometheus_client::registry::Registry;

use super::PublishError;
use super::page_source::{PagePlacement, PageSource};
use super::runtime::{self, RuntimeScripts};
use super::timings::{PublicationStage, StageTimings};
use crate::access::run_while_client_waits;
use crate::content::{ContentStore, Digest, EncodedPage, ObjectPin};
use crate::control::{self, Tx};
use crate::deployments::address::{PageAddress, announce_change};
use crate::deployments::blocked::{BlockedContent, ContentBlocked};
use crate::deployments::sites::{SiteManifest, SiteSize};
use crate::deployments::views::Warning;
use crate::http::byte_budget::{ByteBudget, BytePermit};
use crate::infra::Infra;
use svc_base::ThreadCpuStopwatch;
use svc_base::clock::Timestamp;
use svc_sandbox::{
    BudgetKind, CallerFlow, GuestDigest, JobCancellation, LaneBusy, PageFooter, RenderSource,
    RuleFiles, RuntimeScript, Sandbox, SiteRules,
};

/// The most processor time that the encodings of a page take. One of 16 MB takes less, unless it was made to take more.
const COMPRESSION_BUDGET: Duration = Duration::from_millis(800);

/// Guest and runtime that a page was made with: another of either would make another page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RendererAndRuntime(String);

impl RendererAndRuntime {
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
    /// A complete HTML5 document. With its source it counts against `page_work_bytes` for as long as it is in memory.
    pub html: Bytes,
    /// Title of the page; empty where there is none.
    pub title: String,
    /// Warnings for the author.
    pub warnings: Vec<Warning>,
    /// Guest that rendered the page.
    pub by: RendererAndRuntime,
}

/// A source and its page in all encodings, stored. While this lives the collector keeps them.
#[derive(Debug)]
pub(in crate::deployments) struct StoredSourceAndPage {
    /// The source.
    pub(in crate::deployments) source: ObjectPin,
    /// The page.
    pub(in crate::deployments) page: ObjectPin,
    /// Bytes of both.
    pub(in crate::deployments) bytes: u64,
}

/// A source and its page, stored, which nothing answers yet. While this lives the collector keeps them.
#[derive(Debug)]
pub(in crate::deployments) struct StoredPublication {
    content: StoredSourceAndPage,
    by: Option<RendererAndRuntime>,
    site: Option<SiteSize>,
}

/// Digests that the rows of a publication name.
#[derive(Clone, Debug)]
pub(in crate::deployments) struct PublishedDigests {
    /// Digest of the source.
    pub(in crate::deployments) source: Digest,
    /// Digest of the page, or of a site's manifest.
    pub(in crate::deployments) artifact: Digest,
    /// The guest and the runtime that made the page; nobody makes a site.
    pub(in crate::deployments) by: Option<RendererAndRuntime>,
    /// Files of a site.
    pub(in crate::deployments) site: Option<SiteSize>,
    /// Bytes of the source and of the page in all encodings.
    pub(in crate::deployments) bytes: u64,
}

impl PublishedDigests {
    /// Returns the bytes as a row has them.
    pub(in crate::deployments) fn bytes_stored(&self) -> i64 {
        i64::try_from(self.bytes).unwrap_or(i64::MAX)
    }

    /// Returns the number of a site's files, as a row has it.
    pub(in crate::deployments) fn site_files(&self) -> Option<i64> {
        let site = self.site?;
        Some(i64::try_from(site.files).unwrap_or(i64::MAX))
    }

    /// Returns the bytes of a site's files, as a row has them.
    pub(in crate::deployments) fn site_bytes(&self) -> Option<i64> {
        let site = self.site?;
        Some(i64::try_from(site.bytes).unwrap_or(i64::MAX))
    }

    /// Returns who made the page, as a row has it.
    pub(in crate::deployments) fn made_by(&self) -> Option<&str> {
        self.by.as_ref().map(RendererAndRuntime::as_str)
    }
}

impl StoredPublication {
    /// Counts bytes of something else that is stored for the publication.
    pub(in crate::deployments) fn with_bytes(mut self, more: u64) -> Self {
        self.content.bytes = self.content.bytes.saturating_add(more);
        self
    }

    /// Returns the digests that rows may name for as long as this lives.
    pub(in crate::deployments) fn published(&self) -> PublishedDigests {
        PublishedDigests {
            source: self.content.source.digest(),
            artifact: self.content.page.digest(),
            by: self.by.clone(),
            site: self.site,
            bytes: self.content.bytes,
        }
    }
}

/// Budget that a page is rendered with.
#[derive(Clone, Copy, Debug)]
enum PageBudget {
    /// The whole one, of a page that is stored.
    Whole,
    /// The smaller one of a page that is stored nowhere.
    Preview,
}

/// Pipeline from a source to stored bytes, and to what an address answers.
#[derive(Debug)]
pub struct PublicationPipeline {
    infra: Infra,
    content: ContentStore,
    sandbox: Sandbox,
    runtimes: Arc<RuntimeScripts>,
    blocked: BlockedContent,
    /// Bytes of sources and pages that are worked on.
    memory: Arc<ByteBudget>,
    timings: StageTimings,
}

impl PublicationPipeline {
    /// Makes the pipeline of a server.
    pub fn new(
        infra: Infra,
        content: ContentStore,
        sandbox: Sandbox,
        runtimes: Arc<RuntimeScripts>,
        blocked: BlockedContent,
    ) -> Self {
        let limits = &infra.config.limits;
        let memory = limits.divide_cap("page_work_bytes", limits.page_work_bytes);
        Self {
            memory: ByteBudget::new(memory),
            infra,
            content,
            sandbox,
            runtimes,
            blocked,
            timings: StageTimings::default(),
        }
    }

    /// Returns the content that the operator has blocked.
    pub(in crate::deployments) fn blocked(&self) -> &BlockedContent {
        &self.blocked
    }

    /// Adds the times of the stages to the metrics of the server.
    pub fn register(&self, registry: &mut Registry) {
        self.timings.register(registry);
    }

    /// Counts bytes against `page_work_bytes`, for the caller's flow, until the permit is dropped.
    ///
    /// # Errors
    /// [`PublishError::Capacity`] if there is no room for them in time.
    pub(in crate::deployments) async fn reserve(
        &self,
        bytes: usize,
    ) -> Result<BytePermit, PublishError> {
        Ok(self.memory.take(CallerFlow::current(), bytes).await?)
    }

    /// Counts an answer to a preview against `page_work_bytes` until it is sent.
    ///
    /// # Errors
    /// [`PublishError::Budget`] if it is larger than a page may be; [`PublishError::Capacity`] if too much waits for readers already.
    pub async fn hold_preview(&self, answer: Vec<u8>) -> Result<Bytes, PublishError> {
        // As JSON a page may be several times as large, and one answer of any size fits.
        if answer.len() as u64 > self.infra.config.limits.page_bytes {
            return Err(PublishError::Budget(BudgetKind::PageBytes));
        }
        let flow = CallerFlow::current().preview();
        let permit = self.memory.take(flow, answer.len()).await?;
        Ok(permit.attach(Bytes::from(answer)))
    }

    /// Renders a source to a page without a runtime and without an address: the preview of a revision.
    ///
    /// # Errors
    /// See [`PublishError`].
    pub async fn render(&self, source: PageSource<'_>) -> Result<RenderedPage, PublishError> {
        self.render_with(source, None, None, PageBudget::Whole)
            .await
    }

    /// Renders a source to a page that is stored nowhere: it comes after all others, and has a smaller budget.
    ///
    /// # Errors
    /// See [`PublishError`].
    pub async fn render_unstored(
        &self,
        source: PageSource<'_>,
    ) -> Result<RenderedPage, PublishError> {
        let rendering = self.render_with(source, None, None, PageBudget::Preview);
        CallerFlow::current().preview().scope(rendering).await
    }

    /// Renders a source to the page of a share.
    pub(in crate::deployments) async fn render_share(
        &self,
        source: PageSource<'_>,
        placement: PagePlacement<'_>,
    ) -> Result<RenderedPage, PublishError> {
        self.render_with(source, Some(placement), None, PageBudget::Whole)
            .await
    }

    /// Renders a source to the live page of a frontend, with its runtime.
    pub(in crate::deployments) async fn render_live(
        &self,
        source: PageSource<'_>,
        placement: PagePlacement<'_>,
    ) -> Result<RenderedPage, PublishError> {
        let src = self.runtimes.ensure_newest_stored().await?;
        let runtime = RuntimeScript {
            src,
            slug: placement.slug.to_owned(),
        };
        self.render_with(source, Some(placement), Some(runtime), PageBudget::Whole)
            .await
    }

    async fn render_with(
        &self,
        source: PageSource<'_>,
        placement: Option<PagePlacement<'_>>,
        runtime: Option<RuntimeScript>,
        budget: PageBudget,
    ) -> Result<RenderedPage, PublishError> {
        if let Some(digest) = self.blocked.find_text(source.text).await? {
            return Err(ContentBlocked { digest, path: None }.into());
        }
        let source_bytes = source.text.len();
        let permit = Mutex::new(self.reserve(source_bytes).await?);
        // The page is in memory while its drawings wait for threads.
        let reserve = |page_bytes: usize| {
            let mut permit = permit.lock().unwrap_or_else(PoisonError::into_inner);
            let resized = permit.resize(source_bytes + page_bytes);
            resized.map_err(|_| LaneBusy)
        };
        let page_bytes = usize::try_from(self.infra.config.limits.page_bytes).unwrap_or(usize::MAX);
        let source = RenderSource {
            content_type: source.content_type,
            title: Some(source.title.to_owned()).filter(|title| !title.is_empty()),
            name: source.name.map(str::to_owned),
            text: source.text.to_owned(),
            runtime,
            page_bytes,
            foot: placement.and_then(|placement| self.page_footer(placement)),
            is_private: placement
                .is_some_and(|placement| placement.is_private || placement.one_time),
        };
        let name = source.runtime.as_ref().map(|_| runtime::newest_name());
        let rendering = async {
            match budget {
                PageBudget::Whole => self.sandbox.render_reserved(source, &reserve).await,
                PageBudget::Preview => self.sandbox.render_preview(source, &reserve).await,
            }
        };
        // Boxed, because this future is large and is part of many routes' futures.
        let rendering = Box::pin(run_while_client_waits(rendering));
        let rendered = self
            .timings
            .time(PublicationStage::Render, rendering)
            .await??;
        let mut permit = permit.into_inner().unwrap_or_else(PoisonError::into_inner);
        permit
            .resize_or_wait(source_bytes + rendered.html.len())
            .await?;
        Ok(RenderedPage {
            html: permit.attach(rendered.html),
            title: rendered.title.unwrap_or_default(),
            warnings: rendered.undrawn.into_iter().map(Warning::from).collect(),
            by: RendererAndRuntime::new(rendered.guest, name.as_deref()),
        })
    }

    /// Composes the lines below a page's content. A page that is gone once it is read has nothing to lead to.
    fn page_footer(&self, placement: PagePlacement<'_>) -> Option<PageFooter> {
        let slug = placement.slug;
        (!placement.one_time).then(|| PageFooter {
            raw: Some(format!("/{slug}/raw")),
            expires_at: placement.expires_at.map(|at| at.to_string()),
            report: Some(format!(
                "{}/_svc/report/{slug}",
                self.infra.config.sites_url
            )),
        })
    }

    /// Compresses and hashes a page and stores it with its source; both are durable and pinned when this answers.
    pub(in crate::deployments) async fn store_page(
        &self,
        source: Bytes,
        page: Bytes,
    ) -> Result<StoredSourceAndPage, PublishError> {
        // The bytes of the page count until it is stored, too: its encodings are in memory until then.
        let counted = page.clone();
        let work = move |stop: &JobCancellation| {
            let spent = ThreadCpuStopwatch::start();
            let goes_on = || !stop.is_cancelled() && spent.elapsed() < COMPRESSION_BUDGET;
            let object = EncodedPage::compress(page, goes_on)?.to_object()?;
            let digests = (Digest::of(&source), Digest::of(&object));
            Ok::<_, std::io::Error>((digests, source, object))
        };
        let compressing = run_while_client_waits(self.sandbox.page_lane().run(work));
        let compressed = self
            .timings
            .time(PublicationStage::Compress, compressing)
            .await??;
        let (digests, source, object) = compressed?;
        self.blocked.check([&digests.0, &digests.1])?;
        let bytes = (source.len() + object.len()) as u64;
        let storing = async {
            tokio::try_join!(
                self.content.put_as(digests.0, source),
                self.content.put_as(digests.1, object)
            )
        };
        let (source, page) = self.timings.time(PublicationStage::Store, storing).await?;
        drop(counted);
        Ok(StoredSourceAndPage {
            source,
            page,
            bytes,
        })
    }

    /// Renders the live page of a frontend, which everybody may read, and stores it with its source.
    ///
    /// # Errors
    /// [`PublishError`]; nothing refers to what was stored by then, and the collector removes it.
    pub(in crate::deployments) async fn render_and_store_live(
        &self,
        source: PageSource<'_>,
        slug: &str,
        expires_at: Option<Timestamp>,
    ) -> Result<(StoredPublication, RenderedPage), PublishError> {
        let placement = PagePlacement::public(slug, expires_at);
        let page = self.render_live(source, placement).await?;
        let stored = self.store_rendered(source.text.to_owned(), &page).await?;
        Ok((stored, page))
    }

    /// Stores a source with the page that was rendered from it.
    ///
    /// # Errors
    /// [`PublishError`]; nothing refers to what was stored by then, and the collector removes it.
    pub(in crate::deployments) async fn store_rendered(
        &self,
        source: String,
        page: &RenderedPage,
    ) -> Result<StoredPublication, PublishError> {
        let content = self
            .store_page(Bytes::from(source), page.html.clone())
            .await?;
        Ok(StoredPublication {
            content,
            by: Some(page.by.clone()),
            site: None,
        })
    }

    /// Has a guest judge the rules of a site.
    ///
    /// # Errors
    /// [`PublishError::Rules`] for what the author can repair.
    pub(in crate::deployments) async fn judge_rules(
        &self,
        files: RuleFiles,
    ) -> Result<SiteRules, PublishError> {
        let length = |file: &Option<Bytes>| file.as_ref().map_or(0, Bytes::len);
        let bytes = length(&files.redirects) + length(&files.headers);
        let counted = self.reserve(bytes).await?;
        let judging = Box::pin(run_while_client_waits(self.sandbox.judge_rules(files)));
        let judged = judging.await?;
        drop(counted);
        Ok(judged?)
    }

    /// Stores the two forms of a site's manifest; both are durable and pinned when this answers. `announce` is told their digests before
    /// the first of them is stored.
    ///
    /// # Errors
    /// [`PublishError`]; nothing refers to what was stored by then: the caller marks it.
    pub(in crate::deployments) async fn store_site(
        &self,
        site: SiteManifest,
        announce: impl FnOnce([Digest; 2]),
    ) -> Result<StoredPublication, PublishError> {
        // Files of the site may ask for the runtime.
        self.runtimes.ensure_newest_stored().await?;
        let size = site.size();
        let writing = self.sandbox.page_lane().run(move |_| {
            let forms = (
                Bytes::from(site.to_canonical()?),
                Bytes::from(site.to_object()?),
            );
            let digests = (Digest::of(&forms.0), Digest::of(&forms.1));
            Ok::<_, std::io::Error>((digests, forms))
        });
        let (digests, (canonical, object)) = writing.await??;
        self.blocked.load().await?;
        self.blocked.check([&digests.0, &digests.1])?;
        let bytes = (canonical.len() + object.len()) as u64;
        announce([digests.0, digests.1]);
        let storing = async {
            tokio::try_join!(
                self.content.put_as(digests.0, canonical),
                self.content.put_as(digests.1, object)
            )
        };
        let (source, page) = self.timings.time(PublicationStage::Store, storing).await?;
        Ok(StoredPublication {
            content: StoredSourceAndPage {
                source,
                page,
                bytes,
            },
            by: None,
            site: Some(size),
        })
    }

    /// Compresses a text file of a site, and stores its encodings beside it; they are durable and pinned when this answers. Returns also
    /// the bytes that they take.
    ///
    /// # Errors
    /// [`PublishError`].
    pub(in crate::deployments) async fn store_encodings(
        &self,
        text: Bytes,
    ) -> Result<(ObjectPin, u64), PublishError> {
        let compressing = self.sandbox.page_lane().run(move |stop| {
            let spent = ThreadCpuStopwatch::start();
            let goes_on = || !stop.is_cancelled() && spent.elapsed() < COMPRESSION_BUDGET;
            let encoded = EncodedPage::compress(text, goes_on)?;
            let object = encoded.without_identity().to_object()?;
            Ok::<_, std::io::Error>((Digest::of(&object), object))
        });
        let (digest, object) = compressing.await??;
        let bytes = object.len() as u64;
        Ok((self.content.put_as(digest, object).await?, bytes))
    }

    /// Makes a stored page what an address answers: the caller's rows and the purge in one transaction, then memory.
    ///
    /// # Errors
    /// The change's; nothing is changed then.
    pub(in crate::deployments) async fn publish<T, E>(
        &self,
        stored: StoredPublication,
        address: PageAddress,
        now: Timestamp,
        change: impl FnOnce(&Tx<'_>, &PublishedDigests) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<control::Error> + Send + 'static,
    {
        let (config, published) = (Arc::clone(&self.infra.config), stored.published());
        let committed = self
            .commit(move |tx| {
                let changed = change(tx, &published)?;
                announce_change(tx, &config, &address, now)?;
                Ok(changed)
            })
            .await;
        // The rows hold the content from here on.
        drop(stored);
        committed
    }

    /// Runs the transaction of a publication, and notes how long it took.
    pub(in crate::deployments) async fn commit<T, E>(
        &self,
        change: impl FnOnce(&Tx<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<control::Error> + Send + 'static,
    {
        let committing = self.infra.control.write(change);
        self.timings
            .time(PublicationStage::Commit, committing)
            .await
    }

    /// Returns the text of a stored source, for a publication.
    ///
    /// # Errors
    /// `Blocked`; else ours: it should be there.
    pub(in crate::deployments) async fn source_text(
        &self,
        digest: Digest,
    ) -> Result<String, PublishError> {
        self.blocked.load().await?;
        self.blocked.check([&digest])?;
        let bytes = self.content.get(&digest).await?;
        let text = bytes.and_then(|bytes| String::from_utf8(bytes.into()).ok());
        text.ok_or_else(|| PublishError::Internal(anyhow::anyhow!("source {digest} is missing")))
    }
}
