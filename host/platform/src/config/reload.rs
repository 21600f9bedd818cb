//! Versions of a folder's pages: `svc dev` tells them, and open pages load themselves again when theirs is another.

use std::collections::BTreeMap;

use svc_base::clock::Timestamp;
use tokio::sync::watch;

/// Receiver of the versions; it has none before the folder was first applied.
pub type PageVersionsReceiver = watch::Receiver<PageVersions>;

/// Versions of the pages of a folder.
#[derive(Clone, Debug)]
pub struct PageVersions {
    /// Time at which they were told.
    pub told_at: Timestamp,
    /// Version of each page by its slug; empty before the folder was first applied.
    pub by_slug: BTreeMap<String, String>,
}
