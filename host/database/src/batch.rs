//! Several statements as one write: all of them or none. A statement may use the first rows of earlier ones.

use std::sync::Arc;
use std::time::Duration;

use super::connection::TenantConnection;
use super::error::StatementRunError;
use super::limits::ResultLimits;
use super::run::{
    FirstRow, ResultJson, RowCounts, StatementCall, run, run_with_first_row, value_bytes,
};
use super::timing::{StatementLane, StatementTiming};
use super::uploads::{UploadCall, run_upload};
use super::values::{BatchStepParam, Params, Value};
use svc_base::Stopwatch;

/// A statement of a batch, as the gate allowed it.
#[derive(Clone, Debug)]
pub struct BatchStep {
    /// One statement, without anything after it.
    pub sql: Arc<str>,
    /// Whether the statement changes rows.
    pub writes: bool,
    /// Values of the binds.
    pub params: Vec<(String, BatchStepParam)>,
    /// Timing of earlier runs, which chooses the lane.
    pub timing: Arc<StatementTiming>,
}

/// Error of a batch, which has changed nothing.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{error}")]
pub struct BatchError {
    /// Index of the step that failed, from 0; `None` if no single step did.
    pub step: Option<usize>,
    /// Error of the step.
    pub error: StatementRunError,
}

impl From<StatementRunError> for BatchError {
    fn from(error: StatementRunError) -> Self {
        Self { step: None, error }
    }
}

/// Statements of a write.
#[derive(Clone, Debug)]
pub(super) enum WriteStatements {
    /// One statement.
    Call(StatementCall),
    /// Several, all or none.
    Batch(Vec<BatchStep>),
    /// Row of an uploaded file, and the statement of its action.
    Upload(Box<UploadCall>),
}

impl WriteStatements {
    /// Runs the statements within `budget`. After a failure the caller must roll back.
    pub(super) fn run(
        &self,
        handle: &TenantConnection,
        limits: &ResultLimits,
        budget: Duration,
    ) -> Result<ResultJson, BatchError> {
        match self {
            Self::Call(call) => Ok(run(handle, call, limits, budget)?),
            Self::Batch(steps) => run_batch(handle, steps, limits, budget),
            Self::Upload(upload) => Ok(run_upload(handle, upload, limits, budget)?),
        }
    }

    /// Bytes of SQL and parameters.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Call(call) => call.bytes(),
            Self::Batch(steps) => steps.iter().map(BatchStep::bytes).sum(),
            Self::Upload(upload) => upload.bytes(),
        }
    }

    /// Timing of the batch as a whole: long, if one of its steps is known to be long.
    pub(super) fn batch_timing(steps: &[BatchStep]) -> Arc<StatementTiming> {
        let timing = StatementTiming::default();
        if steps
            .iter()
            .any(|step| step.timing.lane() == StatementLane::Long)
        {
            timing.record_too_long();
        }
        Arc::new(timing)
    }
}

impl BatchStep {
    fn bytes(&self) -> usize {
        let param_bytes = |given: &BatchStepParam| match given {
            BatchStepParam::Value(value) => value_bytes(value),
            BatchStepParam::From { column, .. } => column.len(),
        };
        self.sql.len()
            + self
                .params
                .iter()
                .map(|(_, g)| param_bytes(g))
                .sum::<usize>()
    }

    /// Whether a parameter comes from the first row of step `number`.
    fn refers_to(&self, number: usize) -> bool {
        let mut given = self.params.iter().map(|(_, given)| given);
        given.any(|given| matches!(given, BatchStepParam::From { step, .. } if *step == number))
    }

    /// Builds the call, with values taken from the rows of earlier steps.
    fn to_call(&self, rows: &[FirstRow]) -> Result<StatementCall, StatementRunError> {
        let value = |(name, given): &(String, BatchStepParam)| {
            let value = match given {
                BatchStepParam::Value(value) => value.clone(),
                BatchStepParam::From { step, column } => {
                    referenced_value(rows, *step, column)?.clone()
                }
            };
            Ok((name.clone(), value))
        };
        Ok(StatementCall {
            sql: Arc::clone(&self.sql),
            writes: self.writes,
            params: self
                .params
                .iter()
                .map(value)
                .collect::<Result<Params, _>>()?,
        })
    }
}

fn referenced_value<'r>(
    rows: &'r [FirstRow],
    step: usize,
    column: &str,
) -> Result<&'r Value, StatementRunError> {
    let row = rows.get(step).map_or(&[][..], Vec::as_slice);
    if row.is_empty() {
        return Err(StatementRunError::Constraint(format!(
            "op {step} answered no row to take a value from"
        )));
    }
    let cell = row.iter().find(|(name, _)| name == column);
    cell.map(|(_, value)| value)
        .ok_or_else(|| StatementRunError::Refused {
            reason: format!("op {step} answers no column `{column}`"),
            offset: None,
        })
}

/// Runs steps one after another; returns `{"results": […]}`.
fn run_batch(
    handle: &TenantConnection,
    steps: &[BatchStep],
    limits: &ResultLimits,
    budget: Duration,
) -> Result<ResultJson, BatchError> {
    let watch = Stopwatch::start();
    let mut rows = Vec::with_capacity(steps.len());
    let mut counts = Vec::with_capacity(steps.len());
    let mut out = b"{\"results\":[".to_vec();
    for (number, step) in steps.iter().enumerate() {
        let at = |error| BatchError {
            step: Some(number),
            error,
        };
        let time = budget.saturating_sub(watch.elapsed());
        if time.is_zero() {
            return Err(at(StatementRunError::Timeout));
        }
        let limits = ResultLimits {
            bytes: limits.bytes.saturating_sub(out.len()),
            ..*limits
        };
        let mut row = FirstRow::new();
        let named = steps[number + 1..]
            .iter()
            .any(|later| later.refers_to(number));
        let kept = named.then_some(&mut row);
        let result = step
            .to_call(&rows)
            .and_then(|call| run_with_first_row(handle, &call, &limits, time, kept))
            .map_err(at)?;
        rows.push(row);
        if number > 0 {
            out.push(b',');
        }
        out.extend_from_slice(&result.json);
        counts.push(result.rows.of(0));
    }
    out.extend_from_slice(b"]}");
    Ok(ResultJson {
        json: out,
        rows: RowCounts::Each(counts),
    })
}
