//! What every route shares: errors, extractors, limits, and the front that each request passes.

pub mod access;
pub mod client_ip;
pub mod document;
pub mod extract;
pub mod front;
pub mod hosts;
pub mod idempotency;
mod linger;
pub mod negotiate;
pub mod owner;
pub mod problem;
pub mod problem_page;
pub mod query;
pub mod rate_limit;
pub mod serve;
mod stall;
