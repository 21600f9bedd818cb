//! Tenants' databases: opened as they are needed, closed as they are not, and run behind the second wall.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod advice;
mod exclusive;
mod batch;
mod calls;
mod catalog;
mod columns;
mod commit_counter;
mod pending_commits;
mod copy;
#[cfg(test)]
mod corpus_tests;
mod cost;
mod databases;
mod dry_run;
mod error;
mod integrity;
mod export;
mod files;
mod functions;
mod group;
mod connection;
mod history;
mod lanes;
mod ledger_schema;
mod limits;
mod meter;
mod migrate;
mod payment_mirror;
mod database;
mod timing;
mod sql_tokens;
mod process_settings;
mod reader_pool;
mod reads;
mod restore;
mod run;
mod schema;
mod fair_queue;
#[cfg(test)]
mod slow_values;
mod schema_faults;
mod statements;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod time_tests;
mod changed_tables;
mod transaction;
pub mod values;
mod authorizer;
mod warnings;
mod watchdog;
mod pending_write;
mod writer;

pub use batch::{BatchError, BatchStep};
pub use copy::{BackupSource, prepare_for_server};
pub use databases::Databases;
pub use dry_run::{DryRunOutcome, DryRunInput, DryRunStatement};
pub use error::RunError;
pub use integrity::{IntegrityReport, check_integrity};
pub use files::DatabaseFiles;
pub use history::HistoryMoments;
pub use limits::{Limits, ResultLimits};
pub use migrate::{MigrationOutcome, Script, ScriptError};
pub use payment_mirror::PaymentRow;
pub use database::Database;
pub use timing::StatementTiming;
pub use restore::{RestorePlan, RestoreError, RestoreOutcome, RestoreRecord, SnapshotError, PastSnapshot};
pub use run::{StatementCall, ResultJson};
pub use schema::{Column, Index, Inventory, MigrationMarker, Schema, Table, TableRows, View};
pub use changed_tables::{StatementTables, ChangedTables};
pub use values::StepParam;
pub use authorizer::FUNCTIONS;
pub use warnings::SchemaWarning;
