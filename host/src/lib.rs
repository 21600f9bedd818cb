//! The host: everything of `svc` that is not a guest.

#![forbid(unsafe_code)]

pub mod app;
pub mod backup;
pub mod check;
pub mod cli;
pub mod cluster;
pub mod console;
pub mod errands;
pub mod gauges;
pub mod guests;
pub mod guides;
pub mod operators;
pub mod router;
pub mod server;

pub use svc_api::{accounts, envelope, mcp, openapi, operations, releases, stats};
pub use svc_backends::{backends, payments, realtime, visitor_files, visitors};
pub use svc_base::terminal;
pub use svc_client as client;
pub use svc_outbound as outbound;
pub use svc_pages::{deployments, landing};
pub use svc_platform::{
    access, activity, config, content, control, data_dir, data_lock, edge, http, infra, issuers,
    log, overview, permissions, projects, stripe, telemetry, tls, workspaces,
};
