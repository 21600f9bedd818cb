//! The control database: one SQLite file with everything durable that is not content or a tenant's data, and beside it the
//! file of counters.
//!
//! One writer thread and several readers. Writes that queue up during a commit share the next one: a savepoint each, one sync for
//! all, and callers are answered after it. The writer alone copies and empties the write-ahead log.

pub mod audit;
mod change;
mod columns;
mod copy;
pub mod counters;
mod errands;
mod error;
pub mod events;
pub mod kept_answers;
mod migrations;
mod pool;
mod residue;
mod secrets;
mod tables;
mod wal;

pub use change::ControlChange;
pub use columns::NamedColumnReader;
pub use copy::{ControlSnapshot, finish_copy};
pub use counters::{DeploymentVisits, InstallationCounters, SharedVisits};
pub use errands::{ErrandMessage, ErrandSender, ErrandWork};
pub use error::Error;
pub use migrations::SCHEMA_VERSION;
pub use pool::{ChangeFeed, ControlDatabase, FollowedCommits, Freshness, Tx};
pub use secrets::InstallationSecrets;
pub use tables::{ControlTable, TABLES, TableDatabaseFile};
