//! Uploads: received, looked at, stored and named, then committed with the statement of their action, or gone.

use std::net::IpAddr;
use std::sync::Arc;

use ring::hmac;

use super::form::{ReceivedUpload, UploadBounds, is_form, receive};
use super::inspection::{InspectedFile, inspect};
use super::pieces::{PieceBytes, WholeBytes};
use super::requests::{UploadQuery, checked_name};
use super::spool::Spool;
use super::views::UploadedFileView;
use super::{UploadError, VisitorFiles};
use crate::backends::BackendError;
use crate::backends::calls::UploadedFile;
use crate::backends::calls::requests::read_params;
use crate::backends::model::CallableAction;
use crate::content::Digest;
use crate::deployments::files::FileError;
use crate::deployments::files::visitors::{ArrivingFile, ReceivedForm, UploadRoom};
use crate::http::extract::{StreamedBody, invalid_request};
use crate::http::problem::Problem;
use crate::projects::Project;
use crate::visitors::ActionCallerIdentity;
use svc_base::fault;
use svc_base::ids::{BackendId, visitor_file_id};
use svc_database::values::Params;
use svc_database::{ResultJson, StatementRunError, UploadKey, VisitorFileRow};

/// An upload whose body has not been read.
#[derive(Debug)]
pub(super) struct UploadRequest {
    /// Project of the page.
    pub(super) project: Project,
    /// Most bytes of a file on the project's plan.
    pub(super) most_bytes: u64,
    pub(super) backend: BackendId,
    pub(super) action: Arc<CallableAction>,
    /// The visitor, if signed in.
    pub(super) by: Option<ActionCallerIdentity>,
    /// Address by which the client counts.
    pub(super) client: IpAddr,
    /// Value of `Idempotency-Key`.
    pub(super) key: Option<String>,
    pub(super) query: UploadQuery,
    pub(super) content_type: Option<String>,
    pub(super) body: StreamedBody,
}

/// Answer to an upload.
#[derive(Debug)]
pub(super) struct UploadAnswerJson {
    pub(super) json: Vec<u8>,
    /// Number of rows that the action's statement answers.
    pub(super) rows: u64,
    /// Whether an earlier upload of the same key has got it.
    pub(super) is_replayed: bool,
}

/// An upload that has arrived, and what it is to be committed with.
struct ArrivedUpload {
    of: ArrivingFile,
    name: String,
    params: Params,
    received: ReceivedUpload,
    kept: Option<UploadKey>,
    room: UploadRoom,
}

impl VisitorFiles {
    /// Receives a file, and commits it with the statement of its action. Durable when it returns.
    ///
    /// # Errors
    /// [`UploadError`]; nothing is kept then.
    pub(super) async fn upload(
        &self,
        request: UploadRequest,
    ) -> Result<UploadAnswerJson, UploadError> {
        let UploadRequest {
            project,
            most_bytes,
            backend,
            action,
            by,
            client,
            key,
            query,
            content_type,
            body,
        } = request;
        let rules = &action.row.files;
        let bounds = UploadBounds {
            file: most_bytes.min(rules.max_bytes.unwrap_or(u64::MAX)),
            params: self.infra.config.limits.op_body_bytes,
        };
        let content_type = content_type.as_deref();
        let declared = body.declared_bytes();
        bounds.check(declared, is_form(content_type))?;
        let uploader = uploader_of(by.as_ref(), client);
        // A form is as long as its file and a little more.
        let most = declared.min(bounds.file);
        let room = self.find_room(&project, backend, most).await?;
        let turn = self.quotas.begin(client, uploader.clone(), most)?;
        let spool = Spool::new(&self.temporary());
        let received = receive(body, content_type, spool, bounds).await?;
        let name = checked_name(query.name.as_deref().or(received.name.as_deref()))?;
        let params_text = one_of(query.params, received.params.clone())?;
        let params = read_params(params_text.as_deref()).map_err(Problem::from)?;
        self.actions.check_upload_params(&action, &params)?;
        let kept = key.map(|key| {
            let sent = (received.body.digest, &*name, params_text.as_deref());
            self.upload_key((&uploader, &action.row.name, &key), sent)
        });
        if let Some(json) = self.kept_answer(backend, kept.as_ref()).await? {
            return Ok(json);
        }
        let file = visitor_file_id(&self.infra.clock, &self.infra.random)?;
        let arrived = ArrivedUpload {
            of: ArrivingFile::new(project.id, backend, file),
            name,
            params,
            received,
            kept,
            room,
        };
        let answer = self
            .store_and_commit(&project, &action, by, arrived)
            .await?;
        if !answer.is_replayed {
            turn.keep();
        }
        Ok(answer)
    }

