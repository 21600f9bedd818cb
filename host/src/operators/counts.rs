//! The counts of `svc status`, from the control database.

use serde::{Deserialize, Serialize};

use super::installation::{Installation, OperationAnswer};
use crate::overview;

/// Counts the resources of the installation.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ShowCounts;

impl ShowCounts {
    pub(super) async fn run(self, at: &Installation) -> anyhow::Result<OperationAnswer> {
        OperationAnswer::new(&overview::counts(&at.control, at.clock.now()).await?, "")
    }
}
