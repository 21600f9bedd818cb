//! Services that pages call: databases with their actions, visitors who sign in, rooms and live queries, and payments.

#![forbid(unsafe_code)]

pub mod backends;
pub mod payments;
pub mod realtime;
pub mod visitor_files;
pub mod visitors;

use svc_outbound as outbound;
use svc_pages::deployments;
use svc_platform::{
    access, activity, config, content, control, http, infra, issuers, projects, stripe, tls,
    workspaces,
};
