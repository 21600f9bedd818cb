//! Visitors' files as their owners and the platform see them: lists, ends, and which files a database has.

use std::collections::HashSet;
use std::sync::Arc;

use rusqlite::{Connection, params};
use serde::Deserialize;

use super::connection::TenantConnection;
use super::database::Database;
use super::databases::Databases;
use super::error::{StatementRunError, internal_error};
use super::run::StatementCall;
use super::timing::{StatementLane, StatementTiming};
use super::uploads::{VisitorFileRow, find_file, find_kept_answer, read_file, select_files};
use super::values::Value;
use svc_base::clock::Timestamp;
use svc_base::ids::BackendId;

/// Files that one statement deletes at most, with all that refers to them: fewer where that takes too long.
const FILES_PER_DELETION: i64 = 200;

/// Part of a result that tells how many rows a statement changed.
#[derive(Deserialize)]
struct ChangedRows {
    rows_affected: u64,
}

impl Databases {
    /// Lists at most `limit` files of a database before a given one, newest first.
    ///
    /// # Errors
    /// [`StatementRunError`].
    pub async fn list_files(
        &self,
        id: BackendId,
        before: Option<String>,
        limit: u32,
    ) -> Result<Vec<VisitorFileRow>, StatementRunError> {
        let read = move |c: &Connection| -> rusqlite::Result<Vec<VisitorFileRow>> {
            // Ids ascend with time. No id has this character, which comes after all that one has.
            let before = before.unwrap_or_else(|| "~".to_owned());
            c.prepare(select_files!("WHERE id < ?1 ORDER BY id DESC LIMIT ?2"))?
                .query_map(params![before, limit], read_file)?
                .collect()
        };
        self.load(id).await?.inspect(read).await
    }

    /// Finds a file of a database.
    ///
    /// # Errors
    /// [`StatementRunError`].
    pub async fn find_file(
        &self,
        id: BackendId,
        file: String,
    ) -> Result<Option<VisitorFileRow>, StatementRunError> {
        let find = move |reader: &TenantConnection| find_file(&reader.connection, &file);
        self.load(id)
            .await?
            .with_reader(StatementLane::Short, find)
            .await
    }

    /// Finds the answer to an upload that is kept for a key, and the hash of what was sent with it.
    ///
    /// # Errors
    /// [`StatementRunError`].
    pub async fn find_kept_upload(
        &self,
        id: BackendId,
        key: [u8; 32],
        now: Timestamp,
    ) -> Result<Option<([u8; 32], Vec<u8>)>, StatementRunError> {
        self.load(id)
            .await?
            .inspect(move |c| find_kept_answer(c, &key, now))
            .await
    }

    /// Reads the ids of all files of a database.
    ///
    /// # Errors
    /// [`StatementRunError`].
    pub async fn file_ids(&self, id: BackendId) -> Result<HashSet<String>, StatementRunError> {
        let read = |reader: &TenantConnection| {
            let ids = || {
                reader
                    .connection
                    .prepare("SELECT id FROM svc_files")?
                    .query_map([], |row| row.get(0))?
                    .collect::<rusqlite::Result<_>>()
            };
            ids().map_err(internal_error)
        };
        self.load(id)
            .await?
            .with_reader(StatementLane::Long, read)
            .await
    }

    /// Deletes a file, with what refers to it, behind the walls of a tenant's write. Returns whether it was there.
    ///
    /// # Errors
    /// [`StatementRunError`]; nothing is changed then.
    pub async fn delete_file(
        &self,
        id: BackendId,
        file: String,
    ) -> Result<bool, StatementRunError> {
        let sql = "DELETE FROM svc_files WHERE id = :id";
        let params = vec![("id".to_owned(), Value::Text(file))];
        let database = self.load(id).await?;
        Ok(delete_files(&database, sql, params).await? > 0)
    }

    /// Deletes the files of a visitor, with what refers to them, some at a time.
    ///
    /// # Errors
    /// [`StatementRunError`]; some files may be deleted then.
    pub async fn delete_files_of(
        &self,
        id: BackendId,
        user_id: &str,
    ) -> Result<u64, StatementRunError> {
        let sql = "DELETE FROM svc_files WHERE id IN (SELECT id FROM svc_files WHERE user_id = :user LIMIT :most)";
        let (database, mut all, mut most) = (self.load(id).await?, 0, FILES_PER_DELETION);
        loop {
            let params = vec![
                ("user".to_owned(), Value::Text(user_id.to_owned())),
                ("most".to_owned(), Value::Integer(most)),
            ];
            match delete_files(&database, sql, params).await {
                Ok(0) => return Ok(all),
                Ok(some) => all += some,
                // Without an index each file has the database look through all rows that may refer to it.
                Err(StatementRunError::Timeout) if most > 1 => most /= 4,
                Err(error) => return Err(error),
            }
            most = most.max(1);
        }
    }
}

/// Runs a statement that deletes files; returns how many rows it deleted.
async fn delete_files(
    database: &Database,
    sql: &str,
    params: Vec<(String, Value)>,
) -> Result<u64, StatementRunError> {
    let call = StatementCall {
        sql: sql.into(),
        writes: true,
        params,
    };
    let timing = Arc::<StatementTiming>::default();
    let result = database.call(call, &timing).await?;
    let changed: ChangedRows = serde_json::from_slice(&result.json)
        .map_err(|error| StatementRunError::Internal(error.to_string()))?;
    Ok(changed.rows_affected)
}
