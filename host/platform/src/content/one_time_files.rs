//! The private files of one-time shares: one a share, so that unlinking it deletes the content.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use tokio::sync::OwnedMutexGuard;

use super::object_locks::ObjectLocks;
use svc_base::ids::DeploymentId;

/// The directory of the private files; clones share it. Functions block on the disk.
#[derive(Clone, Debug)]
pub struct OneTimeFileDirectory {
    directory: Arc<Dir>,
    /// Locks of readers by share, so that a page is in memory once.
    read_locks: Arc<ObjectLocks<DeploymentId>>,
}

impl OneTimeFileDirectory {
    /// Opens `directory`, which is made if it is missing.
    ///
    /// # Errors
    /// When it cannot be made or opened.
    pub fn open(directory: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(directory)?;
        let directory = Dir::open_ambient_dir(directory, ambient_authority())?;
        Ok(Self {
            directory: Arc::new(directory),
            read_locks: Arc::default(),
        })
    }

    /// Locks a share for its reader until the guard is dropped.
    pub async fn lock(&self, id: &DeploymentId) -> OwnedMutexGuard<()> {
        self.read_locks.lock(id).await
    }

    /// Writes a share's page durably. A failed write leaves no file.
    pub fn write(&self, id: &DeploymentId, page: &[u8]) -> io::Result<()> {
        let name = id.to_string();
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let mut file = self.directory.open_with(&name, &options)?;
        let durable = file
            .write_all(page)
            .and_then(|()| file.sync_all())
            .and_then(|()| self.sync());
        if durable.is_err() {
            // The first error is the one to report.
            let _ = self.directory.remove_file(&name);
        }
        durable
    }

    /// Reads a share's page; `None` once it is burnt.
    pub fn read(&self, id: &DeploymentId) -> io::Result<Option<Vec<u8>>> {
        let mut page = Vec::new();
        match self.directory.open(id.to_string()) {
            Ok(mut file) => file.read_to_end(&mut page).map(|_| Some(page)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes a share's page durably.
    pub fn burn(&self, id: &DeploymentId) -> io::Result<()> {
        match self.directory.remove_file(id.to_string()) {
            Ok(()) => self.sync(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Lists the shares that have a file; files with other names are ignored.
    pub fn list(&self) -> io::Result<Vec<DeploymentId>> {
        let mut ids = Vec::new();
        for entry in self.directory.entries()? {
            if let Some(id) = entry?
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok())
            {
                ids.push(id);
            }
        }
        Ok(ids)
    }

    fn sync(&self) -> io::Result<()> {
        self.directory.open(".")?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use svc_base::clock::Clock;
    use svc_base::random::Random;

    #[test]
    fn a_burnt_file_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        let files = OneTimeFileDirectory::open(directory.path()).unwrap();
        let id = DeploymentId::new(&Clock::system(), &Random::system()).unwrap();
        files.write(&id, b"secret").unwrap();
        assert!(
            files.write(&id, b"other").is_err(),
            "a file is written once"
        );
        assert_eq!(files.read(&id).unwrap().as_deref(), Some(&b"secret"[..]));
        assert_eq!(files.list().unwrap(), [id]);
        files.burn(&id).unwrap();
        assert_eq!(files.read(&id).unwrap(), None);
    }

    #[tokio::test]
    async fn a_share_has_one_reader_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let files = OneTimeFileDirectory::open(directory.path()).unwrap();
        let id = || DeploymentId::new(&Clock::system(), &Random::system()).unwrap();
        let (one, other) = (id(), id());
        let reader = files.lock(&one).await;
        assert!(files.clone().lock(&one).now_or_never().is_none());
        assert!(files.lock(&other).now_or_never().is_some());
        drop(reader);
        assert!(files.lock(&one).now_or_never().is_some());
    }
}
