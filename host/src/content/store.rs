//! The content store: objects named by their SHA-256, written once, durable before anything refers to them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use object_store::local::LocalFileSystem;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutPayload};

use super::Digest;
use super::held::Held;

/// Written at each start, to learn the disk's time.
pub(super) const MARKER: &str = ".opened";

/// An error of the content store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The disk is full: nothing was stored.
    #[error("the disk is full")]
    Full,
    /// Everything else, for the log.
    #[error("content store: {0}")]
    Store(object_store::Error),
}

impl From<object_store::Error> for Error {
    fn from(error: object_store::Error) -> Self {
        let mut source: Option<&(dyn std::error::Error + 'static)> = Some(&error);
        while let Some(cause) = source {
            let io = cause.downcast_ref::<std::io::Error>();
            if io.is_some_and(|io| io.kind() == std::io::ErrorKind::StorageFull) {
                return Self::Full;
            }
            source = cause.source();
        }
        Self::Store(error)
    }
}

/// A handle to the content store; clones share it.
#[derive(Clone, Debug)]
pub struct Content(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: LocalFileSystem,
    directory: PathBuf,
    opened: FileTime,
    /// How many publishes rely on an object that no committed row may refer to yet.
    pins: Mutex<HashMap<Digest, usize>>,
    /// Writers and the collector of one object take turns, so that "it is there" means "it is durable".
    turns: [tokio::sync::Mutex<()>; 64],
    held: Held,
    /// Readers of one object take turns, so that those who come together read it once.
    reading: [tokio::sync::Mutex<()>; 64],
}

/// Keeps an object from the collector until the row that refers to it is committed.
#[derive(Debug)]
pub struct Pin {
    inner: Arc<Inner>,
    digest: Digest,
}

impl Pin {
    /// The name of the pinned object.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut pins = self
            .inner
            .pins
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = pins.get_mut(&self.digest) {
            *count -= 1;
            if *count == 0 {
                pins.remove(&self.digest);
            }
        }
    }
}

impl Content {
    /// Opens the store in `directory`, which is made if it is missing.
    ///
    /// # Errors
    /// When the directory cannot be made or read.
    pub fn open(directory: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(directory)?;
        let store = LocalFileSystem::new_with_prefix(directory)?.with_fsync(true);
        Ok(Self(Arc::new(Inner {
            store,
            directory: directory.to_owned(),
            opened: marker_time(directory)?,
            pins: Mutex::default(),
            turns: std::array::from_fn(|_| tokio::sync::Mutex::default()),
            held: Held::default(),
            reading: std::array::from_fn(|_| tokio::sync::Mutex::default()),
        })))
    }

    /// Stores a few `bytes` and answers when they are durable. What is there already is not written again.
    ///
    /// # Errors
    /// [`Error::Full`] when there is no room.
    pub async fn put(&self, bytes: Bytes) -> Result<Pin, Error> {
        self.put_as(Digest::of(&bytes), bytes).await
    }

    /// Stores bytes of any length, whose digest is taken where that may occupy a thread.
    ///
    /// # Errors
    /// [`Error::Full`] when there is no room.
    pub async fn put_as(&self, digest: Digest, bytes: Bytes) -> Result<Pin, Error> {
        let pin = self.pin(digest);
        let _turn = self.turn(&digest).await;
        let mode = PutMode::Create.into();
        match self
            .0
            .store
            .put_opts(&path(&digest), PutPayload::from(bytes), mode)
            .await
        {
            Ok(_) | Err(object_store::Error::AlreadyExists { .. }) => Ok(pin),
            Err(error) => Err(error.into()),
        }
    }

