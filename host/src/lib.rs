//! The host: everything of `svc` that is not a guest.

#![forbid(unsafe_code)]

pub mod access;
pub mod accounts;
pub mod app;
pub mod backends;
pub mod backup;
pub mod check;
pub mod cli;
pub mod config;
pub mod content;
pub mod control;
pub mod data_dir;
pub mod data_lock;
pub mod deployments;
pub mod edge;
pub mod envelope;
pub mod gauges;
pub mod guests;
pub mod guides;
pub mod http;
pub mod infra;
pub mod issuers;
pub mod landing;
pub mod log;
pub mod mcp;
pub mod openapi;
pub mod operations;
pub mod operators;
pub mod overview;
pub mod payments;
pub mod permissions;
pub mod projects;
pub mod realtime;
pub mod router;
pub mod server;
pub mod stripe;
pub mod telemetry;
pub mod tls;
pub mod visitors;
pub mod workspaces;

pub use svc_base::terminal;
pub use svc_client as client;
pub use svc_outbound as outbound;
