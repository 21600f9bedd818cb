//! The content store: objects named by their SHA-256, written once, durable before a row refers to them.
//!
//! Objects are kept by an [`ObjectStore`]: a directory of this machine (`local.rs`), or a remote one. A write that it has answered
//! is durable.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutPayload};

use super::claim::{ContentClaim, OWNER_FILE};
use super::local::{LocalObjectStore, OPENED_FILE};
use super::object_locks::ObjectLocks;
use super::pins::{ObjectPin, PinCounts};
use super::shared_objects::{self, WeakObjectCache};
use super::store_health::{StoreHealth, may_have_succeeded};
use super::{Digest, Error};

/// Smallest object whose digest is computed on a blocking thread, in bytes.
const LARGE_BYTES: usize = 256 << 10;

/// A handle to the content store; clones share it.
#[derive(Clone, Debug)]
pub struct ContentStore(Arc<ContentStoreState>);

#[derive(Debug)]
struct ContentStoreState {
    store: Arc<dyn ObjectStore>,
    /// Handle for deletions, without retries: the collector itself repeats them.
    deleting: Arc<dyn ObjectStore>,
    /// The local directory, if the store is one.
    local: Option<LocalObjectStore>,
    /// Claim on that directory, if it is outside of the data.
    _claim: Option<ContentClaim>,
    /// Health of a remote store.
    health: Option<StoreHealth>,
    pins: Arc<PinCounts>,
    /// Locks of writers and the collector by object, so that an existing object is always a durable one.
    write_locks: ObjectLocks,
    shared: WeakObjectCache,
    /// Shared objects that were compared with their digests.
    compared: WeakObjectCache,
    /// Locks of readers by object, so that concurrent readers load it once.
    read_locks: ObjectLocks,
}

impl ContentStoreState {
    fn new(
        store: Arc<dyn ObjectStore>,
        local: Option<LocalObjectStore>,
        claim: Option<ContentClaim>,
        health: Option<StoreHealth>,
    ) -> Self {
        Self {
            deleting: Arc::clone(&store),
            store,
            local,
            _claim: claim,
            health,
            pins: Arc::default(),
            write_locks: ObjectLocks::default(),
            shared: WeakObjectCache::default(),
            compared: WeakObjectCache::default(),
            read_locks: ObjectLocks::default(),
        }
    }
}

impl ContentStore {
    /// Opens the store in `directory`, which is made if it is missing.
    ///
    /// # Errors
    /// When the directory cannot be made or read.
    pub fn open(directory: &Path) -> anyhow::Result<Self> {
        let (store, local) = LocalObjectStore::open(directory)?;
        Ok(Self::from_parts(Arc::new(store), Some(local), None))
    }

