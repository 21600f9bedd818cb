//! The control database: one SQLite file with everything durable that is not content or a tenant's data, and beside it the
//! file of what is counted.
//!
//! One writer thread and several readers. Writes that queue up while a commit is under way share the next
//! one: a savepoint each, one sync for all, and nobody is answered before it.

pub mod audit;
mod change;
mod columns;
mod copy;
pub mod counters;
mod error;
pub mod events;
pub mod kept_answers;
mod migrations;
mod pool;
mod residue;
mod secrets;
mod tables;

pub use change::Change;
pub use columns::Columns;
pub use copy::{Snapshot, finish_copy};
pub use counters::Counters;
pub use error::Error;
pub use migrations::SCHEMA_VERSION;
pub use pool::{Control, Tx};
pub use secrets::Secrets;
pub use tables::{TABLES, Table, TableFile};
