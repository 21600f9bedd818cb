//! Files that a publication names, and the transaction in which their owner gets them.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use super::immutables::{self, JudgedImmutables};
use super::model::{FileError, FileOwner, FileRoom};
use super::site::refuse_missing;
use super::store;
use super::uploads::ReceivedFile;
use crate::content::{Digest, StoredFile};
use crate::control::{self, Tx};
use svc_base::clock::Timestamp;
use svc_base::ids::{DeploymentId, RevisionId};

/// Files that a publication names, for its transaction.
#[derive(Debug)]
pub(in crate::deployments) struct PublishedFiles {
    pub(super) owner: FileOwner,
    /// Version of the owner's files for which the named ones were found.
    pub(super) version: i64,
    /// Files that the owner has.
    pub(super) named: Vec<Digest>,
    /// Files that the owner gets.
    pub(super) stored: Vec<Arc<ReceivedFile>>,
    /// Texts of which encodings are to be made.
    pub(super) texts: Vec<Digest>,
    pub(super) room: FileRoom,
    /// The site's immutable files; a site without has none.
    pub(super) immutables: Option<JudgedImmutables>,
    /// Both forms of the site's manifest, once they are stored.
    pub(super) forms: OnceLock<[Digest; 2]>,
}

impl PublishedFiles {
    /// Gives the files of a site that becomes live to their owner, inside its transaction, if they and the room for them are still there.
    ///
    /// # Errors
    /// `Missing`, `StorageFull`, `InstallationFull`; `ImmutablesMoved` if other immutable files became live meanwhile.
    pub(in crate::deployments) fn adopt_live(
        &self,
        tx: &Tx<'_>,
        site: &DeploymentId,
        now: Timestamp,
    ) -> Result<(), FileError> {
        self.adopt(tx, now)?;
        match &self.immutables {
            Some(judged) => immutables::make_live(tx, site, judged.verdict(), now),
            None => Ok(()),
        }
    }

    /// Gives the files of a draft, whose row is there, to their owner.
    ///
    /// # Errors
    /// `Missing`, `StorageFull`, `InstallationFull`.
    pub(in crate::deployments) fn adopt_draft(
        &self,
        tx: &Tx<'_>,
        draft: &RevisionId,
        now: Timestamp,
    ) -> Result<(), FileError> {
        self.adopt(tx, now)?;
        match &self.immutables {
            Some(judged) => Ok(immutables::keep_verdict(tx, draft, judged.verdict(), now)?),
            None => Ok(()),
        }
    }

    fn adopt(&self, tx: &Tx<'_>, now: Timestamp) -> Result<(), FileError> {
        let owner = &self.owner;
        if store::version(tx, owner).map_err(control::Error::from)? != self.version {
            let there = store::find(tx, owner, &self.named).map_err(control::Error::from)?;
            refuse_missing(&self.named, &there)?;
        }
        let new = self.new_files(tx)?;
        if !new.is_empty() {
            let used = store::usage(tx, owner).map_err(control::Error::from)?;
            let more = new.iter().map(|file| file.bytes);
            self.room.check(used, more.fold(0, u64::saturating_add))?;
            let new: Vec<store::NewBlob<'_>> = new.into_iter().map(Into::into).collect();
            store::insert(tx, owner, &new, None)?;
        }
        store::ask_for_encodings(tx, owner, &self.texts, now)?;
        Ok(store::raise_version(tx, owner)?)
    }

    /// Lists the stored files that the owner does not have, each distinct one once.
    fn new_files(&self, tx: &Tx<'_>) -> Result<Vec<&StoredFile>, control::Error> {
        let (mut seen, mut new) = (HashSet::new(), Vec::new());
        for stored in &self.stored {
            let file = &stored.file;
            if seen.insert(file.digest) && !store::has(tx, &self.owner, &file.digest)? {
                new.push(file);
            }
        }
        Ok(new)
    }
}
