//! Bytes of the files that visitors bring. Their rows are in the databases of backends; here is what these rows name, and what it takes.
//!
//! Bytes are named before the row of their file is committed, so that a row never lacks its bytes. What was named and not committed, and
//! what is named by a row that is gone, is found by a look at the backend's database, again and again.

mod ends;
mod errands;
mod store;

use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use quick_cache::sync::Cache;

use super::model::{FileBytes, FileError, FileRoom};
use super::service::ProjectFiles;
use super::storing::give_up_files;
use super::uploads::ReceivedFile;
use crate::content::{self, Digest};
use crate::control::{self, ControlDatabase};
use crate::deployments::sites::{FileReader, SiteFile};
use crate::http::byte_budget::BytePermit;
use crate::projects::Project;
use crate::workspaces::{self, FileLimits};
use svc_base::fault;
use svc_base::ids::{BackendId, ProjectId};

pub use errands::{
    NewFileForm, ReservedBytes, UnnamedObjects, VisitorFileChanges, VisitorFileRelease,
    VisitorFileReservation, VisitorFileReservationAnswer, VisitorFileSweep,
};
pub use store::FileBackend;

/// Objects that a store is asked for at once.
const OBJECTS_AT_ONCE: usize = 16;
/// Files whose forms are kept in memory.
const CACHED_FILES: usize = 16_384;
/// Time after which forms are read again: the bytes of an ended file go some day, and its row may come back.
const FORMS_KEPT: Duration = Duration::from_secs(60);

/// Bytes that a visitor's file names: the file itself first, then smaller copies of a picture. They never change.
#[derive(Clone, Debug)]
pub struct FileForms {
    /// Digest of the bytes that were sent.
    pub sent: Digest,
    /// Forms, in the order of their sizes.
    pub forms: Vec<StoredFileForm>,
}

/// Stored bytes of a visitor's file.
#[derive(Clone, Debug)]
pub struct StoredFileForm {
    /// Square that a smaller copy fits, in pixels; 0: the file itself.
    pub size: u32,
    /// The bytes.
    pub file: SiteFile,
    /// Media type of the bytes.
    pub media_type: String,
}

impl FileForms {
    /// Returns the form of a size; 0 is the file itself.
    pub fn form(&self, size: u32) -> Option<&StoredFileForm> {
        self.forms.iter().find(|form| form.size == size)
    }
}

/// Room for a file that is uploaded, as it was when the upload began.
#[derive(Clone, Copy, Debug)]
pub struct UploadRoom(FileRoom);

/// Bytes of a visitor's file that are stored, and that nothing names yet.
#[derive(Debug)]
pub struct ReceivedForm {
    size: u32,
    media_type: String,
    file: ReceivedFile,
}

impl ReceivedForm {
    /// Returns the digest of the bytes.
    pub fn digest(&self) -> Digest {
        self.file.file.digest
    }

    /// Returns the square that it fits; 0 for the file itself.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Returns the length of the bytes.
    pub fn bytes(&self) -> u64 {
        self.file.file.bytes
    }

    fn to_new(&self) -> NewFileForm {
        let file = &self.file.file;
        let objects = file.objects.as_ref().map(|objects| {
            let all = objects.objects.iter().map(|object| *object.as_bytes());
            (*objects.list.as_bytes(), all.collect())
        });
        NewFileForm {
            size: self.size,
            digest: *file.digest.as_bytes(),
            bytes: file.bytes,
            objects,
            media_type: self.media_type.clone(),
        }
    }
}

/// Upload that is about to be committed.
#[derive(Clone, Debug)]
pub struct ArrivingFile {
    /// Project that it is for.
    pub project: ProjectId,
    /// Backend that gets its row.
    pub backend: BackendId,
    /// Id of the file.
    pub file: String,
}

impl ArrivingFile {
    /// An upload of a file, by its new id.
    pub fn new(project: ProjectId, backend: BackendId, file: String) -> Self {
        Self {
            project,
            backend,
            file,
        }
    }
}

