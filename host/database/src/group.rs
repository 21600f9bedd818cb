//! Group commit: the writes that wait for one database share a transaction and one sync, and none harms another.
//!
//! If one of them fails, they all run again with a savepoint each. Some failures end the whole transaction (an interrupt, a full
//! database, `OR ROLLBACK`): then only the failed write is answered, and the others run again. A foreign key that is checked at
//! the commit would fail all writes, so a database with such keys commits its writes one by one.

use std::time::Duration;

use super::batch::BatchError;
use super::connection::TenantConnection;
use super::error::{StatementRunError, internal_error};
use super::limits::{QUEUE_TIMEOUT, ResultLimits};
use super::pending_commits::CommitReplies;
use super::pending_write::PendingWrite;
use super::run::ResultJson;
use super::timing::{SHORT_BUDGET, thread_cpu_time};
use super::transaction::{begin, commit, roll_back};
use super::writer::DatabaseWriter;
use svc_base::{Stopwatch, fault};

/// The most writes that share a commit.
pub(super) const GROUP_MAX_WRITES: usize = 128;
/// The most bytes of parameters that share a commit.
pub(super) const GROUP_MAX_BYTES: usize = 1 << 20;
/// Time after which a group takes no more writes.
const GROUP_TIME: Duration = Duration::from_millis(40);

/// Writes that a group did not finish.
#[derive(Debug, Default)]
pub(super) struct UnfinishedWrites {
    /// Writes that take too long for a group, and need the long lane.
    pub(super) long: Vec<PendingWrite>,
    /// Writes for which the group had no time.
    pub(super) deferred: Vec<PendingWrite>,
}

/// Runs writes in one transaction and commits it. Writes that failed are answered at once; the others when the commit is
/// acknowledged.
pub(super) fn run_group(
    writer: &mut DatabaseWriter,
    writes: Vec<PendingWrite>,
    limits: &ResultLimits,
) -> UnfinishedWrites {
    let mut unfinished = UnfinishedWrites::default();
    let mut waiting: Vec<PendingWrite> = writes
        .into_iter()
        .filter(|w| w.work_state.start())
        .collect();
    // Savepoints cost as much as a small write, so the first attempt does without them.
    let mut with_savepoints = false;
    let watch = Stopwatch::start();
    while !waiting.is_empty() {
        let before = thread_cpu_time();
        if watch.elapsed() > GROUP_TIME {
            unfinished.deferred.append(&mut waiting);
            break;
        }
        match try_commit(
            &writer.handle,
            &mut waiting,
            limits,
            &mut unfinished,
            with_savepoints,
        ) {
            Err(SharedTransactionFailure::NeedsSavepoints) => with_savepoints = true,
            Ok(results) => {
                let touched = writer.handle.take_changed_tables();
                writer.add_pending_commit(touched, CommitReplies::Writes(waiting, results));
                break;
            }
            Err(SharedTransactionFailure::Write(offender, error)) => {
                let offender = waiting.remove(offender);
                if matches!(error.error, StatementRunError::Timeout) {
                    // If the thread had little processor time, the machine is busy, and the next run may be short again.
                    if thread_cpu_time().saturating_sub(before) > SHORT_BUDGET / 2 {
                        offender.timing.record_too_long();
                    }
                    unfinished.long.push(offender);
                } else {
                    writer.answer_failed_write(offender, error);
                }
            }
            Err(SharedTransactionFailure::Commit(error)) => {
                for write in waiting {
                    writer.answer_failed_write(write, error.clone().into());
                }
                break;
            }
        }
    }
    // These were rolled back and run again. A caller that gave up sees its channel close.
    for writes in [&mut unfinished.long, &mut unfinished.deferred] {
        writes.retain(|write| write.work_state.requeue(QUEUE_TIMEOUT));
    }
    unfinished
}

