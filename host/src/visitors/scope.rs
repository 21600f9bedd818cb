//! Path parameters of owners' routes about visitors.

use serde::Deserialize;

/// The visitor that a path names.
#[derive(Debug, Deserialize)]
pub struct VisitorPath {
    /// Identifier of the visitor.
    pub user_id: String,
}
