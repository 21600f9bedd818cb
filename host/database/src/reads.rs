//! How a database is read: here and now where a statement has been quick, else in a lane.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::error::RunError;
use super::group::Turn;
use super::handle::{Handle, internal};
use super::open::{Database, answer_of, lock};
use super::pace::{INLINE, Lane, Pace, SHORT};
use super::run::{Call, ResultJson, prepare, run, run_inline};
use super::touched::Tables;
use svc_base::Stopwatch;

/// How many connections of a database read at once.
const READERS: usize = 4;

/// The connections that read.
#[derive(Debug, Default)]
pub(super) struct Readers {
    idle: Vec<Handle>,
    open: usize,
}

impl Database {
    pub(super) async fn read(&self, call: Call, pace: &Arc<Pace>) -> Result<ResultJson, RunError> {
        let lane = pace.lane();
        if lane != Lane::Long {
            let idle = match lane {
                Lane::Inline => self.idle_reader()?,
                Lane::Short | Lane::Long => None,
            };
            let mut result = Err(RunError::Elsewhere);
            if let Some(reader) = idle {
                // One that has yet to be looked into is prepared in a lane.
                if reader.knows(&call.sql) {
                    result = timed(pace, || run_inline(&reader, &call, &self.limits, INLINE));
                    if matches!(result, Err(RunError::Elsewhere)) {
                        pace.set_aside();
                    }
                }
                self.put_back(reader);
            }
            if matches!(result, Err(RunError::Elsewhere)) {
                result = self.queue_read(call.clone(), pace, Lane::Short).await;
            }
            match result {
                Err(RunError::Timeout) => pace.too_long(),
                result => return result,
            }
        }
        self.queue_read(call, pace, Lane::Long).await
    }

    /// Runs a read in a lane; answers what `seal` makes of its result, and the tables that it reads, if they are known.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn watch<T: Send + 'static>(
        &self,
        call: Call,
        pace: &Arc<Pace>,
        seal: impl Fn(ResultJson) -> T + Clone + Send + 'static,
    ) -> Result<(T, Option<Arc<Tables>>), RunError> {
        let mut seen = Err(RunError::Timeout);
        if pace.lane() != Lane::Long {
            let short = self.queue_watch(call.clone(), pace, Lane::Short, seal.clone());
            seen = short.await;
            if matches!(seen, Err(RunError::Timeout)) {
                pace.too_long();
            }
        }
        if matches!(seen, Err(RunError::Timeout)) {
            seen = self.queue_watch(call, pace, Lane::Long, seal).await;
        }
        seen.map_err(|error| match error {
            RunError::DatabaseFull => RunError::DiskFull,
            other => other,
        })
    }

    async fn queue_watch<T: Send + 'static>(
        &self,
        call: Call,
        pace: &Arc<Pace>,
        lane: Lane,
        seal: impl Fn(ResultJson) -> T + Send + 'static,
    ) -> Result<(T, Option<Arc<Tables>>), RunError> {
        let (pace, limits) = (Arc::clone(pace), self.limits);
        let budget = self.budget(lane);
        self.with_reader(lane, move |reader| {
            let json = timed(&pace, || run(reader, &call, &limits, budget))?;
            Ok((seal(json), reader.tables(&call.sql)))
        })
        .await
    }

    /// How long a read may take in a lane.
    fn budget(&self, lane: Lane) -> Duration {
        if lane == Lane::Long {
            self.limits.time
        } else {
            SHORT.min(self.limits.time)
        }
    }

    async fn queue_read(
        &self,
        call: Call,
        pace: &Arc<Pace>,
        lane: Lane,
    ) -> Result<ResultJson, RunError> {
        let (pace, limits) = (Arc::clone(pace), self.limits);
        let budget = self.budget(lane);
        self.with_reader(lane, move |reader| {
            timed(&pace, || run(reader, &call, &limits, budget))
        })
        .await
    }

    /// A reader, if one is idle or may be opened.
    fn idle_reader(&self) -> Result<Option<Handle>, RunError> {
        let mut readers = lock(&self.readers);
        if let Some(reader) = readers.idle.pop() {
            return Ok(Some(reader));
        }
        if readers.open >= READERS {
            return Ok(None);
        }
        readers.open += 1;
        drop(readers);
        match Handle::reader(&self.settings) {
            Ok(reader) => Ok(Some(reader)),
            Err(error) => {
                lock(&self.readers).open -= 1;
                Err(error)
            }
        }
    }

    /// A reader of its own, past the bound if all are taken: the lanes have few threads.
    fn reader(&self) -> Result<Handle, RunError> {
        match self.idle_reader()? {
            Some(reader) => Ok(reader),
            None => {
                let reader = Handle::reader(&self.settings)?;
                lock(&self.readers).open += 1;
                Ok(reader)
            }
        }
    }

    /// Keeps a reader for the next, if there are not enough.
    fn put_back(&self, reader: Handle) {
        let mut readers = lock(&self.readers);
        if readers.idle.len() < READERS {
            readers.idle.push(reader);
        } else {
            readers.open -= 1;
        }
    }

    /// Has SQLite prepare a tenant's statement, without running it.
    ///
    /// # Errors
    /// [`RunError::Refused`] above all.
    pub async fn prepare(&self, sql: Arc<str>, writes: bool) -> Result<(), RunError> {
        let budget = self.limits.time;
        self.with_reader(Lane::Short, move |reader| {
            prepare(reader, &sql, writes, budget)
        })
        .await
    }

    /// Looks at the database with the platform's eyes.
    ///
    /// # Errors
    /// [`RunError`].
    pub(super) async fn inspect<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, RunError> {
        self.with_reader(Lane::Short, move |reader| {
            look(&reader.connection).map_err(internal)
        })
        .await
    }

    /// Runs `work` with a reader, in a lane: the long one, or else the short one.
    pub(super) async fn with_reader<T: Send + 'static>(
        &self,
        lane: Lane,
        work: impl FnOnce(&Handle) -> Result<T, RunError> + Send + 'static,
    ) -> Result<T, RunError> {
        let (answer, answered) = oneshot::channel();
        let turn = Arc::new(Turn::new());
        let (me, begun) = (self.myself()?, Arc::clone(&turn));
        let job = Box::new(move || {
            if begun.begin() {
                let result = me.reader().and_then(|reader| {
                    let result = work(&reader);
                    me.put_back(reader);
                    result
                });
                // A caller that has gone away does not want it.
                let _ = answer.send(result);
            }
        });
        let queued = if lane == Lane::Long {
            self.lanes.long(self.owner, job)
        } else {
            self.lanes.short(self.owner, job)
        };
        if !queued {
            return Err(RunError::Busy);
        }
        answer_of(answered, &turn).await
    }
}

/// Runs a statement, and notes how long it took.
fn timed(
    pace: &Pace,
    run: impl FnOnce() -> Result<ResultJson, RunError>,
) -> Result<ResultJson, RunError> {
    let watch = Stopwatch::start();
    let result = run();
    pace.took(watch.elapsed());
    result
}