    /// Finds room for a file. Where there is none, files that have ended meanwhile are looked for first.
    async fn find_room(
        &self,
        project: &Project,
        backend: BackendId,
        bytes: u64,
    ) -> Result<UploadRoom, UploadError> {
        match self.files.room_for_upload(project, bytes).await {
            Err(FileError::StorageFull { .. }) => {
                self.follow_now(backend).await;
                Ok(self.files.room_for_upload(project, bytes).await?)
            }
            found => Ok(found?),
        }
    }

    /// Hashes what an upload with a key is known again by.
    fn upload_key(
        &self,
        (uploader, action, key): (&str, &str, &str),
        (sent, name, params): (Digest, &str, Option<&str>),
    ) -> UploadKey {
        let hash = |parts: &[&[u8]]| {
            let mut context = hmac::Context::with_key(&self.secret);
            for part in parts {
                context.update(&(part.len() as u64).to_be_bytes());
                context.update(part);
            }
            let mut hash = [0; 32];
            hash.copy_from_slice(context.sign().as_ref());
            hash
        };
        let texts = [uploader, action, key].map(str::as_bytes);
        UploadKey {
            key: hash(&[b"\0upload", texts[0], texts[1], texts[2]]),
            body: hash(&[
                b"\0uploaded",
                sent.as_bytes(),
                name.as_bytes(),
                params.unwrap_or_default().as_bytes(),
            ]),
            at: self.infra.clock.now(),
        }
    }

    /// Returns the answer that an earlier upload of the same key has got.
    async fn kept_answer(
        &self,
        backend: BackendId,
        kept: Option<&UploadKey>,
    ) -> Result<Option<UploadAnswerJson>, UploadError> {
        let Some(kept) = kept else {
            return Ok(None);
        };
        match self
            .backends
            .find_kept_upload(backend, kept.clone())
            .await?
        {
            None => Ok(None),
            Some((body, json)) if body == kept.body => Ok(Some(UploadAnswerJson {
                json,
                rows: 0,
                is_replayed: true,
            })),
            Some(_) => Err(UploadError::KeyUsed),
        }
    }

    /// Looks at a file, stores it, names it, and commits its row.
    async fn store_and_commit(
        &self,
        project: &Project,
        action: &CallableAction,
        by: Option<ActionCallerIdentity>,
        arrived: ArrivedUpload,
    ) -> Result<UploadAnswerJson, UploadError> {
        let body = &arrived.received.body;
        self.files.refuse_blocked_upload(&body.digest).await?;
        let inspected = inspect(&self.sandbox, &self.files, body, &action.row.files).await?;
        let (forms, inspected) = self
            .store_forms(project, action, &arrived, inspected)
            .await?;
        let (of, sent) = (arrived.of.clone(), body.digest);
        let reserved = self
            .files
            .reserve_upload(&of, sent, arrived.room, &forms)
            .await;
        if let Err(error) = reserved {
            self.files.give_up_forms(&forms).await?;
            return Err(error.into());
        }
        let (backend, kept) = (of.backend, arrived.kept.clone());
        match self.commit(action, by, arrived, (&forms, inspected)).await {
            Ok(result) => {
                self.backends.note_uploaded_files(backend, vec![of.file]);
                fault::point("upload.committed");
                Ok(UploadAnswerJson {
                    rows: result.rows.of(0),
                    json: result.json,
                    is_replayed: false,
                })
            }
            Err(error) => {
                // Of what may be committed after all, a look at the database tells later.
                if is_undone(&error) {
                    self.files.give_up_forms(&forms).await?;
                    self.files.release_upload(&of).await?;
                }
                let is_twice =
                    matches!(error, BackendError::Run(StatementRunError::AlreadyUploaded));
                match self
                    .kept_answer(backend, kept.as_ref().filter(|_| is_twice))
                    .await?
                {
                    Some(answer) => Ok(answer),
                    None => Err(error.into()),
                }
            }
        }
    }

