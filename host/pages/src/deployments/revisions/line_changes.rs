//! Number of lines that a page would gain and lose.

use std::time::Duration;

use similar::{DiffOp, TextDiff};

use super::model::RevisionError;
use super::service::Revisions;
use crate::access::run_while_client_waits;
use crate::deployments::frontends::Frontend;
use crate::deployments::publication::PublishError;

/// Time limit of the comparison of two texts, after which it is less exact.
const TIMEOUT: Duration = Duration::from_millis(100);

/// Number of lines that a change adds and removes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineChanges {
    /// New lines.
    pub added: usize,
    /// Lines that go.
    pub removed: usize,
}

impl LineChanges {
    fn between(old: &str, new: &str) -> Self {
        let mut changes = Self::default();
        let difference = TextDiff::configure().timeout(TIMEOUT).diff_lines(old, new);
        for change in difference.ops() {
            if matches!(change, DiffOp::Equal { .. }) {
                continue;
            }
            changes.added += change.new_range().len();
            changes.removed += change.old_range().len();
        }
        changes
    }
}

impl Revisions {
    /// Counts the lines by which a new text differs from a page's live source; no page and no text are empty ones.
    ///
    /// # Errors
    /// `Capacity` if no thread is free, or a failure of the store.
    pub async fn line_changes(
        &self,
        live: Option<&Frontend>,
        new: Option<&str>,
    ) -> Result<LineChanges, RevisionError> {
        let old = match live.and_then(|live| live.source) {
            Some(digest) => self.pipeline.source_text(digest).await?,
            None => String::new(),
        };
        let new = new.unwrap_or_default().to_owned();
        let counted = self.pipeline.reserve(old.len() + new.len()).await?;
        let comparing = self
            .sandbox
            .page_lane()
            .run(move |_| LineChanges::between(&old, &new));
        let changes = run_while_client_waits(comparing)
            .await
            .map_err(PublishError::from)?
            .map_err(PublishError::from)?;
        drop(counted);
        Ok(changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_on_both_sides() {
        for (old, new, added, removed) in [
            ("", "", 0, 0),
            ("", "a\nb\n", 2, 0),
            ("a\nb\n", "", 0, 2),
            ("a\nb\nc\n", "a\nx\nc\nd\n", 2, 1),
            ("a\n", "a\n", 0, 0),
        ] {
            let changes = LineChanges::between(old, new);
            assert_eq!(changes, LineChanges { added, removed }, "{old:?} {new:?}");
        }
    }
}
