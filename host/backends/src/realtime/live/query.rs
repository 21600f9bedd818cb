//! Live query, and the outcome of an evaluation.

use std::sync::Arc;

use bytes::Bytes;

use super::error::LiveError;
use crate::backends::calls::WatchedActionAnswer;
use crate::content::Digest;
use crate::visitors::ActionCallerIdentity;
use svc_database::values::{Params, Value};

/// Live query of a backend.
#[derive(Clone, Debug)]
pub(super) struct LiveQuery {
    pub(super) action: String,
    pub(super) params: Params,
    /// Visitor, if the answer depends on one.
    pub(super) visitor: Option<Arc<ActionCallerIdentity>>,
}

/// SHA-256 of a query, which identifies it.
pub(super) type LiveQueryKey = Digest;

impl LiveQuery {
    /// Returns the digest that identifies the query.
    pub(super) fn key(&self) -> LiveQueryKey {
        let mut key = Vec::new();
        let mut put = |tag: u8, bytes: &[u8]| {
            key.push(tag);
            key.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
            key.extend_from_slice(bytes);
        };
        put(b'a', self.action.as_bytes());
        if let Some(visitor) = &self.visitor {
            put(b'v', visitor.user_id.as_bytes());
            for (tag, text) in [(b'e', &visitor.email), (b'm', &visitor.name)] {
                put(tag, text.as_deref().unwrap_or_default().as_bytes());
            }
        }
        let mut params: Vec<_> = self.params.iter().collect();
        params.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, value) in params {
            put(b'n', name.as_bytes());
            match value {
                Value::Null => put(b'0', &[]),
                Value::Integer(number) => put(b'i', &number.to_le_bytes()),
                Value::Real(number) => put(b'r', &number.to_bits().to_le_bytes()),
                Value::Text(text) => put(b't', text.as_bytes()),
                Value::Blob(bytes) => put(b'b', bytes),
            }
        }
        Digest::of(&key)
    }
}

/// Answer of a query.
#[derive(Clone, Debug)]
pub(super) struct LiveQueryAnswer {
    pub(super) json: Bytes,
    pub(super) digest: Digest,
    /// Number of rows in it.
    pub(super) rows: u64,
}

#[derive(Debug)]
pub(super) enum EvaluationOutcome {
    /// The evaluation succeeded.
    Answered(WatchedActionAnswer),
    /// The query ends with an error.
    Failed(Arc<LiveError>),
    /// The database was busy: subscribers that have a result wait for the next one.
    Busy(Arc<LiveError>),
    /// The action has changed: its answer now depends on the visitor, or no longer does.
    IdentityChanged,
}
