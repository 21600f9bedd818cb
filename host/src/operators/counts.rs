//! The part of `svc status` that the control database knows.

use serde::{Deserialize, Serialize};

use super::installation::{Answer, Installation};
use crate::overview;

/// Counts what there is.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ShowCounts;

impl ShowCounts {
    pub(super) async fn run(self, at: &Installation) -> anyhow::Result<Answer> {
        Answer::new(&overview::counts(&at.control, at.clock.now()).await?, "")
    }
}
