//! Guests as operators see them: checked, replayed on stored content, installed, rolled back, and watched while they serve.
//!
//! [`record`] is the operator's choice, on the disk. [`watch`] is the server's side: it follows the record while calls run,
//! persists the rollbacks that the sandbox decided, and writes the [`status`] file. [`check`] and [`replay`] are the tests before an
//! installation. The nodes of a cluster have a [`shared`] record, which that on the disk of each follows.

pub mod check;
mod components;
mod contract;
mod corpus;
mod limits;
pub mod record;
pub mod replay;
pub mod shared;
pub mod status;
mod store;
pub mod watch;

pub use limits::guest_limits;
pub use record::{GuestRecord, GuestRecordError, WorldFolder, read_choices};
