//! The bucket of a cluster: bytes that all nodes share.
//!
//! ```text
//! installation                            id of the installation that the bucket belongs to
//! content/<2 digits>/<62 digits>          sources and pages, as the content store has them
//! once/<share>                            pages of one-time shares
//! bases/<database>/<commit>-<state>       copies of databases, from which the ledger's commits go on
//! histories/<database>/<first>-<last>-…   chains of histories that have ended
//! guests/<digest>                         components that were installed
//! ```
//!
//! An object is there before a row of the ledger names it. One that is stored again says the same, maybe in other bytes.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, anyhow, bail};
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{Error, MultipartUpload, ObjectStore, ObjectStoreExt as _};
use tokio::task::spawn_blocking;
use url::Url;
use uuid::Uuid;

use super::bounded_store::{BoundedStore, RequiredObject};
use crate::config::S3Settings;
use crate::content::{
    ContentStore, OWNER_FILE, OneTimeObjects, StoreConnector, claim_shared_bucket,
    open_shared_bucket, shared_bucket_owner,
};
use svc_base::clock::Timestamp;

/// Prefixes of content and of one-time pages.
const CONTENT: &str = "content";
pub(super) const ONCE: &str = "once";
/// Object that is written at a start, to learn whether the bucket keeps versions.
const PROBE: &str = "probe";
/// Version of an object in a bucket that has stopped to keep versions.
const NO_VERSION: &str = "null";
/// A large object is read in pieces of so many bytes, a few at a time. Each has the time of one request, so they are small: at 10 Mbit/s
/// all of them still come in time.
const PIECE_BYTES: usize = 1 << 20;
const PIECES_AT_ONCE: usize = 4;
/// An object from this size on is stored in parts of so many bytes, one after another. Each has the time of one request. Stores take no
/// smaller ones.
const PART_BYTES: u64 = 5 << 20;
const FIRST_SIZE_IN_PARTS: u64 = 8 << 20;

/// Failure of a request to the bucket.
#[derive(Debug, thiserror::Error)]
pub enum BucketError {
    /// The object is not there.
    #[error("the bucket has no {0}")]
    Missing(String),
    /// The object is larger than it may be.
    #[error("the bucket has more of {0} than was stored")]
    TooLarge(String),
    /// The store does not answer as it should.
    #[error("the bucket cannot be used: {0}")]
    Unavailable(Error),
    /// The disk of this machine cannot be used.
    #[error("the disk cannot be used: {0}")]
    Disk(#[from] io::Error),
}

/// An object of the bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredObject {
    /// Name of the object.
    pub name: String,
    /// Size of the object.
    pub bytes: u64,
    /// Time at which the object was stored, by the store's clock.
    pub at: Timestamp,
}

/// The bucket of a cluster. Clones share it.
#[derive(Clone, Debug)]
pub struct Bucket {
    store: Arc<dyn ObjectStore>,
    /// Handle for deletions of content, without retries, where the store is behind a network.
    deleting: Option<Arc<dyn ObjectStore>>,
    /// Directory that the store is, if it is one.
    directory: Option<PathBuf>,
    /// Object that a directory must have from its check on: its mount may be gone later.
    required: Option<RequiredObject>,
}

impl Bucket {
    /// Opens the bucket that a URL names: `s3://bucket/prefix`, or an existing directory. No request is sent yet.
    ///
    /// # Errors
    /// A directory that is not there, or settings that name no store.
    pub fn open(
        url: &Url,
        access: Option<&S3Settings>,
        connector: &StoreConnector,
    ) -> anyhow::Result<Self> {
        if let Some(directory) = directory(url)? {
            let store = LocalFileSystem::new_with_prefix(&directory);
            let store = store.with_context(|| {
                let shown = directory.display();
                format!("the directory {shown} cannot be opened: is it mounted?")
            })?;
            let store = BoundedStore::new(Arc::new(store.with_fsync(true)));
            return Ok(Self {
                directory: Some(directory),
                required: Some(store.required()),
                ..Self::from_store(Arc::new(store))
            });
        }
        let access = access.context("there is no access to the bucket")?;
        let [store, deleting] = open_shared_bucket(url, access, connector)?;
        Ok(Self {
            store,
            deleting: Some(deleting),
            directory: None,
            required: None,
        })
    }

