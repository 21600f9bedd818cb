//! Display of settings: the format of log lines, and masked secrets.

use serde::{Deserialize, Serialize};

/// Serializes a secret as asterisks, or as an empty text if there is none.
pub(super) fn masked<S: serde::Serializer>(secret: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(if secret.is_empty() { "" } else { "********" })
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Text for people.
    Text,
    /// One JSON object a line.
    Json,
}
