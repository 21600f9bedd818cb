//! An app's own tools, `POST /{slug}/mcp`: the actions of a page's backend, for the agents of its visitors.
//!
//! Names, notes and binds are the words of the page's owner, who may be anybody. They are bounded, freed of what no reader
//! sees, and never more than a description: what the service says itself stands in the instructions.

mod handler;
mod listing;
pub mod routes;
mod sanitize;

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::backends::calls::routes::CallState;
use crate::telemetry::Metrics;
use svc_base::clock::Clock;

/// Services that an app's tools need.
#[derive(Clone, Debug)]
pub struct AppToolState {
    /// State that calls of visitors need: a call of a tool is one.
    pub calls: CallState,
    /// Metrics for operators.
    pub metrics: Arc<Metrics>,
    /// The time.
    pub clock: Clock,
    /// Large results that are being cut: as values they take many times their bytes, and anybody may ask for one.
    large_results: Arc<Semaphore>,
}

/// Large results that are cut at once.
const MAX_LARGE_RESULTS: usize = 2;

impl AppToolState {
    /// Of these services.
    pub fn new(calls: CallState, metrics: Arc<Metrics>, clock: Clock) -> Self {
        Self {
            calls,
            metrics,
            clock,
            large_results: Arc::new(Semaphore::new(MAX_LARGE_RESULTS)),
        }
    }
}
