//! The operation of `svc guest rerender`, whose state is in the control database.

use serde::{Deserialize, Serialize};

use super::installation::{Installation, OperationAnswer};
use crate::deployments::rerender;

/// Requests a rerender, or its progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RerenderOperation {
    /// Request a rerender.
    Begin,
    /// Return the progress of the latest one.
    Look,
}

impl RerenderOperation {
    pub(super) async fn run(self, at: &Installation) -> anyhow::Result<OperationAnswer> {
        match self {
            Self::Begin => {
                let begun = rerender::request(&at.control, &at.clock).await?;
                Ok(OperationAnswer::new(&Some(begun), "")?.logged_as("guest rerender".to_owned()))
            }
            Self::Look => OperationAnswer::new(&rerender::progress(&at.control).await?, ""),
        }
    }
}
