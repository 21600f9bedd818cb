//! Receiving, counting and ending files.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::model::{FileBytes, FileError, FileOwner, FileRoom};
use super::site::refuse_missing;
use super::store;
use crate::content::{ContentStore, Digest, FileWriter, StoredFile};
use crate::control;
use crate::deployments::publication::{CapacityChecker, PublicationPipeline};
use crate::deployments::store::mark_garbage;
use crate::infra::Infra;
use crate::projects::{self, Project};
use crate::workspaces;
use svc_base::fault;

/// Files of all projects.
#[derive(Debug)]
pub struct ProjectFiles {
    pub(super) infra: Infra,
    pub(super) content: ContentStore,
    pub(super) pipeline: Arc<PublicationPipeline>,
    capacity: CapacityChecker,
}

impl ProjectFiles {
    /// Makes the service of a server.
    pub fn new(
        infra: Infra,
        content: ContentStore,
        pipeline: Arc<PublicationPipeline>,
        capacity: CapacityChecker,
    ) -> Self {
        Self {
            infra,
            content,
            pipeline,
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
        body: B,
    ) -> Result<(), B::Error> {
        self.refuse_blocked(&digest).await?;
        let room = self.check_room(project, Some(digest), declared).await?;
        let file = self.store(Some(digest), body).await?;
        fault::point("blob.stored");
        let file = Arc::new(file);
        let staged = self.stage(project, Arc::clone(&file), room).await;
        if staged.is_err() {
            self.forget(file.stored_objects()).await?;
        }
        staged?;
        fault::point("blob.committed");
        Ok(())
    }

    /// Receives a file of a declared length for a publication that is under way. No row names it yet.
    ///
    /// # Errors
    /// [`FileError`], or that of the bytes; nothing is kept then.
    pub async fn receive_for_site<B: FileBytes>(
        &self,
        project: &Project,
        declared: u64,
        body: B,
    ) -> Result<StoredFile, B::Error> {
        self.check_room(project, None, declared).await?;
        let file = self.store(None, body).await?;
        fault::point("file.stored");
        Ok(file)
    }

    /// Stores a file as its bytes arrive, and compares them with their digest, if it is known.
    async fn store<B: FileBytes>(
        &self,
        digest: Option<Digest>,
        mut body: B,
    ) -> Result<StoredFile, B::Error> {
        self.capacity.check_disk().map_err(FileError::from)?;
        let mut writer = FileWriter::new(&self.content);
        let read = self.read(&mut writer, digest, &mut body).await;
        if read.is_err() {
            // After a crash here the next start finds them.
            self.forget(writer.stored_objects()).await?;
        }
        read
    }

    /// Refuses a file that is too large, or for which there is no room; returns the room that there is.
    async fn check_room(
        &self,
        project: &Project,
        digest: Option<Digest>,
        declared: u64,
    ) -> Result<FileRoom, FileError> {
        let (owner, workspace) = (FileOwner::from(&project.id), project.workspace.id);
        let limits = &self.infra.config.limits;
        let read = self.infra.control.read(move |c| {
            let plan = workspaces::plan_of(c, &workspace)?;
            let is_there = match digest {
                Some(digest) => store::has(c, &owner, &digest)?,
                None => false,
            };
            Ok((plan, is_there, store::usage(c, &owner)?))
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
        digest: Option<Digest>,
        body: &mut B,
    ) -> Result<StoredFile, B::Error> {
        while let Some(bytes) = body.next(writer.bytes_in_memory()).await? {
            writer.write(bytes).await.map_err(FileError::from)?;
        }
        if digest.is_some_and(|digest| digest != writer.digest()) {
            return Err(FileError::DigestMismatch.into());
        }
        Ok(self.finish_file(writer).await?)
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
        let (id, owner) = (project.id, FileOwner::from(&project.id));
        let staged = self.infra.control.write(move |tx| {
            if !projects::is_live(tx, &id, now)? {
                return Err(FileError::NotFound);
            }
            if store::stage_again(tx, &owner, &file.digest, until)? {
                return Ok(());
            }
            let used = store::usage(tx, &owner).map_err(control::Error::from)?;
            room.check(used, file.bytes)?;
            Ok(store::insert(tx, &owner, &file, Some(until))?)
        });
        staged.await
    }

    /// Refuses files that a project does not have, with all of them.
    ///
    /// # Errors
    /// `Missing`.
    pub(in crate::deployments) async fn check_named(
        &self,
        project: &Project,
        named: BTreeSet<Digest>,
    ) -> Result<(), FileError> {
        if named.is_empty() {
            return Ok(());
        }
        let (owner, named) = (FileOwner::from(&project.id), Vec::from_iter(named));
        let found = self.infra.control.read(move |c| {
            let there = store::find(c, &owner, &named)?;
            Ok((there, named))
        });
        let (there, named) = found.await?;
        refuse_missing(&named, &there)
    }

    /// Marks objects of a file that was given up.
    pub(in crate::deployments) async fn forget(
        &self,
        objects: Vec<Digest>,
    ) -> Result<(), FileError> {
        let now = self.infra.clock.now();
        let marked = self.infra.control.write(move |tx| {
            let mut objects = objects.iter();
            objects.try_for_each(|object| mark_garbage(tx, object, now))
        });
        let marked: Result<(), control::Error> = marked.await;
        Ok(marked?)
    }
}
