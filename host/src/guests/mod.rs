//! Guests as operators see them: looked at, tried on what is stored, installed, rolled back, and watched while they serve.
//!
//! [`record`] is what an operator chose, on the disk. [`watch`] is the server's side: it follows the record while calls run, keeps what
//! the sandbox decided by itself, and says in [`status`] what it did. [`check`] and [`replay`] are what
//! a component has to stand before it may be chosen.

pub mod check;
mod components;
mod contract;
mod corpus;
pub mod record;
pub mod replay;
pub mod status;
pub mod watch;

pub use record::{Folder, Record, RecordError, read_choices};
