//! Number of lines that a page would gain and lose.

use std::time::Duration;

use similar::{DiffOp, TextDiff};

use super::model::RevisionError;
use super::service::Revisions;
use crate::access::run_while_client_waits;
use crate::deployments::frontends::Frontend;
use crate::deployments::publication::PublishError;
use crate::deployments::sites::{SiteFile, SiteManifest};

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

    /// Counts the files by which two sites differ, as lines of a list with each file and its digest.
    pub(super) fn between_sites(old: &SiteManifest, new: &SiteManifest) -> Self {
        let beyond = |one: &SiteManifest, other: &SiteManifest| {
            let is_new = |(path, file): &(&String, &SiteFile)| {
                let there = other.files.get(*path);
                there.is_none_or(|there| there.digest != file.digest)
            };
            one.files.iter().filter(is_new).count()
        };
        Self {
            added: beyond(new, old),
            removed: beyond(old, new),
        }
    }
}

impl Revisions {
    /// Counts the lines by which a new text differs from a page's live source; no page and no text are empty ones. Of a site, which has
    /// no text, its files are counted.
    ///
    /// # Errors
    /// `Capacity` if no thread is free, or a failure of the store.
    pub async fn line_changes(
        &self,
        live: Option<&Frontend>,
        new: Option<&str>,
    ) -> Result<LineChanges, RevisionError> {
        if let Some(site) = live.and_then(|live| live.site) {
            return Ok(LineChanges {
                added: 0,
                removed: usize::try_from(site.files).unwrap_or(usize::MAX),
            });
        }
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
    use crate::content::Digest;

    #[test]
    fn files_are_counted_on_both_sides() {
        let site = |files: &[(&str, &str)]| {
            let file = |(path, text): &(&str, &str)| {
                let file = SiteFile {
                    digest: Digest::of(text.as_bytes()),
                    bytes: 1,
                    list: None,
                };
                ((*path).to_owned(), file)
            };
            SiteManifest {
                files: files.iter().map(file).collect(),
                ..SiteManifest::default()
            }
        };
        let old = site(&[("kept", "1"), ("other", "2"), ("gone", "3")]);
        let new = site(&[("kept", "1"), ("other", "4"), ("new", "3"), ("more", "5")]);
        let changes = LineChanges::between_sites(&old, &new);
        assert_eq!((changes.added, changes.removed), (3, 2));
        let changes = LineChanges::between_sites(&new, &new);
        assert_eq!(changes, LineChanges::default());
    }

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
