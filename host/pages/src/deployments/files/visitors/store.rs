//! Rows of visitors' files in the control database: which bytes they name.

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::errands::VisitorFileReservation;
use super::{FileForms, StoredFileForm};
use crate::content::Digest;
use crate::control::{Error, Tx};
use crate::deployments::files::store::remove_list;
use crate::deployments::sites::SiteFile;
use crate::deployments::store::mark_garbage;
use svc_base::clock::Timestamp;
use svc_base::ids::{BackendId, ProjectId, WorkspaceId};

/// A backend that has had files of visitors.
#[derive(Clone, Copy, Debug)]
pub struct FileBackend {
    /// The backend.
    pub backend: BackendId,
    /// Project of the backend.
    pub project: ProjectId,
}

/// A file of a backend, as the rows have it.
#[derive(Clone, Debug)]
pub(super) struct NamedFile {
    pub(super) id: String,
    pub(super) state: NamedFileState,
    pub(super) since: Timestamp,
}

/// State of a file's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NamedFileState {
    /// The row may not be committed yet.
    Arriving,
    /// The row is committed.
    Kept,
    /// The row is gone, and the history may bring it back.
    Ended,
}

/// Whether a project has this backend.
pub(super) fn has_backend(
    c: &Connection,
    project: &ProjectId,
    backend: &BackendId,
) -> rusqlite::Result<bool> {
    c.prepare_cached("SELECT EXISTS (SELECT 1 FROM backends WHERE id = ?1 AND project_id = ?2)")?
        .query_row(params![backend, project], |row| row.get(0))
}

/// Inserts the rows of a file that arrives.
pub(super) fn insert(tx: &Tx<'_>, new: &VisitorFileReservation) -> Result<(), Error> {
    tx.prepare_cached(
        "INSERT OR IGNORE INTO visitor_file_backends (backend_id, project_id) VALUES (?1, ?2)",
    )?
    .execute(params![new.backend, new.project])?;
    let mut inserting = tx.prepare_cached(
        "INSERT INTO visitor_files
            (file_id, size, backend_id, project_id, digest, sent_digest, bytes, list_digest, media_type, state, since)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'arriving', ?10)",
    )?;
    for form in &new.forms {
        let list = form.objects.as_ref().map(|(list, _)| *list);
        inserting.execute(params![
            new.file,
            form.size,
            new.backend,
            new.project,
            form.digest,
            new.sent,
            i64::try_from(form.bytes).unwrap_or(i64::MAX),
            list,
            form.media_type,
            new.at,
        ])?;
    }
    Ok(())
}

/// Marks the objects of forms whose rows are gone.
fn mark_forms(
    tx: &Tx<'_>,
    removed: Vec<(Digest, Option<Digest>)>,
    now: Timestamp,
) -> Result<(), Error> {
    for (digest, list) in removed {
        match list {
            Some(list) => remove_list(tx, &list, now)?,
            None => mark_garbage(tx, &digest, now)?,
        }
    }
    Ok(())
}

fn read_removed(row: &Row<'_>) -> rusqlite::Result<(Digest, Option<Digest>)> {
    Ok((row.get(0)?, row.get(1)?))
}

/// Removes a file whose row was never committed.
pub(super) fn release(tx: &Tx<'_>, file: &str, now: Timestamp) -> Result<(), Error> {
    let removed = tx
        .prepare_cached(
            "DELETE FROM visitor_files WHERE file_id = ?1 AND state = 'arriving' RETURNING digest, list_digest",
        )?
        .query_map([file], read_removed)?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    mark_forms(tx, removed, now)
}

/// Notes that the row of a file is committed.
pub(super) fn keep(
    tx: &Tx<'_>,
    backend: &BackendId,
    file: &str,
    now: Timestamp,
) -> Result<(), Error> {
    tx.prepare_cached(
        "UPDATE visitor_files SET state = 'kept', since = ?3
         WHERE file_id = ?1 AND backend_id = ?2 AND state = 'arriving'",
    )?
    .execute(params![file, backend, now])?;
    Ok(())
}

