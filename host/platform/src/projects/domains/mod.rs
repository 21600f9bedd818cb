//! Domains that owners bring for their projects: proven by DNS, served as the project's origin, checked again and again.
//!
//! The proof is a record that names a keyed hash of the project and the name, so that a record which is left behind never serves
//! another project. Memory has the domains that are served (`tls/domains.rs`), and follows the changes of the rows.

mod checks;
mod dns;
mod limit;
mod model;
mod name;
pub mod operations;
pub mod operators;
mod problems;
mod proof;
pub mod requests;
pub mod routes;
mod schedule;
mod service;
mod store;
mod turns;
pub mod views;

pub use dns::DnsRecord;
pub use model::{Domain, DomainError, DomainState};
pub use service::Domains;
pub(in crate::projects) use store::remove_all;
pub use store::{announce_end, is_served_by, served_names};
