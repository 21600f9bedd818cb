//! A directory that nodes share, as a store of objects. It may be a mount that hangs, so each request has a time limit, and few are
//! under way at once.
//!
//! A mount may also be gone, and the empty directory below it be there in its place. Bytes that were written there would be lost to the other
//! nodes, and the ledger forgets what it takes for stored: each request looks for an object that the right directory has, before and after.
//!
//! A thread in a system call of such a mount cannot be ended. It keeps its turn until it comes back, so that all other work keeps its
//! threads.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::mem;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::{self, BoxFuture};
use futures_util::stream::{self, BoxStream};
use object_store::path::Path;
use object_store::{
    Attributes, CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult,
    MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMultipartOptions, PutOptions,
    PutPayload, PutResult, Result, UploadPart,
};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

use svc_base::Stopwatch;
use svc_base::sync::lock;

/// Most requests at once, those included that nobody waits for any more.
const MAX_CONCURRENT: usize = 32;
/// Time limit of a request; a write has a second more for each `BYTES_PER_SECOND`.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(8);
const BYTES_PER_SECOND: usize = 4 << 20;
/// Objects of a listing that are read ahead of its reader.
const LISTED_AHEAD: usize = 1024;
/// Name of the store in errors.
const STORE: &str = "directory";

/// A store whose requests are bounded in time and in number. Clones share the bounds.
#[derive(Clone, Debug)]
pub(super) struct BoundedStore {
    inner: Arc<dyn ObjectStore>,
    turns: Arc<Semaphore>,
    timeout: Duration,
    /// Objects whose deletion is under way, maybe without anybody who waits for it.
    deleting: Arc<Mutex<HashSet<Path>>>,
    required: RequiredObject,
}

/// Object without which the directory is not the right one, once that is known.
pub(super) type RequiredObject = Arc<OnceLock<Path>>;

impl BoundedStore {
    /// Wraps a directory.
    pub(super) fn new(inner: Arc<dyn ObjectStore>) -> Self {
        Self::with_bounds(inner, MAX_CONCURRENT, REQUEST_TIMEOUT)
    }

    fn with_bounds(inner: Arc<dyn ObjectStore>, most: usize, timeout: Duration) -> Self {
        Self {
            inner,
            turns: Arc::new(Semaphore::new(most)),
            timeout,
            deleting: Arc::default(),
            required: Arc::default(),
        }
    }

    /// Returns the object that the directory must have, to be set.
    pub(super) fn required(&self) -> RequiredObject {
        Arc::clone(&self.required)
    }

    /// Refuses a directory without the object that it must have.
    async fn check_mounted(&self) -> Result<()> {
        let Some(required) = self.required.get() else {
            return Ok(());
        };
        match self.inner.head(required).await {
            Ok(_) => Ok(()),
            Err(Error::NotFound { .. }) => Err(failure(
                io::ErrorKind::NotConnected,
                "it is not the directory of this installation: is it mounted?",
            )),
            Err(error) => Err(error),
        }
    }

    /// Time limit of a request that begins now and writes so many bytes.
    fn limit(&self, written: usize) -> TimeLimit {
        let seconds = Duration::from_secs((written / BYTES_PER_SECOND) as u64);
        TimeLimit {
            begun: Stopwatch::start(),
            most: self.timeout + seconds,
        }
    }

    /// Runs the request that `begin` makes once it has a turn. It goes on where nobody waits for it any more: what it does cannot be
    /// taken back.
    async fn run<T, F>(
        &self,
        within: Duration,
        begin: impl FnOnce() -> Result<F> + Send,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let (turns, me) = (Arc::clone(&self.turns), self.clone());
        let answer = async {
            let turn = turns
                .acquire_owned()
                .await
                .map_err(|error| Error::Generic {
                    store: STORE,
                    source: Box::new(error),
                })?;
            let request = begin()?;
            let running = tokio::spawn(async move {
                let answer = async {
                    me.check_mounted().await?;
                    let answer = request.await?;
                    // Bytes that were written after the mount had gone lie below it, and do not count.
                    me.check_mounted().await?;
                    Ok::<T, Error>(answer)
                };
                let answer = answer.await;
                drop(turn);
                answer
            });
            running.await?
        };
        let answer = timeout(within, answer).await;
        answer.unwrap_or_else(|_| Err(timed_out()))
    }

