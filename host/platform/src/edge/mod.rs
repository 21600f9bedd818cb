//! The edge: a cache in front of the server, and the purges that it is sent.
//!
//! Purges are queued in the transaction of their change, so that a crash loses none, and sent after it, so that none delays or fails a
//! publish. Each is sent twice: the edge may have received an old answer during the first.

mod purge;
mod store;

pub use purge::EdgePurger;
pub use store::enqueue_purge;

/// Returns the host of an origin, with its port unless that is the scheme's default.
pub fn host_of(origin: &str) -> &str {
    origin.split_once("://").map_or(origin, |(_, host)| host)
}