    /// Wraps a store that is not behind a network.
    pub fn from_store(store: Arc<dyn ObjectStore>) -> Self {
        Self {
            store,
            deleting: None,
            directory: None,
            required: None,
        }
    }

    /// Refuses a bucket that keeps versions: what is deleted must be gone.
    ///
    /// # Errors
    /// A bucket with versions, or one that does not answer.
    pub async fn check_unversioned(&self) -> anyhow::Result<()> {
        let path = Path::from(PROBE);
        let put = self.store.put(&path, PROBE.into()).await;
        let version = put.map_err(BucketError::Unavailable)?.version;
        self.delete(PROBE).await?;
        if version.is_some_and(|version| version != NO_VERSION) {
            bail!(
                "the bucket keeps versions of objects, so what is deleted would stay: name one that does not"
            );
        }
        Ok(())
    }

    /// Claims the bucket for an installation, unless that has claimed it already. A bucket without a claim must be empty.
    ///
    /// # Errors
    /// A bucket of another installation, one with foreign objects, or one that does not answer.
    pub async fn claim(&self, installation: Uuid) -> anyhow::Result<()> {
        let claimed = claim_shared_bucket(&self.store, &installation.to_string()).await;
        claimed.context("claiming the bucket")
    }

    /// Refuses a bucket that does not belong to an installation.
    ///
    /// # Errors
    /// A bucket of another installation or of none, or one that does not answer.
    pub async fn check_installation(&self, installation: Uuid) -> anyhow::Result<()> {
        match self.owner().await? {
            Some(owner) if owner == installation.to_string() => {
                if let Some(required) = &self.required {
                    // It may have been set by an earlier check.
                    let _ = required.set(Path::from(OWNER_FILE));
                }
                Ok(())
            }
            Some(_) => bail!("the bucket belongs to another installation than the ledger"),
            None => bail!(
                "the bucket is not as `svc cluster found` has left it: are the bucket, the prefix and the endpoint those of then, and is a directory mounted?"
            ),
        }
    }

    /// Returns the name of the installation that the bucket belongs to, if one has claimed it.
    ///
    /// # Errors
    /// A bucket that does not answer.
    pub async fn owner(&self) -> anyhow::Result<Option<String>> {
        let owner = shared_bucket_owner(&self.store).await;
        owner.context("reading from the bucket")
    }

    /// Returns the store of content.
    pub fn content(&self) -> ContentStore {
        let below = |store: &Arc<dyn ObjectStore>| -> Arc<dyn ObjectStore> {
            Arc::new(PrefixStore::new(Arc::clone(store), CONTENT))
        };
        match &self.deleting {
            Some(deleting) => ContentStore::remote(below(&self.store), below(deleting)),
            None => ContentStore::from_store(below(&self.store)),
        }
    }

    /// Returns the pages of one-time shares.
    pub fn one_time_pages(&self) -> OneTimeObjects {
        OneTimeObjects::new(Arc::new(PrefixStore::new(Arc::clone(&self.store), ONCE)))
    }

    /// Stores an object durably. One of the name is replaced, and must say the same.
    pub async fn put(&self, name: &str, bytes: Bytes) -> Result<(), BucketError> {
        let length = bytes.len() as u64;
        self.put_from(name, &PartSource::Memory(bytes), length)
            .await
    }

    /// Stores an object as [`Bucket::put`] does, from a file.
    pub async fn put_file(&self, name: &str, file: File) -> Result<(), BucketError> {
        let length = file.metadata()?.len();
        let file = PartSource::Disk(Arc::new(file));
        self.put_from(name, &file, length).await
    }

