//! Results of calls, for the API description: `run.rs` and `batch.rs` of the database write them.

use serde::Serialize;
use utoipa::ToSchema;

use super::requests::SqlValue;

/// Result of a statement.
#[derive(Debug, Serialize, ToSchema)]
#[allow(dead_code, reason = "describes what run.rs writes")]
pub struct QueryResult {
    /// The names of the columns, in their order.
    columns: Vec<String>,
    /// The rows: at most 500.
    rows: Vec<std::collections::HashMap<String, SqlValue>>,
    /// How many rows a write changed.
    rows_affected: u64,
    /// Whether there were more rows.
    truncated: bool,
}

/// Result of a batch.
#[derive(Debug, Serialize, ToSchema)]
#[allow(dead_code, reason = "describes what batch.rs writes")]
pub struct BatchResult {
    /// Results of the ops, in order.
    results: Vec<QueryResult>,
}

/// Result of a call or a batch.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "describes what run.rs and batch.rs write")]
pub enum OpAnswer {
    /// Of a call.
    Call(QueryResult),
    /// Of a batch.
    Batch(BatchResult),
}
