//! Operations of owners and their agents: accounts, projects with all that is in them, the list of all, tools, and the description.

#![forbid(unsafe_code)]

pub mod accounts;
pub mod envelope;
pub mod mcp;
pub mod openapi;
pub mod operations;
pub mod releases;
pub mod stats;

use svc_backends::{backends, payments, realtime, visitor_files, visitors};
use svc_pages::deployments;
use svc_platform::{
    access, activity, config, control, http, infra, projects, stripe, telemetry, workspaces,
};
