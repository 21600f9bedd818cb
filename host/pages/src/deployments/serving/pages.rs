//! Pages in memory: a cache of finished bytes, bounded, in front of the content store.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use prometheus_client::metrics::counter::Counter;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::visits::ViewCounter;
use crate::content::{Digest, EncodedPage, Encoding};
use crate::control::{ControlChange, ControlDatabase};
use crate::deployments::model::{Deployment, DeploymentType};
use crate::deployments::sites::SiteManifest;
use crate::http::NOSNIFF;
use crate::http::document;
use svc_base::clock::Timestamp;
use svc_base::ids::{BackendId, DeploymentId};
use svc_base::memory_cache;

/// Weight of an entry beside its bytes: headers, strings, the map's own.
const ENTRY_OVERHEAD_BYTES: u64 = 2048;
/// Bytes of a typical page, for sizing the map.
const TYPICAL_PAGE_BYTES: u64 = 16 * 1024;

/// Scripts may run, in an origin of their own that holds nothing.
pub const SANDBOX_POLICY: HeaderValue = HeaderValue::from_static(
    "sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads",
);
/// Keeps private pages out of every cache.
pub const NO_STORE: HeaderValue = HeaderValue::from_static("private, no-store");
/// A revision never changes.
pub const CACHE_FOREVER: HeaderValue =
    HeaderValue::from_static("public, max-age=31536000, immutable");
/// Says that an answer is another one for a browser that opens the address.
pub const VARY_NAVIGATION: HeaderValue = HeaderValue::from_static("Sec-Fetch-Mode, Sec-Fetch-Dest");
/// Says so of a page that has several encodings, too.
const VARY_PAGE: HeaderValue =
    HeaderValue::from_static("Accept-Encoding, Sec-Fetch-Mode, Sec-Fetch-Dest");
/// Media type of pages.
pub const HTML_TYPE: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
const NOINDEX: HeaderValue = HeaderValue::from_static("noindex");

/// Guard of a page: decides which readers see it.
#[derive(Clone, Debug)]
pub enum PageProtection {
    /// Lets everybody in.
    Open,
    /// Lets readers in who know the password of this Argon2id hash.
    Password(String),
}

/// Where a page comes from, which decides how far it is trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageKind {
    /// A stranger's.
    Share,
    /// An owner's.
    Frontend {
        /// Label of the project's origin, where the page is at home.
        host_label: String,
    },
    /// Preview of a revision that may never be live; static, and in its own origin.
    Preview,
}

/// Policy of an installation for the pages that it serves.
#[derive(Clone, Copy, Debug)]
pub struct PagePolicy {
    /// Whether projects have origins of their own, so that everywhere else their pages are strangers.
    pub origins: bool,
    /// Whether an edge in front keeps pages until they are purged.
    pub edge: bool,
}

/// A page ready to be served, with what decides whether it may be.
#[derive(Debug)]
pub struct ServedPage {
    /// Identifier of the deployment.
    pub id: DeploymentId,
    /// Where it comes from.
    pub kind: PageKind,
    /// Type of the source, or that it is a site.
    pub content_type: DeploymentType,
    /// Digest of the source; a one-time share has none here.
    pub source: Option<Digest>,
    /// Digest of the page or of the site's manifest, as it is stored; a one-time share has none.
    pub artifact: Option<Digest>,
    /// The live backend that it calls.
    pub backend: Option<BackendId>,
    /// Whether an edge in front may keep it for long.
    pub at_edge: bool,
    /// Guard of the page.
    pub guard: PageProtection,
    /// Whether the page burns when read; such a page has no variants here.
    pub one_time: bool,
    /// Whether the operator has taken it down.
    pub disabled: bool,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
    /// Encodings in the server's order of preference, identity last. A site has none.
    pub variants: Vec<PageVariant>,
    /// Files of a site.
    pub site: Option<SiteManifest>,
    /// Counts its views.
    pub(super) visits: Arc<ViewCounter>,
}

/// One encoding, with the headers of its 200.
#[derive(Debug)]
pub struct PageVariant {
    /// How it is encoded.
    pub encoding: Encoding,
    /// Strong entity tag.
    pub etag: HeaderValue,
    /// Bytes of the encoding.
    pub bytes: Bytes,
    /// All headers of a whole answer.
    pub headers: HeaderMap,
    /// Headers on the page's own origin, if it has one.
    pub project_origin_headers: Option<HeaderMap>,
}

