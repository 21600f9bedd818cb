//! Revisions of sites that were live a short time ago: their files serve tabs that were opened then.

mod store;

use crate::config::Limits;
use crate::content::Digest;
use svc_base::clock::Timestamp;

pub(super) use store::{
    add, any, forget_all, forget_old, forget_revision, keep_deletions, list, take_back,
};

/// Fate of the files that were live before a release.
#[derive(Clone, Copy, Debug)]
pub(super) enum OpenTabs {
    /// They serve open tabs until a moment.
    ServedUntil(Timestamp),
    /// They serve nobody any more.
    Forgotten,
}

/// A revision that was live a short time ago.
#[derive(Clone, Copy, Debug)]
pub(super) struct FormerRevision {
    /// Manifest of its files.
    pub(super) manifest: Digest,
    /// Until when they are served.
    pub(super) until: Timestamp,
    /// Whether its files serve nobody, so that it only says what was deleted by name.
    pub(super) only_deletes: bool,
}

impl OpenTabs {
    /// Returns what a release makes of earlier files, by what its caller says.
    pub(super) fn of_release(limits: &Limits, now: Timestamp, forget: bool) -> Self {
        let seconds = i64::try_from(limits.skew_seconds).unwrap_or(i64::MAX);
        match forget {
            true => Self::Forgotten,
            false => Self::ServedUntil(now.plus_seconds(seconds)),
        }
    }
}
