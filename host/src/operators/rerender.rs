//! The part of `svc guest rerender` that the control database keeps.

use serde::{Deserialize, Serialize};

use super::installation::{Answer, Installation};
use crate::deployments::rerender;

/// Asks for a rerender, or how far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rerender {
    /// Begins one.
    Begin,
    /// Says how far the latest one is.
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
