//! Model of a site's new revision, and of its files as they are read.

use std::collections::{BTreeMap, BTreeSet};

use crate::deployments::files::{NewSite, NewSiteFile};
use crate::deployments::model::DeploymentType;
use crate::deployments::revisions::model::Edit;
use crate::deployments::sites::{FileReader, SiteOptions};
use svc_base::ids::RevisionId;

/// Files of a draft.
#[derive(Clone, Debug)]
pub(super) enum SiteSource {
    /// All of them.
    Files(BTreeMap<String, NewSiteFile>),
    /// Changes to those of the base revision.
    Changes(SiteChanges),
}

/// Changes of a site's files, all of which are made or none.
#[derive(Clone, Debug, Default)]
pub(super) struct SiteChanges {
    /// New files, and other bytes of those that are there.
    pub(super) set: BTreeMap<String, NewSiteFile>,
    /// Paths of files that go.
    pub(super) delete: Vec<String>,
    /// Changes of texts, in order, each with its file's path.
    pub(super) edits: Vec<(String, Edit)>,
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
    /// Bytes of the file, which are not read yet.
    pub reader: FileReader,
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
