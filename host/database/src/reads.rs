//! How a database is read: here and now where a statement has been quick, else in a lane.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::error::{RunError, internal};
use super::handle::Handle;
use super::open::{Database, answer_of};
use super::pace::{DELAYED, INLINE, Lane, Pace, SHORT, worked};
use super::run::{Call, ResultJson, prepare, run, run_inline};
use super::touched::Tables;
use svc_base::Stopwatch;
use svc_base::work_state::WorkState;

impl Database {
    pub(super) async fn read(&self, call: Call, pace: &Arc<Pace>) -> Result<ResultJson, RunError> {
        let lane = pace.lane();
        if lane == Lane::Inline {
            match self.read_here(&call, pace) {
                // What was too long for this thread may be short enough for the next: a busy machine stops what it delays.
                Err(RunError::Elsewhere | RunError::Timeout) => {}
                result => return result,
            }
        }
        self.read_in_lanes(call, pace, lane, |json, _| json).await
    }

    /// Runs a read in a lane; returns what `seal` makes of its result, and the tables that it reads, if they are known.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn watch<T: Send + 'static>(
        &self,
        call: Call,
        pace: &Arc<Pace>,
        seal: impl Fn(ResultJson) -> T + Clone + Send + 'static,
    ) -> Result<(T, Option<Arc<Tables>>), RunError> {
        let sql = Arc::clone(&call.sql);
        let sealed = move |json, reader: &Handle| (seal(json), reader.tables(&sql));
        let seen = self.read_in_lanes(call, pace, pace.lane(), sealed).await;
        seen.map_err(|error| match error {
            RunError::DatabaseFull => RunError::DiskFull,
            other => other,
        })
    }

    /// Reads on the thread of the request, if a connection is free that knows the statement.
    fn read_here(&self, call: &Call, pace: &Pace) -> Result<ResultJson, RunError> {
        let Some(reader) = self.readers.idle(&self.settings)? else {
            return Err(RunError::Elsewhere);
        };
        let mut result = Err(RunError::Elsewhere);
        // One that has yet to be looked into is prepared in a lane.
        if let Some(cost) = reader.known_cost(&call.sql) {
            let watch = Stopwatch::start();
            result = run_inline(&reader, call, cost, &self.limits, INLINE);
            match result {
                Err(RunError::Elsewhere) => pace.set_aside(),
                _ => pace.took(watch.elapsed(), None),
            }
        }
        self.readers.put_back(reader);
        result
    }

    /// Reads among short work, if it is not known to be long, else or then among long work; returns what `make` makes of the
    /// result.
    async fn read_in_lanes<T: Send + 'static>(
        &self,
        call: Call,
        pace: &Arc<Pace>,
        lane: Lane,
        make: impl Fn(ResultJson, &Handle) -> T + Clone + Send + 'static,
    ) -> Result<T, RunError> {
        if lane != Lane::Long {
            for budget in [SHORT, DELAYED] {
                let short =
                    self.queue_read(call.clone(), pace, (Lane::Short, budget), make.clone());
                let (result, worked) = short.await?;
                match result {
                    // Others have kept its thread from working.
                    Err(RunError::Timeout) if worked < SHORT / 2 => {}
                    Err(RunError::Timeout) => break,
                    result => return result,
                }
            }
            pace.too_long();
        }
        let long = (Lane::Long, self.limits.time);
        self.queue_read(call, pace, long, make).await?.0
    }

    /// Reads in a lane; returns the result, and how long its thread has worked for it.
    async fn queue_read<T: Send + 'static>(
        &self,
        call: Call,
        pace: &Arc<Pace>,
        (lane, budget): (Lane, Duration),
        make: impl Fn(ResultJson, &Handle) -> T + Send + 'static,
    ) -> Result<(Result<T, RunError>, Duration), RunError> {
        let (pace, limits) = (Arc::clone(pace), self.limits);
        let budget = budget.min(limits.time);
        self.with_reader(lane, move |reader| {
            let (watch, before) = (Stopwatch::start(), worked());
            let result = run(reader, &call, &limits, budget);
            let worked = worked().saturating_sub(before);
            pace.took(watch.elapsed(), Some(worked));
            Ok((result.map(|json| make(json, reader)), worked))
        })
        .await
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
        let work_state = WorkState::new();
        let (me, begun) = (self.myself()?, Arc::clone(&work_state));
        let job = Box::new(move || {
            if begun.start() {
                let result = me.readers.take(&me.settings).and_then(|reader| {
                    let result = work(&reader);
                    me.readers.put_back(reader);
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
        answer_of(answered, &work_state).await
    }
}
