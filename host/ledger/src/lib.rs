//! The ledger of several machines. It orders the commits of all databases, knows which runs live, and says who may write which
//! database. It holds what was acknowledged, so any machine may die.
//!
//! A *run* is a process from its start to its end. A run that was buried never lives again: its process ends.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod append_queue;
mod appender;
mod failure_detector;
mod memory;
mod postgres;
#[cfg(test)]
mod tests;
mod types;

pub use append_queue::{AppendEvent, AppendQueue};
pub use appender::{Answer, Appender, Command, EndReason, Request};
pub use failure_detector::{BEAT_EVERY, FailureDetector, answers_for};
pub use memory::MemoryLedger;
pub use postgres::{InvalidLedgerUrl, PostgresLedger};
pub use types::{
    Base, BeatCount, ClaimOutcome, DatabaseEntry, DatabaseName, FoundEntry, KeptBases, Ledger,
    LedgerError, Node, NodeState, Place, RunId,
};