impl ServedPage {
    /// Makes a page ready. `artifact` is absent for a one-time share, whose bytes are read when it burns.
    pub fn new(
        deployment: &Deployment,
        artifact: Option<(Digest, EncodedPage)>,
        policy: PagePolicy,
    ) -> Self {
        let kind = match &deployment.host_label {
            Some(label) => PageKind::Frontend {
                host_label: label.clone(),
            },
            None => PageKind::Share,
        };
        Self::of_kind(deployment, kind, artifact, policy)
    }

    /// Makes a preview of one of a frontend's revisions.
    pub fn preview(
        deployment: &Deployment,
        artifact: (Digest, EncodedPage),
        policy: PagePolicy,
    ) -> Self {
        Self::of_kind(deployment, PageKind::Preview, Some(artifact), policy)
    }

    /// Makes a site ready.
    pub fn site(deployment: &Deployment, site: SiteManifest, policy: PagePolicy) -> Self {
        Self {
            site: Some(site),
            ..Self::new(deployment, None, policy)
        }
    }

    /// Makes a preview of one of a site's revisions.
    pub fn site_preview(deployment: &Deployment, site: SiteManifest, policy: PagePolicy) -> Self {
        Self {
            site: Some(site),
            ..Self::of_kind(deployment, PageKind::Preview, None, policy)
        }
    }

    fn of_kind(
        deployment: &Deployment,
        kind: PageKind,
        artifact: Option<(Digest, EncodedPage)>,
        policy: PagePolicy,
    ) -> Self {
        let protected = deployment.password_hash.is_some();
        let headers = trust_headers(&kind, protected, policy.origins);
        let project_headers = matches!(kind, PageKind::Frontend { .. })
            .then(|| compose_headers(document::REVALIDATE, None, false));
        let redirects_home = project_headers.is_some() && policy.origins;
        let variants = artifact.map(|(digest, artifact)| {
            let variants = artifact.variants.into_iter().map(|v| {
                let mut ready = PageVariant::new(
                    &digest,
                    v.encoding,
                    v.bytes,
                    &headers,
                    project_headers.as_ref(),
                );
                if redirects_home {
                    ready.headers.insert(header::VARY, VARY_PAGE);
                }
                ready
            });
            variants.collect()
        });
        Self {
            id: deployment.id,
            content_type: deployment.content_type,
            source: deployment.source,
            artifact: deployment.artifact,
            backend: deployment.backend,
            at_edge: policy.edge && matches!(kind, PageKind::Frontend { .. }),
            kind,
            guard: match &deployment.password_hash {
                Some(hash) => PageProtection::Password(hash.clone()),
                None => PageProtection::Open,
            },
            one_time: deployment.one_time,
            disabled: deployment.disabled,
            expires_at: deployment.expires_at,
            variants: variants.unwrap_or_default(),
            site: None,
            visits: Arc::new(ViewCounter::new(deployment.id)),
        }
    }

    /// Whether readers need a password.
    pub fn is_protected(&self) -> bool {
        matches!(self.guard, PageProtection::Password(_))
    }

    /// Whether this is the page of a frontend.
    pub fn is_frontend(&self) -> bool {
        matches!(self.kind, PageKind::Frontend { .. })
    }

    fn weight(&self) -> u64 {
        ENTRY_OVERHEAD_BYTES
            + self
                .variants
                .iter()
                .map(|v| v.bytes.len() as u64)
                .sum::<u64>()
            + self.site.as_ref().map_or(0, SiteManifest::memory)
    }
}

impl PageVariant {
    fn new(
        digest: &Digest,
        encoding: Encoding,
        bytes: Bytes,
        headers: &HeaderMap,
        project_headers: Option<&HeaderMap>,
    ) -> Self {
        let etag = document::etag(digest, encoding);
        let whole = |policy: &HeaderMap| {
            let mut headers = policy.clone();
            headers.insert(header::CONTENT_TYPE, HTML_TYPE);
            document::add_variant_headers(&mut headers, &etag, encoding);
            headers
        };
        Self {
            encoding,
            headers: whole(headers),
            project_origin_headers: project_headers.map(whole),
            etag,
            bytes,
        }
    }
}

/// Composes the headers that say how far a page is trusted: away from its own origin, if it has one.
pub fn trust_headers(kind: &PageKind, protected: bool, origins: bool) -> HeaderMap {
    match kind {
        PageKind::Share if protected => compose_headers(NO_STORE, Some(SANDBOX_POLICY), true),
        PageKind::Share => compose_headers(document::REVALIDATE, Some(SANDBOX_POLICY), true),
        PageKind::Frontend { .. } => compose_headers(
            document::REVALIDATE,
            origins.then_some(SANDBOX_POLICY),
            false,
        ),
        PageKind::Preview => compose_headers(CACHE_FOREVER, Some(SANDBOX_POLICY), true),
    }
}

