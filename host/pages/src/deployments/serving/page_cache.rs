//! Pages in memory: a cache of finished bytes, bounded, in front of the content store. Objects of large files have a part for themselves.

use std::sync::Arc;

use bytes::Bytes;
use prometheus_client::metrics::counter::Counter;
use quick_cache::sync::Cache;
use quick_cache::{Equivalent, Weighter};

use super::former_files::FormerFiles;
use super::pages::ServedPage;
use super::site_files::ServedFile;
use crate::content::{Digest, OBJECT_BYTES};
use crate::control::{ControlChange, ControlDatabase};
use svc_base::ids::{DeploymentId, RevisionId};
use svc_base::memory_cache;

/// Weight of an entry beside its bytes: headers, strings, the map's own.
pub(super) const ENTRY_OVERHEAD_BYTES: u64 = 2048;
/// Bytes of a typical page, for sizing the map.
const TYPICAL_PAGE_BYTES: u64 = 16 * 1024;

/// Returns the bytes of a cache of so many that are for objects of large files, so that whoever reads these evicts no page. Where not
/// even two would fit, all is for pages.
fn bytes_for_objects(bytes: u64) -> u64 {
    let part = bytes / 8 * 3;
    match part / 2 >= OBJECT_BYTES as u64 {
        true => part,
        false => 0,
    }
}

/// Returns about how many entries there may be of so many bytes.
fn entries_of(bytes: u64) -> usize {
    let entries = usize::try_from(bytes / TYPICAL_PAGE_BYTES);
    entries.unwrap_or(usize::MAX).clamp(16, 1 << 20)
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
    /// File of sites; one that is served as a text for the site that it is of.
    File(Digest, Option<DeploymentId>),
    /// Preview of a revision of a site with this manifest, which another draft with equal files may replace.
    Preview(RevisionId, Digest),
}

