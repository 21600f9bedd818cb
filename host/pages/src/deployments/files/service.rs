//! Receiving, counting and ending files.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::model::{FileBytes, FileError, FileOwner, FileRoom, FileUsage};
use super::site::refuse_missing;
use super::store;
use super::storing::give_up_files;
use super::sweep::RestingOwners;
use super::uploads::{HeldBytes, ReceivedFile, UncountedBytes};
use super::visitors::{KnownForms, UnnamedObjects};
use crate::content::{ContentStore, Digest, DigestBuilder, FileWriter, StoredFile};
use crate::control;
use crate::deployments::collection::{GRACE_SECONDS, SHARED_GRACE_SECONDS};
use crate::deployments::publication::{CapacityChecker, PublicationPipeline};
use crate::deployments::sites::SiteFile;
use crate::infra::Infra;
use crate::projects::{self, Project};
use crate::workspaces;
use svc_base::clock::Timestamp;
use svc_base::fault;

/// Bytes that are hashed at once: more would keep other requests of the thread waiting.
const HASHED_BYTES: usize = 256 << 10;

/// Files of all projects.
#[derive(Debug)]
pub struct ProjectFiles {
    pub(super) infra: Infra,
    pub(super) content: ContentStore,
    pub(super) pipeline: Arc<PublicationPipeline>,
    /// Bytes that are stored, and counted by no row.
    pub(super) uncounted: Arc<UncountedBytes>,
    pub(super) resting: RestingOwners,
    pub(super) known_forms: KnownForms,
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
        // Nodes may share a bucket, where objects stay for longer.
        let grace: i64 = match content.is_remote() {
            true => SHARED_GRACE_SECONDS,
            false => GRACE_SECONDS,
        };
        let grace = Duration::from_secs(grace.unsigned_abs());
        Self {
            uncounted: UncountedBytes::new(infra.clock.clone(), grace),
            resting: RestingOwners::default(),
            known_forms: KnownForms::default(),
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
        mut body: B,
    ) -> Result<(), B::Error> {
        self.refuse_blocked(&digest).await?;
        let (room, used, kept) = self.room_for(project, declared, Some(digest)).await?;
        if let Some(kept) = kept {
            self.refuse_blocked_parts(kept).await?;
            if self.stage_again(project, digest).await? {
                // These bytes take no room: all that they can be is the same, or refused.
                return compare(digest, &mut body).await;
            }
        }
        room.check(used, declared)?;
        let stored = self.store(project, room, (Some(digest), body)).await?;
        fault::point("blob.stored");
        let stored = Arc::new(stored);
        let staged = self.stage(project, Arc::clone(&stored), room).await;
        if staged.is_err() {
            self.give_up_file(&stored).await?;
        }
        staged?;
        fault::point("blob.committed");
        Ok(())
    }

    /// Receives a file of a declared length for a publication that is under way. No row names it yet, and the project may have the same
    /// bytes: the publication says whether there is room.
    ///
    /// # Errors
    /// [`FileError`], or that of the bytes; nothing is kept then.
    pub async fn receive_for_site<B: FileBytes>(
        &self,
        project: &Project,
        declared: u64,
        body: B,
    ) -> Result<ReceivedFile, B::Error> {
        let (room, ..) = self.room_for(project, declared, None).await?;
        let file = self.store(project, room, (None, body)).await?;
        fault::point("file.stored");
        Ok(file)
    }

    /// Stores a file as its bytes arrive, and compares them with their digest, if it is known.
    pub(super) async fn store<B: FileBytes>(
        &self,
        project: &Project,
        room: FileRoom,
        (digest, mut body): (Option<Digest>, B),
    ) -> Result<ReceivedFile, B::Error> {
        self.capacity.check_disk().map_err(FileError::from)?;
        let held = self.uncounted.begin((&project.id).into(), room);
        let mut writer = FileWriter::new(&self.content);
        let read = self.read((&mut writer, &held), digest, &mut body).await;
        match read {
            Ok(file) => Ok(ReceivedFile { file, held }),
            Err(error) => {
                // After a crash here the next start finds them.
                held.give_up();
                self.forget(writer.stored_objects()).await?;
                Err(error)
            }
        }
    }

