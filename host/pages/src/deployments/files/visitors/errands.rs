//! Changes of which bytes visitors' files name: done where the control database is written, and asked for where the backend's database is.

use serde::{Deserialize, Serialize};

use super::store;
use crate::content::Digest;
use crate::control::{ErrandWork, Error, Tx};
use crate::deployments::collection::{SHARED_GRACE_SECONDS, is_marked_before};
use crate::deployments::files::model::{FileError, FileOwner, FileRoom};
use crate::deployments::files::store::{self as blobs, NewBlob};
use crate::deployments::store::{is_referenced, look_through_files, mark_garbage};
use crate::projects;
use svc_base::clock::Timestamp;
use svc_base::ids::{BackendId, ProjectId};

/// Time before the removal of unreferenced bytes in which they are taken for removed, in seconds: longer than clocks of nodes differ.
const REMOVAL_MARGIN_SECONDS: i64 = 3600;

/// Bytes of a visitor's file: the file itself, or a smaller copy of a picture.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewFileForm {
    /// Square that a smaller copy fits, in pixels; 0: the file itself.
    pub(super) size: u32,
    /// Digest of the bytes.
    pub(super) digest: [u8; 32],
    /// Length of the bytes.
    pub(super) bytes: u64,
    /// Digest of the list of a large file's objects, with theirs in order.
    pub(super) objects: Option<([u8; 32], Vec<[u8; 32]>)>,
    /// Media type of the bytes.
    pub(super) media_type: String,
}

/// Errand: names the bytes of an uploaded file for the project, before its row is committed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VisitorFileReservation {
    pub(super) project: ProjectId,
    pub(super) backend: BackendId,
    pub(super) file: String,
    /// Digest of the bytes that were sent.
    pub(super) sent: [u8; 32],
    pub(super) forms: Vec<NewFileForm>,
    /// Most bytes of the project's files, and of all.
    pub(super) room: (u64, u64),
    pub(super) at: Timestamp,
    /// Whether another machine than the one that collects content has stored the bytes, so that nothing pins them there.
    #[serde(default)]
    pub(super) is_elsewhere: bool,
}

impl VisitorFileReservation {
    /// Lists the objects of all forms.
    pub(super) fn objects(&self) -> impl Iterator<Item = Digest> {
        let of_form = |form: &NewFileForm| {
            let (list, objects) = form.objects.clone().unzip();
            let objects = objects.into_iter().flatten().chain(list);
            // The bytes of a large file lie in its objects alone.
            let whole = form.objects.is_none().then_some(form.digest);
            objects.chain(whole).collect::<Vec<_>>()
        };
        self.forms.iter().flat_map(of_form).map(Digest::from_bytes)
    }
}

/// Bytes that a reservation has named, which the project had not before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservedBytes {
    pub(super) digests: Vec<[u8; 32]>,
    /// Version of the project's files with them: while it stays, nothing else names them.
    pub(super) version: i64,
}

/// Answer to [`VisitorFileReservation`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VisitorFileReservationAnswer {
    /// The bytes are named.
    Reserved(ReservedBytes),
    /// The project or the backend is gone.
    NoBackend,
    /// The project's files take too much: how much, and how much they may.
    StorageFull(u64, u64),
    /// The files of all projects take too much.
    InstallationFull,
    /// Some of the bytes may just be removed, because nothing had referred to them for long. Who gives them up marks them anew, so that the
    /// next attempt finds them.
    BeingRemoved,
}

impl ErrandWork for VisitorFileReservation {
    const KIND: &'static str = "visitor_file_reservation";
    type Answer = VisitorFileReservationAnswer;

