//! HTTP without any domain: errors, bodies, queries, documents, hosts and rate limits.

pub mod bounded_list;
pub mod byte_budget;
mod capacity;
pub mod client_ip;
pub mod client_timeout;
pub mod content_policy;
pub mod context;
pub mod cookies;
pub mod deadline;
pub mod document;
pub mod event_stream;
pub mod extract;
pub mod forwarded;
pub mod held_answers;
pub mod hosts;
pub mod mapped_body;
pub mod negotiate;
pub mod origin;
pub mod problem;
pub mod problem_page;
pub mod query;
pub mod rate_limit;
pub mod request_bodies;
pub mod request_ids;
pub mod stall;
mod streamed_body;
pub mod websocket;

use ::http::{HeaderName, HeaderValue, header};

/// Header that has browsers trust the `Content-Type`.
pub const NOSNIFF: (HeaderName, HeaderValue) = (
    header::X_CONTENT_TYPE_OPTIONS,
    HeaderValue::from_static("nosniff"),
);
