//! The tool endpoint, `POST /mcp`: a thin shell over the services that REST calls, in both eras of the protocol.
//!
//! `routes.rs` handles the HTTP part of a request, `rmcp` speaks the protocol, `handler.rs` answers it, and
//! `tools/` has a file for each tool: the arguments of its actions, the services that it calls, and its results. `app/` is the
//! other endpoint, `POST /{slug}/mcp`, with the tools of an app.

pub mod app;
mod arguments;
mod auth;
mod backend_calls;
mod framing;
mod handler;
mod json_members;
pub mod resources;
mod results;
pub mod routes;
pub mod tools;
mod tools_only;
mod transport;

use std::sync::Arc;

use self::resources::ResourceTexts;
use crate::access::Authenticator;
use crate::accounts::Accounts;
use crate::activity::Activity;
use crate::backends::calls::ActionCalls;
use crate::backends::history::BackendHistoryService;
use crate::backends::{ActionDefinitions, Backends, MigrationService};
use crate::config::Config;
use crate::deployments::frontends::Frontends;
use crate::deployments::revisions::Revisions;
use crate::deployments::shares::Shares;
use crate::envelope::ProjectLifecycle;
use crate::http::held_answers::HeldAnswerBudget;
use crate::payments::Payments;
use crate::projects::Projects;
use crate::projects::domains::Domains;
use crate::realtime::Realtime;
use crate::releases::ProjectReleases;
use crate::telemetry::ServerMetrics;
use crate::visitor_files::VisitorFiles;
use crate::visitors::Visitors;
use svc_base::clock::Clock;

/// Services that the tools call.
#[derive(Clone, Debug)]
pub struct ToolServices {
    pub authenticator: Authenticator,
    pub accounts: Accounts,
    pub projects: Projects,
    pub domains: Domains,
    pub envelope: ProjectLifecycle,
    /// Pages that anybody publishes, for a time.
    pub shares: Arc<Shares>,
    /// Pages of projects.
    pub frontends: Arc<Frontends>,
    /// History of frontends.
    pub revisions: Arc<Revisions>,
    /// Visitors' sign-in and their profiles.
    pub visitors: Arc<Visitors>,
    pub visitor_files: Arc<VisitorFiles>,
    pub backends: Arc<Backends>,
    /// Definitions of actions.
    pub definitions: Arc<ActionDefinitions>,
    /// Releases of projects.
    pub releases: Arc<ProjectReleases>,
    /// Migrations of backends.
    pub migrations: Arc<MigrationService>,
    /// Calls of actions.
    pub actions: Arc<ActionCalls>,
    /// Histories of backends, and their restores.
    pub histories: Arc<BackendHistoryService>,
    /// Rooms in which pages talk to each other.
    pub realtime: Arc<Realtime>,
    pub payments: Arc<Payments>,
    /// Counts and logs of projects.
    pub activity: Arc<Activity>,
    /// Texts that agents may read.
    pub resources: ResourceTexts,
    /// Large answers that wait for their readers.
    pub answers: HeldAnswerBudget,
    pub metrics: Arc<ServerMetrics>,
    pub clock: Clock,
    pub config: Arc<Config>,
}