    /// Stores an object. A large one is stored in parts, so that a slow line has time for each; nothing is there until all of it is.
    async fn put_from(&self, name: &str, from: &PartSource, bytes: u64) -> Result<(), BucketError> {
        let path = Path::from(name);
        if bytes < FIRST_SIZE_IN_PARTS {
            let whole = from.read(0, bytes).await?;
            let put = self.store.put(&path, whole.into()).await;
            return put.map(drop).map_err(BucketError::Unavailable);
        }
        let upload = self.store.put_multipart(&path).await;
        let mut upload = upload.map_err(BucketError::Unavailable)?;
        let stored = put_parts(&mut *upload, from, bytes).await;
        if stored.is_err()
            && let Err(error) = upload.abort().await
        {
            tracing::warn!(%error, name, "the bucket may keep parts of an object that was not stored");
        }
        stored
    }

    /// Reads an object. Its size is asked for, since it may have been stored again after a row was written.
    pub async fn get(&self, name: &str) -> Result<Bytes, BucketError> {
        let path = Path::from(name);
        let bytes = self.size(name).await?;
        let pieces = pieces(bytes).map(|range| self.store.get_range(&path, range));
        let pieces = stream::iter(pieces).buffered(PIECES_AT_ONCE);
        let pieces: Vec<Bytes> = pieces
            .try_collect()
            .await
            .map_err(|error| of_object(name, error))?;
        Ok(match <[Bytes; 1]>::try_from(pieces) {
            Ok([whole]) => whole,
            Err(pieces) => pieces.concat().into(),
        })
    }

    /// Reads an object of at most `most` bytes into an empty file.
    pub async fn get_to(&self, name: &str, to: &Arc<File>, most: u64) -> Result<(), BucketError> {
        let path = &Path::from(name);
        let bytes = self.size(name).await?;
        if bytes > most {
            return Err(BucketError::TooLarge(name.to_owned()));
        }
        let pieces = pieces(bytes).map(|range| async move {
            let start = range.start;
            let piece = self.store.get_range(path, range).await;
            let piece = piece.map_err(|error| of_object(name, error))?;
            let to = Arc::clone(to);
            let written = spawn_blocking(move || to.write_all_at(&piece, start));
            Ok::<_, BucketError>(written.await.map_err(io::Error::from)??)
        });
        let pieces = stream::iter(pieces).buffered(PIECES_AT_ONCE);
        pieces.try_collect::<()>().await
    }

    async fn size(&self, name: &str) -> Result<u64, BucketError> {
        let head = self.store.head(&Path::from(name)).await;
        Ok(head.map_err(|error| of_object(name, error))?.size)
    }

    /// Deletes uploads into a directory that are as old as that: a process has died while it stored them. They have a `#` and a
    /// number at the end of their names. Other stores list none, and delete them by a rule.
    pub async fn remove_stale_uploads(&self, before: Timestamp) -> io::Result<()> {
        let Some(directory) = self.directory.clone() else {
            return Ok(());
        };
        let before = Duration::from_millis(before.0.try_into().unwrap_or(0));
        let before = SystemTime::UNIX_EPOCH + before;
        spawn_blocking(move || remove_uploads_below(directory, before)).await?
    }

    /// Deletes an object; a missing one is no error.
    pub async fn delete(&self, name: &str) -> Result<(), BucketError> {
        match self.store.delete(&Path::from(name)).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(BucketError::Unavailable(error)),
        }
    }

    /// Lists the objects below a prefix, which ends without a slash, in the order of their names.
    pub async fn list(&self, prefix: &str) -> Result<Vec<StoredObject>, BucketError> {
        let found = self.store.list(Some(&Path::from(prefix)));
        let found = found.map_ok(|object| StoredObject {
            name: object.location.to_string(),
            bytes: object.size,
            at: Timestamp(object.last_modified.timestamp_millis()),
        });
        let found: Result<Vec<_>, _> = found.try_collect().await;
        let mut objects = found.map_err(BucketError::Unavailable)?;
        objects.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(objects)
    }
}

/// Returns the ranges of the pieces of an object.
fn pieces(bytes: u64) -> impl Iterator<Item = Range<u64>> {
    let starts = (0..bytes).step_by(PIECE_BYTES);
    starts.map(move |start| start..bytes.min(start + PIECE_BYTES as u64))
}