    async fn write(
        &self,
        location: Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let (inner, deleting) = (Arc::clone(&self.inner), Arc::clone(&self.deleting));
        let limit = self.limit(payload.content_length());
        let begin = move || {
            // The deletion may come after the write.
            if lock(&deleting).contains(&location) {
                return Err(is_being_deleted());
            }
            Ok(async move { inner.put_opts(&location, payload, options).await })
        };
        self.run(limit.left(), begin).await
    }

    /// Opens an object, whose bytes are read when they are asked for: within the same time limit.
    async fn read(&self, location: Path, options: GetOptions) -> Result<GetResult> {
        let (inner, is_head) = (Arc::clone(&self.inner), options.head);
        let limit = self.limit(0);
        let begin = move || Ok(async move { inner.get_opts(&location, options).await });
        let found = self.run(limit.left(), begin).await?;
        if is_head {
            return Ok(found);
        }
        let opened = GetResult {
            payload: found.payload,
            meta: found.meta.clone(),
            range: found.range.clone(),
            attributes: Attributes::default(),
            extensions: Default::default(),
        };
        let store = self.clone();
        let reading = async move { store.run(limit.left(), move || Ok(opened.bytes())).await };
        Ok(GetResult {
            payload: GetResultPayload::Stream(stream::once(reading).boxed()),
            meta: found.meta,
            range: found.range,
            attributes: found.attributes,
            extensions: found.extensions,
        })
    }

    async fn remove(&self, location: Path) -> Result<Path> {
        let (inner, deleting) = (Arc::clone(&self.inner), Arc::clone(&self.deleting));
        let begin = move || {
            let pending = PendingDeletion::begin(deleting, location.clone())?;
            Ok(async move {
                let deleted = inner.delete(&location).await;
                drop(pending);
                deleted.map(|()| location)
            })
        };
        self.run(self.limit(0).left(), begin).await
    }

    /// Sends the objects of a listing to its reader, with `None` at their end.
    async fn send_list(
        self,
        prefix: Option<Path>,
        listed: mpsc::Sender<Result<Option<ObjectMeta>>>,
    ) {
        let _turn = tokio::select! {
            turn = self.turns.acquire() => turn,
            () = listed.closed() => return,
        };
        let mut objects = self.inner.list(prefix.as_ref());
        loop {
            let mut next = objects.next().await.transpose();
            if matches!(next, Ok(None))
                && let Err(error) = self.check_mounted().await
            {
                next = Err(error);
            }
            let is_last = !matches!(next, Ok(Some(_)));
            if listed.send(next).await.is_err() || is_last {
                return;
            }
        }
    }
}

/// Time limit of a request, from its beginning on.
#[derive(Debug)]
struct TimeLimit {
    begun: Stopwatch,
    most: Duration,
}

impl TimeLimit {
    fn left(&self) -> Duration {
        self.most.saturating_sub(self.begun.elapsed())
    }
}

/// An object whose deletion is under way, until this value is dropped.
#[derive(Debug)]
struct PendingDeletion {
    all: Arc<Mutex<HashSet<Path>>>,
    location: Path,
}

impl PendingDeletion {
    fn begin(all: Arc<Mutex<HashSet<Path>>>, location: Path) -> Result<Self> {
        let is_only = lock(&all).insert(location.clone());
        match is_only {
            true => Ok(Self { all, location }),
            false => Err(is_being_deleted()),
        }
    }
}

impl Drop for PendingDeletion {
    fn drop(&mut self) {
        lock(&self.all).remove(&self.location);
    }
}

/// Error of a request that took too long.
fn timed_out() -> Error {
    failure(
        io::ErrorKind::TimedOut,
        "it does not answer: is it mounted?",
    )
}

fn is_being_deleted() -> Error {
    failure(io::ErrorKind::TimedOut, "a deletion of it is under way")
}

fn failure(kind: io::ErrorKind, why: &'static str) -> Error {
    Error::Generic {
        store: STORE,
        source: Box::new(io::Error::new(kind, why)),
    }
}

impl fmt::Display for BoundedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl ObjectStore for BoundedStore {
    fn put_opts<'s, 'l, 'f>(
        &'s self,
        location: &'l Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> BoxFuture<'f, Result<PutResult>>
    where
        's: 'f,
        'l: 'f,
        Self: 'f,
    {
        Box::pin(self.write(location.clone(), payload, options))
    }