    /// Opens the store in a claimed directory, and keeps the claim.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub(super) fn open_claimed(directory: &Path, claim: ContentClaim) -> anyhow::Result<Self> {
        let (store, local) = LocalObjectStore::open(directory)?;
        Ok(Self::from_parts(Arc::new(store), Some(local), Some(claim)))
    }

    /// Wraps another store than a local directory.
    pub fn from_store(store: Arc<dyn ObjectStore>) -> Self {
        Self::from_parts(store, None, None)
    }

    /// Wraps a remote store, which may be unavailable for a while; `deleting` sends each deletion once.
    pub fn remote(store: Arc<dyn ObjectStore>, deleting: Arc<dyn ObjectStore>) -> Self {
        Self(Arc::new(ContentStoreState {
            deleting,
            ..ContentStoreState::new(store, None, None, Some(StoreHealth::default()))
        }))
    }

    fn from_parts(
        store: Arc<dyn ObjectStore>,
        local: Option<LocalObjectStore>,
        claim: Option<ContentClaim>,
    ) -> Self {
        Self(Arc::new(ContentStoreState::new(store, local, claim, None)))
    }

    /// Stores a few `bytes` durably. An object that is there already is not written again.
    ///
    /// # Errors
    /// [`Error::Full`] when there is no room.
    pub async fn put(&self, bytes: Bytes) -> Result<ObjectPin, Error> {
        self.put_as(Digest::of(&bytes), bytes).await
    }

    /// Stores bytes of any length, whose digest the caller has computed on a thread that may block.
    ///
    /// # Errors
    /// [`Error::Full`] when there is no room.
    pub async fn put_as(&self, digest: Digest, bytes: Bytes) -> Result<ObjectPin, Error> {
        let pin = self.0.pins.pin(digest);
        let _turn = self.0.write_locks.lock(&digest).await;
        if self
            .0
            .health
            .as_ref()
            .is_some_and(|it| it.may_be_deleted(&digest))
        {
            return Err(Error::Unreachable(
                "a deletion of it may be under way".to_owned(),
            ));
        }
        // A remote object is overwritten with equal bytes: that can be retried, and needs no conditional request.
        let mode = match self.0.health {
            None => PutMode::Create,
            Some(_) => PutMode::Overwrite,
        };
        let (path, payload) = (object_path(&digest), PutPayload::from(bytes));
        match self
            .ask(self.0.store.put_opts(&path, payload, mode.into()))
            .await?
        {
            Ok(_) => Ok(pin),
            // A remote store answers so to any conflict, and the object may be missing.
            Err(object_store::Error::AlreadyExists { .. }) if self.0.health.is_none() => Ok(pin),
            Err(error) => Err(self.to_content_error(error)),
        }
    }

    /// Sends a request, unless the store is remote and has failed a moment ago.
    async fn ask<T>(
        &self,
        asking: impl Future<Output = object_store::Result<T>>,
    ) -> Result<object_store::Result<T>, Error> {
        let Some(health) = &self.0.health else {
            return Ok(asking.await);
        };
        if health.is_backing_off() {
            return Err(Error::Unreachable("it has failed a moment ago".to_owned()));
        }
        let answer = asking.await;
        health.record_answer(&answer);
        Ok(answer)
    }

    fn to_content_error(&self, error: object_store::Error) -> Error {
        match &self.0.health {
            None => error.into(),
            Some(_) => Error::Unreachable(error.to_string()),
        }
    }

    /// Reads an object, if there is one.
    ///
    /// # Errors
    /// When the store cannot be read; [`Error::Damaged`].
    pub async fn get(&self, digest: &Digest) -> Result<Option<Bytes>, Error> {
        let path = object_path(digest);
        let getting = async { self.0.store.get(&path).await?.bytes().await };
        match self.ask(getting).await? {
            Ok(object) => self.verify(*digest, object).await.map(Some),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.to_content_error(error)),
        }
    }

    /// Whether there is an object.
    ///
    /// # Errors
    /// When the store cannot be asked.
    pub async fn has(&self, digest: &Digest) -> Result<bool, Error> {
        let path = object_path(digest);
        match self.ask(self.0.store.head(&path)).await? {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(self.to_content_error(error)),
        }
    }

    /// Reads an object, if there is one, and compares it with its digest, wherever the store is: what is read in parts has no
    /// reader who would notice that one of them is another one. Concurrent readers share one copy of it.
    ///
    /// # Errors
    /// Like [`ContentStore::get`].
    pub async fn get_compared(&self, digest: &Digest) -> Result<Option<Bytes>, Error> {
        let _turn = self.0.read_locks.lock(digest).await;
        if let Some(object) = self.0.compared.get(digest) {
            return Ok(Some(object));
        }
        let object = match self.get(digest).await? {
            // A remote one was compared.
            Some(object) if self.is_remote() => object,
            Some(object) => self.compare(*digest, object).await?,
            None => return Ok(None),
        };
        Ok(Some(self.0.compared.share(*digest, object)))
    }

    /// Compares an object from a remote store with its digest.
    async fn verify(&self, digest: Digest, object: Bytes) -> Result<Bytes, Error> {
        match self.is_remote() {
            true => self.compare(digest, object).await,
            false => Ok(object),
        }
    }

    /// Compares an object with its digest.
    async fn compare(&self, digest: Digest, object: Bytes) -> Result<Bytes, Error> {
        let found = if object.len() < LARGE_BYTES {
            Digest::of(&object)
        } else {
            let bytes = object.clone();
            let taken = tokio::task::spawn_blocking(move || Digest::of(&bytes)).await;
            taken.map_err(|source| Error::Store(object_store::Error::JoinError { source }))?
        };
        match found == digest {
            true => Ok(object),
            false => Err(Error::Damaged(digest)),
        }
    }

    /// Whether the store is remote, and so may be unavailable for a while.
    pub fn is_remote(&self) -> bool {
        self.0.health.is_some()
    }

    /// Reads an object to be served: concurrent readers share one copy of it. Before a large one is read, `count` is
    /// asked with its bytes; what it returns is called with the object, to count it for as long as it is in memory.
    ///
    /// # Errors
    /// When the store cannot be read; those of `count`.
    pub async fn get_shared<C, E>(
        &self,
        digest: &Digest,
        count: impl FnOnce(usize) -> Result<C, E>,
    ) -> Result<Option<Bytes>, E>
    where
        C: FnOnce(Bytes) -> Bytes,
        E: From<Error>,
    {
        let _turn = self.0.read_locks.lock(digest).await;
        if let Some(object) = self.0.shared.get(digest) {
            return Ok(Some(object));
        }
        let path = object_path(digest);
        let found = match self.ask(self.0.store.get(&path)).await? {
            Ok(found) => found,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(self.to_content_error(error).into()),
        };
        let bytes = usize::try_from(found.meta.size).unwrap_or(usize::MAX);
        let counted = match shared_objects::is_counted(bytes) {
            true => Some(count(bytes)?),
            false => None,
        };
        let object = self.ask(found.bytes()).await?;
        let object = object.map_err(|error| self.to_content_error(error))?;
        let object = self.verify(*digest, object).await?;
        let object = match counted {
            Some(count) => count(object),
            None => object,
        };
        Ok(Some(self.0.shared.share(*digest, object)))
    }

    /// Deletes an object unless it is pinned or `referenced` finds a row that names it; returns whether it was deleted. No publish can
    /// pin the object meanwhile.
    ///
    /// # Errors
    /// The look-up's, or the store's.
    pub async fn collect<E, F>(&self, digest: &Digest, referenced: F) -> Result<bool, E>
    where
        E: From<Error>,
        F: Future<Output = Result<bool, E>>,
    {
        let _turn = self.0.write_locks.lock(digest).await;
        let pinned = || self.0.pins.is_pinned(digest);
        if pinned() || referenced.await? || pinned() {
            return Ok(false);
        }
        match self
            .ask(self.0.deleting.delete(&object_path(digest)))
            .await?
        {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(true),
            Err(error) => {
                if may_have_succeeded(&error) {
                    self.expect_deletions([*digest]);
                }
                Err(self.to_content_error(error).into())
            }
        }
    }

    /// Records deletions that were begun and may still be executed: their objects are not put for a while.
    pub fn expect_deletions(&self, digests: impl IntoIterator<Item = Digest>) {
        if let Some(health) = &self.0.health {
            health.add_pending_deletions(digests);
        }
    }

    /// Lists the digests of all objects, and the paths of foreign files.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list(&self) -> Result<(Vec<Digest>, Vec<String>), Error> {
        let (mut digests, mut foreign_paths) = (Vec::new(), Vec::new());
        let sort = |name: String, _| match digest_of_path(&name) {
            Some(digest) => digests.push(digest),
            None => foreign_paths.push(name),
        };
        self.for_each_object(sort).await?;
        Ok((digests, foreign_paths))
    }

    /// Lists the sizes of all objects, in bytes.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn sizes(&self) -> Result<HashMap<Digest, u64>, Error> {
        let mut sizes = HashMap::new();
        let size = |name: String, bytes| sizes.extend(digest_of_path(&name).map(|it| (it, bytes)));
        self.for_each_object(size).await?;
        Ok(sizes)
    }

    /// Calls `on` with the name and size of each object.
    async fn for_each_object(&self, mut on: impl FnMut(String, u64)) -> Result<(), Error> {
        let mut objects = self.0.store.list(None).boxed();
        loop {
            let next = self.ask(objects.try_next()).await?;
            let Some(object) = next.map_err(|error| self.to_content_error(error))? else {
                return Ok(());
            };
            let name = object.location.to_string();
            if name != OPENED_FILE && name != OWNER_FILE {
                on(name, object.size);
            }
        }
    }

    /// Returns the free bytes of the local disk; `u64::MAX` for other stores.
    ///
    /// # Errors
    /// The disk's.
    pub fn free_bytes(&self) -> std::io::Result<u64> {
        self.0
            .local
            .as_ref()
            .map_or(Ok(u64::MAX), LocalObjectStore::free_bytes)
    }

    /// Deletes uploads that a crash before this start left unfinished; other stores do that themselves.
    pub async fn remove_stale_uploads(&self) -> std::io::Result<()> {
        let Some(local) = self.0.local.clone() else {
            return Ok(());
        };
        let task = tokio::task::spawn_blocking(move || local.remove_stale_uploads());
        task.await.map_err(std::io::Error::other)?
    }
}