/// Composes the headers that say how far a site's file is trusted, on its project's origin or elsewhere.
pub(super) fn site_headers(kind: &PageKind, on_own_origin: bool, origins: bool) -> HeaderMap {
    match on_own_origin {
        true => compose_headers(document::REVALIDATE, None, false),
        false => trust_headers(kind, false, origins),
    }
}

fn compose_headers(cache: HeaderValue, sandbox: Option<HeaderValue>, hidden: bool) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(16);
    headers.insert(header::CACHE_CONTROL, cache);
    headers.insert(NOSNIFF.0, NOSNIFF.1);
    if let Some(sandbox) = sandbox {
        headers.insert(header::CONTENT_SECURITY_POLICY, sandbox);
    }
    if hidden {
        headers.insert("x-robots-tag", NOINDEX);
    }
    headers
}

/// Returns the number of parts of the cache: each must hold the heaviest page, with encodings that are as large as it together.
/// A larger page, such as one that does not compress, is not cached; its readers share its bytes (`content/shared_objects.rs`).
fn shard_count(bytes: u64, page_bytes: u64) -> usize {
    let heaviest = page_bytes
        .saturating_mul(2)
        .saturating_add(ENTRY_OVERHEAD_BYTES);
    let fits = |shards: &usize| bytes / *shards as u64 >= heaviest;
    [4, 2].into_iter().find(fits).unwrap_or(1)
}

/// Cache of pages by slug, bounded by their weight.
#[derive(Debug)]
pub struct PageCache {
    cache: Cache<String, Arc<ServedPage>, PageWeigher>,
    /// Views that found their page here.
    pub hits: Counter,
    /// Views that had to load it.
    pub misses: Counter,
}

#[derive(Clone, Debug)]
struct PageWeigher;

impl Weighter<String, Arc<ServedPage>> for PageWeigher {
    fn weight(&self, _: &String, page: &Arc<ServedPage>) -> u64 {
        page.weight()
    }
}

impl PageCache {
    /// Makes a cache of at most `bytes`, for pages of at most `page_bytes`. It follows the changes of `control` from now on.
    pub fn following(control: &ControlDatabase, bytes: u64, page_bytes: u64) -> Arc<Self> {
        let items = usize::try_from(bytes / TYPICAL_PAGE_BYTES)
            .unwrap_or(usize::MAX)
            .clamp(16, 1 << 20);
        let shards = shard_count(bytes, page_bytes);
        let cache = memory_cache::weighted_cache(items, bytes, shards, PageWeigher);
        let pages = Arc::new(Self {
            cache,
            hits: Counter::default(),
            misses: Counter::default(),
        });
        let held = Arc::clone(&pages);
        control.on_change(move |change| held.follow(change));
        pages
    }

    /// Returns the page at a slug, if it is in memory.
    pub fn get(&self, slug: &str) -> Option<Arc<ServedPage>> {
        self.cache.get(slug).inspect(|_| {
            self.hits.inc();
        })
    }

    /// Returns the page at a slug, loaded if need be; loads of one slug wait for each other.
    ///
    /// # Errors
    /// The load's.
    pub async fn get_or_load<E>(
        &self,
        slug: &str,
        load: impl Future<Output = Result<Arc<ServedPage>, E>>,
    ) -> Result<Arc<ServedPage>, E> {
        self.misses.inc();
        self.cache.get_or_insert_async(slug, load).await
    }

    /// Removes the page that a change is about; a load of it that is under way is not kept either.
    fn follow(&self, change: &ControlChange) {
        match change {
            ControlChange::Slug(slug) => {
                self.cache.remove(slug.as_str());
            }
            ControlChange::BackendCreated(..)
            | ControlChange::BackendEnded(_)
            | ControlChange::RealtimeOff(_)
            | ControlChange::ActionsDefined(_)
            | ControlChange::ActionJudged(_)
            | ControlChange::SessionEnded(_)
            | ControlChange::SessionsEnded(_)
            | ControlChange::ContentBlocked(_)
            | ControlChange::ContentAllowed(_) => {}
        }
    }

    /// Counts the pages in the cache, and their bytes.
    pub fn size(&self) -> (usize, u64) {
        (self.cache.len(), self.cache.weight())
    }
}
