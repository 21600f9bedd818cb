//! The tool endpoint, `POST /mcp`: a thin shell over the services that REST calls, in both eras of the protocol.
//!
//! `routes.rs` handles the HTTP part of a request, `rmcp` speaks the protocol, `handler.rs` answers it, and
//! `tools/` has a file for each tool: the arguments of its actions, the services that it calls, and its results. `app/` is the
//! other endpoint, `POST /{slug}/mcp`, with the tools of an app.

pub mod app;
mod arguments;
mod auth;
mod framing;
mod handler;
mod json_members;
mod results;
pub mod routes;
pub mod tools;
mod tools_only;
mod transport;

use std::sync::Arc;

use crate::access::Authenticator;
use crate::accounts::Accounts;
use crate::backends::Backends;
use crate::config::Config;
use crate::deployments::Deployments;
use crate::envelope::Teardown;
use crate::payments::Payments;
use crate::projects::Projects;
use crate::realtime::Realtime;
use crate::telemetry::Metrics;
use crate::visitors::Visitors;
use svc_base::clock::Clock;

/// Services that the tools call.
#[derive(Clone, Debug)]
pub struct ToolState {
    pub authenticator: Authenticator,
    pub accounts: Accounts,
    pub projects: Projects,
    pub envelope: Teardown,
    pub deployments: Arc<Deployments>,
    pub visitors: Arc<Visitors>,
    pub backends: Arc<Backends>,
    pub realtime: Arc<Realtime>,
    pub payments: Arc<Payments>,
    pub metrics: Arc<Metrics>,
    pub clock: Clock,
    pub config: Arc<Config>,
}
