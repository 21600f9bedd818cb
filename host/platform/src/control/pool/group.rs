//! Group commit of the control database: jobs that wait share a transaction, with a savepoint each, and one sync.

use rusqlite::Connection;

use crate::control::Error;
use crate::control::change::ControlChange;
use crate::control::residue::WalResidue;

/// Most queued writes that share one commit.
pub(super) const MAX_GROUP: usize = 64;

/// A write, run with the connection of the shared transaction, or with the error that prevented it.
pub(super) type WriteJob = Box<dyn FnOnce(Result<&Connection, Error>) -> FinishedWriteJob + Send>;
/// Answers a caller once the commit has succeeded or failed.
pub(super) type AnswerCallerFn = Box<dyn FnOnce(Result<(), Error>) + Send>;

/// A job that has run.
pub(super) struct FinishedWriteJob {
    /// Noted changes; `None` if the job's writes are rolled back.
    pub(super) kept: Option<Vec<ControlChange>>,
    pub(super) tell: AnswerCallerFn,
}

/// A group that was committed or has failed, and whose callers are not answered yet.
pub(super) struct UnansweredGroup {
    /// Changes that are committed.
    pub(super) changes: Vec<ControlChange>,
    tells: Vec<AnswerCallerFn>,
    pub(super) failure: Option<rusqlite::Error>,
}

impl UnansweredGroup {
    pub(super) fn answer_callers(self) {
        let failure = self.failure.as_ref();
        for tell in self.tells {
            tell(failure.map_or(Ok(()), |error| Err(clone_error(error))));
        }
    }
}

/// Runs a group of jobs in one transaction and commits it, which syncs it.
pub(super) fn run_group(
    connection: &Connection,
    group: Vec<WriteJob>,
    residue: &WalResidue,
) -> UnansweredGroup {
    let mut failure = connection.execute_batch("BEGIN IMMEDIATE").err();
    let mut tells = Vec::with_capacity(group.len());
    let mut changes = Vec::new();
    for job in group {
        let done = match &failure {
            Some(error) => job(Err(clone_error(error))),
            None => run_one(connection, job, &mut failure),
        };
        tells.push(done.tell);
        changes.extend(done.kept.into_iter().flatten());
    }
    if failure.is_none() {
        failure = connection.execute_batch("COMMIT").err();
        residue.on_commit();
    }
    if let Some(error) = &failure {
        tracing::error!(%error, "control database writes failed to commit");
        if !connection.is_autocommit() {
            // The transaction is lost either way; the rollback lets the next group begin.
            let _ = connection.execute_batch("ROLLBACK");
        }
    }
    if failure.is_some() {
        changes.clear();
    }
    UnansweredGroup {
        changes,
        tells,
        failure,
    }
}

/// Runs one job in a savepoint. A full disk or an I/O error can end the whole transaction: that is the `failure` of all jobs in
/// the group.
fn run_one(
    connection: &Connection,
    job: WriteJob,
    failure: &mut Option<rusqlite::Error>,
) -> FinishedWriteJob {
    if let Err(error) = connection.execute_batch("SAVEPOINT job") {
        let done = job(Err(clone_error(&error)));
        *failure = Some(error);
        return done;
    }
    let done = job(Ok(connection));
    let settle = if done.kept.is_some() {
        "RELEASE job"
    } else {
        "ROLLBACK TO job; RELEASE job"
    };
    if let Err(error) = connection.execute_batch(settle) {
        *failure = Some(error);
    }
    done
}

/// Copies the error of a shared commit for one of its callers.
fn clone_error(error: &rusqlite::Error) -> Error {
    let (code, text) = match error {
        rusqlite::Error::SqliteFailure(code, text) => (*code, text.clone()),
        other => (
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_ERROR),
            Some(other.to_string()),
        ),
    };
    rusqlite::Error::SqliteFailure(code, text).into()
}