    fn put_multipart_opts<'s, 'l, 'f>(
        &'s self,
        location: &'l Path,
        options: PutMultipartOptions,
    ) -> BoxFuture<'f, Result<Box<dyn MultipartUpload>>>
    where
        's: 'f,
        'l: 'f,
        Self: 'f,
    {
        let upload: Box<dyn MultipartUpload> = Box::new(CollectedUpload {
            store: self.clone(),
            location: location.clone(),
            options: PutOptions {
                tags: options.tags,
                attributes: options.attributes,
                ..PutOptions::default()
            },
            parts: Vec::new(),
        });
        Box::pin(future::ready(Ok(upload)))
    }

    fn get_opts<'s, 'l, 'f>(
        &'s self,
        location: &'l Path,
        options: GetOptions,
    ) -> BoxFuture<'f, Result<GetResult>>
    where
        's: 'f,
        'l: 'f,
        Self: 'f,
    {
        Box::pin(self.read(location.clone(), options))
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let store = self.clone();
        let deleted = locations.then(move |location| {
            let store = store.clone();
            async move { store.remove(location?).await }
        });
        deleted.boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (listed, listing) = mpsc::channel(LISTED_AHEAD);
        tokio::spawn(self.clone().send_list(prefix.cloned(), listed));
        let most = self.timeout;
        let objects = stream::try_unfold(listing, move |mut listing| async move {
            match timeout(most, listing.recv()).await {
                Ok(Some(Ok(Some(object)))) => Ok(Some((object, listing))),
                Ok(Some(Ok(None))) => Ok(None),
                Ok(Some(Err(error))) => Err(error),
                // A listing that ends without its end is not whole.
                Ok(None) | Err(_) => Err(timed_out()),
            }
        });
        objects.boxed()
    }

    fn list_with_delimiter<'s, 'p, 'f>(
        &'s self,
        prefix: Option<&'p Path>,
    ) -> BoxFuture<'f, Result<ListResult>>
    where
        's: 'f,
        'p: 'f,
        Self: 'f,
    {
        let (inner, prefix) = (Arc::clone(&self.inner), prefix.cloned());
        let begin = move || Ok(async move { inner.list_with_delimiter(prefix.as_ref()).await });
        Box::pin(self.run(self.limit(0).left(), begin))
    }

    fn copy_opts<'s, 'a, 'b, 'f>(
        &'s self,
        from: &'a Path,
        to: &'b Path,
        options: CopyOptions,
    ) -> BoxFuture<'f, Result<()>>
    where
        's: 'f,
        'a: 'f,
        'b: 'f,
        Self: 'f,
    {
        let inner = Arc::clone(&self.inner);
        let (from, to) = (from.clone(), to.clone());
        let begin = move || Ok(async move { inner.copy_opts(&from, &to, options).await });
        Box::pin(self.run(self.limit(0).left(), begin))
    }
}

/// An upload in parts, which are written as one object at its end: a directory gains nothing by parts.
#[derive(Debug)]
struct CollectedUpload {
    store: BoundedStore,
    location: Path,
    options: PutOptions,
    parts: Vec<PutPayload>,
}

impl MultipartUpload for CollectedUpload {
    fn put_part(&mut self, part: PutPayload) -> UploadPart {
        self.parts.push(part);
        Box::pin(future::ready(Ok(())))
    }

