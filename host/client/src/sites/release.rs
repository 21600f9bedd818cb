//! Sites in a release of a project: their files are named by digests, and sent before it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::content::{RemoteSite, SiteDifference};
use super::folder::SiteFolder;
use super::publish::{INLINE_BYTES, SitePublisher, missing_digests, named_entry};
use super::{SITE_TYPE, SiteOptions};
use crate::error::{CliFailure, Result};
use svc_base::digest::Digest;

/// Adds a site to its entry of a release: all files, or those that are other than in the revision that is live.
pub(crate) fn add_site(
    entry: &mut Value,
    site: &SiteFolder,
    (base, options): (Option<&RemoteSite>, &SiteOptions),
) {
    let named = |path: &str| {
        let file = site.files.get(path);
        (path.to_owned(), file.map_or(Value::Null, named_entry))
    };
    entry["type"] = SITE_TYPE.into();
    entry["options"] = json!(options);
    let difference = base.map(|base| SiteDifference::of_folder(base, site, Some(options)));
    match difference.filter(SiteDifference::is_small) {
        Some(difference) => {
            let set: serde_json::Map<_, _> = difference.new_paths().map(named).collect();
            entry["changes"] = json!({ "set": set });
        }
        None => {
            let files: serde_json::Map<_, _> = site.files.keys().map(|path| named(path)).collect();
            entry["files"] = files.into();
        }
    }
}

impl SitePublisher<'_> {
    /// Sends the files that a revision does not have, if they are few: then a release need not be refused first.
    ///
    /// # Errors
    /// Failures of the server, and of reading the files.
    pub(crate) async fn send_few(&self, base: &RemoteSite) -> Result<()> {
        let known = base.digests();
        let new = self.site.files.values();
        let new: Vec<_> = new.filter(|file| !known.contains(&file.digest)).collect();
        let bytes: u64 = new.iter().map(|file| file.bytes).sum();
        if bytes > INLINE_BYTES {
            return Ok(());
        }
        let new: BTreeSet<Digest> = new.iter().map(|file| file.digest).collect();
        self.provide(&new, false).await.map(drop)
    }

    /// Sends the files that a server has said to be missing.
    ///
    /// # Errors
    /// As of [`Self::send_few`].
    pub(crate) async fn send_missing(&self, failure: &CliFailure) -> Result<()> {
        let missing = missing_digests(failure);
        self.provide(&missing, false).await.map(drop)
    }
}
