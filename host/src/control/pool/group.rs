//! Group commit of the control database: jobs that wait share a transaction, with a savepoint each, and one sync.

use std::sync::mpsc::Receiver;

use rusqlite::Connection;

use crate::control::Error;
use crate::control::change::{Change, ChangeListeners};
use crate::control::residue::Residue;
use svc_base::fault;
use svc_base::positions::{CommitPosition, UnacknowledgedCommits};

/// How many queued writes share one commit at most.
const MAX_GROUP: usize = 64;

/// Runs inside the shared transaction, or learns why there is none.
pub(super) type Job = Box<dyn FnOnce(Result<&Connection, Error>) -> FinishedJob + Send>;
/// Tells a caller once the fate of the commit is known.
pub(super) type AnswerCaller = Box<dyn FnOnce(Result<(), Error>) + Send>;

/// A job that has run.
pub(super) struct FinishedJob {
    /// The changes that it noted; `None` if what it did is to be undone.
    pub(super) kept: Option<Vec<Change>>,
    pub(super) tell: AnswerCaller,
}

/// Runs jobs in groups until nobody can send one. A group is committed, which is the first step; once that is acknowledged, its
/// changes are delivered, and then its callers are answered.
pub(super) fn write_loop(
    connection: &Connection,
    jobs: &Receiver<Job>,
    listeners: &ChangeListeners,
    residue: &Residue,
) {
    let (mut position, mut waiting) = (CommitPosition::default(), UnacknowledgedCommits::default());
    while let Ok(first) = jobs.recv() {
        let mut group = vec![first];
        while group.len() < MAX_GROUP {
            match jobs.try_recv() {
                Ok(job) => group.push(job),
                Err(_) => break,
            }
        }
        let written = run_group(connection, group, residue);
        if written.failure.is_none() {
            position = position.next();
            fault::point("commit.made");
        }
        waiting.push(position, written);
        // One machine has acknowledged a commit once it is synced: nothing is awaited. Where other machines follow this database,
        // this is where they are, and the next group may run meanwhile.
        let acknowledged = position;
        for written in waiting.take_acknowledged(acknowledged) {
            listeners.deliver(&written.changes);
            fault::point("commit.delivered");
            written.answer_callers();
        }
    }
}

/// A group whose fate is known, and whose callers wait for the second step.
struct CommittedGroup {
    /// Changes that are durable.
    changes: Vec<Change>,
    tells: Vec<AnswerCaller>,
    failure: Option<rusqlite::Error>,
}

impl CommittedGroup {
    fn answer_callers(self) {
        let failure = self.failure.as_ref();
        for tell in self.tells {
            tell(failure.map_or(Ok(()), |error| Err(clone_error(error))));
        }
    }
}

/// Runs a group of jobs in one transaction and commits it, which syncs it.
fn run_group(connection: &Connection, group: Vec<Job>, residue: &Residue) -> CommittedGroup {
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
            // The transaction is lost either way; what matters is that the next group can begin.
            let _ = connection.execute_batch("ROLLBACK");
        }
    }
    if failure.is_some() {
        changes.clear();
    }
    CommittedGroup {
        changes,
        tells,
        failure,
    }
}

/// Runs one job in a savepoint. A full disk or an I/O error can end the whole transaction under it: that is
/// the `failure` of everybody in the group.
fn run_one(
    connection: &Connection,
    job: Job,
    failure: &mut Option<rusqlite::Error>,
) -> FinishedJob {
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

/// The error of a shared commit, for each of its callers.
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
