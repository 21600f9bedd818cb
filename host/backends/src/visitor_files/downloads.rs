//! Downloads: an action allows them, and the file is read as files of sites are.

use super::{UploadError, VisitorFiles};
use crate::backends::BackendError;
use crate::backends::model::{CallableAction, requires_identity};
use crate::deployments::files::visitors::StoredFileForm;
use crate::deployments::sites::FileReader;
use crate::visitors::ActionCallerIdentity;
use svc_base::ids::{BackendId, ProjectId, is_visitor_file_id};
use svc_database::VisitorFileRow;

/// A file that may be downloaded.
#[derive(Debug)]
pub(super) struct AllowedFile {
    pub(super) row: VisitorFileRow,
    pub(super) form: StoredFileForm,
    /// Whether everybody may have it.
    pub(super) is_public: bool,
    /// Whether other origins may embed it.
    pub(super) embeds: bool,
}

impl VisitorFiles {
    /// Asks an action for a file; `None` where it does not allow it.
    ///
    /// # Errors
    /// Those of the statement.
    pub(super) async fn find_allowed(
        &self,
        backend: BackendId,
        (action, file): (&CallableAction, &str),
        by: Option<&ActionCallerIdentity>,
    ) -> Result<Option<VisitorFileRow>, UploadError> {
        if !is_visitor_file_id(file) {
            return Ok(None);
        }
        Ok(self.actions.allowed_file(backend, action, file, by).await?)
    }

    /// Finds the bytes of a file that its action allows, or of the smaller copy of a size; `None` where it has none.
    ///
    /// # Errors
    /// `Disabled`, those of the database.
    pub(super) async fn find_form(
        &self,
        backend: BackendId,
        action: &CallableAction,
        (row, size): (VisitorFileRow, u32),
    ) -> Result<Option<AllowedFile>, UploadError> {
        let Some(forms) = self.files.file_forms(backend, &row.id).await? else {
            return Ok(None);
        };
        let Some(form) = forms.form(size) else {
            return Ok(None);
        };
        self.files.check_form(&forms.sent, &form.file).await?;
        // A smaller copy is no longer to be had than what it is a copy of.
        if let Some(whole) = forms.form(0) {
            self.files
                .check_form(&whole.file.digest, &form.file)
                .await?;
        }
        Ok(Some(AllowedFile {
            row,
            form: form.clone(),
            is_public: !requires_identity(&action.row.verdict),
            embeds: action.row.files.embed,
        }))
    }

    /// Opens a file for the owner of its project; `None` where it is not there.
    ///
    /// # Errors
    /// `Disabled`, those of the database and the store.
    pub(super) async fn open_for_owner(
        &self,
        project: ProjectId,
        file: String,
    ) -> Result<Option<(VisitorFileRow, FileReader)>, UploadError> {
        let Some(backend) = self.backend_of(project).await? else {
            return Ok(None);
        };
        let Some(row) = self.backends.find_file(backend, file.clone()).await? else {
            return Ok(None);
        };
        let Some(forms) = self.files.file_forms(backend, &file).await? else {
            return Ok(None);
        };
        let Some(form) = forms.form(0) else {
            return Ok(None);
        };
        self.files.check_form(&forms.sent, &form.file).await?;
        Ok(Some((row, self.files.open_form(form.file).await?)))
    }

    /// Returns the backend of a project, if it has one.
    pub(super) async fn backend_of(
        &self,
        project: ProjectId,
    ) -> Result<Option<BackendId>, BackendError> {
        let found = self.backends.find_by_project(project).await?;
        Ok(found.map(|backend| backend.id))
    }
}
