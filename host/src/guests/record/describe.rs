//! Changes in words, for operators.

use super::{Change, ChangeKind, Record};

impl Record {
    /// Says what changed last.
    pub fn describe_latest(&self) -> String {
        let latest = self.history.last();
        latest.map_or_else(|| "its record is gone".to_owned(), Change::describe)
    }
}

impl Change {
    /// The change in one line.
    pub fn describe(&self) -> String {
        let kind = match self.kind {
            ChangeKind::Install => "installed",
            ChangeKind::Rollback => "rolled back to",
            ChangeKind::Automatic => "ROLLED BACK BY ITSELF to",
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
