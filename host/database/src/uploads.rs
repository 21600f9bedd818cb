//! An upload in a database: the row of its file and the statement of its action, all or nothing.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::connection::TenantConnection;
use super::error::{StatementRunError, internal_error};
use super::limits::{FILES_TABLE, ResultLimits};
use super::run::{ResultJson, StatementCall, run};
use svc_base::clock::Timestamp;

/// Time for which the answer to an upload is kept for its key, in seconds.
const KEPT_SECONDS: i64 = 24 * 3600;
/// Bytes of an answer in one row, which has the bound of a value: a longer one is kept in pieces.
const PIECE_BYTES: usize = 128 << 10;

/// Writes a query of files, by what follows the table.
macro_rules! select_files {
    ($rest:literal) => {
        concat!(
            "SELECT id, name, type, size, sha256, width, height, user_id, created_at FROM svc_files ",
            $rest
        )
    };
}
pub(super) use select_files;

/// Row of `svc_files`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VisitorFileRow {
    /// Id of the file.
    pub id: String,
    /// Name that the visitor gave.
    pub name: String,
    /// Media type, as it was recognised.
    pub media_type: String,
    /// Length in bytes.
    pub size: u64,
    /// SHA-256 of the bytes, in hexadecimal.
    pub sha256: String,
    /// Width of a picture, as it is shown.
    pub width: Option<u32>,
    /// Height of a picture, as it is shown.
    pub height: Option<u32>,
    /// Id of the visitor, if signed in.
    pub user_id: Option<String>,
    /// Time of the upload, as the row has it.
    pub created_at: String,
}

/// Key of an upload that may be sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadKey {
    /// Keyed hash of the caller, the action and the key.
    pub key: [u8; 32],
    /// Keyed hash of what was sent.
    pub body: [u8; 32],
    /// Time of the request.
    pub at: Timestamp,
}

/// An upload to commit.
#[derive(Clone, Debug)]
pub struct UploadCall {
    /// Statement of the action.
    pub call: StatementCall,
    /// Row of the file.
    pub file: VisitorFileRow,
    /// Begin of the answer's JSON, up to the result of the statement; a brace follows that.
    pub answer_start: String,
    /// Key for which the answer is kept.
    pub kept: Option<UploadKey>,
}

impl UploadCall {
    /// Bytes of SQL and parameters.
    pub(super) fn bytes(&self) -> usize {
        self.call.bytes() + self.answer_start.len()
    }
}

/// Runs an upload within `budget`; returns the whole answer. After a failure the caller must roll back.
pub(super) fn run_upload(
    handle: &TenantConnection,
    upload: &UploadCall,
    limits: &ResultLimits,
    budget: Duration,
) -> Result<ResultJson, StatementRunError> {
    let connection = &handle.connection;
    let inserted = insert_file(connection, &upload.file);
    inserted.map_err(|error| StatementRunError::from_sqlite(error, None))?;
    handle.note_platform_write(FILES_TABLE);
    let result = run(handle, &upload.call, limits, budget)?;
    // A statement may delete the row that it was given.
    if connection.changes() == 0 || find_file(connection, &upload.file.id)?.is_none() {
        return Err(StatementRunError::NothingWritten);
    }
    let mut answer = upload.answer_start.clone().into_bytes();
    answer.extend_from_slice(&result.json);
    answer.push(b'}');
    if let Some(kept) = &upload.kept {
        keep_answer(connection, kept, &answer)?;
    }
    Ok(ResultJson {
        json: answer,
        rows: result.rows,
    })
}

fn insert_file(connection: &Connection, file: &VisitorFileRow) -> rusqlite::Result<()> {
    let mut insert = connection.prepare(
        "INSERT INTO svc_files (id, name, type, size, sha256, width, height, user_id, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    insert.execute(params![
        file.id,
        file.name,
        file.media_type,
        i64::try_from(file.size).unwrap_or(i64::MAX),
        file.sha256,
        file.width,
        file.height,
        file.user_id,
        file.created_at,
    ])?;
    Ok(())
}

fn keep_answer(
    connection: &Connection,
    kept: &UploadKey,
    answer: &[u8],
) -> Result<(), StatementRunError> {
    let old = kept.at.plus_seconds(-KEPT_SECONDS);
    let keep = || {
        connection
            .prepare("DELETE FROM svc_uploads WHERE at < ?1")?
            .execute([old.0])?;
        let mut insert = connection
            .prepare("INSERT INTO svc_uploads (key, body, answer, at) VALUES (?1, ?2, ?3, ?4)")?;
        for (number, piece) in answer.chunks(PIECE_BYTES).enumerate() {
            let key = key_of_piece(&kept.key, number);
            insert.execute(params![key, kept.body, piece, kept.at.0])?;
        }
        Ok(())
    };
    match keep() {
        Ok(()) => Ok(()),
        Err(error) if is_constraint(&error) => Err(StatementRunError::AlreadyUploaded),
        Err(error) => Err(StatementRunError::from_sqlite(error, None)),
    }
}

fn is_constraint(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation)
}

/// Finds the answer that is kept for a key, and the hash of what was sent with it.
pub(super) fn find_kept_answer(
    connection: &Connection,
    key: &[u8; 32],
    now: Timestamp,
) -> rusqlite::Result<Option<([u8; 32], Vec<u8>)>> {
    let old = now.plus_seconds(-KEPT_SECONDS);
    let mut select =
        connection.prepare("SELECT body, answer FROM svc_uploads WHERE key = ?1 AND at >= ?2")?;
    let mut find = |number| -> rusqlite::Result<Option<([u8; 32], Vec<u8>)>> {
        select
            .query_row(params![key_of_piece(key, number), old.0], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()
    };
    let Some((body, mut answer)) = find(0)? else {
        return Ok(None);
    };
    let (mut number, mut last) = (0, answer.len());
    while last == PIECE_BYTES {
        number += 1;
        let piece = find(number)?.map(|(_, piece)| piece);
        let piece = piece.unwrap_or_default();
        last = piece.len();
        answer.extend_from_slice(&piece);
    }
    Ok(Some((body, answer)))
}

/// Returns the key of a piece of an answer: that of the upload, and the number of one that is not the first.
fn key_of_piece(key: &[u8; 32], number: usize) -> Vec<u8> {
    let mut of_piece = key.to_vec();
    if number > 0 {
        of_piece.extend_from_slice(&number.to_be_bytes());
    }
    of_piece
}

/// Finds a file. Its statement is prepared once a connection; a tenant's cannot have its text, because of the bind.
pub(super) fn find_file(
    connection: &Connection,
    id: &str,
) -> Result<Option<VisitorFileRow>, StatementRunError> {
    let find = || {
        connection
            .prepare_cached(select_files!("WHERE id = ?1"))?
            .query_row([id], read_file)
            .optional()
    };
    find().map_err(internal_error)
}

/// Reads a row of [`select_files`].
pub(super) fn read_file(row: &Row<'_>) -> rusqlite::Result<VisitorFileRow> {
    Ok(VisitorFileRow {
        id: row.get(0)?,
        name: row.get(1)?,
        media_type: row.get(2)?,
        size: row.get::<_, i64>(3)?.unsigned_abs(),
        sha256: row.get(4)?,
        width: row.get(5)?,
        height: row.get(6)?,
        user_id: row.get(7)?,
        created_at: row.get(8)?,
    })
}
