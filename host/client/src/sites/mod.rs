//! Sites: folders that are published as a whole. What a folder has, what a server has, and how the one becomes the other.

mod content;
mod digests;
mod folder;
mod hints;
mod live;
mod media;
mod paths;
mod publish;
mod release;
mod seen;
mod share;
mod texts;

use serde::{Deserialize, Serialize};

pub(crate) use content::{RemoteFile, RemoteSite, SiteDifference};
pub(crate) use digests::content_digest;
pub(crate) use folder::{
    NOTHING_TO_PUBLISH, SiteFolder, is_folder, is_path_left_out, slug_of_site,
};
pub(crate) use hints::publishing_hints;
pub(crate) use live::{LiveSite, remember_published};
pub(crate) use media::{is_media, media_site, read_media};
pub(crate) use publish::{MAX_ROUNDS, NewSite, SiteChange, SitePublisher};
pub(crate) use release::add_site;
pub(crate) use seen::SeenSite;
pub(crate) use share::{ShareWishes, share_file, share_folder};
pub(crate) use texts::{name_some, size_text};

/// Type of a frontend that is a site.
pub(crate) const SITE_TYPE: &str = "site";

/// Options of a site.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct SiteOptions {
    /// File that answers where no file is: the page of an app that routes by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fallback: Option<String>,
    /// Patterns of the paths whose bytes never change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) immutable: Vec<String>,
}

/// Options of a site on the command line.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct SiteOptionArgs {
    /// Of a folder: the file that answers where no file is, for an app that routes by itself
    #[arg(long, value_name = "FILE")]
    fallback: Option<String>,
    /// Of a folder: a path, or a pattern such as '/assets/*', whose files never change; may be given several times
    #[arg(long, value_name = "PATTERN")]
    immutable: Vec<String>,
}

impl SiteOptionArgs {
    /// Whether any is given.
    pub(crate) fn is_given(&self) -> bool {
        self.fallback.is_some() || !self.immutable.is_empty()
    }

    /// The options, if any is given.
    pub(crate) fn options(&self) -> Option<SiteOptions> {
        self.is_given().then(|| SiteOptions {
            fallback: self.fallback.clone(),
            immutable: self.immutable.clone(),
        })
    }
}