/// Runs one write in a transaction of its own, with the time limit of a statement, and commits it.
pub(super) fn run_single_write(
    writer: &mut DatabaseWriter,
    write: PendingWrite,
    limits: &ResultLimits,
) {
    if !write.work_state.start() {
        return;
    }
    let handle = &writer.handle;
    handle.take_changed_tables();
    let (watch, before) = (Stopwatch::start(), thread_cpu_time());
    let result = begin(handle)
        .map_err(BatchError::from)
        .and_then(|()| {
            let json = write.request.run(handle, limits, limits.time)?;
            commit_writes(handle)?;
            Ok(json)
        })
        .inspect_err(|_| roll_back(handle));
    let worked = thread_cpu_time().saturating_sub(before);
    write.timing.record_run(watch.elapsed(), Some(worked));
    match result {
        Ok(json) => {
            let touched = handle.take_changed_tables();
            writer.add_pending_commit(touched, CommitReplies::Writes(vec![write], vec![Ok(json)]));
        }
        Err(error) => writer.answer_failed_write(write, error),
    }
}

/// Failure of a shared transaction.
enum SharedTransactionFailure {
    /// A write failed, and without savepoints it cannot be undone alone.
    NeedsSavepoints,
    /// The write with this index ended the transaction.
    Write(usize, BatchError),
    /// The transaction could not begin or commit, which concerns all writes.
    Commit(StatementRunError),
}

/// Runs all writes in `waiting` and commits; returns a result for each. Writes without time left are moved to `unfinished`.
fn try_commit(
    handle: &TenantConnection,
    waiting: &mut Vec<PendingWrite>,
    limits: &ResultLimits,
    unfinished: &mut UnfinishedWrites,
    with_savepoints: bool,
) -> Result<Vec<Result<ResultJson, BatchError>>, SharedTransactionFailure> {
    // Drops the tables of an earlier attempt.
    handle.take_changed_tables();
    begin(handle).map_err(SharedTransactionFailure::Commit)?;
    let watch = Stopwatch::start();
    let is_single = waiting.len() == 1;
    let mut results = Vec::with_capacity(waiting.len());
    for (number, write) in waiting.iter().enumerate() {
        if watch.elapsed() > GROUP_TIME {
            break;
        }
        let started = watch.elapsed();
        if with_savepoints {
            handle
                .execute_as_platform("SAVEPOINT caller")
                .map_err(commit_failure(handle))?;
        }
        let result = write.request.run(handle, limits, SHORT_BUDGET);
        let took = watch.elapsed().saturating_sub(started);
        write.timing.record_run(took, None);
        match &result {
            Ok(_) if with_savepoints => handle
                .execute_as_platform("RELEASE caller")
                .map_err(commit_failure(handle))?,
            Ok(_) => {}
            Err(error)
                if is_single
                    || handle.is_idle()
                    || matches!(error.error, StatementRunError::Timeout) =>
            {
                let error = error.clone();
                roll_back(handle);
                return Err(SharedTransactionFailure::Write(number, error));
            }
            Err(_) if with_savepoints => {
                handle
                    .execute_as_platform("ROLLBACK TO caller")
                    .and_then(|()| handle.execute_as_platform("RELEASE caller"))
                    .map_err(commit_failure(handle))?;
            }
            Err(_) => {
                roll_back(handle);
                return Err(SharedTransactionFailure::NeedsSavepoints);
            }
        }
        results.push(result);
    }
    unfinished.deferred.extend(waiting.drain(results.len()..));
    commit_writes(handle).map_err(|error| {
        roll_back(handle);
        SharedTransactionFailure::Commit(error)
    })?;
    Ok(results)
}

fn commit_failure(
    handle: &TenantConnection,
) -> impl FnOnce(rusqlite::Error) -> SharedTransactionFailure + '_ {
    |error| {
        roll_back(handle);
        SharedTransactionFailure::Commit(internal_error(error))
    }
}

/// Commits the writes of visitors.
fn commit_writes(handle: &TenantConnection) -> Result<(), StatementRunError> {
    fault::point("write.run");
    commit(handle)?;
    fault::point("write.durable");
    Ok(())
}