/// Visitors' files whose forms were looked at, in memory, and when.
#[derive(Debug)]
pub(super) struct KnownForms(Cache<(BackendId, String), (Duration, Arc<FileForms>)>);

impl Default for KnownForms {
    fn default() -> Self {
        Self(Cache::new(CACHED_FILES))
    }
}

/// Failure of an upload whose bytes another machine has just removed, as nothing had referred to them for long.
fn removed_meanwhile() -> FileError {
    let why = "equal bytes, which nothing had referred to, are just being removed";
    content::Error::Unreachable(why.to_owned()).into()
}

/// Returns the ids of all files of a backend whose bytes are named.
///
/// # Errors
/// The database's.
pub async fn named_ids(
    control: &ControlDatabase,
    backend: BackendId,
) -> Result<HashSet<String>, control::Error> {
    let list = move |c: &_| store::list_named(c, &backend);
    let named = control.read(list).await?;
    Ok(named.into_iter().map(|file| file.id).collect())
}

impl ProjectFiles {
    /// Finds room for an upload of a declared length, where others that are under way may bring `arriving` bytes.
    ///
    /// # Errors
    /// `TooLarge`, `StorageFull`, `InstallationFull`, those of the disk and the database.
    pub async fn room_for_upload(
        &self,
        project: &Project,
        (declared, arriving): (u64, u64),
    ) -> Result<UploadRoom, FileError> {
        let (room, used, _) = self.room_for(project, declared, None).await?;
        room.check(used, declared)?;
        let bytes = arriving.saturating_add(declared);
        self.check_uploads(bytes)?;
        Ok(UploadRoom(room))
    }

    /// Counts bytes of a file that are in memory, until what is returned is dropped.
    ///
    /// # Errors
    /// Where too much is in memory already.
    pub async fn hold_in_memory(&self, bytes: usize) -> Result<BytePermit, FileError> {
        Ok(self.pipeline.reserve(bytes).await?)
    }

    /// Refuses bytes that the operator has blocked.
    ///
    /// # Errors
    /// [`ContentBlocked`], those of the database.
    pub async fn refuse_blocked_upload(&self, sent: &Digest) -> Result<(), FileError> {
        self.refuse_blocked(sent).await
    }

    /// Stores a form of an uploaded file as its bytes come.
    ///
    /// # Errors
    /// [`FileError`], or that of the bytes; nothing is kept then.
    pub async fn receive_form<B: FileBytes>(
        &self,
        project: &Project,
        room: UploadRoom,
        (size, media_type): (u32, &str),
        body: B,
    ) -> Result<ReceivedForm, B::Error> {
        let file = self.store(project, room.0, (None, body)).await?;
        fault::point("upload.stored");
        Ok(ReceivedForm {
            size,
            media_type: media_type.to_owned(),
            file,
        })
    }

    /// Gives up forms that nothing will name.
    ///
    /// # Errors
    /// The database's.
    pub async fn give_up_forms(&self, forms: &[ReceivedForm]) -> Result<(), FileError> {
        let files = forms.iter().map(|form| &form.file);
        self.forget(give_up_files(files)).await
    }

    /// Names the forms of an upload, if there is room for them. Durable when it returns.
    ///
    /// # Errors
    /// `NotFound` where the project or the backend is gone, `StorageFull`, `InstallationFull`; nothing is named then.
    pub async fn reserve_upload(
        &self,
        of: &ArrivingFile,
        sent: Digest,
        room: UploadRoom,
        forms: &[ReceivedForm],
    ) -> Result<ReservedBytes, FileError> {
        let reservation = VisitorFileReservation {
            project: of.project,
            backend: of.backend,
            file: of.file.clone(),
            sent: *sent.as_bytes(),
            forms: forms.iter().map(ReceivedForm::to_new).collect(),
            room: (room.0.owner, room.0.all),
            at: self.infra.clock.now(),
            is_elsewhere: self.infra.control.is_follower(),
        };
        let stored: Vec<Digest> = match reservation.is_elsewhere {
            true => reservation.objects().collect(),
            false => Vec::new(),
        };
        let answer = self.infra.control.run_errand(reservation).await?;
        fault::point("upload.reserved");
        match answer {
            VisitorFileReservationAnswer::Reserved(reserved) => {
                // An object that was removed before it was named is missing now; one that is there stays.
                let has_all = self.has_all(stored).await;
                if let Ok(true) = has_all {
                    return Ok(reserved);
                }
                self.release_upload(of, reserved).await?;
                has_all?;
                Err(removed_meanwhile())
            }
            VisitorFileReservationAnswer::BeingRemoved => Err(removed_meanwhile()),
            VisitorFileReservationAnswer::NoBackend => Err(FileError::NotFound),
            VisitorFileReservationAnswer::StorageFull(used, limit) => {
                Err(FileError::StorageFull { used, limit })
            }
            VisitorFileReservationAnswer::InstallationFull => Err(FileError::InstallationFull),
        }
    }

