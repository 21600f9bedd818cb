//! A node of several: `[cluster]`. One node has control, and answers; the others stand by. PostgreSQL orders commits and says who
//! lives, a bucket holds bytes, and SQLite runs every statement.

pub mod bases;
mod bounded_store;
pub mod bucket;
mod feed;
pub mod found;
mod gate;
pub mod histories;
mod keys;
mod known_places;
mod leftovers;
mod metrics;
mod node;
mod owner;
mod peers;
mod run;
mod schedule;
mod shipped;
mod standby;
#[cfg(test)]
mod tenant_tests;
mod tenants;
#[cfg(test)]
mod tests;
pub mod visits;

pub use feed::{FeedFollower, FeedFreshness};
pub use gate::AnswerGate;
pub use known_places::{DatabaseLocation, KnownPlaces};
pub use metrics::ClusterMetrics;
pub use node::{ClusterNode, ControlHolder, JoinedNode, NodeView};
pub use owner::{ClusterOwner, Owner};
pub use peers::{
    BoxError, KnownRuns, PeerBody, PeerClient, PeerError, PeerHandlerFn, Peers, full_body, refusal,
};
pub use run::{Run, SeenNode};
pub use standby::{ControlClaim, Standby};
