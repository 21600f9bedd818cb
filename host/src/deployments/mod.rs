//! Deployments: whatever answers at a slug. Publishing makes finished bytes, serving reads them.

mod answer;
pub mod expiry;
pub mod forms;
pub mod frontends;
pub mod model;
pub mod operate;
pub mod page_source;
pub mod pages;
pub mod parts;
pub mod password;
pub mod publish;
pub mod quick_share;
pub mod report_form;
pub mod reports;
pub mod requests;
pub mod rerender;
pub mod revisions;
pub mod routes;
pub mod runtime;
pub mod serve;
pub mod visits;

mod store;

use std::sync::Arc;

use crate::clock::Clock;
use crate::config::Config;
use crate::content::{Content, OnceFiles};
use crate::control::{Control, Secrets};
use crate::random::Random;
use crate::sandbox::Sandbox;

/// The services of this domain; each file adds its own.
#[derive(Debug)]
pub struct Deployments {
    pub(crate) control: Control,
    pub(crate) content: Content,
    pub(crate) once: OnceFiles,
    pub(crate) sandbox: Sandbox,
    pub(crate) clock: Clock,
    pub(crate) random: Random,
    pub(crate) config: Arc<Config>,
    pub(crate) secrets: Secrets,
    pub(crate) runtime: tokio::sync::OnceCell<String>,
    pub(crate) reservations: publish::SlugReservations,
    /// How long the parts of publishes take.
    pub parts: parts::Parts,
    /// Pages in memory.
    pub pages: Arc<pages::Pages>,
    /// Views not yet written down.
    pub visits: visits::Visits,
}
