//! Reads of a database: on the thread of the request for statements that have been quick, else in a lane.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::changed_tables::StatementTables;
use super::connection::TenantConnection;
use super::database::{Database, await_answer};
use super::error::{StatementRunError, internal_error};
use super::result_columns::{DescribedStatement, ResultColumn, describe};
use super::run::{ResultJson, StatementCall, prepare, run, run_inline};
use super::timing::{
    DELAYED_BUDGET, INLINE_BUDGET, SHORT_BUDGET, StatementLane, StatementTiming, thread_cpu_time,
};
use svc_base::Stopwatch;
use svc_base::work_state::QueuedWorkState;

impl Database {
    pub(super) async fn read(
        &self,
        call: StatementCall,
        timing: &Arc<StatementTiming>,
    ) -> Result<ResultJson, StatementRunError> {
        self.read_then(call, timing, |json, _| json).await
    }

    /// Runs a read; returns the result as converted by `make`, on the connection that has run it.
    ///
    /// # Errors
    /// [`StatementRunError`].
    pub(super) async fn read_then<T: Send + 'static>(
        &self,
        call: StatementCall,
        timing: &Arc<StatementTiming>,
        make: impl Fn(ResultJson, &TenantConnection) -> T + Clone + Send + 'static,
    ) -> Result<T, StatementRunError> {
        let lane = timing.lane();
        if lane == StatementLane::Inline {
            match self.read_inline(&call, timing, &make) {
                // The time limit of this thread is short, and on a busy machine even a quick statement may exceed it.
                Err(StatementRunError::NeedsLane | StatementRunError::Timeout) => {}
                result => {
                    self.await_visible_commits().await?;
                    return result;
                }
            }
        }
        self.read_in_lanes(call, timing, lane, make).await
    }

    /// Runs a read in a lane; returns the result as converted by `seal`, and the tables that it reads, if they are known.
    ///
    /// # Errors
    /// [`StatementRunError`].
    pub async fn read_with_tables<T: Send + 'static>(
        &self,
        call: StatementCall,
        timing: &Arc<StatementTiming>,
        seal: impl Fn(ResultJson) -> T + Clone + Send + 'static,
    ) -> Result<(T, Option<Arc<StatementTables>>), StatementRunError> {
        let sql = Arc::clone(&call.sql);
        let sealed = move |json, reader: &TenantConnection| (seal(json), reader.known_tables(&sql));
        let seen = self
            .read_in_lanes(call, timing, timing.lane(), sealed)
            .await;
        seen.map_err(|error| match error {
            StatementRunError::DatabaseFull => StatementRunError::DiskFull,
            other => other,
        })
    }

    /// Reads on the thread of the request, if an idle connection knows the statement's cost.
    fn read_inline<T>(
        &self,
        call: &StatementCall,
        timing: &StatementTiming,
        make: impl Fn(ResultJson, &TenantConnection) -> T,
    ) -> Result<T, StatementRunError> {
        let Some(reader) = self.readers.try_acquire(&self.settings)? else {
            return Err(StatementRunError::NeedsLane);
        };
        let mut result = Err(StatementRunError::NeedsLane);
        // A statement of unknown cost is prepared in a lane.
        if let Some(cost) = reader.known_cost(&call.sql) {
            let watch = Stopwatch::start();
            let read = run_inline(&reader, call, cost, &self.limits, INLINE_BUDGET);
            result = read.map(|json| make(json, &reader));
            match result {
                Err(StatementRunError::NeedsLane) => timing.avoid_inline(),
                _ => timing.record_run(watch.elapsed(), None),
            }
        }
        self.readers.release(reader);
        result
    }

    /// Reads in the short lane unless the statement is known to be long, and in the long lane if that takes too long; returns the
    /// result as converted by `make`.
    async fn read_in_lanes<T: Send + 'static>(
        &self,
        call: StatementCall,
        timing: &Arc<StatementTiming>,
        lane: StatementLane,
        make: impl Fn(ResultJson, &TenantConnection) -> T + Clone + Send + 'static,
    ) -> Result<T, StatementRunError> {
        if lane != StatementLane::Long {
            for budget in [SHORT_BUDGET, DELAYED_BUDGET] {
                let short = self.queue_read(
                    call.clone(),
                    timing,
                    (StatementLane::Short, budget),
                    make.clone(),
                );
                let (result, worked) = short.await?;
                match result {
                    // The thread had little processor time, so the statement may still be short.
                    Err(StatementRunError::Timeout) if worked < SHORT_BUDGET / 2 => {}
                    Err(StatementRunError::Timeout) => break,
                    result => return result,
                }
            }
            timing.record_too_long();
        }
        let long = (StatementLane::Long, self.limits.time);
        self.queue_read(call, timing, long, make).await?.0
    }

    /// Reads in a lane; returns the result, and the processor time that it took.
    async fn queue_read<T: Send + 'static>(
        &self,
        call: StatementCall,
        timing: &Arc<StatementTiming>,
        (lane, budget): (StatementLane, Duration),
        make: impl Fn(ResultJson, &TenantConnection) -> T + Send + 'static,
    ) -> Result<(Result<T, StatementRunError>, Duration), StatementRunError> {
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

    /// Makes SQLite prepare a tenant's statement, without running it.
    ///
    /// # Errors
    /// [`StatementRunError::Refused`], if SQLite or the authorizer refuses it.
    pub async fn prepare(&self, sql: Arc<str>, writes: bool) -> Result<(), StatementRunError> {
        let budget = self.limits.time;
        self.with_reader(StatementLane::Short, move |reader| {
            prepare(reader, &sql, writes, budget)
        })
        .await
    }

    /// Describes the columns of statements' rows, without running any. `None` for one that SQLite refuses by now.
    ///
    /// # Errors
    /// [`StatementRunError`].
    pub async fn describe(
        &self,
        statements: Vec<DescribedStatement>,
    ) -> Result<Vec<Option<Vec<ResultColumn>>>, StatementRunError> {
        let budget = self.limits.time;
        self.with_reader(StatementLane::Long, move |reader| {
            describe(reader, &statements, budget)
        })
        .await
    }

    /// Runs a query of the platform.
    ///
    /// # Errors
    /// [`StatementRunError`].
    pub(super) async fn inspect<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StatementRunError> {
        self.with_reader(StatementLane::Short, move |reader| {
            look(&reader.connection).map_err(internal_error)
        })
        .await
    }

    /// Runs `work` with a reader, in the given lane (the short one for `Inline`).
    pub(super) async fn with_reader<T: Send + 'static>(
        &self,
        lane: StatementLane,
        work: impl FnOnce(&TenantConnection) -> Result<T, StatementRunError> + Send + 'static,
    ) -> Result<T, StatementRunError> {
        let (answer, answered) = oneshot::channel();
        let work_state = QueuedWorkState::new();
        let (me, begun) = (self.upgrade_self()?, Arc::clone(&work_state));
        let job = Box::new(move || {
            if begun.start() {
                let result = me.readers.acquire(&me.settings).and_then(|reader| {
                    let result = work(&reader);
                    me.readers.release(reader);
                    result
                });
                // The caller may have gone away.
                let _ = answer.send(result);
            }
        });
        let queued = if lane == StatementLane::Long {
            self.lanes.queue_long(self.owner, job)
        } else {
            self.lanes.queue_short(self.owner, job)
        };
        if !queued {
            return Err(StatementRunError::Busy);
        }
        let answer = await_answer(answered, &work_state).await;
        self.await_visible_commits().await?;
        answer
    }
}