/// Notes that the row of a file is gone.
pub(super) fn end(
    tx: &Tx<'_>,
    backend: &BackendId,
    file: &str,
    now: Timestamp,
) -> Result<(), Error> {
    tx.prepare_cached(
        "UPDATE visitor_files SET state = 'ended', since = ?3
         WHERE file_id = ?1 AND backend_id = ?2 AND state <> 'ended'",
    )?
    .execute(params![file, backend, now])?;
    Ok(())
}

/// Notes that the row of a file is back; returns its forms.
pub(super) fn take_back(
    tx: &Tx<'_>,
    backend: &BackendId,
    file: &str,
    now: Timestamp,
) -> Result<Vec<SiteFile>, Error> {
    let back = tx
        .prepare_cached(
            "UPDATE visitor_files SET state = 'kept', since = ?3
             WHERE file_id = ?1 AND backend_id = ?2 AND state = 'ended'
             RETURNING digest, bytes, list_digest",
        )?
        .query_map(params![file, backend, now], |row| {
            Ok(SiteFile {
                digest: row.get(0)?,
                bytes: row.get::<_, i64>(1)?.unsigned_abs(),
                list: row.get(2)?,
            })
        })?
        .collect::<rusqlite::Result<_>>()?;
    Ok(back)
}

/// Returns the bytes that a file names, in all of its forms, whatever its state.
pub(super) fn find(
    c: &Connection,
    backend: &BackendId,
    file: &str,
) -> rusqlite::Result<Option<FileForms>> {
    let mut sent = None;
    let forms = c
        .prepare_cached(
            "SELECT size, digest, bytes, list_digest, media_type, sent_digest FROM visitor_files
             WHERE file_id = ?1 AND backend_id = ?2 ORDER BY size",
        )?
        .query_map(params![file, backend], |row| {
            sent = Some(row.get(5)?);
            Ok(StoredFileForm {
                size: row.get(0)?,
                file: SiteFile {
                    digest: row.get(1)?,
                    bytes: row.get::<_, i64>(2)?.unsigned_abs(),
                    list: row.get(3)?,
                },
                media_type: row.get(4)?,
            })
        })?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(sent.map(|sent| FileForms { sent, forms }))
}

/// Reads a backend from its id and that of its project.
fn file_backend(row: &Row<'_>) -> rusqlite::Result<FileBackend> {
    Ok(FileBackend {
        backend: row.get(0)?,
        project: row.get(1)?,
    })
}

/// Lists at most `most` backends that have had files, after one of them, but for those that are gone.
pub(super) fn list_backends(
    c: &Connection,
    after: Option<&BackendId>,
    most: u32,
) -> rusqlite::Result<Vec<FileBackend>> {
    c.prepare_cached(
        "SELECT backend_id, project_id FROM visitor_file_backends
         WHERE has_ended = 0 AND backend_id > coalesce(?1, '') ORDER BY backend_id LIMIT ?2",
    )?
    .query_map(params![after, most], file_backend)?
    .collect()
}

/// Lists at most `most` backends with files that have been arriving since before a time, after one of them.
pub(super) fn list_late(
    c: &Connection,
    before: Timestamp,
    after: Option<&BackendId>,
    most: u32,
) -> rusqlite::Result<Vec<FileBackend>> {
    c.prepare_cached(
        "SELECT DISTINCT b.backend_id, b.project_id FROM visitor_files f
         JOIN visitor_file_backends b ON b.backend_id = f.backend_id
         WHERE f.state = 'arriving' AND f.since < ?1 AND b.has_ended = 0 AND b.backend_id > coalesce(?2, '')
         ORDER BY b.backend_id LIMIT ?3",
    )?
    .query_map(params![before, after, most], file_backend)?
    .collect()
}

/// Returns the project of a backend that has had files.
pub(super) fn find_backend(
    c: &Connection,
    backend: &BackendId,
) -> rusqlite::Result<Option<FileBackend>> {
    c.prepare_cached(
        "SELECT backend_id, project_id FROM visitor_file_backends WHERE backend_id = ?1 AND has_ended = 0",
    )?
    .query_row([backend], file_backend)
    .optional()
}

