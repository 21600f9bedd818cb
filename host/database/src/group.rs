//! Group commit: the writes that wait for one database share a transaction and one sync, and none harms another.
//!
//! Where one of them fails, they run again with a savepoint each. Some failures take the whole transaction with them (an
//! interrupt, a full database, `OR ROLLBACK`): then nobody is answered but the one who caused it, and the others run
//! again. A key that is checked at the commit would fail everybody's, so a database with such keys commits its writes
//! one by one.

use std::time::Duration;

use super::batch::BatchError;
use super::committed::Replies;
use super::error::{RunError, internal};
use super::handle::Handle;
use super::limits::{ResultLimits, WAIT};
use super::pace::{SHORT, worked};
use super::run::ResultJson;
use super::transaction::{abandon, begin, commit};
use super::write::Write;
use super::writer::Writer;
use svc_base::{Stopwatch, fault};

/// The most writes that share a commit.
pub(super) const CALLERS: usize = 128;
/// The most bytes of parameters that share a commit.
pub(super) const BYTES: usize = 1 << 20;
/// How long a group may go on taking writes in.
const GROUP_TIME: Duration = Duration::from_millis(40);

/// Work of a group that is to be done elsewhere.
#[derive(Debug, Default)]
pub(super) struct Unfinished {
    /// Writes that take too long for a group.
    pub(super) long: Vec<Write>,
    /// Writes that the group had no time for.
    pub(super) rest: Vec<Write>,
}

/// Runs writes in one transaction, and commits it: that is the first step, and they are answered with the second. Those that were
/// not kept are answered at once.
pub(super) fn run_group(
    writer: &mut Writer,
    writes: Vec<Write>,
    limits: &ResultLimits,
) -> Unfinished {
    let mut unfinished = Unfinished::default();
    let started = |write: &Write| write.work_state.start();
    let mut waiting: Vec<Write> = writes.into_iter().filter(started).collect();
    // Savepoints cost as much as a small write: the first attempt goes without, in the hope that all is well.
    let mut guarded = false;
    let watch = Stopwatch::start();
    while !waiting.is_empty() {
        let before = worked();
        if watch.elapsed() > GROUP_TIME {
            unfinished.rest.append(&mut waiting);
            break;
        }
        match attempt(
            &writer.handle,
            &mut waiting,
            limits,
            &mut unfinished,
            guarded,
        ) {
            Err(Lost::Unguarded) => guarded = true,
            Ok(results) => {
                let touched = writer.handle.take_touched();
                writer.committed(touched, Replies::Writes(waiting, results));
                break;
            }
            Err(Lost::To(offender, error)) => {
                let offender = waiting.remove(offender);
                if matches!(error.error, RunError::Timeout) {
                    // Else a busy machine has kept the thread from working, and the next run may be short again.
                    if worked().saturating_sub(before) > SHORT / 2 {
                        offender.pace.too_long();
                    }
                    unfinished.long.push(offender);
                } else {
                    offender.answer(Err(error));
                }
            }
            Err(Lost::Commit(error)) => {
                for write in waiting {
                    write.answer(Err(error.clone().into()));
                }
                break;
            }
        }
    }
    // A rollback took the changes of these back, so they run again. Callers that gave up see their channel close.
    unfinished
        .long
        .retain(|write| write.work_state.requeue(WAIT));
    unfinished
        .rest
        .retain(|write| write.work_state.requeue(WAIT));
    unfinished
}

/// Runs a write alone, for as long as a statement may take, and commits it: the first step, as of a group.
pub(super) fn run_alone(writer: &mut Writer, write: Write, limits: &ResultLimits) {
    if !write.work_state.start() {
        return;
    }
    let handle = &writer.handle;
    handle.take_touched();
    let (watch, before) = (Stopwatch::start(), worked());
    let result = begin(handle)
        .map_err(BatchError::from)
        .and_then(|()| {
            let json = write.work.run(handle, limits, limits.time)?;
            commit_writes(handle)?;
            Ok(json)
        })
        .inspect_err(|_| abandon(handle));
    let worked = worked().saturating_sub(before);
    write.pace.took(watch.elapsed(), Some(worked));
    match result {
        Ok(json) => {
            let touched = handle.take_touched();
            writer.committed(touched, Replies::Writes(vec![write], vec![Ok(json)]));
        }
        Err(error) => write.answer(Err(error)),
    }
}

/// How a shared transaction was lost.
enum Lost {
    /// To a write that failed while nothing guarded the others: it can be undone alone with savepoints.
    Unguarded,
    /// To the write with this number.
    To(usize, BatchError),
    /// At its beginning or end, which is everybody's.
    Commit(RunError),
}

/// Runs all of `waiting` and commits: a result for each. Those that there is no time for are moved to `unfinished`.
fn attempt(
    handle: &Handle,
    waiting: &mut Vec<Write>,
    limits: &ResultLimits,
    unfinished: &mut Unfinished,
    guarded: bool,
) -> Result<Vec<Result<ResultJson, BatchError>>, Lost> {
    // Those of an attempt that was lost.
    handle.take_touched();
    begin(handle).map_err(Lost::Commit)?;
    let watch = Stopwatch::start();
    let alone = waiting.len() == 1;
    let mut results = Vec::with_capacity(waiting.len());
    for (number, write) in waiting.iter().enumerate() {
        if watch.elapsed() > GROUP_TIME {
            break;
        }
        let started = watch.elapsed();
        if guarded {
            handle.platform("SAVEPOINT caller").map_err(lost(handle))?;
        }
        let result = write.work.run(handle, limits, SHORT);
        let took = watch.elapsed().saturating_sub(started);
        write.pace.took(took, None);
        match &result {
            Ok(_) if guarded => handle.platform("RELEASE caller").map_err(lost(handle))?,
            Ok(_) => {}
            Err(error) if alone || handle.is_idle() || matches!(error.error, RunError::Timeout) => {
                let error = error.clone();
                abandon(handle);
                return Err(Lost::To(number, error));
            }
            Err(_) if guarded => {
                handle
                    .platform("ROLLBACK TO caller")
                    .and_then(|()| handle.platform("RELEASE caller"))
                    .map_err(lost(handle))?;
            }
            Err(_) => {
                abandon(handle);
                return Err(Lost::Unguarded);
            }
        }
        results.push(result);
    }
    unfinished.rest.extend(waiting.drain(results.len()..));
    commit_writes(handle).map_err(|error| {
        abandon(handle);
        Lost::Commit(error)
    })?;
    Ok(results)
}

fn lost(handle: &Handle) -> impl FnOnce(rusqlite::Error) -> Lost + '_ {
    |error| {
        abandon(handle);
        Lost::Commit(internal(error))
    }
}

/// Commits what visitors have written.
fn commit_writes(handle: &Handle) -> Result<(), RunError> {
    fault::point("write.run");
    commit(handle)?;
    fault::point("write.durable");
    Ok(())
}
