//! Pages of one-time shares: private files of this machine, or objects of the bucket that the nodes of a cluster share.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use object_store::path::Path;
use object_store::{Error as StoreError, ObjectStore, ObjectStoreExt as _};
use tokio::sync::OwnedMutexGuard;

use super::object_locks::ObjectLocks;
use super::{Error, OneTimeFileDirectory};
use svc_base::ids::DeploymentId;

/// Pause before a deletion is sent again.
const RETRY_EVERY: Duration = Duration::from_millis(250);

/// Pages of one-time shares; clones share them.
#[derive(Clone, Debug)]
pub enum OneTimePages {
    /// Files of this machine.
    Files(OneTimeFileDirectory),
    /// Objects of a bucket.
    Objects(OneTimeObjects),
}

impl OneTimePages {
    /// Locks a share for its reader until the guard is dropped.
    pub async fn lock(&self, id: &DeploymentId) -> OwnedMutexGuard<()> {
        match self {
            Self::Files(files) => files.lock(id).await,
            Self::Objects(objects) => objects.read_locks.lock(id).await,
        }
    }
}

/// Objects that are named by the ids of shares; clones share them. A store that does not answer is an [`Error::Unreachable`] inside of
/// the I/O error.
#[derive(Clone, Debug)]
pub struct OneTimeObjects {
    store: Arc<dyn ObjectStore>,
    /// Locks of readers by share, so that a page is in memory once.
    read_locks: Arc<ObjectLocks<DeploymentId>>,
}

impl OneTimeObjects {
    /// Wraps a store for these objects alone. It must keep no versions.
    pub fn new(store: Arc<dyn ObjectStore>) -> Self {
        Self {
            store,
            read_locks: Arc::default(),
        }
    }

    /// Writes a share's page durably. A failed write may leave an object, which no row names.
    pub async fn write(&self, id: &DeploymentId, page: Bytes) -> io::Result<()> {
        let put = self.store.put(&path(id), page.into()).await;
        put.map(drop).map_err(|error| unreachable(&error))
    }

    /// Reads a share's page; `None` once it is burnt.
    pub async fn read(&self, id: &DeploymentId) -> io::Result<Option<Vec<u8>>> {
        let path = path(id);
        let page = async { self.store.get(&path).await?.bytes().await };
        match page.await {
            Ok(page) => Ok(Some(page.into())),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(unreachable(&error)),
        }
    }

    /// Deletes a share's page durably.
    pub async fn burn(&self, id: &DeploymentId) -> io::Result<()> {
        match self.store.delete(&path(id)).await {
            Ok(()) | Err(StoreError::NotFound { .. }) => Ok(()),
            Err(error) => Err(unreachable(&error)),
        }
    }

    /// Deletes the page of a share that its reader has claimed, as [`OneTimeObjects::burn`] does. A store that fails is asked again until
    /// `within` is over: nobody else can claim the page, so its reader would lose it.
    pub async fn burn_claimed(&self, id: &DeploymentId, within: Duration) -> io::Result<()> {
        let burning = async {
            while let Err(error) = self.burn(id).await {
                tracing::warn!(%error, "a page that was opened could not be deleted: that is tried again");
                tokio::time::sleep(RETRY_EVERY).await;
            }
        };
        let burnt = tokio::time::timeout(within, burning).await;
        burnt.map_err(|_| io::Error::other(Error::Unreachable("it deletes nothing".to_owned())))
    }

    /// Lists the shares that have an object; objects with other names are ignored.
    pub async fn list(&self) -> io::Result<Vec<DeploymentId>> {
        let found = self.store.list(None);
        let found = found.map_ok(|object| object.location.to_string().parse().ok());
        let found: Result<Vec<Option<DeploymentId>>, _> = found.try_collect().await;
        Ok(found
            .map_err(|error| unreachable(&error))?
            .into_iter()
            .flatten()
            .collect())
    }
}

fn path(id: &DeploymentId) -> Path {
    Path::from(id.to_string())
}

fn unreachable(error: &StoreError) -> io::Error {
    io::Error::other(Error::Unreachable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use object_store::local::LocalFileSystem;
    use object_store::memory::InMemory;
    use svc_base::clock::Clock;
    use svc_base::random::Random;

    use super::*;

    #[tokio::test]
    async fn a_burnt_object_is_gone() {
        let objects = OneTimeObjects::new(Arc::new(InMemory::new()));
        let id = DeploymentId::new(&Clock::system(), &Random::system()).unwrap();
        assert_eq!(objects.read(&id).await.unwrap(), None);
        objects.write(&id, "secret".into()).await.unwrap();
        let read = objects.read(&id).await.unwrap();
        assert_eq!(read.as_deref(), Some(&b"secret"[..]));
        assert_eq!(objects.list().await.unwrap(), [id]);
        for _ in 0..2 {
            objects.burn(&id).await.unwrap();
        }
        assert_eq!(objects.read(&id).await.unwrap(), None);
        assert!(objects.list().await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_claimed_page_is_deleted_although_the_store_fails_at_first() {
        let directory = tempfile::tempdir().unwrap();
        let store = LocalFileSystem::new_with_prefix(directory.path()).unwrap();
        let objects = OneTimeObjects::new(Arc::new(store));
        let id = DeploymentId::new(&Clock::system(), &Random::system()).unwrap();
        // A directory cannot be deleted as a file.
        let path = directory.path().join(id.to_string());
        std::fs::create_dir(&path).unwrap();
        assert!(objects.burn(&id).await.is_err());
        let failed = objects.burn_claimed(&id, Duration::from_millis(10)).await;
        assert!(failed.is_err());
        let burning = objects.burn_claimed(&id, Duration::from_secs(60));
        let mending = async {
            tokio::task::yield_now().await;
            std::fs::remove_dir(&path).unwrap();
        };
        let (burnt, ()) = tokio::join!(burning, mending);
        burnt.unwrap();
    }
}
