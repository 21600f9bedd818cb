//! Deployments: whatever answers at a slug. Publishing makes finished bytes, serving reads them.
//!
//! Each folder is a service with its own state, and uses those to its left (`tests/http/tidy_order.rs` computes it):
//!
//! ```text
//! model, store ◄─ serving     ◄─ publication ◄─ files ◄─ frontends ◄─ revisions
//!                 collection     reports                 rerender     shares
//!                 operators
//! ```

mod address;
pub mod blocked;
pub mod collection;
pub mod files;
pub mod forms;
pub mod frontends;
pub mod model;
mod once_files;
mod open_tabs;
pub mod operators;
mod problems;
pub mod publication;
pub mod reports;
pub mod requests;
pub mod rerender;
pub mod revisions;
pub mod serving;
pub mod shares;
pub mod sites;
mod store;
pub mod views;

pub use address::announce_home;