    /// The object of that name, if there is one.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn get(&self, digest: &Digest) -> Result<Option<Bytes>, Error> {
        match self.0.store.get(&path(digest)).await {
            Ok(object) => Ok(Some(object.bytes().await?)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads an object for those who serve it: a large object is in memory once, however many are reading it.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn serve(&self, digest: &Digest) -> Result<Option<Bytes>, Error> {
        let shard = usize::from(digest.first_byte()) % self.0.reading.len();
        let _turn = self.0.reading[shard].lock().await;
        if let Some(object) = self.0.held.get(digest) {
            return Ok(Some(object));
        }
        let object = self.get(digest).await?;
        Ok(object.map(|object| self.0.held.hold(*digest, object)))
    }

    /// Deletes an object unless a publish relies on it or `referenced` says that a row does; returns whether
    /// it is gone. The look at the references happens while no publish can begin to rely on the object.
    ///
    /// # Errors
    /// The look-up's, or the store's.
    pub async fn collect<E, F>(&self, digest: &Digest, referenced: F) -> Result<bool, E>
    where
        E: From<Error>,
        F: Future<Output = Result<bool, E>>,
    {
        let _turn = self.turn(digest).await;
        let pinned = |inner: &Inner| {
            inner
                .pins
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .contains_key(digest)
        };
        if pinned(&self.0) || referenced.await? || pinned(&self.0) {
            return Ok(false);
        }
        match self.0.store.delete(&path(digest)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(true),
            Err(error) => Err(Error::from(error).into()),
        }
    }

    /// The names of all objects, and the paths of files that are none.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list(&self) -> Result<(Vec<Digest>, Vec<String>), Error> {
        let (mut digests, mut strangers) = (Vec::new(), Vec::new());
        let mut objects = self.0.store.list(None).boxed();
        while let Some(object) = objects.try_next().await? {
            let name = object.location.to_string();
            if name == MARKER {
                continue;
            }
            match Digest::from_hex(&name.replacen('/', "", 1)) {
                Some(digest) => digests.push(digest),
                None => strangers.push(name),
            }
        }
        Ok((digests, strangers))
    }

    /// Deletes uploads that a crash before this start left unfinished.
    pub async fn remove_stale_uploads(&self) -> std::io::Result<()> {
        let (directory, opened) = (self.0.directory.clone(), self.0.opened);
        let task = tokio::task::spawn_blocking(move || remove_uploads(&directory, opened));
        task.await.map_err(std::io::Error::other)?
    }

    fn pin(&self, digest: Digest) -> Pin {
        let mut pins = self.0.pins.lock().unwrap_or_else(PoisonError::into_inner);
        *pins.entry(digest).or_default() += 1;
        Pin {
            inner: Arc::clone(&self.0),
            digest,
        }
    }

    async fn turn(&self, digest: &Digest) -> tokio::sync::MutexGuard<'_, ()> {
        let shard = usize::from(digest.first_byte()) % self.0.turns.len();
        self.0.turns[shard].lock().await
    }
}

/// The file system's own time, against which it stamps files.
type FileTime = std::time::SystemTime;

/// The time of the disk now, as it stamps a file that is written now.
fn marker_time(directory: &Path) -> std::io::Result<FileTime> {
    let marker = directory.join(MARKER);
    std::fs::write(&marker, b"")?;
    std::fs::metadata(&marker)?.modified()
}

/// An upload that is not finished lies beside its object-to-be, with a `#` in its name.
fn remove_uploads(directory: &Path, before: FileTime) -> std::io::Result<()> {
    for shard in std::fs::read_dir(directory)? {
        let shard = shard?;
        if !shard.file_type()?.is_dir() {
            continue;
        }
        for file in std::fs::read_dir(shard.path())? {
            let file = file?;
            let unfinished = file
                .file_name()
                .to_str()
                .is_some_and(|name| name.contains('#'));
            if unfinished && file.metadata()?.modified()? < before {
                std::fs::remove_file(file.path())?;
            }
        }
    }
    Ok(())
}

fn path(digest: &Digest) -> object_store::path::Path {
    let (shard, rest) = digest.names();
    object_store::path::Path::from_iter([shard, rest])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_object_is_there_once_and_stays_while_pinned_or_referenced() {
        let directory = tempfile::tempdir().unwrap();
        let content = Content::open(directory.path()).unwrap();
        let pin = content.put(Bytes::from_static(b"hello")).await.unwrap();
        let again = content.put(Bytes::from_static(b"hello")).await.unwrap();
        let digest = pin.digest();
        assert_eq!(content.get(&digest).await.unwrap().unwrap(), "hello");

        let free = || async { Ok::<_, Error>(false) };
        assert!(
            !content.collect(&digest, free()).await.unwrap(),
            "pinned twice"
        );
        drop(pin);
        assert!(
            !content.collect(&digest, free()).await.unwrap(),
            "pinned once"
        );
        drop(again);
        let referenced = async { Ok::<_, Error>(true) };
        assert!(
            !content.collect(&digest, referenced).await.unwrap(),
            "referenced"
        );
        assert!(content.collect(&digest, free()).await.unwrap());
        assert!(content.get(&digest).await.unwrap().is_none());
    }
}