    /// Refuses a file that is larger than one may be; returns the room for files, what they take, and whether the project has the one of a
    /// digest.
    pub(super) async fn room_for(
        &self,
        project: &Project,
        declared: u64,
        digest: Option<Digest>,
    ) -> Result<(FileRoom, FileUsage, Option<SiteFile>), FileError> {
        let (owner, workspace) = (FileOwner::from(&project.id), project.workspace.id);
        let limits = &self.infra.config.limits;
        let read = self.infra.control.read(move |c| {
            let plan = workspaces::plan_of(c, &workspace)?;
            let kept = match digest {
                Some(digest) => store::find(c, &owner, &[digest])?.remove(&digest),
                None => None,
            };
            Ok((plan, store::usage(c, &owner)?, kept))
        });
        let (plan, used, kept) = read.await?;
        let most = plan.file_limits(limits);
        if declared > most.file_bytes {
            return Err(FileError::TooLarge(most.file_bytes));
        }
        let room = FileRoom {
            owner: most.storage_bytes,
            all: limits.storage_total_bytes,
        };
        Ok((room, used, kept))
    }

    /// Refuses an upload where the disk has no room for all that are under way, of so many bytes together.
    pub(super) fn check_uploads(&self, bytes: u64) -> Result<(), FileError> {
        Ok(self.capacity.check_uploads(bytes)?)
    }

    /// Reads all bytes of a file, and compares them with their digest before the last are stored.
    async fn read<B: FileBytes>(
        &self,
        (writer, held): (&mut FileWriter, &HeldBytes),
        digest: Option<Digest>,
        body: &mut B,
    ) -> Result<StoredFile, B::Error> {
        let mut all = 0;
        while let Some(bytes) = body.next(writer.bytes_in_memory()).await? {
            all += bytes.len() as u64;
            held.grow(FileWriter::bytes_stored_of(all))?;
            writer.write(bytes).await.map_err(FileError::from)?;
        }
        if digest.is_some_and(|digest| digest != writer.digest()) {
            return Err(FileError::DigestMismatch.into());
        }
        held.grow(all)?;
        Ok(self.finish_file(writer).await?)
    }

    /// Has a file that a project has wait for a publication, from now; returns whether it is there.
    async fn stage_again(&self, project: &Project, digest: Digest) -> Result<bool, FileError> {
        let (now, until) = self.staged_until();
        let (id, owner) = (project.id, FileOwner::from(&project.id));
        let staged = self.infra.control.write(move |tx| {
            if !projects::is_live(tx, &id, now)? {
                return Err(FileError::NotFound);
            }
            Ok(store::stage_again(tx, &owner, &digest, until)?)
        });
        staged.await
    }

    /// Returns the time, and until when a file that is sent now waits for a publication.
    fn staged_until(&self) -> (Timestamp, Timestamp) {
        let now = self.infra.clock.now();
        let wait = self.infra.config.limits.staged_seconds;
        (
            now,
            now.plus_seconds(i64::try_from(wait).unwrap_or(i64::MAX)),
        )
    }

    /// Adds a stored file to those of a project, if there is still room.
    async fn stage(
        &self,
        project: &Project,
        stored: Arc<ReceivedFile>,
        room: FileRoom,
    ) -> Result<(), FileError> {
        let (now, until) = self.staged_until();
        let (id, owner) = (project.id, FileOwner::from(&project.id));
        let staged = self.infra.control.write(move |tx| {
            if !projects::is_live(tx, &id, now)? {
                return Err(FileError::NotFound);
            }
            let file = &stored.file;
            if store::stage_again(tx, &owner, &file.digest, until)? {
                return Ok(());
            }
            let used = store::usage(tx, &owner).map_err(control::Error::from)?;
            room.check(used, file.bytes)?;
            Ok(store::insert(tx, &owner, &[file.into()], Some(until))?)
        });
        staged.await
    }

    /// Gives up a file that was stored: no row names it.
    ///
    /// # Errors
    /// The database's.
    pub(in crate::deployments) async fn give_up_file(
        &self,
        stored: &ReceivedFile,
    ) -> Result<(), FileError> {
        self.forget(give_up_files([stored].into_iter())).await
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
        if objects.is_empty() {
            return Ok(());
        }
        // An upload of a visitor fails where the backend's database is, which may be another machine than the one that writes rows.
        let unnamed = UnnamedObjects {
            objects: objects.iter().map(|object| *object.as_bytes()).collect(),
            at: self.infra.clock.now(),
        };
        Ok(self.infra.control.run_errand(unnamed).await?)
    }
}

/// Reads all bytes of a file, which are stored nowhere, and compares them with their digest.
async fn compare<B: FileBytes>(digest: Digest, body: &mut B) -> Result<(), B::Error> {
    let mut read = DigestBuilder::new();
    while let Some(bytes) = body.next(0).await? {
        for part in bytes.chunks(HASHED_BYTES) {
            read.update(part);
            tokio::task::yield_now().await;
        }
    }
    match read.finish() == digest {
        true => Ok(()),
        false => Err(FileError::DigestMismatch.into()),
    }
}