    /// Stores a file and its smaller copies.
    async fn store_forms(
        &self,
        project: &Project,
        action: &CallableAction,
        arrived: &ArrivedUpload,
        inspected: InspectedFile,
    ) -> Result<(Vec<ReceivedForm>, InspectedFile), UploadError> {
        let body = arrived.received.body.clone();
        let (bytes, copies) = match &inspected.picture {
            None => (PieceBytes::whole(body), Vec::new()),
            Some(picture) => {
                let copies = picture
                    .copies(&self.sandbox, &action.row.files.sizes)
                    .await?;
                let pieces = picture.cleaned.pieces.clone();
                (PieceBytes::new(body, pieces), copies)
            }
        };
        let (room, media_type) = (arrived.room, &*inspected.media_type);
        let file = self
            .files
            .receive_form(project, room, (0, media_type), bytes);
        let mut forms = vec![file.await?];
        for (size, copy) in copies {
            let bytes = WholeBytes(Some(copy.bytes));
            let stored = self
                .files
                .receive_form(project, room, (size, copy.media_type), bytes)
                .await;
            match stored {
                Ok(form) => forms.push(form),
                Err(error) => {
                    self.files.give_up_forms(&forms).await?;
                    return Err(error);
                }
            }
        }
        Ok((forms, inspected))
    }

    /// Commits the row of a file with the statement of its action.
    async fn commit(
        &self,
        action: &CallableAction,
        by: Option<ActionCallerIdentity>,
        arrived: ArrivedUpload,
        (forms, inspected): (&[ReceivedForm], InspectedFile),
    ) -> Result<ResultJson, BackendError> {
        let file = forms.first();
        let picture = inspected.picture.as_ref();
        let row = VisitorFileRow {
            id: arrived.of.file,
            name: arrived.name,
            media_type: inspected.media_type,
            size: file.map_or(0, ReceivedForm::bytes),
            sha256: file.map_or_else(String::new, |file| file.digest().to_string()),
            width: picture.map(|picture| picture.cleaned.width),
            height: picture.map(|picture| picture.cleaned.height),
            user_id: by.as_ref().map(|by| by.user_id.clone()),
            created_at: self.infra.clock.now().to_string(),
        };
        let sizes = forms.iter().skip(1).map(ReceivedForm::size).collect();
        let view = serde_json::to_string(&UploadedFileView::new(&row, sizes));
        let view = view.map_err(anyhow::Error::from)?;
        let uploaded = UploadedFile {
            row,
            answer_start: format!("{{\"file\":{view},\"result\":"),
            kept: arrived.kept,
        };
        self.actions
            .commit_upload(
                arrived.of.backend,
                action,
                (arrived.params, by.as_ref()),
                uploaded,
            )
            .await
    }
}

/// Returns the name by which bytes of a day count: a visitor's, else the client's.
fn uploader_of(by: Option<&ActionCallerIdentity>, client: IpAddr) -> String {
    match by {
        Some(by) => by.user_id.clone(),
        None => format!("ip:{client}"),
    }
}

/// Returns the params, which come in the query or in the form.
fn one_of(query: Option<String>, form: Option<String>) -> Result<Option<String>, Problem> {
    match (query, form) {
        (Some(_), Some(_)) => Err(invalid_request(
            "`params` stands in the query and in the form: send it once.",
        )),
        (query, form) => Ok(query.or(form)),
    }
}

/// Whether an upload is certain to have changed nothing.
fn is_undone(error: &BackendError) -> bool {
    let BackendError::Run(error) = error else {
        return !matches!(error, BackendError::Store(_) | BackendError::Internal(_));
    };
    !matches!(
        error,
        StatementRunError::Busy | StatementRunError::Closed | StatementRunError::Internal(_)
    )
}
