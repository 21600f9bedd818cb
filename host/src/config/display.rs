//! Forms of what is shown: lines of the log, and secrets among settings.

use serde::{Deserialize, Serialize};

/// Shows that there is a secret, and nothing of it.
pub(super) fn masked<S: serde::Serializer>(secret: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(if secret.is_empty() { "" } else { "********" })
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}
