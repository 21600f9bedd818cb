//! An app's own tools, `POST /{slug}/mcp`: the actions of a page's backend, for the agents of its visitors.
//!
//! Names, notes and binds are the words of the page's owner, who may be anybody. They are bounded, freed of what no reader
//! sees, and never more than a description: what the service says itself stands in the instructions.

mod handler;
mod listing;
pub mod routes;
mod words;

use std::sync::Arc;

use crate::backends::operate::routes::Calls;
use crate::clock::Clock;
use crate::telemetry::Metrics;

/// Services that an app's tools need.
#[derive(Clone, Debug)]
pub struct AppTools {
    /// What calls of visitors need: a call of a tool is one.
    pub calls: Calls,
    /// What operators measure.
    pub metrics: Arc<Metrics>,
    /// The time.
    pub clock: Clock,
}
