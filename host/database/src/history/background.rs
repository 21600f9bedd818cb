//! Taking a log into the history, and copying it into the database, beside the writer, who goes on meanwhile.
//!
//! The writer lends its history out, with a reader that sees the database as it is: whatever is committed from then on,
//! the log is copied no further than that reader, so that nothing leaves the log before history has it. While a history
//! is lent out, the writer only notes its commits.

use std::io;
use std::mem;
use std::sync::mpsc::{self, Receiver, Sender};

use rusqlite::wal::CheckpointMode;

use super::{History, HistoryLimitExceeded};
use crate::connection::{OpenSettings, TenantConnection};
use crate::error::{RunError, internal};
use svc_base::fault;
use svc_base::threads::Threads;

type Job = Box<dyn FnOnce() + Send>;

/// The thread that works beside all writers, one log after the other. The last handle to go waits for it.
#[derive(Debug)]
pub(crate) struct Checkpointer {
    jobs: Option<Sender<Job>>,
    _threads: Threads,
}

/// A history that is lent out. Dropping it waits until it is given back: nobody else may add to it before.
#[derive(Debug)]
pub(crate) struct LentHistory {
    receiver: Receiver<ReturnedHistory>,
    /// How many frames the log had.
    frames: i32,
    is_reclaimed: bool,
}

/// A history that is given back.
#[derive(Debug)]
pub(crate) struct ReturnedHistory {
    history: History,
    /// Whether the log was copied as far as it went when the history was lent out.
    pub(crate) copied: bool,
    /// Whether that was all of it, so that SQLite may begin it anew.
    is_complete: bool,
}

impl Checkpointer {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has none to give.
    pub(crate) fn start() -> io::Result<Self> {
        let (jobs, waiting) = mpsc::channel::<Job>();
        let work = move || {
            for job in waiting {
                let job = std::panic::AssertUnwindSafe(job);
                // The writer that waits learns it from the end of its channel.
                if std::panic::catch_unwind(job).is_err() {
                    tracing::error!("work on a database's history panicked");
                }
            }
        };
        let mut threads = Threads::default();
        threads.start("sql-history".to_owned(), None, work)?;
        Ok(Self {
            jobs: Some(jobs),
            _threads: threads,
        })
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.jobs = None;
    }
}

impl History {
    /// Whether it can be taken aside: what is in the log surely follows it, or there is nothing to be taken.
    pub(crate) fn can_be_lent(&self) -> bool {
        match &self.chain {
            Some(chain) => !chain.doubtful,
            None => self.is_too_large || !self.is_on(),
        }
    }

    /// Has the first `frames` frames of the log, which are all that there is now, taken and copied beside the writer.
    ///
    /// # Errors
    /// When the database cannot be opened once more; nothing is lent then.
    pub(crate) fn lend(
        &mut self,
        checkpointer: &Checkpointer,
        settings: &OpenSettings,
        frames: i32,
    ) -> Result<LentHistory, RunError> {
        let pin = TenantConnection::reader(settings)?;
        pin.execute_as_platform("BEGIN; SELECT count(*) FROM sqlite_schema")
            .map_err(internal)?;
        let dir = self.dir.try_clone();
        let dir = dir.map_err(|error| RunError::Internal(error.to_string()))?;
        let chain_begins_at = self.chain.is_none().then(|| self.distinct_time());
        let lent = Self {
            dir,
            history_settings: self.history_settings.clone(),
            chain: self.chain.take(),
            unrecorded: mem::take(&mut self.unrecorded),
            frames_seen: self.frames_seen,
            last: self.last,
            is_too_large: self.is_too_large,
            chain_begins_at,
        };
        let (sender, receiver) = mpsc::channel();
        let settings = settings.clone();
        let job: Job = Box::new(move || {
            // Nobody waits for it where a process ends.
            let _ = sender.send(record_and_checkpoint(lent, pin, &settings, frames));
        });
        if let Some(jobs) = &checkpointer.jobs {
            // What cannot be sent is dropped, which the other end learns.
            let _ = jobs.send(job);
        }
        Ok(LentHistory {
            receiver,
            frames,
            is_reclaimed: false,
        })
    }

    /// Takes back what was lent, with what was committed meanwhile noted here.
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
    /// How many frames the log had when it was lent out.
    pub(crate) fn frames(&self) -> i32 {
        self.frames
    }

    /// Gives the history back to its writer; returns whether the log was copied as far as it went. `None` if it is still
    /// at work and nobody is to wait.
    pub(crate) fn reclaim(&mut self, history: &mut History, wait: bool) -> Option<bool> {
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
        // Where it is lost, the next that is taken begins another chain.
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

/// Tells the log why a history has a gap; that it is too small, only if that was not `known`.
pub(crate) fn log_gap(taken: io::Result<()>, known: bool) {
    if let Err(error) = taken
        && !(known && HistoryLimitExceeded::is(&error))
    {
        tracing::warn!(%error, "a database's history has a gap");
    }
}

fn record_and_checkpoint(
    mut history: History,
    mut pin: TenantConnection,
    settings: &OpenSettings,
    frames: i32,
) -> ReturnedHistory {
    let known = history.is_too_large();
    let taken = history.record_log_up_to(&mut pin.connection, frames.unsigned_abs());
    log_gap(taken, known);
    fault::point("settle.taken");
    let copied = TenantConnection::writer(settings).and_then(|copier| {
        let done = copier.checkpoint_pages(CheckpointMode::PASSIVE);
        done.map_err(internal)
    });
    fault::point("settle.copied");
    // Only now may SQLite begin the log anew.
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
