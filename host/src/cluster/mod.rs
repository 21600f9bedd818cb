//! A node of several: `[cluster]`. One node has control, the others follow it, and each has the tenants' databases that it has claimed.
//! PostgreSQL orders commits and says who lives, a bucket holds bytes, and SQLite runs every statement.

pub mod bases;
mod bounded_store;
pub mod bucket;
mod candidate;
mod errands;
mod feed;
pub mod found;
mod gate;
mod guests;
#[cfg(test)]
mod guests_tests;
pub mod histories;
mod keys;
mod known_places;
mod leftovers;
mod listing;
pub mod loads;
mod metrics;
mod node;
mod owned_databases;
mod peers;
mod run;
mod schedule;
mod serving_node;
#[cfg(test)]
mod serving_tests;
mod shipped;
#[cfg(test)]
mod tenant_tests;
mod tenants;
#[cfg(test)]
mod tests;
pub mod visits;

pub use candidate::{ControlCandidate, ControlClaim};
pub use errands::ERRANDS_SERVICE;
pub use feed::{FeedFollower, FeedFreshness};
pub use gate::AnswerGate;
pub use guests::{ClusterGuests, GuestFollower, restore_installed};
pub use known_places::{DatabaseLocation, KnownPlaces};
pub use listing::NodeView;
pub use metrics::ClusterMetrics;
pub use node::{ClusterNode, ControlHolder, ControlWait, JoinedNode};
pub use peers::{
    BoxError, KnownRuns, PeerBody, PeerClient, PeerError, PeerHandlerFn, Peers, full_body, refusal,
};
pub use run::{Run, SeenNode, end_process};
pub use serving_node::{ServingClusterNode, ServingNode};
pub use tenants::DatabaseUsers;
