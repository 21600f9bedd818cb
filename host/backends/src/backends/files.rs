//! Files of visitors in the databases of backends, for owners and for the platform.

use std::collections::{HashMap, HashSet};

use super::model::BackendError;
use super::service::Backends;
use svc_base::clock::Timestamp;
use svc_base::ids::BackendId;
use svc_database::VisitorFileRow;

impl Backends {
    /// Lists at most `limit` files of a backend before a given one, newest first.
    ///
    /// # Errors
    /// [`BackendError`].
    pub async fn list_files(
        &self,
        id: BackendId,
        before: Option<String>,
        limit: u32,
    ) -> Result<Vec<VisitorFileRow>, BackendError> {
        Ok(self.databases.list_files(id, before, limit).await?)
    }

    /// Finds a file of a backend.
    ///
    /// # Errors
    /// [`BackendError`].
    pub async fn find_file(
        &self,
        id: BackendId,
        file: String,
    ) -> Result<Option<VisitorFileRow>, BackendError> {
        Ok(self.databases.find_file(id, file).await?)
    }

    /// Reads the ids of all files of a backend.
    ///
    /// # Errors
    /// [`BackendError`].
    pub async fn file_ids(&self, id: BackendId) -> Result<HashSet<String>, BackendError> {
        Ok(self.databases.file_ids(id).await?)
    }

    /// Deletes the files of a visitor, with what refers to them.
    ///
    /// # Errors
    /// [`BackendError`]; some may be deleted then.
    pub async fn delete_files_of(&self, id: BackendId, user_id: &str) -> Result<(), BackendError> {
        self.bring(id).await?;
        self.databases.delete_files_of(id, user_id).await?;
        self.file_changes.note(id);
        Ok(())
    }

    /// Finds the answer to an upload that is kept for a key, and the hash of what was sent with it.
    ///
    /// # Errors
    /// [`BackendError`].
    pub async fn find_kept_upload(
        &self,
        id: BackendId,
        key: [u8; 32],
        now: Timestamp,
    ) -> Result<Option<([u8; 32], Vec<u8>)>, BackendError> {
        Ok(self.databases.find_kept_upload(id, key, now).await?)
    }

    /// Takes the ids of the files whose rows were committed since the last call.
    pub fn take_uploaded_files(&self) -> HashMap<BackendId, Vec<String>> {
        self.file_changes.take_uploaded()
    }

    /// Notes that rows of files are committed.
    pub fn note_uploaded_files(&self, id: BackendId, files: Vec<String>) {
        self.file_changes.note_uploaded(id, files);
    }

    /// Takes the backends in which files may be gone or back since the last call.
    pub fn take_file_changes(&self) -> HashSet<BackendId> {
        self.file_changes.take_changed()
    }

    /// Notes that files of a backend may be gone, or back.
    pub fn note_file_changes(&self, id: BackendId) {
        self.file_changes.note(id);
    }
}
