//! How a database is read: here and now where a statement has been quick, else in a lane.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::changed_tables::StatementTables;
use super::connection::TenantConnection;
use super::database::{Database, await_answer};
use super::error::{RunError, internal};
use super::run::{ResultJson, StatementCall, prepare, run, run_inline};
use super::timing::{
    DELAYED_BUDGET, INLINE_BUDGET, Lane, SHORT_BUDGET, StatementTiming, thread_cpu_time,
};
use svc_base::Stopwatch;
use svc_base::work_state::WorkState;

impl Database {
    pub(super) async fn read(
        &self,
        call: StatementCall,
        timing: &Arc<StatementTiming>,
    ) -> Result<ResultJson, RunError> {
        let lane = timing.lane();
        if lane == Lane::Inline {
            match self.read_inline(&call, timing) {
                // What was too long for this thread may be short enough for the next: a busy machine stops what it delays.
                Err(RunError::NeedsLane | RunError::Timeout) => {}
                result => return result,
            }
        }
        self.read_in_lanes(call, timing, lane, |json, _| json).await
    }

    /// Runs a read in a lane; returns what `seal` makes of its result, and the tables that it reads, if they are known.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn read_with_tables<T: Send + 'static>(
        &self,
        call: StatementCall,
        timing: &Arc<StatementTiming>,
        seal: impl Fn(ResultJson) -> T + Clone + Send + 'static,
    ) -> Result<(T, Option<Arc<StatementTables>>), RunError> {
        let sql = Arc::clone(&call.sql);
        let sealed = move |json, reader: &TenantConnection| (seal(json), reader.known_tables(&sql));
        let seen = self
            .read_in_lanes(call, timing, timing.lane(), sealed)
            .await;
        seen.map_err(|error| match error {
            RunError::DatabaseFull => RunError::DiskFull,
            other => other,
        })
    }

    /// Reads on the thread of the request, if a connection is free that knows the statement.
    fn read_inline(
        &self,
        call: &StatementCall,
        timing: &StatementTiming,
    ) -> Result<ResultJson, RunError> {
        let Some(reader) = self.readers.try_acquire(&self.settings)? else {
            return Err(RunError::NeedsLane);
        };
        let mut result = Err(RunError::NeedsLane);
        // One that has yet to be looked into is prepared in a lane.
        if let Some(cost) = reader.known_cost(&call.sql) {
            let watch = Stopwatch::start();
            result = run_inline(&reader, call, cost, &self.limits, INLINE_BUDGET);
            match result {
                Err(RunError::NeedsLane) => timing.avoid_inline(),
                _ => timing.record_run(watch.elapsed(), None),
            }
        }
        self.readers.release(reader);
        result
    }

    /// Reads among short work, if it is not known to be long, else or then among long work; returns what `make` makes of the
    /// result.
    async fn read_in_lanes<T: Send + 'static>(
        &self,
        call: StatementCall,
        timing: &Arc<StatementTiming>,
        lane: Lane,
        make: impl Fn(ResultJson, &TenantConnection) -> T + Clone + Send + 'static,
    ) -> Result<T, RunError> {
        if lane != Lane::Long {
            for budget in [SHORT_BUDGET, DELAYED_BUDGET] {
                let short =
                    self.queue_read(call.clone(), timing, (Lane::Short, budget), make.clone());
                let (result, worked) = short.await?;
                match result {
                    // Others have kept its thread from working.
                    Err(RunError::Timeout) if worked < SHORT_BUDGET / 2 => {}
                    Err(RunError::Timeout) => break,
                    result => return result,
                }
            }
            timing.record_too_long();
        }
        let long = (Lane::Long, self.limits.time);
        self.queue_read(call, timing, long, make).await?.0
    }

    /// Reads in a lane; returns the result, and how long its thread has worked for it.
    async fn queue_read<T: Send + 'static>(
        &self,
        call: StatementCall,
        timing: &Arc<StatementTiming>,
        (lane, budget): (Lane, Duration),
        make: impl Fn(ResultJson, &TenantConnection) -> T + Send + 'static,
    ) -> Result<(Result<T, RunError>, Duration), RunError> {
        let (timing, limits) = (Arc::clone(timing), self.limits);
        let budget = budget.min(limits.time);
        self.with_reader(lane, move |reader| {
            let (watch, before) = (Stopwatch::start(), thread_cpu_time());
            let result = run(reader, &call, &limits, budget);
            let worked = thread_cpu_time().saturating_sub(before);
            timing.record_run(watch.elapsed(), Some(worked));
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
        work: impl FnOnce(&TenantConnection) -> Result<T, RunError> + Send + 'static,
    ) -> Result<T, RunError> {
        let (answer, answered) = oneshot::channel();
        let work_state = WorkState::new();
        let (me, begun) = (self.upgrade_self()?, Arc::clone(&work_state));
        let job = Box::new(move || {
            if begun.start() {
                let result = me.readers.acquire(&me.settings).and_then(|reader| {
                    let result = work(&reader);
                    me.readers.release(reader);
                    result
                });
                // A caller that has gone away does not want it.
                let _ = answer.send(result);
            }
        });
        let queued = if lane == Lane::Long {
            self.lanes.queue_long(self.owner, job)
        } else {
            self.lanes.queue_short(self.owner, job)
        };
        if !queued {
            return Err(RunError::Busy);
        }
        await_answer(answered, &work_state).await
    }
}
