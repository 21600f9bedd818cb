//! `svc node` and `svc promote`.

use serde::{Deserialize, Serialize};

/// Operation of `svc node` and `svc promote`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeOperation {
    /// Lists the nodes.
    List {},
    /// Has this node take control.
    Promote {},
}