    fn perform(self, tx: &Tx<'_>) -> Result<VisitorFileReservationAnswer, Error> {
        let is_live = projects::is_live(tx, &self.project, self.at)?
            && store::has_backend(tx, &self.project, &self.backend)?;
        if !is_live {
            return Ok(VisitorFileReservationAnswer::NoBackend);
        }
        if self.is_elsewhere {
            let before = self
                .at
                .plus_seconds(REMOVAL_MARGIN_SECONDS - SHARED_GRACE_SECONDS);
            for object in self.objects() {
                if is_marked_before(tx, &object, before)? && !is_referenced(tx, &object)? {
                    return Ok(VisitorFileReservationAnswer::BeingRemoved);
                }
            }
        }
        let owner = FileOwner::from(&self.project);
        let mut new: Vec<(&NewFileForm, Vec<Digest>)> = Vec::new();
        for form in &self.forms {
            let digest = Digest::from_bytes(form.digest);
            let is_twice = new.iter().any(|(other, _)| other.digest == form.digest);
            if !is_twice && !blobs::has(tx, &owner, &digest)? {
                let objects = form.objects.iter().flat_map(|(_, objects)| objects);
                new.push((form, objects.copied().map(Digest::from_bytes).collect()));
            }
        }
        let more = new.iter().map(|(form, _)| form.bytes);
        let room = FileRoom {
            owner: self.room.0,
            all: self.room.1,
        };
        let used = blobs::usage(tx, &owner)?;
        match room.check(used, more.fold(0, u64::saturating_add)) {
            Ok(()) => {}
            Err(FileError::StorageFull { used, limit }) => {
                return Ok(VisitorFileReservationAnswer::StorageFull(used, limit));
            }
            Err(_) => return Ok(VisitorFileReservationAnswer::InstallationFull),
        }
        let new: Vec<NewBlob<'_>> = new
            .iter()
            .map(|(form, objects)| NewBlob {
                digest: Digest::from_bytes(form.digest),
                bytes: form.bytes,
                objects: form
                    .objects
                    .as_ref()
                    .map(|(list, _)| (Digest::from_bytes(*list), &**objects)),
            })
            .collect();
        blobs::insert(tx, &owner, &new, None)?;
        store::insert(tx, &self)?;
        // A sweep that is under way does not know of these files.
        blobs::raise_version(tx, &owner)?;
        Ok(VisitorFileReservationAnswer::Reserved(ReservedBytes {
            digests: new.iter().map(|blob| *blob.digest.as_bytes()).collect(),
            version: blobs::version(tx, &owner)?,
        }))
    }
}

/// Errand: an upload failed, and no row of its file will be committed. Where the project's files have not changed meanwhile, its bytes
/// count no more; else the sweep sees to them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VisitorFileRelease {
    pub(super) project: ProjectId,
    pub(super) file: String,
    pub(super) reserved: ReservedBytes,
    pub(super) at: Timestamp,
}

impl ErrandWork for VisitorFileRelease {
    const KIND: &'static str = "visitor_file_release";
    type Answer = ();

    fn perform(self, tx: &Tx<'_>) -> Result<(), Error> {
        store::release(tx, &self.file, self.at)?;
        let owner = FileOwner::from(&self.project);
        if blobs::version(tx, &owner)? != self.reserved.version {
            return look_through_files(tx, &self.project.to_string());
        }
        for digest in self.reserved.digests {
            let digest = Digest::from_bytes(digest);
            blobs::remove(tx, &owner, &digest, Some(self.at), self.at)?;
        }
        Ok(())
    }
}

/// Errand: objects were stored, and no row will name them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UnnamedObjects {
    pub(in crate::deployments::files) objects: Vec<[u8; 32]>,
    pub(in crate::deployments::files) at: Timestamp,
}

impl ErrandWork for UnnamedObjects {
    const KIND: &'static str = "unnamed_objects";
    type Answer = ();

    fn perform(self, tx: &Tx<'_>) -> Result<(), Error> {
        let mut objects = self.objects.into_iter().map(Digest::from_bytes);
        objects.try_for_each(|object| mark_garbage(tx, &object, self.at))
    }
}

/// Errand: what a look at a backend's database has found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct VisitorFileChanges {
    /// Files whose rows are committed.
    pub kept: Vec<String>,
    /// Files whose rows are gone.
    pub ended: Vec<String>,
    /// Files whose rows are back, from the history.
    pub returned: Vec<String>,
    /// Files whose rows were never committed.
    pub dropped: Vec<String>,
}

/// Errand: the files of a backend, as its database has them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VisitorFileSweep {
    pub(super) project: ProjectId,
    pub(super) backend: BackendId,
    pub(super) changes: VisitorFileChanges,
    pub(super) at: Timestamp,
}

impl ErrandWork for VisitorFileSweep {
    const KIND: &'static str = "visitor_file_sweep";
    type Answer = ();

    fn perform(self, tx: &Tx<'_>) -> Result<(), Error> {
        let Self {
            project,
            backend,
            changes,
            at,
        } = self;
        let owner = FileOwner::from(&project);
        for file in &changes.kept {
            store::keep(tx, &backend, file, at)?;
        }
        for file in &changes.ended {
            store::end(tx, &backend, file, at)?;
        }
        for file in &changes.dropped {
            store::release(tx, file, at)?;
        }
        for file in &changes.returned {
            for form in store::take_back(tx, &backend, file, at)? {
                if !blobs::has(tx, &owner, &form.digest)? {
                    let objects = form.list.map(|list| (list, &[][..]));
                    let blob = NewBlob {
                        digest: form.digest,
                        bytes: form.bytes,
                        objects,
                    };
                    blobs::insert(tx, &owner, &[blob], None)?;
                }
            }
        }
        if !changes.returned.is_empty() {
            blobs::raise_version(tx, &owner)?;
        }
        match changes.ended.is_empty() && changes.dropped.is_empty() {
            true => Ok(()),
            false => look_through_files(tx, &project.to_string()),
        }
    }
}
