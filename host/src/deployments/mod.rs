//! Deployments: whatever answers at a slug. Publishing makes finished bytes, serving reads them.

pub mod answer;
pub mod expiry;
pub mod forms;
pub mod frontends;
pub mod model;
pub mod operators;
pub mod page_source;
pub mod pages;
pub mod password;
mod problems;
mod publication;
pub mod publish;
pub mod quick_share;
pub mod reports;
pub mod requests;
pub mod rerender;
pub mod revisions;
mod room;
pub mod routes;
pub mod runtime;
pub mod serve;
pub mod sharing;
pub mod timings;
pub mod views;
pub mod visits;

mod store;

pub use frontends::bind_backend;
pub use publication::backend_changed;
pub use room::Publisher;

use std::sync::Arc;

use prometheus_client::registry::Registry;

use crate::config::Config;
use crate::content::{Content, OneTimeFiles};
use crate::control::{Control, Secrets};
use crate::telemetry::PolledGauge;
use svc_base::clock::Clock;
use svc_base::random::Random;
use svc_sandbox::Sandbox;

/// The services of this domain; each file adds its own.
#[derive(Debug)]
pub struct Deployments {
    pub(crate) control: Control,
    pub(crate) content: Content,
    pub(crate) once: OneTimeFiles,
    pub(crate) sandbox: Sandbox,
    pub(crate) clock: Clock,
    pub(crate) random: Random,
    pub(crate) config: Arc<Config>,
    pub(crate) secrets: Secrets,
    pub(crate) runtimes: runtime::Runtimes,
    pub(crate) reservations: publish::SlugReservations,
    /// How long the stages of publishes take.
    pub timings: timings::Timings,
    /// Pages in memory.
    pub pages: Arc<pages::Pages>,
    /// Views not yet written down.
    pub visits: visits::Visits,
}

impl Deployments {
    /// Adds the numbers of this domain to those of the server.
    pub fn register(&self, registry: &mut Registry) {
        let pages = &self.pages;
        registry.register(
            "svc_page_cache_hits",
            "Pages found in memory",
            pages.hits.clone(),
        );
        registry.register(
            "svc_page_cache_misses",
            "Pages loaded from disk",
            pages.misses.clone(),
        );
        let held = Arc::clone(pages);
        let bytes = PolledGauge::new(
            "svc_page_cache_bytes",
            "Bytes of pages in memory",
            move || held.size().1,
        );
        registry.register_collector(Box::new(bytes));
        let held = Arc::clone(pages);
        let entries = PolledGauge::new("svc_page_cache_pages", "Pages in memory", move || {
            held.size().0 as u64
        });
        registry.register_collector(Box::new(entries));
        registry.register("svc_visits", "Views counted", self.visits.total.clone());
        self.timings.register(registry);
    }
}
