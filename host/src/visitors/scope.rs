//! What the addresses of owners' routes about visitors name.

use serde::Deserialize;

/// The visitor that a path names.
#[derive(Debug, Deserialize)]
pub struct VisitorPath {
    /// Who.
    pub user_id: String,
}