    fn complete<'s, 'f>(&'s mut self) -> BoxFuture<'f, Result<PutResult>>
    where
        's: 'f,
        Self: 'f,
    {
        let parts = mem::take(&mut self.parts).into_iter().flatten();
        let payload: PutPayload = parts.collect::<Vec<Bytes>>().into_iter().collect();
        let (location, options) = (self.location.clone(), self.options.clone());
        Box::pin(self.store.write(location, payload, options))
    }

    fn abort<'s, 'f>(&'s mut self) -> BoxFuture<'f, Result<()>>
    where
        's: 'f,
        Self: 'f,
    {
        self.parts.clear();
        Box::pin(future::ready(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};

    use futures_util::TryStreamExt as _;
    use object_store::local::LocalFileSystem;
    use object_store::memory::InMemory;
    use rustix::fs::{CWD, Mode, mkfifoat};

    use super::*;

    async fn read(store: &BoundedStore, name: &str) -> Result<Bytes> {
        store.get(&name.into()).await?.bytes().await
    }

    #[tokio::test]
    async fn a_directory_that_hangs_keeps_no_caller_and_few_threads() {
        let directory = tempfile::tempdir().unwrap();
        // Whoever opens it to read waits until somebody opens it to write.
        let pipe = directory.path().join("pipe");
        mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
        fs::write(directory.path().join("object"), "bytes").unwrap();
        let local = LocalFileSystem::new_with_prefix(directory.path()).unwrap();
        let timeout = Duration::from_millis(250);
        let store = BoundedStore::with_bounds(Arc::new(local), 2, timeout);
        assert_eq!(read(&store, "object").await.unwrap(), "bytes");
        for name in ["pipe", "pipe", "pipe", "object"] {
            let said = read(&store, name).await.unwrap_err().to_string();
            assert!(said.contains("does not answer"), "{said}");
        }
        assert_eq!(store.turns.available_permits(), 0);
        assert!(store.list(None).try_next().await.is_err());
        let opened = tokio::task::spawn_blocking(move || OpenOptions::new().write(true).open(pipe));
        drop(opened.await.unwrap().unwrap());
        while store.turns.available_permits() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(read(&store, "object").await.unwrap(), "bytes");
    }

    #[tokio::test]
    async fn a_directory_below_a_mount_that_is_gone_is_not_used() {
        let directory = tempfile::tempdir().unwrap();
        let [root, away] = ["root", "away"].map(|name| directory.path().join(name));
        fs::create_dir(&root).unwrap();
        let local = LocalFileSystem::new_with_prefix(&root).unwrap();
        let store = BoundedStore::new(Arc::new(local));
        let (owner, base) = (Path::from("owner"), Path::from("bases/a"));
        store.put(&owner, "us".into()).await.unwrap();
        store.required().set(owner).unwrap();
        store.put(&base, "bytes".into()).await.unwrap();
        fs::rename(&root, &away).unwrap();
        fs::create_dir(&root).unwrap();
        let list: Result<Vec<ObjectMeta>> = store.list(None).try_collect().await;
        for refused in [
            store.put(&base, "bytes".into()).await.map(drop),
            store.delete(&base).await,
            read(&store, "bases/a").await.map(drop),
            list.map(drop),
        ] {
            let said = refused.unwrap_err().to_string();
            assert!(said.contains("is it mounted"), "{said}");
        }
        assert!(fs::read_dir(&root).unwrap().next().is_none());
        fs::remove_dir(&root).unwrap();
        fs::rename(&away, &root).unwrap();
        assert_eq!(read(&store, "bases/a").await.unwrap(), "bytes");
    }

    #[tokio::test]
    async fn an_object_is_not_written_while_its_deletion_may_come_late() {
        let store = BoundedStore::new(Arc::new(InMemory::new()));
        let path = Path::from("content/a");
        let deleting = PendingDeletion::begin(Arc::clone(&store.deleting), path.clone()).unwrap();
        assert!(store.put(&path, "bytes".into()).await.is_err());
        assert!(store.delete(&path).await.is_err());
        store
            .put(&"content/b".into(), "bytes".into())
            .await
            .unwrap();
        drop(deleting);
        store.put(&path, "bytes".into()).await.unwrap();
        let listed: Vec<ObjectMeta> = store.list(None).try_collect().await.unwrap();
        assert_eq!(listed.len(), 2);
        store.delete(&path).await.unwrap();
        let missing = store.delete(&path).await;
        assert!(missing.is_ok() || matches!(missing, Err(Error::NotFound { .. })));
        assert!(lock(&store.deleting).is_empty());
    }

    #[tokio::test]
    async fn parts_become_one_object() {
        let store = BoundedStore::new(Arc::new(InMemory::new()));
        let path = Path::from("bases/a");
        let mut upload = store.put_multipart(&path).await.unwrap();
        for part in ["one ", "two"] {
            upload.put_part(part.into()).await.unwrap();
        }
        upload.complete().await.unwrap();
        assert_eq!(read(&store, "bases/a").await.unwrap(), "one two");
    }
}