fn object_path(digest: &Digest) -> object_store::path::Path {
    let (shard, rest) = digest.storage_path();
    object_store::path::Path::from_iter([shard, rest])
}

/// Reads the digest from an object's path; `None` for foreign paths.
pub(super) fn digest_of_path(path: &str) -> Option<Digest> {
    Digest::from_hex(&path.replacen('/', "", 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens a store of each kind; returns it with its directory.
    fn stores() -> [(ContentStore, Option<tempfile::TempDir>); 2] {
        let directory = tempfile::tempdir().unwrap();
        let local = ContentStore::open(directory.path()).unwrap();
        let memory = ContentStore::from_store(Arc::new(object_store::memory::InMemory::new()));
        [(local, Some(directory)), (memory, None)]
    }

    #[tokio::test]
    async fn large_objects_are_counted_while_they_are_in_memory_and_small_ones_never() {
        let refused = |_: usize| Err::<fn(Bytes) -> Bytes, _>(Error::Full);
        for (content, _directory) in stores() {
            let large = content.put(Bytes::from(vec![7; 300 << 10])).await.unwrap();
            let small = content.put(Bytes::from_static(b"small")).await.unwrap();
            let found = content.get_shared(&large.digest(), refused).await;
            assert!(matches!(found, Err(Error::Full)));
            let found = content.get_shared(&small.digest(), refused).await;
            assert_eq!(found.unwrap().unwrap(), "small");

            let counted = Arc::new(());
            let count = |bytes: usize| {
                assert_eq!(bytes, 300 << 10);
                let held = Arc::clone(&counted);
                Ok::<_, Error>(|object: Bytes| {
                    Bytes::from_owner(CountedObject {
                        bytes: object,
                        _held: held,
                    })
                })
            };
            let first = content.get_shared(&large.digest(), count).await;
            let slice = first.unwrap().unwrap().slice(1..2);
            let second = content.get_shared(&large.digest(), refused).await;
            assert!(second.unwrap().is_some(), "it is in memory");
            assert_eq!(Arc::strong_count(&counted), 2);
            drop(slice);
            assert_eq!(Arc::strong_count(&counted), 1);
        }
    }

    /// An object with what counts it.
    struct CountedObject {
        bytes: Bytes,
        _held: Arc<()>,
    }

    impl AsRef<[u8]> for CountedObject {
        fn as_ref(&self) -> &[u8] {
            &self.bytes
        }
    }

    #[tokio::test]
    async fn an_object_is_there_once_and_stays_while_pinned_or_referenced() {
        for (content, _directory) in stores() {
            let pin = content.put(Bytes::from_static(b"hello")).await.unwrap();
            let again = content.put(Bytes::from_static(b"hello")).await.unwrap();
            let digest = pin.digest();
            assert_eq!(content.get(&digest).await.unwrap().unwrap(), "hello");

            let free = || async { Ok::<_, Error>(false) };
            let collected = content.collect(&digest, free()).await.unwrap();
            assert!(!collected, "pinned twice");
            drop(pin);
            let collected = content.collect(&digest, free()).await.unwrap();
            assert!(!collected, "pinned once");
            drop(again);
            let referenced = async { Ok::<_, Error>(true) };
            let collected = content.collect(&digest, referenced).await.unwrap();
            assert!(!collected, "referenced");
            assert!(content.collect(&digest, free()).await.unwrap());
            assert!(content.get(&digest).await.unwrap().is_none());
            let again = content.collect(&digest, free()).await.unwrap();
            assert!(again, "it is gone already");
        }
    }

    #[tokio::test]
    async fn objects_are_listed_and_served_from_any_store() {
        let uncounted = |_: usize| Ok::<fn(Bytes) -> Bytes, Error>(|object| object);
        for (content, _directory) in stores() {
            let large = Bytes::from(vec![7; 300 * 1024]);
            let mut pins = Vec::new();
            for object in [Bytes::from_static(b"one"), large.clone()] {
                pins.push(content.put(object).await.unwrap());
            }
            let (mut listed, foreign_paths) = content.list().await.unwrap();
            let mut put: Vec<Digest> = pins.iter().map(ObjectPin::digest).collect();
            listed.sort_unstable();
            put.sort_unstable();
            assert_eq!((listed, foreign_paths), (put, Vec::new()));
            let digest = Digest::of(&large);
            let served = content.get_shared(&digest, uncounted).await;
            let served = served.unwrap().unwrap();
            let shared = content.get_shared(&digest, uncounted).await;
            let shared = shared.unwrap().unwrap();
            assert_eq!(served, large);
            assert_eq!(served.as_ptr(), shared.as_ptr(), "it is in memory once");
            let none = Digest::of(b"none");
            let found = content.get_shared(&none, uncounted).await;
            assert!(found.unwrap().is_none());
            content.remove_stale_uploads().await.unwrap();
            assert!(content.get(&digest).await.unwrap().is_some());
        }
    }
}
