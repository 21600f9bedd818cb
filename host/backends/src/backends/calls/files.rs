//! Calls of the actions that store and give files of visitors.

use std::sync::Arc;

use super::{ActionCalls, bind, check_names, check_reserved};
use crate::backends::actions::statement_error;
use crate::backends::model::{
    BackendError, CallableAction, FILE_BIND, FILE_NAME_BIND, FILE_SHA256_BIND, FILE_SIZE_BIND,
    FILE_TYPE_BIND, is_writing_statement, param_names, requires_identity, takes_file,
};
use crate::control::audit::{self, AuditAction};
use crate::visitors::ActionCallerIdentity;
use svc_base::ids::BackendId;
use svc_database::values::{Params, Value};
use svc_database::{ResultJson, StatementCall, UploadCall, UploadKey, VisitorFileRow};

/// Row and answer that an upload commits beside the statement of its action.
#[derive(Debug)]
pub struct UploadedFile {
    /// Row of the file.
    pub row: VisitorFileRow,
    /// Begin of the answer's JSON, up to the result of the statement.
    pub answer_start: String,
    /// Key for which the answer is kept.
    pub kept: Option<UploadKey>,
}

impl ActionCalls {
    /// Finds the action of an upload, and checks who calls.
    ///
    /// # Errors
    /// `NoAction`, `Invalid` for an action that takes no upload, `IdentityRequired`.
    pub async fn upload_action(
        &self,
        id: BackendId,
        action: &str,
        by: Option<&ActionCallerIdentity>,
    ) -> Result<Arc<CallableAction>, BackendError> {
        let action = self.definitions.action(id, action).await?;
        let verdict = &action.row.verdict;
        if !takes_file(verdict) || !is_writing_statement(verdict) {
            return Err(BackendError::Invalid(format!(
                "The action `{}` takes no upload: one that does writes, and has `:svc_file`.",
                action.row.name
            )));
        }
        if by.is_none() && requires_identity(verdict) {
            return Err(BackendError::IdentityRequired);
        }
        Ok(action)
    }

    /// Checks the params of an upload.
    ///
    /// # Errors
    /// `ReservedParam`, `ParamsMismatch`.
    pub fn check_upload_params(
        &self,
        action: &CallableAction,
        given: &Params,
    ) -> Result<(), BackendError> {
        check_reserved(given)?;
        check_names(&action.row.verdict, given, &action.defaults)
    }

    /// Inserts the row of a file and runs the action, both or neither. Durable when it returns the whole answer.
    ///
    /// # Errors
    /// [`BackendError`]; nothing is changed then.
    pub async fn commit_upload(
        &self,
        id: BackendId,
        action: &CallableAction,
        (mut given, by): (Params, Option<&ActionCallerIdentity>),
        file: UploadedFile,
    ) -> Result<ResultJson, BackendError> {
        bind(action, by, &mut given, |value| value);
        bind_file(action, &file.row, &mut given);
        let upload = UploadCall {
            call: StatementCall {
                sql: Arc::clone(&action.statement),
                writes: true,
                params: given,
            },
            file: file.row,
            answer_start: file.answer_start,
            kept: file.kept,
        };
        let database = self.backends.databases.load(id).await?;
        let row = &action.row;
        let changes = &self.backends.file_changes;
        let _noted = changes.note_after(id, (&row.sql, &row.verdict));
        let written = database.upload(upload, &action.timing).await;
        written.map_err(|error| statement_error(&row.sql, &row.verdict, error))
    }

    /// Finds the action of a download; `None` for one that gives no file for its id alone.
    ///
    /// # Errors
    /// `IdentityRequired`; the refusal of a newer gate.
    pub async fn download_action(
        &self,
        id: BackendId,
        action: &str,
        by: Option<&ActionCallerIdentity>,
    ) -> Result<Option<Arc<CallableAction>>, BackendError> {
        let action = match self.definitions.action(id, action).await {
            Ok(action) => action,
            Err(BackendError::NoAction(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let verdict = &action.row.verdict;
        let gives_file = takes_file(verdict)
            && !is_writing_statement(verdict)
            && param_names(verdict).next().is_none();
        match gives_file {
            true if by.is_none() && requires_identity(verdict) => {
                Err(BackendError::IdentityRequired)
            }
            true => Ok(Some(action)),
            false => Ok(None),
        }
    }

    /// Asks an action whether a file may be downloaded; returns the file's row if it has a row, and the file is there.
    ///
    /// # Errors
    /// [`BackendError`].
    pub async fn allowed_file(
        &self,
        id: BackendId,
        action: &CallableAction,
        file: &str,
        by: Option<&ActionCallerIdentity>,
    ) -> Result<Option<VisitorFileRow>, BackendError> {
        let mut params = Params::with_capacity(2);
        bind(action, by, &mut params, |value| value);
        params.push((FILE_BIND.to_owned(), Value::Text(file.to_owned())));
        let call = StatementCall {
            sql: Arc::clone(&action.statement),
            writes: false,
            params,
        };
        let database = self.backends.databases.load(id).await?;
        let row = &action.row;
        let allowed = database
            .allowed_file(call, &action.timing, file.into())
            .await;
        allowed.map_err(|error| statement_error(&row.sql, &row.verdict, error))
    }

    /// Deletes a file for its owner, with what refers to it, and with an entry in the audit log.
    ///
    /// # Errors
    /// [`BackendError`]; nothing is changed then.
    pub async fn delete_file(&self, id: BackendId, file: String) -> Result<(), BackendError> {
        let databases = &self.backends.databases;
        let part = file.clone();
        let work = async {
            let deleted = databases.delete_file(id, file).await;
            Ok::<(), BackendError>(deleted.map(drop)?)
        };
        match audit::current_actor() {
            Some(_) => {
                let entry = (AuditAction::FileDelete, Some(part));
                self.run_audited(id, entry, work).await?;
            }
            None => work.await?,
        }
        self.backends.file_changes.note(id);
        Ok(())
    }
}

/// Sets the binds of a statement to what is known of an uploaded file.
fn bind_file(action: &CallableAction, file: &VisitorFileRow, given: &mut Params) {
    for name in &action.row.verdict.binds {
        let known = match name.as_str() {
            FILE_BIND => Value::Text(file.id.clone()),
            FILE_NAME_BIND => Value::Text(file.name.clone()),
            FILE_TYPE_BIND => Value::Text(file.media_type.clone()),
            FILE_SIZE_BIND => Value::Integer(i64::try_from(file.size).unwrap_or(i64::MAX)),
            FILE_SHA256_BIND => Value::Text(file.sha256.clone()),
            _ => continue,
        };
        given.push((name.clone(), known));
    }
}
