//! Model of a site's new revision, and of its files as they are read.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use futures_util::TryStreamExt as _;

use crate::content::{self, Digest};
use crate::deployments::files::{NewSite, NewSiteFile, SiteTitle};
use crate::deployments::model::DeploymentType;
use crate::deployments::revisions::model::{Edit, Revision};
use crate::deployments::sites::{FileReader, SiteFile, SiteManifest, SiteOptions};
use svc_base::ids::RevisionId;

/// Document whose title is that of the site.
const START_PAGE: &str = "index.html";

/// Files of a site's new revision.
#[derive(Clone, Debug)]
pub enum SiteSource {
    /// All of them.
    Files(BTreeMap<String, NewSiteFile>),
    /// Changes to those of the base revision.
    Changes(SiteChanges),
}

/// Changes of a site's files, all of which are made or none.
#[derive(Clone, Debug, Default)]
pub struct SiteChanges {
    /// New files, and other bytes of those that are there.
    pub(super) set: BTreeMap<String, NewSiteFile>,
    /// Paths of files that go.
    pub(super) delete: Vec<String>,
    /// Changes of texts, in order, each with its file's path.
    pub(super) edits: Vec<(String, Edit)>,
}

/// Site of a release: its files, and its options.
#[derive(Clone, Debug)]
pub struct ReleasedSite {
    /// Files of the site.
    pub source: SiteSource,
    /// Options; those of the live revision, if there are none.
    pub options: Option<SiteOptions>,
}

impl SiteSource {
    /// Lists the files that the project must have.
    pub(in crate::deployments::revisions) fn named(&self) -> impl Iterator<Item = Digest> {
        let files = match self {
            Self::Files(files) => files,
            Self::Changes(changes) => &changes.set,
        };
        files.values().filter_map(|file| match file {
            NewSiteFile::Named(digest, _) => Some(*digest),
            _ => None,
        })
    }
}

/// A draft of a site; its fields are within their bounds.
#[derive(Clone, Debug)]
pub(super) struct NewSiteDraft {
    /// The revision that it was made from, which must be the active one; none if what was sent is no id.
    pub(super) base: Option<RevisionId>,
    /// Files of the draft.
    pub(super) source: SiteSource,
    /// Options of the draft; the base's, if there are none.
    pub(super) options: Option<SiteOptions>,
    /// The site's title; that of its start page, if there is none.
    pub(super) title: Option<String>,
    /// Why it was made.
    pub(super) message: Option<String>,
}

/// New content of a site; its fields are within their bounds.
#[derive(Clone, Debug)]
pub(super) struct NewSiteContent {
    /// Type, if the request names it: another one than the frontend's is refused.
    pub(super) named_type: Option<DeploymentType>,
    /// Files by their paths.
    pub(super) files: BTreeMap<String, NewSiteFile>,
    /// Options; as they were, if there are none.
    pub(super) options: Option<SiteOptions>,
    /// The site's title; that of its start page, if there is none.
    pub(super) title: Option<String>,
    /// Whether files that were live before serve no open tab any more.
    pub(super) forget: bool,
}

/// A file of a stored site.
#[derive(Clone, Debug)]
pub struct StoredSiteFile {
    /// Path of the file.
    pub path: String,
    /// Revision of the site; none for a frontend without a history.
    pub revision: Option<RevisionId>,
    /// Bytes of the file, which are not read yet.
    pub reader: FileReader,
}

impl StoredSiteFile {
    /// Reads all bytes of the file.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn read_whole(self) -> Result<Bytes, content::Error> {
        let length = self.reader.bytes();
        let steps: Vec<Bytes> = self.reader.read(0..length).try_collect().await?;
        Ok(steps.concat().into())
    }
}

/// Makes a new site of the files of another one.
pub(super) fn with_options(
    files: BTreeMap<String, NewSiteFile>,
    options: Option<SiteOptions>,
    base: &SiteOptions,
) -> NewSite {
    NewSite {
        files,
        options: options.unwrap_or_else(|| base.clone()),
        deleted: BTreeSet::new(),
    }
}

/// A revision of a site with its files.
#[derive(Debug)]
pub(super) struct BaseSite {
    pub(super) revision: Revision,
    pub(super) manifest: SiteManifest,
}

/// Returns the title of a site's new revision. That of the base stays with its start page, however that is sent.
pub(super) fn title_of(given: Option<String>, new: &NewSite, base: &BaseSite) -> SiteTitle {
    let (before, after) = (
        base.manifest.files.get(START_PAGE),
        new.files.get(START_PAGE),
    );
    let title = base.revision.title.clone();
    match (given, before.zip(after)) {
        (Some(given), _) => SiteTitle::Given(given),
        (None, Some((before, after))) if has_bytes_of(after, before) => SiteTitle::Given(title),
        (None, _) => SiteTitle::OfStartPage(title),
    }
}

/// Whether a new file has the bytes of a stored one.
fn has_bytes_of(new: &NewSiteFile, stored: &SiteFile) -> bool {
    match new {
        NewSiteFile::Kept(file) => file.digest == stored.digest,
        NewSiteFile::Named(digest, _) => *digest == stored.digest,
        NewSiteFile::Stored(file) => file.digest() == stored.digest,
        // Hashed only where the lengths agree.
        NewSiteFile::Inline(bytes) => {
            bytes.len() as u64 == stored.bytes && Digest::of(bytes) == stored.digest
        }
    }
}
