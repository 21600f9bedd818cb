//! The tool endpoint: `POST /mcp` over the wire, in both eras of its protocol.

mod app;
mod app_lists;
mod auth;
mod cheap;
mod client;
mod cut;
mod framing;
mod job;
mod listing;
mod next_steps;
mod operations;
mod parity;
mod ranges;
mod written;