/// Lists the files of a backend, whatever their states.
pub(super) fn list_named(c: &Connection, backend: &BackendId) -> rusqlite::Result<Vec<NamedFile>> {
    c.prepare_cached(
        "SELECT file_id, state, since FROM visitor_files WHERE backend_id = ?1 AND size = 0",
    )?
    .query_map([backend], |row| {
        let state: String = row.get(1)?;
        Ok(NamedFile {
            id: row.get(0)?,
            state: match state.as_str() {
                "arriving" => NamedFileState::Arriving,
                "kept" => NamedFileState::Kept,
                _ => NamedFileState::Ended,
            },
            since: row.get(2)?,
        })
    })?
    .collect()
}

/// Removes at most `most` forms of files that ended before a moment.
pub(super) fn expire(
    tx: &Tx<'_>,
    before: Timestamp,
    most: u32,
    now: Timestamp,
) -> Result<usize, Error> {
    let removed = tx
        .prepare_cached(
            "DELETE FROM visitor_files WHERE (file_id, size) IN (
                SELECT file_id, size FROM visitor_files WHERE state = 'ended' AND since < ?1
                ORDER BY since LIMIT ?2) RETURNING digest, list_digest",
        )?
        .query_map(params![before, most], read_removed)?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    let count = removed.len();
    mark_forms(tx, removed, now)?;
    Ok(count)
}

/// Lists the projects with bytes of ended files: how many, and the workspace whose plan bounds them, if the project is there.
pub(super) fn ended_bytes(
    c: &Connection,
) -> rusqlite::Result<Vec<(ProjectId, u64, Option<WorkspaceId>)>> {
    c.prepare_cached(
        "SELECT project_id, sum(bytes),
            (SELECT p.workspace_id FROM projects p WHERE p.id = project_id)
         FROM visitor_files WHERE state = 'ended' GROUP BY project_id",
    )?
    .query_map([], |row| {
        let bytes: i64 = row.get(1)?;
        Ok((row.get(0)?, bytes.unsigned_abs(), row.get(2)?))
    })?
    .collect()
}

/// Removes the project's ended form that ended first; returns its bytes.
pub(super) fn expire_oldest(
    tx: &Tx<'_>,
    project: &ProjectId,
    now: Timestamp,
) -> Result<Option<u64>, Error> {
    let removed: Option<(Digest, Option<Digest>, i64)> = tx
        .prepare_cached(
            "DELETE FROM visitor_files WHERE (file_id, size) IN (
                SELECT file_id, size FROM visitor_files WHERE project_id = ?1 AND state = 'ended'
                ORDER BY since, file_id LIMIT 1) RETURNING digest, list_digest, bytes",
        )?
        .query_row([project], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let Some((digest, list, bytes)) = removed else {
        return Ok(None);
    };
    mark_forms(tx, vec![(digest, list)], now)?;
    Ok(Some(bytes.unsigned_abs()))
}

/// Removes at most `most` forms of files of backends that are gone; returns the projects of those that still had some.
pub(super) fn expire_backends(
    tx: &Tx<'_>,
    most: u32,
    now: Timestamp,
) -> Result<Vec<ProjectId>, Error> {
    let gone: Option<(BackendId, ProjectId)> = tx
        .prepare_cached(
            "SELECT backend_id, project_id FROM visitor_file_backends WHERE has_ended = 1 LIMIT 1",
        )?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((backend, project)) = gone else {
        return Ok(Vec::new());
    };
    let removed = tx
        .prepare_cached(
            "DELETE FROM visitor_files WHERE (file_id, size) IN (
                SELECT file_id, size FROM visitor_files WHERE backend_id = ?1 LIMIT ?2)
             RETURNING digest, list_digest",
        )?
        .query_map(params![backend, most], read_removed)?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    if removed.len() < most as usize {
        tx.prepare_cached("DELETE FROM visitor_file_backends WHERE backend_id = ?1")?
            .execute([backend])?;
    }
    mark_forms(tx, removed, now)?;
    Ok(vec![project])
}
