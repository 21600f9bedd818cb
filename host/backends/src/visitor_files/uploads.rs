//! Uploads: received, looked at, stored and named, then committed with the statement of their action, or gone.

use std::net::IpAddr;
use std::sync::Arc;

use super::form::{ReceivedUpload, UploadBounds, receive};
use super::inspection::{InspectedFile, inspect};
use super::keys::KeyHash;
use super::pieces::{PieceBytes, WholeBytes};
use super::requests::{UploadQuery, checked_name};
use super::spool::Spool;
use super::views::UploadedFileView;
use super::{UploadError, VisitorFiles};
use crate::access::in_flight::InFlightGuard;
use crate::backends::BackendError;
use crate::backends::calls::UploadedFile;
use crate::backends::calls::requests::read_params;
use crate::backends::model::CallableAction;
use crate::deployments::files::FileError;
use crate::deployments::files::visitors::{ArrivingFile, ReceivedForm, ReservedBytes, UploadRoom};
use crate::http::extract::{StreamedBody, invalid_request};
use crate::http::problem::Problem;
use crate::projects::Project;
use crate::visitors::ActionCallerIdentity;
use svc_base::fault;
use svc_base::ids::{BackendId, DeploymentId, visitor_file_id};
use svc_database::values::Params;
use svc_database::{ResultJson, StatementRunError, UploadKey, VisitorFileRow};

/// An upload whose body has not been read.
#[derive(Debug)]
pub(super) struct UploadRequest {
    /// Page that the file is sent to, and its project.
    pub(super) page: DeploymentId,
    pub(super) project: Project,
    pub(super) bounds: UploadBounds,
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

/// Answer that an earlier upload with the same key has got.
struct EarlierAnswer {
    /// Hash of what was sent.
    body: [u8; 32],
    json: Vec<u8>,
}

/// A file that was sent, with what was said of it.
struct SentUpload {
    name: String,
    params: Params,
    received: ReceivedUpload,
    kept: Option<UploadKey>,
}

/// An upload that has arrived, and what it is to be committed with.
struct ArrivedUpload {
    of: ArrivingFile,
    sent: SentUpload,
    room: UploadRoom,
}

/// An upload whose bytes are stored.
struct StoredUpload {
    /// The file, then its smaller copies.
    forms: Vec<ReceivedForm>,
    inspected: InspectedFile,
}

impl VisitorFiles {
    /// Receives a file, and commits it with the statement of its action. Durable when it returns. `still_allowed` is asked once the file is
    /// there, because page, action and session may have ended while it came.
    ///
    /// # Errors
    /// [`UploadError`]; nothing is kept then.
    pub(super) async fn upload(
        &self,
        request: UploadRequest,
        still_allowed: impl AsyncFnOnce() -> Result<(), Problem>,
    ) -> Result<UploadAnswerJson, UploadError> {
        let UploadRequest {
            page,
            project,
            bounds,
            backend,
            action,
            by,
            client,
            key,
            query,
            content_type,
            body,
        } = request;
        let uploader = uploader_of(by.as_ref(), client);
        let key = key.map(|key| self.keys.begin(&page, (&uploader, &action.row.name, &key)));
        let key = key.transpose()?;
        let earlier = self.earlier_answer(backend, key.as_ref()).await?;
        // An upload that is sent again takes no room; a form is as long as its file and a little more.
        let most = body.declared_bytes().min(bounds.file);
        let most = earlier.is_none().then_some(most);
        let room = match most {
            Some(most) => Some(self.find_room(&project, backend, most).await?),
            None => None,
        };
        let most = most.unwrap_or(0);
        let mut turn = self.quotas.begin(client, uploader, most)?;
        let spool = Spool::new(&self.temporary());
        let received = receive(body, content_type.as_deref(), spool, bounds).await?;
        let sent = self.read_sent(&action, query, received, key.as_ref())?;
        let Some(room) = room else {
            return replay(earlier, sent.kept.as_ref());
        };
        let file = visitor_file_id(&self.infra.clock, &self.infra.random)?;
        let of = ArrivingFile::new(project.id, backend, file);
        let arrived = ArrivedUpload { of, sent, room };
        let storing = self.store(&project, &action, (&arrived, still_allowed));
        let stored = Box::pin(storing).await?;
        turn.store();
        let answer = self.commit_or_undo(&action, by, (arrived, stored)).await?;
        turn.keep();
        Ok(answer)
    }

    /// Reads what was sent with a file, in the query or in a form.
    fn read_sent(
        &self,
        action: &CallableAction,
        query: UploadQuery,
        received: ReceivedUpload,
        key: Option<&InFlightGuard<KeyHash>>,
    ) -> Result<SentUpload, UploadError> {
        let name = checked_name(query.name.as_deref().or(received.name.as_deref()))?;
        let text = one_of(query.params, received.params.clone())?;
        let params = read_params(text.as_deref()).map_err(Problem::from)?;
        self.actions.check_upload_params(action, &params)?;
        let digest = received.body.digest;
        let kept = key.map(|key| UploadKey {
            key: *key.key(),
            body: self.keys.hash_upload(digest, &name, text.as_deref()),
            at: self.infra.clock.now(),
        });
        Ok(SentUpload {
            name,
            params,
            received,
            kept,
        })
    }

