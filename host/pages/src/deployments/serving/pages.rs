//! Pages in memory: a cache of finished bytes, bounded, in front of the content store.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use prometheus_client::metrics::counter::Counter;
use quick_cache::sync::Cache;
use quick_cache::{Equivalent, Weighter};

use super::former_files::FormerFiles;
use super::site_files::ServedFile;
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
    /// Slug at which it answers.
    pub(super) slug: String,
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
    /// Whether files of former revisions of a site serve tabs that were opened then.
    pub(super) has_former_files: bool,
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
    pub fn site(
        deployment: &Deployment,
        (site, has_former_files): (SiteManifest, bool),
        policy: PagePolicy,
    ) -> Self {
        Self {
            site: Some(site),
            has_former_files,
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
            slug: deployment.slug.clone(),
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
            has_former_files: false,
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

/// Composes the headers of a file of a revision on the revision's own origin, where no other page is. It is gone with the revision, so
/// that nobody keeps it without asking.
pub(super) fn preview_origin_headers() -> HeaderMap {
    let cache = HeaderValue::from_static("private, max-age=0, must-revalidate");
    compose_headers(cache, None, true)
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

/// Name of something in the cache.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum CacheKey {
    /// Page at a slug.
    Page(String),
    /// Files of former revisions of the site at a slug.
    FormerFiles(String),
    /// File of sites, and whether it is served as a text.
    File(Digest, bool),
}

/// Name of something in the cache, by which it is looked for. Its hash is that of [`CacheKey`], because the kinds have the same order.
#[derive(Hash)]
enum CacheQuery<'q> {
    Page(&'q str),
    FormerFiles(&'q str),
    File(&'q Digest, bool),
}

impl Equivalent<CacheKey> for CacheQuery<'_> {
    fn equivalent(&self, key: &CacheKey) -> bool {
        match (self, key) {
            (Self::Page(slug), CacheKey::Page(of)) => *slug == of,
            (Self::FormerFiles(slug), CacheKey::FormerFiles(of)) => *slug == of,
            (Self::File(digest, is_text), CacheKey::File(of, of_text)) => {
                *digest == of && is_text == of_text
            }
            _ => false,
        }
    }
}

/// Content of the cache.
#[derive(Clone, Debug)]
pub(super) enum Cached {
    /// Page at a slug.
    Page(Arc<ServedPage>),
    /// Files of former revisions of a site.
    FormerFiles(Arc<FormerFiles>),
    /// File of sites.
    File(Arc<ServedFile>),
}

/// One of the kinds of things that the cache holds.
pub(super) trait CachedKind: Sized {
    /// Makes it what the cache holds.
    fn into_cached(this: Arc<Self>) -> Cached;
    /// Returns it, if it is what the cache holds.
    fn from_cached(cached: Cached) -> Option<Arc<Self>>;
}

macro_rules! cached_kinds {
    ($($kind:ident $value:ty;)+) => {
        $(impl CachedKind for $value {
            fn into_cached(this: Arc<Self>) -> Cached {
                Cached::$kind(this)
            }

            fn from_cached(cached: Cached) -> Option<Arc<Self>> {
                match cached {
                    Cached::$kind(value) => Some(value),
                    _ => None,
                }
            }
        })+
    };
}

cached_kinds! {
    Page ServedPage;
    FormerFiles FormerFiles;
    File ServedFile;
}

/// Cache of pages by slug and of files of sites, bounded by their weight.
#[derive(Debug)]
pub struct PageCache {
    cache: Cache<CacheKey, Cached, PageWeigher>,
    /// Views that found their page here.
    pub hits: Counter,
    /// Views that had to load it.
    pub misses: Counter,
}

#[derive(Clone, Debug)]
struct PageWeigher;

impl Weighter<CacheKey, Cached> for PageWeigher {
    fn weight(&self, _: &CacheKey, cached: &Cached) -> u64 {
        match cached {
            Cached::Page(page) => page.weight(),
            Cached::FormerFiles(files) => ENTRY_OVERHEAD_BYTES + files.memory(),
            Cached::File(file) => ENTRY_OVERHEAD_BYTES + file.memory(),
        }
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
        let found = self.cache.get(&CacheQuery::Page(slug))?;
        self.hits.inc();
        CachedKind::from_cached(found)
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
        self.load(CacheKey::Page(slug.to_owned()), load).await
    }

    /// Returns the files of former revisions of the site at a slug, if they are in memory.
    pub(super) fn former_files(&self, slug: &str) -> Option<Arc<FormerFiles>> {
        let found = self.cache.get(&CacheQuery::FormerFiles(slug))?;
        CachedKind::from_cached(found)
    }

    /// Returns a file of sites, if it is in memory and `is_new` still.
    pub(super) fn file(
        &self,
        digest: &Digest,
        is_text: bool,
        is_new: impl Fn(&ServedFile) -> bool,
    ) -> Option<Arc<ServedFile>> {
        let query = CacheQuery::File(digest, is_text);
        let file = ServedFile::from_cached(self.cache.get(&query)?)?;
        if is_new(&file) {
            return Some(file);
        }
        let is_old = |cached: &Cached| matches!(cached, Cached::File(file) if !is_new(file));
        self.cache.remove_if(&query, is_old);
        None
    }

    /// Loads what a key names, unless it is in memory; loads of one key wait for each other.
    ///
    /// # Errors
    /// The load's.
    pub(super) async fn load<T: CachedKind, E>(
        &self,
        key: CacheKey,
        load: impl Future<Output = Result<Arc<T>, E>>,
    ) -> Result<Arc<T>, E> {
        let guard = match self.cache.get_value_or_guard_async(&key).await {
            Ok(found) => match T::from_cached(found) {
                Some(found) => return Ok(found),
                // Never: the key says what it is.
                None => return load.await,
            },
            Err(guard) => guard,
        };
        let loaded = load.await?;
        // The place is gone if there was a change meanwhile.
        let _ = guard.insert(T::into_cached(Arc::clone(&loaded)));
        Ok(loaded)
    }

    /// Removes the page that a change is about, with what is kept beside it; a load of it that is under way is not kept either.
    fn follow(&self, change: &ControlChange) {
        match change {
            ControlChange::Slug(slug) => {
                self.cache.remove(&CacheQuery::Page(slug));
                self.cache.remove(&CacheQuery::FormerFiles(slug));
            }
            ControlChange::Origin(_)
            | ControlChange::BackendCreated(..)
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

    /// Counts the pages and files in the cache, and their bytes.
    pub fn size(&self) -> (usize, u64) {
        (self.cache.len(), self.cache.weight())
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher as _;

    use quick_cache::DefaultHashBuilder;
    use svc_base::clock::Clock;
    use svc_base::random::Random;

    use super::*;
    use crate::deployments::sites::SiteFile;

    #[test]
    fn the_manifest_of_a_site_weighs_what_it_takes() {
        let deployment = Deployment {
            id: DeploymentId::new(&Clock::manual(Timestamp(0)), &Random::system()).unwrap(),
            slug: "site".to_owned(),
            content_type: DeploymentType::Site,
            title: String::new(),
            one_time: false,
            password_hash: None,
            source: None,
            artifact: None,
            host_label: None,
            backend: None,
            disabled: false,
            created_at: Timestamp(0),
            expires_at: None,
            delete_token: None,
        };
        let policy = PagePolicy {
            origins: false,
            edge: false,
        };
        let weight = |files: usize| {
            let mut site = SiteManifest::default();
            for number in 0..files {
                let file = SiteFile {
                    digest: Digest::of(b"x"),
                    bytes: 1,
                    list: None,
                };
                site.files
                    .insert(format!("assets/chunk-{number:05}.js"), file);
            }
            ServedPage::site(&deployment, (site, false), policy).weight()
        };
        let file = size_of::<(String, SiteFile)>() + "assets/chunk-00000.js".len();
        assert_eq!(weight(10_000) - weight(0), 10_000 * file as u64);
    }

    #[test]
    fn a_query_has_the_hash_of_what_it_looks_for() {
        let digest = Digest::of(b"x");
        let hasher = DefaultHashBuilder::default();
        let slug = || "site".to_owned();
        for (key, query) in [
            (CacheKey::Page(slug()), CacheQuery::Page("site")),
            (
                CacheKey::FormerFiles(slug()),
                CacheQuery::FormerFiles("site"),
            ),
            (
                CacheKey::File(digest, true),
                CacheQuery::File(&digest, true),
            ),
        ] {
            assert_eq!(hasher.hash_one(&key), hasher.hash_one(&query), "{key:?}");
            assert!(query.equivalent(&key));
            assert!(!query.equivalent(&CacheKey::Page("other".to_owned())));
            assert!(!query.equivalent(&CacheKey::File(digest, false)));
        }
    }
}
