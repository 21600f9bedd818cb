//! Live query, and the outcome of evaluating it.

use std::sync::Arc;

use bytes::Bytes;

use crate::backends::calls::WatchedAnswer;
use crate::content::Digest;
use crate::http::problem::Problem;
use crate::visitors::Identity;
use svc_database::values::{Params, Value};

/// Identity of a query within its backend.
#[derive(Clone, Debug)]
pub(super) struct Query {
    /// The action's name.
    pub(super) action: String,
    /// Parameters of the call.
    pub(super) params: Params,
    /// The visitor whose own answer it is.
    pub(super) visitor: Option<Arc<Identity>>,
}

/// Digest of a query: equal queries have equal ones, and nobody finds two others that do.
pub(super) type QueryKey = Digest;

impl Query {
    /// Returns the digest by which the query is found.
    pub(super) fn key(&self) -> QueryKey {
        let mut key = Vec::new();
        let mut put = |tag: u8, bytes: &[u8]| {
            key.push(tag);
            key.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
            key.extend_from_slice(bytes);
        };
        put(b'a', self.action.as_bytes());
        if let Some(visitor) = &self.visitor {
            put(b'v', visitor.user_id.as_bytes());
            put(
                b'e',
                visitor.email.as_deref().unwrap_or_default().as_bytes(),
            );
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

/// An answer of a query.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) json: Bytes,
    pub(super) digest: Digest,
}

/// Outcome of an evaluation.
#[derive(Debug)]
pub(super) enum Outcome {
    /// An answer.
    Answered(WatchedAnswer),
    /// The end of the query.
    Failed(Arc<Problem>),
    /// The database was busy: whoever has got a result waits for the next.
    Busy(Arc<Problem>),
    /// Whether the answer is a visitor's own is another than it was.
    IdentityChanged,
}