    /// Commits an upload that is stored; nothing is left of one that the database refuses.
    async fn commit_or_undo(
        &self,
        action: &CallableAction,
        by: Option<ActionCallerIdentity>,
        (arrived, (stored, reserved)): (ArrivedUpload, (StoredUpload, ReservedBytes)),
    ) -> Result<UploadAnswerJson, UploadError> {
        let of = arrived.of.clone();
        match self.commit(action, by, arrived, &stored).await {
            Ok(result) => {
                self.backends.note_uploaded_files(of.backend, vec![of.file]);
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
                    self.files.give_up_forms(&stored.forms).await?;
                    self.files.release_upload(&of, reserved).await?;
                }
                Err(error.into())
            }
        }
    }

    /// Returns the bounds of an upload by an action, where the project's plan has so many bytes for a file.
    pub(super) fn bounds(&self, action: &CallableAction, most_bytes: u64) -> UploadBounds {
        let rules = &action.row.files;
        UploadBounds {
            file: most_bytes.min(rules.max_bytes.unwrap_or(u64::MAX)),
            params: self.infra.config.limits.op_body_bytes,
        }
    }

    /// Finds room for a file. Where there is none, files that have ended meanwhile are looked for first.
    async fn find_room(
        &self,
        project: &Project,
        backend: BackendId,
        bytes: u64,
    ) -> Result<UploadRoom, UploadError> {
        let arriving = self.quotas.arriving_bytes();
        match self.files.room_for_upload(project, (bytes, arriving)).await {
            Err(FileError::StorageFull { .. }) => {
                self.follow_now(backend).await;
                let found = self.files.room_for_upload(project, (bytes, arriving));
                Ok(found.await?)
            }
            found => Ok(found?),
        }
    }

    /// Returns the answer that an earlier upload with the key has got.
    async fn earlier_answer(
        &self,
        backend: BackendId,
        key: Option<&InFlightGuard<KeyHash>>,
    ) -> Result<Option<EarlierAnswer>, UploadError> {
        let Some(key) = key else {
            return Ok(None);
        };
        let (hash, now) = (*key.key(), self.infra.clock.now());
        let found = self.backends.find_kept_upload(backend, hash, now).await?;
        Ok(found.map(|(body, json)| EarlierAnswer { body, json }))
    }

    /// Looks at a file, stores it, and names it.
    async fn store(
        &self,
        project: &Project,
        action: &CallableAction,
        (arrived, still_allowed): (&ArrivedUpload, impl AsyncFnOnce() -> Result<(), Problem>),
    ) -> Result<(StoredUpload, ReservedBytes), UploadError> {
        let body = &arrived.sent.received.body;
        self.files.refuse_blocked_upload(&body.digest).await?;
        let inspected = inspect(&self.sandbox, &self.files, body, &action.row.files).await?;
        let stored = self
            .store_forms(project, action, arrived, inspected)
            .await?;
        let forms = &stored.forms;
        let reserved = match still_allowed().await {
            Ok(()) => self
                .files
                .reserve_upload(&arrived.of, body.digest, arrived.room, forms)
                .await
                .map_err(UploadError::from),
            Err(problem) => Err(problem.into()),
        };
        match reserved {
            Ok(reserved) => Ok((stored, reserved)),
            Err(error) => {
                self.files.give_up_forms(forms).await?;
                Err(error)
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
    ) -> Result<StoredUpload, UploadError> {
        let body = arrived.sent.received.body.clone();
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
        Ok(StoredUpload { forms, inspected })
    }

    /// Commits the row of a file with the statement of its action.
    async fn commit(
        &self,
        action: &CallableAction,
        by: Option<ActionCallerIdentity>,
        arrived: ArrivedUpload,
        StoredUpload { forms, inspected }: &StoredUpload,
    ) -> Result<ResultJson, BackendError> {
        let file = forms.first();
        let picture = inspected.picture.as_ref();
        let row = VisitorFileRow {
            id: arrived.of.file,
            name: arrived.sent.name,
            media_type: inspected.media_type.clone(),
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
            kept: arrived.sent.kept,
        };
        self.actions
            .commit_upload(
                arrived.of.backend,
                action,
                (arrived.sent.params, by.as_ref()),
                uploaded,
            )
            .await
    }
}

/// Answers an upload that is sent again as it was answered.
///
/// # Errors
/// `KeyUsed` where something else was sent.
fn replay(
    earlier: Option<EarlierAnswer>,
    kept: Option<&UploadKey>,
) -> Result<UploadAnswerJson, UploadError> {
    match earlier.zip(kept) {
        Some((earlier, kept)) if earlier.body == kept.body => Ok(UploadAnswerJson {
            json: earlier.json,
            rows: 0,
            is_replayed: true,
        }),
        _ => Err(UploadError::KeyUsed),
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
