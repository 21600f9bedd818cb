//! Tenants' databases: opened as they are needed, closed as they are not, and run behind the second wall.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod advice;
mod alone;
mod batch;
mod calls;
mod catalog;
mod columns;
mod commits;
mod committed;
mod copy;
#[cfg(test)]
mod corpus_tests;
mod cost;
mod databases;
mod dry_run;
mod error;
mod examine;
mod export;
mod files;
mod functions;
mod group;
mod handle;
mod history;
mod lanes;
mod ledger;
mod limits;
mod meter;
mod migrate;
mod mirror;
mod open;
mod pace;
mod place;
mod process;
mod readers;
mod reads;
mod rewind;
mod run;
mod schema;
mod shares;
#[cfg(test)]
mod slow_values;
mod sound;
mod statements;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod time_tests;
mod touched;
mod transaction;
pub mod values;
mod walls;
mod warnings;
mod watchdog;
mod write;
mod writer;

pub use batch::{BatchError, Step};
pub use copy::{Source, revive};
pub use databases::Databases;
pub use dry_run::{Outcome, Trial, TrialStatement};
pub use error::RunError;
pub use examine::{Examined, examine};
pub use files::Files;
pub use history::Past;
pub use limits::{Limits, ResultLimits};
pub use migrate::{Migrated, Script, ScriptError};
pub use mirror::Payment;
pub use open::Database;
pub use pace::Pace;
pub use rewind::{Plan, ReinstateError, Reinstated, RestoreRecord, RewindError, Rewound};
pub use run::{Call, ResultJson};
pub use schema::{Column, Index, Inventory, Marker, Schema, Table, TableRows, View};
pub use touched::{Tables, Touched};
pub use values::StepParam;
pub use walls::FUNCTIONS;
pub use warnings::SchemaWarning;
