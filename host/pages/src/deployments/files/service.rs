//! Receiving, counting and ending files.

use std::sync::Arc;

use super::model::{FileBytes, FileError, FileRoom};
use super::store;
use crate::content::{ContentStore, Digest, FileWriter, StoredFile};
use crate::control;
use crate::deployments::publication::CapacityChecker;
use crate::deployments::store::mark_garbage;
use crate::infra::Infra;
use crate::projects::{self, Project};
use crate::workspaces;

/// Files that one transaction removes at most, so that none holds the writer for long.
const FILES_PER_STEP: u32 = 500;

/// Files of all projects.
#[derive(Debug)]
pub struct ProjectFiles {
    infra: Infra,
    content: ContentStore,
    capacity: CapacityChecker,
}

impl ProjectFiles {
    /// Makes the service of a server.
    pub fn new(infra: Infra, content: ContentStore, capacity: CapacityChecker) -> Self {
        Self {
            infra,
            content,
            capacity,
        }
    }

    /// Receives a file of a declared length, and keeps it for a publication that names it. It is durable when this returns.
    ///
    /// # Errors
    /// [`FileError`], or that of the bytes; nothing is kept then.
    pub async fn receive<B: FileBytes>(
        &self,
        project: &Project,
        (digest, declared): (Digest, u64),
        mut body: B,
    ) -> Result<(), B::Error> {
        self.capacity.check_disk().map_err(FileError::from)?;
        let room = self.check_room(project, digest, declared).await?;
        let mut writer = FileWriter::new(&self.content);
        let (done, objects) = match self.read(&mut writer, digest, &mut body).await {
            Ok(file) => {
                let file = Arc::new(file);
                let staged = self.stage(project, Arc::clone(&file), room).await;
                (staged.map_err(B::Error::from), file.stored_objects())
            }
            Err(error) => (Err(error), writer.stored_objects()),
        };
        if done.is_err() {
            // After a crash here the next start finds them.
            self.forget(objects).await?;
        }
        done
    }

    /// Refuses a file that is too large, or for which there is no room; returns the room that there is.
    async fn check_room(
        &self,
        project: &Project,
        digest: Digest,
        declared: u64,
    ) -> Result<FileRoom, FileError> {
        let (id, workspace) = (project.id, project.workspace.id);
        let limits = &self.infra.config.limits;
        let read = self.infra.control.read(move |c| {
            let plan = workspaces::plan_of(c, &workspace)?;
            Ok((plan, store::has(c, &id, &digest)?, store::usage(c, &id)?))
        });
        let (plan, is_there, used) = read.await?;
        let most = plan.file_limits(limits);
        if declared > most.file_bytes {
            return Err(FileError::TooLarge(most.file_bytes));
        }
        let room = FileRoom {
            owner: most.storage_bytes,
            all: limits.storage_total_bytes,
        };
        if !is_there {
            room.check(used, declared)?;
        }
        Ok(room)
    }

    /// Reads all bytes of a file, and compares them with their digest before the last are stored.
    async fn read<B: FileBytes>(
        &self,
        writer: &mut FileWriter,
        digest: Digest,
        body: &mut B,
    ) -> Result<StoredFile, B::Error> {
        while let Some(bytes) = body.next(writer.bytes_in_memory()).await? {
            writer.write(bytes).await.map_err(FileError::from)?;
        }
        if writer.digest() != digest {
            return Err(FileError::DigestMismatch.into());
        }
        Ok(writer.finish().await.map_err(FileError::from)?)
    }

    /// Adds a stored file to those of a project, if there is still room.
    async fn stage(
        &self,
        project: &Project,
        file: Arc<StoredFile>,
        room: FileRoom,
    ) -> Result<(), FileError> {
        let now = self.infra.clock.now();
        let wait = self.infra.config.limits.staged_seconds;
        let until = now.plus_seconds(i64::try_from(wait).unwrap_or(i64::MAX));
        let id = project.id;
        let staged = self.infra.control.write(move |tx| {
            if !projects::is_live(tx, &id, now)? {
                return Err(FileError::NotFound);
            }
            let is_there = store::has(tx, &id, &file.digest).map_err(control::Error::from)?;
            if !is_there {
                let used = store::usage(tx, &id).map_err(control::Error::from)?;
                room.check(used, file.bytes)?;
            }
            Ok(store::stage(tx, &id, &file, until)?)
        });
        staged.await
    }

    /// Marks objects of a file that was given up.
    async fn forget(&self, objects: Vec<Digest>) -> Result<(), FileError> {
        let now = self.infra.clock.now();
        let marked = self.infra.control.write(move |tx| {
            let mut objects = objects.iter();
            objects.try_for_each(|object| mark_garbage(tx, object, now))
        });
        let marked: Result<(), control::Error> = marked.await;
        Ok(marked?)
    }

    /// Ends files that no publication has named in time.
    ///
    /// # Errors
    /// Those of the database; the next sweep continues.
    pub async fn sweep(&self) -> anyhow::Result<()> {
        let now = self.infra.clock.now();
        loop {
            let listed = self
                .infra
                .control
                .read(move |c| store::list_ended(c, now, FILES_PER_STEP));
            let ended = listed.await?;
            let is_last = ended.len() < FILES_PER_STEP as usize;
            let removed = self.infra.control.write(move |tx| {
                let mut ended = ended.iter();
                ended.try_for_each(|(owner, digest)| store::remove(tx, owner, digest, now))
            });
            let removed: Result<(), control::Error> = removed.await;
            removed?;
            if is_last {
                return Ok(());
            }
        }
    }
}
