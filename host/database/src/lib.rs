//! Tenants' databases: opened at their first use, closed when idle, and guarded by the second wall.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod advice;
mod authorizer;
mod base;
mod batch;
mod calls;
mod catalog;
mod chain_builder;
mod changed_tables;
mod columns;
mod commit_counter;
mod connection;
mod copy;
#[cfg(test)]
mod corpus_tests;
mod cost;
mod database;
mod database_state;
mod databases;
mod dry_run;
mod entry_body;
mod error;
mod exclusive;
mod export;
mod fair_queue;
mod files;
mod files_tables;
mod functions;
mod group;
mod history;
mod integrity;
mod lanes;
mod ledger_schema;
mod limits;
mod load;
mod meter;
mod migrate;
mod missing_tables;
mod open_databases;
mod payment_mirror;
mod pending_commits;
mod pending_write;
mod process_settings;
mod reader_pool;
mod reads;
mod replica;
mod restore;
mod result_columns;
mod run;
mod schema;
mod schema_faults;
mod ship;
#[cfg(test)]
mod slow_values;
mod sql_tokens;
mod statements;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod time_tests;
mod timing;
mod transaction;
mod uploads;
pub mod values;
mod visitor_files;
pub mod wal;
mod warnings;
mod watchdog;
mod writer;

pub use authorizer::FUNCTIONS;
pub use base::BaseSnapshot;
pub use batch::{BatchError, BatchStep};
pub use chain_builder::ChainBuilder;
pub use changed_tables::{ChangedTables, StatementTables};
pub use copy::{BackupSourceDatabase, prepare_for_server};
pub use database::Database;
pub use database_state::DatabaseState;
pub use databases::Databases;
pub use dry_run::{BrokenStatement, DryRunError, DryRunInput, DryRunOutcome, DryRunStatement};
pub use error::StatementRunError;
pub use files::{DatabasesDirectory, FileStamps};
pub use history::{EndedChain, HistoryMoments, first_commit_kept, oldest_moment_kept};
pub use integrity::{IntegrityReport, check_integrity};
pub use limits::{DatabaseLimits, ResultLimits, most_open_databases};
pub use load::{DatabaseLoader, LoadError};
pub use migrate::{MigrationOutcome, MigrationScript, MigrationScriptError};
pub use payment_mirror::PaymentMirrorRow;
pub use pending_commits::{DatabasePlace, DurableSource, LoadFuture};
pub use replica::{Replica, ReplicaError};
pub use restore::{
    DatabaseRestoreOutcome, PastSnapshot, RestoreError, RestorePlan, RestoreRecord, SnapshotError,
};
pub use result_columns::{DescribedStatement, ResultColumn};
pub use run::{ResultJson, RowCounts, StatementCall};
pub use schema::{
    Column, DatabaseInventory, Index, MigrationMarker, Schema, Table, TableRows, View,
};
pub use ship::{LogShipper, ShipError};
pub use timing::StatementTiming;
pub use uploads::{UploadCall, UploadKey, VisitorFileRow};
pub use values::BatchStepParam;
pub use warnings::SchemaWarning;
