//! Descriptions of changes, for operators.

use super::{GuestChangeCause, GuestRecord, ServingGuestChange};

impl GuestRecord {
    /// Describes the latest change.
    pub fn describe_latest(&self) -> String {
        let latest = self.history.last();
        latest.map_or_else(
            || "its record is gone".to_owned(),
            ServingGuestChange::describe,
        )
    }
}

impl ServingGuestChange {
    /// Describes the change in one line.
    pub fn describe(&self) -> String {
        let kind = match self.kind {
            GuestChangeCause::Install => "installed",
            GuestChangeCause::Rollback => "rolled back to",
            GuestChangeCause::Automatic => "ROLLED BACK BY ITSELF to",
        };
        let which = self.digest.map_or_else(
            || "the built-in guest".to_owned(),
            |digest| digest.to_string(),
        );
        let why = self.why.as_ref();
        let why = why.map(|why| format!(": {}", why.escape_debug()));
        format!("{}  {kind} {which}{}", self.at, why.unwrap_or_default())
    }
}
