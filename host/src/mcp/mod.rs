//! The tool endpoint, `POST /mcp`: a thin shell over the services that REST calls, in both eras of the protocol.
//!
//! `routes.rs` takes a request apart as far as HTTP goes, `rmcp` speaks the protocol, `handler.rs` is what it asks, and
//! `tools/` has a file for each tool: which arguments an action takes, which service it calls, what it answers.

mod arguments;
mod auth;
mod framing;
mod handler;
mod members;
mod results;
pub mod routes;
pub mod tools;
