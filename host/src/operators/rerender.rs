//! The operation of `svc guest rerender`, whose state is in the control database.

use serde::{Deserialize, Serialize};

use super::installation::{Answer, Installation};
use crate::deployments::rerender;

/// Requests a rerender, or its progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rerender {
    /// Request a rerender.
    Begin,
    /// Return the progress of the latest one.
    Look,
}

impl Rerender {
    pub(super) async fn run(self, at: &Installation) -> anyhow::Result<Answer> {
        match self {
            Self::Begin => {
                let begun = rerender::request(&at.control, &at.clock).await?;
                Ok(Answer::new(&Some(begun), "")?.logged_as("guest rerender".to_owned()))
            }
            Self::Look => Answer::new(&rerender::progress(&at.control).await?, ""),
        }
    }
}
