//! Foundation of every service: settings, the control database, content, HTTP, certificates, workspaces, access and projects.
//!
//! Nothing here knows what a project contains.

#![forbid(unsafe_code)]

pub mod access;
pub mod activity;
pub mod config;
pub mod content;
pub mod control;
pub mod data_dir;
pub mod data_lock;
pub mod edge;
pub mod http;
pub mod infra;
pub mod issuers;
pub mod log;
pub mod overview;
pub mod permissions;
pub mod projects;
pub mod stripe;
pub mod telemetry;
pub mod tls;
pub mod workspaces;

pub use svc_outbound as outbound;
