//! The tool endpoint: `POST /mcp` over the wire, in both eras of its protocol.

mod answer_sizes;
mod app;
mod app_lists;
mod argument_text;
mod auth;
mod client;
mod framing;
mod job;
mod listing;
mod next_steps;
mod operations;
mod parity;
mod ranges;
mod resources;
mod sites;
mod truncation;