    /// Whether the store has all objects.
    async fn has_all(&self, objects: Vec<Digest>) -> Result<bool, FileError> {
        let asking = stream::iter(objects).map(async |object| self.content.has(&object).await);
        let mut asking = pin!(asking.buffer_unordered(OBJECTS_AT_ONCE));
        while let Some(is_there) = asking.try_next().await? {
            if !is_there {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes back the names of an upload whose row was not committed.
    ///
    /// # Errors
    /// The database's: a later look at the backend finds it.
    pub async fn release_upload(
        &self,
        of: &ArrivingFile,
        reserved: ReservedBytes,
    ) -> Result<(), control::Error> {
        let release = VisitorFileRelease {
            project: of.project,
            file: of.file.clone(),
            reserved,
            at: self.infra.clock.now(),
        };
        self.infra.control.run_errand(release).await
    }

    /// Returns the bytes that a file names; `None` where they are gone.
    ///
    /// # Errors
    /// The database's.
    pub async fn file_forms(
        &self,
        backend: BackendId,
        file: &str,
    ) -> Result<Option<Arc<FileForms>>, control::Error> {
        let (key, now) = ((backend, file.to_owned()), self.infra.clock.elapsed());
        if let Some((read_at, forms)) = self.known_forms.0.get(&key)
            && now.saturating_sub(read_at) < FORMS_KEPT
        {
            return Ok(Some(forms));
        }
        let id = key.1.clone();
        let found = self
            .infra
            .control
            .read(move |c| store::find(c, &backend, &id))
            .await?
            .map(Arc::new);
        if let Some(forms) = &found {
            self.known_forms.0.insert(key, (now, Arc::clone(forms)));
        }
        Ok(found)
    }

    /// Refuses a file that the operator has blocked, as it was sent or as it is stored.
    ///
    /// # Errors
    /// `Disabled`, those of the database.
    pub async fn check_form(&self, sent: &Digest, file: &SiteFile) -> Result<(), FileError> {
        let blocked = self.pipeline.blocked();
        blocked.load().await?;
        let named = [sent, &file.digest].into_iter().chain(&file.list);
        match blocked.find(named) {
            None => Ok(()),
            Some(_) => Err(FileError::Disabled),
        }
    }

    /// Opens stored bytes of a visitor's file.
    ///
    /// # Errors
    /// `Disabled` where the operator has blocked them; those of the store.
    pub async fn open_form(&self, file: SiteFile) -> Result<FileReader, FileError> {
        self.open(file).await
    }

    /// Returns the bounds of a project's files, by its plan.
    ///
    /// # Errors
    /// The database's.
    pub async fn limits_of(&self, project: &Project) -> Result<FileLimits, FileError> {
        let workspace = project.workspace.id;
        let read = move |c: &_| workspaces::plan_of(c, &workspace);
        let plan = self.infra.control.read(read).await?;
        Ok(plan.file_limits(&self.infra.config.limits))
    }

    /// Returns the bytes that a project's files take, and the most that they may.
    ///
    /// # Errors
    /// The database's.
    pub async fn storage_of(&self, project: &Project) -> Result<(u64, u64), FileError> {
        let (room, used, _) = self.room_for(project, 0, None).await?;
        Ok((used.owner, room.owner))
    }
}
