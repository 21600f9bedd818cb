//! Pages of a manifest: files, and folders that are published as sites.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::sites::{SiteFolder, SiteOptions};
use crate::source::SourceToPublish;
use svc_base::digest::Digest;
use svc_sources::ContentType;

/// Type of a frontend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum FrontendType {
    Page(ContentType),
    Site(SiteType),
}

/// Type of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum SiteType {
    Site,
}

impl FrontendType {
    pub(super) const SITE: Self = Self::Site(SiteType::Site);
}

impl std::fmt::Display for FrontendType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Page(page) => write!(f, "{page}"),
            Self::Site(_) => f.write_str("a site"),
        }
    }
}

/// A page in a manifest: a file's name, or a table with a file or a folder.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(
    untagged,
    expecting = "a file's name, a table with `file` and perhaps `title`, or one with `folder` and perhaps `title`, `fallback` and `immutable`"
)]
pub(crate) enum ManifestPageEntry {
    /// The file alone.
    File(PathBuf),
    /// The file with a title.
    Table(TitledPageEntry),
    /// The folder of a site.
    Folder(SiteEntry),
}

/// A page with its title.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TitledPageEntry {
    pub(super) file: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
}

/// A site with its options.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SiteEntry {
    pub(super) folder: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fallback: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) immutable: Vec<String>,
}

impl ManifestPageEntry {
    /// Name of the file or folder.
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::File(file) => file,
            Self::Table(table) => &table.file,
            Self::Folder(site) => &site.folder,
        }
    }

    pub(super) fn title(&self) -> Option<&str> {
        match self {
            Self::File(_) => None,
            Self::Table(table) => table.title.as_deref(),
            Self::Folder(site) => site.title.as_deref(),
        }
    }

    /// Returns the entry as a table.
    pub(super) fn as_table(&self) -> Self {
        match self {
            Self::File(file) => Self::Table(TitledPageEntry {
                file: file.clone(),
                title: None,
            }),
            table => table.clone(),
        }
    }

    /// Entry of a site; `None` for a page.
    pub(super) fn site(&self) -> Option<&SiteEntry> {
        match self {
            Self::File(_) | Self::Table(_) => None,
            Self::Folder(site) => Some(site),
        }
    }
}

impl SiteEntry {
    /// Options of the site. The manifest says all of them.
    pub(super) fn options(&self) -> SiteOptions {
        SiteOptions {
            fallback: self.fallback.clone(),
            immutable: self.immutable.clone(),
        }
    }
}

/// A page with its source.
#[derive(Clone, Debug)]
pub(super) struct LocalPage {
    /// Requested slug.
    pub(super) slug: String,
    pub(super) title: Option<String>,
    pub(super) content: LocalContent,
}

/// Content of a page in a folder.
#[derive(Clone, Debug)]
pub(super) enum LocalContent {
    Page(SourceToPublish),
    Site(LocalSite),
}

/// Folder of a site, with its options.
#[derive(Clone, Debug)]
pub(super) struct LocalSite {
    pub(super) folder: SiteFolder,
    pub(super) options: SiteOptions,
}

impl LocalPage {
    /// Path of the file or folder, for messages.
    pub(super) fn path(&self) -> &Path {
        match &self.content {
            LocalContent::Page(source) => &source.path,
            LocalContent::Site(site) => &site.folder.path,
        }
    }

    /// Digest of the content, as the server computes it.
    pub(super) fn sha256(&self) -> String {
        match &self.content {
            LocalContent::Page(source) => Digest::of(source.content.as_bytes()).to_string(),
            LocalContent::Site(site) => site.folder.content_digest(&site.options),
        }
    }

    pub(super) fn frontend_type(&self) -> FrontendType {
        match &self.content {
            LocalContent::Page(source) => FrontendType::Page(source.content_type),
            LocalContent::Site(_) => FrontendType::SITE,
        }
    }

    /// Kind of the page in a plan.
    pub(super) fn kind(&self) -> &'static str {
        match &self.content {
            LocalContent::Page(_) => "page",
            LocalContent::Site(_) => "site",
        }
    }

    pub(super) fn site(&self) -> Option<&LocalSite> {
        match &self.content {
            LocalContent::Page(_) => None,
            LocalContent::Site(site) => Some(site),
        }
    }
}