/// Says which object a request has failed for.
fn of_object(name: &str, error: Error) -> BucketError {
    match error {
        Error::NotFound { .. } => BucketError::Missing(name.to_owned()),
        error => BucketError::Unavailable(error),
    }
}

/// Bytes of an object that is being stored.
enum PartSource {
    Memory(Bytes),
    Disk(Arc<File>),
}

impl PartSource {
    /// Reads a part.
    async fn read(&self, start: u64, bytes: u64) -> io::Result<Bytes> {
        let length = usize::try_from(bytes).map_err(io::Error::other)?;
        let file = match self {
            Self::Memory(all) => {
                let start = usize::try_from(start).map_err(io::Error::other)?;
                return Ok(all.slice(start..start + length));
            }
            Self::Disk(file) => Arc::clone(file),
        };
        let read = spawn_blocking(move || {
            let mut part = vec![0; length];
            file.read_exact_at(&mut part, start)?;
            Ok(Bytes::from(part))
        });
        read.await?
    }
}

async fn put_parts(
    upload: &mut dyn MultipartUpload,
    from: &PartSource,
    bytes: u64,
) -> Result<(), BucketError> {
    let mut start = 0;
    while start < bytes {
        let part = PART_BYTES.min(bytes - start);
        let read = from.read(start, part).await?;
        let put = upload.put_part(read.into()).await;
        put.map_err(BucketError::Unavailable)?;
        start += part;
    }
    let completed = upload.complete().await;
    completed.map(drop).map_err(BucketError::Unavailable)
}

