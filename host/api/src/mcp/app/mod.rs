//! An app's own tools, `POST /{slug}/mcp`: the actions of a page's backend, for the agents of its visitors.
//!
//! Names, notes and binds are texts of the page's owner, who is not trusted. They are bounded, and invisible characters are removed.
//! They appear only as descriptions; the instructions contain the service's own words.

mod argument_types;
mod handler;
mod listing;
pub mod routes;
mod sanitize;

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::backends::calls::routes::CallServices;
use crate::telemetry::ServerMetrics;
use svc_base::clock::Clock;

/// Services of an app's tools.
#[derive(Clone, Debug)]
pub struct AppToolServices {
    /// State of visitors' calls, which a tool call is.
    pub calls: CallServices,
    pub metrics: Arc<ServerMetrics>,
    pub clock: Clock,
    /// Permits for parsing large results: parsed values take many times the memory of their bytes.
    large_results: Arc<Semaphore>,
}

/// Number of large results that are parsed at once.
const MAX_LARGE_RESULTS: usize = 2;

impl AppToolServices {
    pub fn new(calls: CallServices, metrics: Arc<ServerMetrics>, clock: Clock) -> Self {
        Self {
            calls,
            metrics,
            clock,
            large_results: Arc::new(Semaphore::new(MAX_LARGE_RESULTS)),
        }
    }
}
