//! Path parameters of owners' routes about visitors.

use serde::Deserialize;

/// Visitor that a path names.
#[derive(Debug, Deserialize)]
pub struct VisitorPath {
    pub user_id: String,
}