/// Deletes unfinished uploads in a directory and below. What others delete meanwhile is gone all the same.
fn remove_uploads_below(directory: PathBuf, before: SystemTime) -> io::Result<()> {
    let mut open = vec![directory];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                open.push(entry.path());
                continue;
            }
            let name = entry.file_name();
            let number = name
                .to_str()
                .and_then(|name| Some(name.rsplit_once('#')?.1));
            if number.is_none_or(|number| number.parse::<u64>().is_err()) {
                continue;
            }
            let written = entry.metadata().and_then(|file| file.modified());
            let removed = written.and_then(|at| match at <= before {
                true => fs::remove_file(entry.path()),
                false => Ok(()),
            });
            if let Err(error) = removed
                && error.kind() != io::ErrorKind::NotFound
            {
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Returns the directory that a bucket's URL names, if it is one.
///
/// # Errors
/// A URL of a file that is no path of this machine.
pub fn directory(url: &Url) -> anyhow::Result<Option<PathBuf>> {
    if url.scheme() != "file" {
        return Ok(None);
    }
    let path = url.to_file_path();
    let path = path.map_err(|()| anyhow!("the bucket's URL names no directory of this machine"))?;
    Ok(Some(path))
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;

    fn ids() -> [Uuid; 2] {
        [1, 2].map(Uuid::from_u128)
    }

    #[tokio::test]
    async fn a_bucket_is_one_installations() {
        let [own, other] = ids();
        let bucket = Bucket::from_store(Arc::new(InMemory::new()));
        assert_eq!(bucket.owner().await.unwrap(), None);
        assert!(bucket.check_installation(own).await.is_err());
        for _ in 0..2 {
            bucket.claim(own).await.unwrap();
            bucket.check_installation(own).await.unwrap();
        }
        for refused in [
            bucket.claim(other).await,
            bucket.check_installation(other).await,
        ] {
            let said = format!("{:#}", refused.unwrap_err());
            assert!(said.contains("another installation"), "{said}");
        }
        let full = Bucket::from_store(Arc::new(InMemory::new()));
        full.put("letters", "x".into()).await.unwrap();
        let said = format!("{:#}", full.claim(own).await.unwrap_err());
        assert!(said.contains("such as letters"), "{said}");
    }

    #[tokio::test]
    async fn objects_are_read_in_pieces_and_listed_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let local = Url::from_file_path(directory.path()).unwrap();
        let local = LocalFileSystem::new_with_prefix(super::directory(&local).unwrap().unwrap());
        for bucket in [
            Bucket::from_store(Arc::new(InMemory::new())),
            Bucket::from_store(Arc::new(local.unwrap())),
        ] {
            bucket.check_unversioned().await.unwrap();
            let large = Bytes::from(vec![7; PIECE_BYTES + 1]);
            let objects = [("a/2", large), ("a/1", "one".into()), ("a/0", Bytes::new())];
            for (name, bytes) in &objects {
                bucket.put(name, bytes.clone()).await.unwrap();
            }
            for (name, bytes) in &objects {
                let read = bucket.get(name).await.unwrap();
                assert!(read == *bytes, "{name}");
            }
            let names = async |prefix| -> Vec<String> {
                let listed = bucket.list(prefix).await.unwrap();
                listed.into_iter().map(|object| object.name).collect()
            };
            assert_eq!(names("a").await, ["a/0", "a/1", "a/2"]);
            assert!(names("none").await.is_empty());
            for _ in 0..2 {
                bucket.delete("a/1").await.unwrap();
            }
            assert_eq!(names("a").await, ["a/0", "a/2"]);
            let gone = bucket.get("a/1").await;
            assert!(matches!(gone, Err(BucketError::Missing(_))));
        }
    }

    #[tokio::test]
    async fn a_large_object_is_stored_in_parts_and_wholly_or_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let local = Arc::new(LocalFileSystem::new_with_prefix(directory.path()).unwrap());
        let in_directory = Bucket {
            directory: Some(directory.path().to_owned()),
            ..Bucket::from_store(local)
        };
        let from = tempfile::tempfile().unwrap();
        let mut bytes = b"0123456789abcdef".repeat((8 << 20) / 16);
        bytes.push(b'!');
        from.write_all_at(&bytes, 0).unwrap();
        for bucket in [
            Bucket::from_store(Arc::new(InMemory::new())),
            in_directory.clone(),
        ] {
            bucket
                .put_file("a/large", from.try_clone().unwrap())
                .await
                .unwrap();
            assert!(bucket.get("a/large").await.unwrap() == bytes);
            bucket.put("a/large", bytes.clone().into()).await.unwrap();
            assert!(bucket.get("a/large").await.unwrap() == bytes);
            let to = Arc::new(tempfile::tempfile().unwrap());
            let most = bytes.len() as u64;
            let refused = bucket.get_to("a/large", &to, most - 1).await;
            assert!(matches!(refused, Err(BucketError::TooLarge(_))));
            bucket.get_to("a/large", &to, most).await.unwrap();
            let mut read = vec![0; bytes.len()];
            to.read_exact_at(&mut read, 0).unwrap();
            assert!(read == bytes);
        }
        let path = Path::from("a/aborted");
        let mut upload = in_directory.store.put_multipart(&path).await.unwrap();
        let cut = put_parts(
            &mut *upload,
            &PartSource::Disk(Arc::new(from)),
            bytes.len() as u64 + 1,
        )
        .await;
        assert!(
            matches!(cut, Err(BucketError::Disk(_))),
            "the file is shorter"
        );
        upload.abort().await.unwrap();
        // One that nobody has aborted is found once it is old.
        let unfinished = directory.path().join("a/left#1");
        fs::write(&unfinished, "part").unwrap();
        for (before, is_left) in [(Timestamp(0), true), (Timestamp(i64::MAX / 2), false)] {
            in_directory.remove_stale_uploads(before).await.unwrap();
            assert_eq!(unfinished.exists(), is_left);
        }
        let left = fs::read_dir(directory.path().join("a")).unwrap();
        assert_eq!(left.count(), 1);
    }

    #[tokio::test]
    async fn content_lies_below_a_prefix_of_its_own() {
        let bucket = Bucket::from_store(Arc::new(InMemory::new()));
        bucket.claim(ids()[0]).await.unwrap();
        let content = bucket.content();
        let pin = content.put(Bytes::from_static(b"page")).await.unwrap();
        let (shard, rest) = pin.digest().storage_path();
        let listed = bucket.list("content").await.unwrap();
        assert_eq!(listed[0].name, format!("content/{shard}/{rest}"));
        let (digests, foreign) = content.list().await.unwrap();
        assert_eq!((digests, foreign.len()), (vec![pin.digest()], 0));
    }
}