/// Name of something in the cache, by which it is looked for. Its hash is that of [`CacheKey`], because the kinds have the same order.
#[derive(Hash)]
enum CacheQuery<'q> {
    Page(&'q str),
    FormerFiles(&'q str),
    File(&'q Digest, Option<DeploymentId>),
    Preview(&'q RevisionId, &'q Digest),
}

impl Equivalent<CacheKey> for CacheQuery<'_> {
    fn equivalent(&self, key: &CacheKey) -> bool {
        match (self, key) {
            (Self::Page(slug), CacheKey::Page(of)) => *slug == of,
            (Self::FormerFiles(slug), CacheKey::FormerFiles(of)) => *slug == of,
            (Self::File(digest, text_of), CacheKey::File(of, of_text)) => {
                *digest == of && text_of == of_text
            }
            (Self::Preview(revision, manifest), CacheKey::Preview(of, of_manifest)) => {
                *revision == of && *manifest == of_manifest
            }
            _ => false,
        }
    }
}

/// Content of the cache.
#[derive(Clone, Debug)]
pub(super) enum Cached {
    /// Page at a slug, or preview of a site's revision.
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
    /// Objects of large files, which were compared with their digests.
    objects: Cache<Digest, Bytes, ObjectWeigher>,
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

#[derive(Clone, Debug)]
struct ObjectWeigher;

impl Weighter<Digest, Bytes> for ObjectWeigher {
    fn weight(&self, _: &Digest, object: &Bytes) -> u64 {
        ENTRY_OVERHEAD_BYTES + object.len() as u64
    }
}

impl PageCache {
    /// Makes a cache of at most `bytes`, for pages of at most `page_bytes`. It follows the changes of `control` from now on.
    pub fn following(control: &ControlDatabase, bytes: u64, page_bytes: u64) -> Arc<Self> {
        let of_objects = bytes_for_objects(bytes);
        let bytes = bytes - of_objects;
        let (items, shards) = (entries_of(bytes), shard_count(bytes, page_bytes));
        let cache = memory_cache::weighted_cache(items, bytes, shards, PageWeigher);
        let items = entries_of(of_objects);
        let objects = memory_cache::weighted_cache(items, of_objects, 1, ObjectWeigher);
        let pages = Arc::new(Self {
            cache,
            objects,
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

    /// Returns the preview of a revision of a site, if it is in memory.
    pub(super) fn preview(
        &self,
        revision: &RevisionId,
        manifest: &Digest,
    ) -> Option<Arc<ServedPage>> {
        let found = self.cache.get(&CacheQuery::Preview(revision, manifest))?;
        CachedKind::from_cached(found)
    }

    /// Returns a file of sites, or a text of one of them, if it is in memory and `is_new` still.
    pub(super) fn file(
        &self,
        digest: &Digest,
        text_of: Option<DeploymentId>,
        is_new: impl Fn(&ServedFile) -> bool,
    ) -> Option<Arc<ServedFile>> {
        let query = CacheQuery::File(digest, text_of);
        let file = ServedFile::from_cached(self.cache.get(&query)?)?;
        if is_new(&file) {
            return Some(file);
        }
        let is_old = |cached: &Cached| matches!(cached, Cached::File(file) if !is_new(file));
        self.cache.remove_if(&query, is_old);
        None
    }

    /// Returns an object of a large file, read if need be; reads of one object wait for each other.
    ///
    /// # Errors
    /// The read's.
    pub(super) async fn object<E>(
        &self,
        digest: Digest,
        reading: impl Future<Output = Result<Bytes, E>>,
    ) -> Result<Bytes, E> {
        self.objects.get_or_insert_async(&digest, reading).await
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
            | ControlChange::ContentAllowed(_)
            | ControlChange::DomainServed { .. }
            | ControlChange::DomainEnded(_) => {}
        }
    }

    /// Counts the pages, files and objects in the cache, and their bytes.
    pub fn size(&self) -> (usize, u64) {
        let (pages, objects) = (&self.cache, &self.objects);
        (
            pages.len() + objects.len(),
            pages.weight() + objects.weight(),
        )
    }

    /// Returns the most bytes of pages and small files.
    pub(super) fn bytes_for_pages(&self) -> u64 {
        self.cache.capacity()
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher as _;

    use quick_cache::DefaultHashBuilder;
    use svc_base::clock::{Clock, Timestamp};
    use svc_base::ids::ProjectId;
    use svc_base::random::Random;

    use super::super::pages::PagePolicy;
    use super::*;
    use crate::deployments::model::{Deployment, DeploymentType};
    use crate::deployments::sites::{SiteFile, SiteManifest};

    const POLICY: PagePolicy = PagePolicy {
        origins: false,
        edge: false,
    };

    fn deployment() -> Deployment {
        Deployment {
            id: DeploymentId::new(&Clock::manual(Timestamp(0)), &Random::system()).unwrap(),
            slug: "site".to_owned(),
            content_type: DeploymentType::Site,
            title: String::new(),
            one_time: false,
            password_hash: None,
            source: None,
            artifact: None,
            project: ProjectId::QUICK_SHARES,
            host_label: None,
            backend: None,
            disabled: false,
            created_at: Timestamp(0),
            expires_at: None,
            delete_token: None,
        }
    }

    #[test]
    fn the_manifest_of_a_site_weighs_what_it_takes() {
        let deployment = deployment();
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
            ServedPage::site(&deployment, (site, false), POLICY).weight()
        };
        let file = size_of::<(String, SiteFile)>() + "assets/chunk-00000.js".len();
        assert_eq!(weight(10_000) - weight(0), 10_000 * file as u64);
    }

    #[tokio::test]
    async fn objects_of_large_files_evict_each_other_and_no_page() {
        let directory = tempfile::tempdir().unwrap();
        let control = ControlDatabase::open(directory.path()).unwrap();
        let bytes = 16 << 20;
        let pages = PageCache::following(&control, bytes, 1 << 20);
        let site = (SiteManifest::default(), false);
        let page = Arc::new(ServedPage::site(&deployment(), site, POLICY));
        let load = async { Ok::<_, ()>(page) };
        pages.get_or_load("site", load).await.unwrap();
        let read = async |number: u8| {
            let reading = async { Ok::<_, ()>(Bytes::from(vec![number; OBJECT_BYTES])) };
            pages.object(Digest::of(&[number]), reading).await.unwrap()
        };
        for number in 0..100 {
            read(number).await;
        }
        assert!(pages.get("site").is_some());
        assert!(pages.objects.weight() <= bytes_for_objects(bytes));
        assert!(pages.size().1 <= bytes);
        let (one, other) = (read(0).await, read(0).await);
        assert_eq!(one.as_ptr(), other.as_ptr(), "it is in memory once");
    }

    #[tokio::test]
    async fn a_small_cache_is_for_pages_alone() {
        let directory = tempfile::tempdir().unwrap();
        let control = ControlDatabase::open(directory.path()).unwrap();
        for (bytes, for_pages) in [(1_000, 1_000), (4 << 20, 4 << 20), (32 << 20, 20 << 20)] {
            let pages = PageCache::following(&control, bytes, 1 << 20);
            assert_eq!(pages.bytes_for_pages(), for_pages);
            let reading = async { Ok::<_, ()>(Bytes::from_static(b"object")) };
            let object = pages.object(Digest::of(b"object"), reading).await;
            assert_eq!(object.unwrap(), "object");
        }
    }

    #[test]
    fn a_query_has_the_hash_of_what_it_looks_for() {
        let digest = Digest::of(b"x");
        let clock = Clock::manual(Timestamp(0));
        let revision = RevisionId::new(&clock, &Random::system()).unwrap();
        let id = DeploymentId::new(&clock, &Random::system()).unwrap();
        let hasher = DefaultHashBuilder::default();
        let slug = || "site".to_owned();
        for (key, query) in [
            (CacheKey::Page(slug()), CacheQuery::Page("site")),
            (
                CacheKey::FormerFiles(slug()),
                CacheQuery::FormerFiles("site"),
            ),
            (
                CacheKey::File(digest, Some(id)),
                CacheQuery::File(&digest, Some(id)),
            ),
            (
                CacheKey::Preview(revision, digest),
                CacheQuery::Preview(&revision, &digest),
            ),
        ] {
            assert_eq!(hasher.hash_one(&key), hasher.hash_one(&query), "{key:?}");
            assert!(query.equivalent(&key));
            assert!(!query.equivalent(&CacheKey::Page("other".to_owned())));
            assert!(!query.equivalent(&CacheKey::File(digest, None)));
            let other = CacheKey::Preview(revision, Digest::of(b"y"));
            assert!(!query.equivalent(&other));
        }
    }
}
