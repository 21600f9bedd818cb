//! The edge: a cache in front of us that is told what to forget.
//!
//! Purges are queued in the transaction of the change that makes them necessary, so that a crash forgets none,
//! and sent behind it, so that none delays or fails a publish. Each is sent twice: an old answer may have been
//! under way to the edge while the first was.

mod purge;
mod store;

pub use purge::Purger;
pub use store::enqueue_purge;

/// The host of an origin, with its port where that is not the scheme's.
pub fn host_of(origin: &str) -> &str {
    origin.split_once("://").map_or(origin, |(_, host)| host)
}
