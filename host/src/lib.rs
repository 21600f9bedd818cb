//! The host: everything of `svc` that is not a guest.

pub mod app;
pub mod backends;
pub mod background;
pub mod cli;
pub mod clock;
pub mod config;
pub mod content;
pub mod control;
pub mod data_lock;
pub mod deployments;
pub mod edge;
pub mod fault;
pub mod http;
pub mod http_client;
pub mod ids;
pub mod landing;
pub mod mcp;
pub mod openapi;
pub mod projects;
pub mod random;
pub mod router;
pub mod sandbox;
pub mod server;
pub mod teardown;
pub mod telemetry;
pub mod workspaces;
