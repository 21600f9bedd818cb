//! Background checkpoints: the log is recorded in the history and copied into the database while the writer goes on.
//!
//! The writer lends its history out, with a reader that pins the present state of the log. Later commits are not copied past that
//! reader, so nothing leaves the log before the history has it. Meanwhile the writer only notes its commits.

use std::io;
use std::mem;
use std::sync::mpsc::{self, Receiver, Sender};

use rusqlite::wal::CheckpointMode;

use super::{DatabaseHistory, HistoryLimitExceeded};
use crate::connection::{DatabaseOpenSettings, TenantConnection};
use crate::error::{StatementRunError, internal_error};
use svc_base::fault;
use svc_base::threads::WorkerThreads;

type CheckpointJob = Box<dyn FnOnce() + Send>;

/// The thread of all background checkpoints, one after another. Dropping the last handle waits for it.
#[derive(Debug)]
pub(crate) struct BackgroundCheckpointer {
    jobs: Option<Sender<CheckpointJob>>,
    _threads: WorkerThreads,
}

/// A history in use by a background checkpoint. Dropping it waits for the end, since no other may append meanwhile.
#[derive(Debug)]
pub(crate) struct LentHistory {
    receiver: Receiver<ReturnedHistory>,
    /// Frames in the log at the start.
    frames: i32,
    is_reclaimed: bool,
}

/// A history that comes back from a background checkpoint.
#[derive(Debug)]
pub(crate) struct ReturnedHistory {
    history: DatabaseHistory,
    /// Whether the log was copied up to its length at the start.
    pub(crate) copied: bool,
    /// Whether the whole log was copied, so that SQLite may start it anew.
    is_complete: bool,
}

impl BackgroundCheckpointer {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub(crate) fn start() -> io::Result<Self> {
        let (jobs, waiting) = mpsc::channel::<CheckpointJob>();
        let work = move || {
            for job in waiting {
                let job = std::panic::AssertUnwindSafe(job);
                // The waiting writer sees that its channel ends.
                if std::panic::catch_unwind(job).is_err() {
                    tracing::error!("work on a database's history panicked");
                }
            }
        };
        let mut threads = WorkerThreads::default();
        threads.start("sql-history".to_owned(), None, work)?;
        Ok(Self {
            jobs: Some(jobs),
            _threads: threads,
        })
    }
}

impl Drop for BackgroundCheckpointer {
    fn drop(&mut self) {
        self.jobs = None;
    }
}

impl DatabaseHistory {
    /// Whether a background checkpoint is possible: the log certainly continues the chain, or there is nothing to record.
    pub(crate) fn can_checkpoint_in_background(&self) -> bool {
        match &self.chain {
            Some(chain) => !chain.doubtful,
            None => self.is_too_large || !self.is_on(),
        }
    }

    /// Starts to record and copy the first `frames` frames of the log in the background, which are all that it has now.
    ///
    /// # Errors
    /// When the database cannot be opened a second time; nothing is lent then.
    pub(crate) fn lend(
        &mut self,
        checkpointer: &BackgroundCheckpointer,
        settings: &DatabaseOpenSettings,
        frames: i32,
    ) -> Result<LentHistory, StatementRunError> {
        let pin = TenantConnection::reader(settings)?;
        pin.execute_as_platform("BEGIN; SELECT count(*) FROM sqlite_schema")
            .map_err(internal_error)?;
        let dir = self.dir.try_clone();
        let dir = dir.map_err(|error| StatementRunError::Internal(error.to_string()))?;
        let chain_begins_at = self.chain.is_none().then(|| self.distinct_time());
        let commit_numbers = self.commit_numbers.as_ref();
        let commit_numbers = commit_numbers.map(|commits| commits.at_last_commit());
        let lent = Self {
            dir,
            history_settings: self.history_settings.clone(),
            chain: self.chain.take(),
            unrecorded: mem::take(&mut self.unrecorded),
            frames_seen: self.frames_seen,
            last: self.last,
            is_too_large: self.is_too_large,
            chain_begins_at,
            commit_numbers,
        };
        let (sender, receiver) = mpsc::channel();
        let settings = settings.clone();
        let job: CheckpointJob = Box::new(move || {
            // At the end of the process no writer waits for it.
            let _ = sender.send(record_and_checkpoint(lent, pin, &settings, frames));
        });
        if let Some(jobs) = &checkpointer.jobs {
            // If it cannot be sent, it is dropped, and the receiver sees that.
            let _ = jobs.send(job);
        }
        Ok(LentHistory {
            receiver,
            frames,
            is_reclaimed: false,
        })
    }

    /// Takes over the returned history, and keeps the commits noted meanwhile.
    fn adopt(&mut self, returned: ReturnedHistory) {
        let ReturnedHistory {
            history,
            is_complete,
            ..
        } = returned;
        (self.chain, self.is_too_large) = (history.chain, history.is_too_large);
        if let Some(chain) = &mut self.chain {
            chain.copied = is_complete;
        }
        if self.unrecorded.is_empty() {
            self.last = history.last;
        }
    }
}

impl LentHistory {
    /// Frames that the log had at the start.
    pub(crate) fn frames(&self) -> i32 {
        self.frames
    }

    /// Returns the history to its writer, and whether the log was copied. `None` if it is still in use and `wait` is false.
    pub(crate) fn reclaim(&mut self, history: &mut DatabaseHistory, wait: bool) -> Option<bool> {
        let returned = if wait {
            self.receiver.recv().ok()
        } else {
            match self.receiver.try_recv() {
                Ok(returned) => Some(returned),
                Err(mpsc::TryRecvError::Empty) => return None,
                Err(mpsc::TryRecvError::Disconnected) => None,
            }
        };
        self.is_reclaimed = true;
        // If the history is lost, the next record begins another chain.
        let copied = returned.as_ref().is_some_and(|returned| returned.copied);
        if let Some(returned) = returned {
            history.adopt(returned);
        }
        Some(copied)
    }
}

impl Drop for LentHistory {
    fn drop(&mut self) {
        if !self.is_reclaimed {
            let _ = self.receiver.recv();
        }
    }
}

/// Logs a gap in the history. A history that was already too large, `known`, is not logged again.
pub(crate) fn log_history_gap(taken: io::Result<()>, known: bool) {
    if let Err(error) = taken
        && !(known && HistoryLimitExceeded::is(&error))
    {
        tracing::warn!(%error, "a database's history has a gap");
    }
}

fn record_and_checkpoint(
    mut history: DatabaseHistory,
    mut pin: TenantConnection,
    settings: &DatabaseOpenSettings,
    frames: i32,
) -> ReturnedHistory {
    let known = history.is_too_large();
    let taken = history.record_log_up_to(&mut pin.connection, frames.unsigned_abs());
    log_history_gap(taken, known);
    fault::point("settle.taken");
    let copied = TenantConnection::writer(settings).and_then(|copier| {
        let done = copier.checkpoint_pages(CheckpointMode::PASSIVE);
        done.map_err(internal_error)
    });
    fault::point("settle.copied");
    // Only from here on may SQLite start the log anew.
    drop(pin);
    match copied {
        Ok((in_log, copied)) => ReturnedHistory {
            history,
            copied: copied >= frames,
            is_complete: copied >= in_log,
        },
        Err(error) => {
            tracing::warn!(%error, "a tenant's log cannot be copied");
            ReturnedHistory {
                history,
                copied: false,
                is_complete: false,
            }
        }
    }
}
