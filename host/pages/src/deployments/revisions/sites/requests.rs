//! Requests about revisions of sites, and their checks: for REST and for tools alike.

use std::collections::BTreeSet;

use serde::Deserialize;
use svc_base::json_object::optional_object;
use svc_base::numbers::optional_whole_number;
use utoipa::ToSchema;

use super::model::{NewSiteContent, NewSiteDraft, SiteChanges, SiteSource};
use crate::deployments::files::requests::{
    FileSource, FileSources, checked_files, checked_options, optional_unique_files, unique_files,
};
use crate::deployments::model::DeploymentType;
use crate::deployments::requests::{MAX_TITLE_CHARACTERS, OtherTypesField};
use crate::deployments::revisions::RevisionError;
use crate::deployments::revisions::model::Edit;
use crate::deployments::revisions::requests::{
    CreateRevision, MAX_EDITS, MAX_MESSAGE_CHARACTERS, Republish, check_edit, refuse_new_slug,
    require_id,
};
use crate::deployments::sites::SiteOptions;
use crate::http::extract::{check_characters, invalid_request};
use crate::http::problem::Problem;
use svc_base::ids::RevisionId;

/// One change of a text file: `find`, which must occur exactly `count` times, becomes `replace`.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SiteEdit {
    /// Path of the file.
    pub path: String,
    /// Text that is there; never empty.
    #[schema(min_length = 1)]
    pub find: String,
    /// Text that shall be there instead.
    pub replace: String,
    /// How often it must occur; once, if absent.
    #[serde(default, deserialize_with = "optional_whole_number")]
    #[schema(minimum = 1, default = 1)]
    pub count: Option<u64>,
}

/// Changes of the base revision's files: all are made, or none.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SiteChangesRequest {
    /// New files, and other bytes of those that are there.
    #[serde(default, deserialize_with = "optional_unique_files")]
    #[schema(value_type = Option<BTreeMap<String, FileSource>>)]
    pub set: Option<FileSources>,
    /// Paths of files that go.
    pub delete: Option<Vec<String>>,
    /// Changes of text files, applied in order.
    #[schema(max_items = 100)]
    pub edits: Option<Vec<SiteEdit>>,
}

/// A draft of a site to make. Send `files` or `changes`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateSiteRevision {
    /// The active revision, which the draft is made from.
    #[schema(required = true, value_type = String, format = "uuid")]
    pub base_revision_id: Option<String>,
    /// All files by their paths.
    #[serde(default, deserialize_with = "optional_unique_files")]
    #[schema(value_type = Option<BTreeMap<String, FileSource>>)]
    pub files: Option<FileSources>,
    /// Changes of the base revision's files.
    #[serde(default, deserialize_with = "optional_object")]
    pub changes: Option<SiteChangesRequest>,
    /// Options; those of the base revision if absent.
    #[serde(default, deserialize_with = "optional_object")]
    pub options: Option<SiteOptions>,
    /// The site's title. If absent that of its `index.html`, where that is another file than before, else the active revision's.
    #[schema(max_length = 200)]
    pub title: Option<String>,
    /// Why it is made.
    #[schema(max_length = 1000)]
    pub message: Option<String>,
    /// Only a page has a source.
    #[serde(default)]
    #[schema(ignore)]
    pub content: OtherTypesField,
    /// Only a page has a source to edit.
    #[serde(default)]
    #[schema(ignore)]
    pub edits: OtherTypesField,
}

/// A draft of a page or of a site, as the description has it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum CreateRevisionRequest {
    /// A draft of a page.
    Page(CreateRevision),
    /// A draft of a site.
    Site(CreateSiteRevision),
}

/// New files for a site.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RepublishSite {
    /// All files by their paths; one at least.
    #[serde(deserialize_with = "unique_files")]
    #[schema(value_type = BTreeMap<String, FileSource>)]
    pub files: FileSources,
    /// Options; as they were, if absent.
    #[serde(default, deserialize_with = "optional_object")]
    pub options: Option<SiteOptions>,
    /// The site's title. If absent that of its `index.html`, where that is another file than before, else as it was.
    #[schema(max_length = 200)]
    pub title: Option<String>,
    /// May repeat the frontend's type; another one is refused.
    #[serde(rename = "type")]
    pub named_type: Option<DeploymentType>,
    /// A slug never changes: anything but an empty one is refused.
    pub requested_slug: Option<String>,
    /// Whether tabs that were opened before get no file of then any more.
    pub forget: Option<bool>,
    /// Only a page has a source.
    #[serde(default)]
    #[schema(ignore)]
    pub content: OtherTypesField,
}

/// New content for a page or a site, as the description has it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum RepublishRequest {
    /// New content for a page.
    Page(Republish),
    /// New files for a site.
    Site(RepublishSite),
}

/// Which revision of a site to read.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SiteQuery {
    /// A revision; the live one if absent.
    pub revision_id: Option<String>,
}

impl SiteQuery {
    /// The revision that is asked for.
    ///
    /// # Errors
    /// `not_found` for what cannot be a revision.
    pub fn checked(self) -> Result<Option<RevisionId>, Problem> {
        let revision = self.revision_id.as_deref().map(str::parse).transpose();
        Ok(revision.map_err(|_| RevisionError::NoRevision)?)
    }
}

impl RepublishSite {
    /// The files that are sent.
    ///
    /// # Errors
    /// `invalid_request`, `path_refused`.
    pub(super) fn checked(self) -> Result<NewSiteContent, Problem> {
        refuse_new_slug(self.requested_slug.as_deref())?;
        check_characters("title", self.title.as_deref(), MAX_TITLE_CHARACTERS)?;
        Ok(NewSiteContent {
            named_type: self.named_type,
            files: checked_files(self.files)?,
            options: self.options.map(checked_options).transpose()?,
            title: self.title.filter(|title| !title.is_empty()),
            forget: self.forget.unwrap_or(false),
        })
    }
}

impl CreateSiteRevision {
    /// The draft that is asked for.
    ///
    /// # Errors
    /// `invalid_request`, `path_refused`.
    pub(super) fn checked(self) -> Result<NewSiteDraft, Problem> {
        let base = require_id("base_revision_id", self.base_revision_id)?;
        check_characters("title", self.title.as_deref(), MAX_TITLE_CHARACTERS)?;
        check_characters("message", self.message.as_deref(), MAX_MESSAGE_CHARACTERS)?;
        let changes_more = self.options.is_some() || self.title.is_some();
        let source = checked_source(self.files, self.changes, changes_more)?;
        Ok(NewSiteDraft {
            base: base.parse().ok(),
            source,
            options: self.options.map(checked_options).transpose()?,
            title: self.title.filter(|title| !title.is_empty()),
            message: self.message,
        })
    }
}

/// The files that a request has: all of them, or changes of those that are there. Changes may be empty where the request changes more than
/// files.
///
/// # Errors
/// `invalid_request`, `path_refused`.
pub fn checked_source(
    files: Option<FileSources>,
    changes: Option<SiteChangesRequest>,
    changes_more: bool,
) -> Result<SiteSource, Problem> {
    match (files, changes) {
        (Some(files), None) => Ok(SiteSource::Files(checked_files(files)?)),
        (None, Some(changes)) => Ok(SiteSource::Changes(changes.checked(changes_more)?)),
        (None, None) => Err(invalid_request(
            "missing field `files`: send all files, or `changes` of the base revision's.",
        )),
        (Some(_), Some(_)) => Err(invalid_request("Send `files` or `changes`, not both.")),
    }
}

impl SiteChangesRequest {
    fn checked(self, may_be_empty: bool) -> Result<SiteChanges, Problem> {
        let (set, delete) = (
            self.set.unwrap_or_default(),
            self.delete.unwrap_or_default(),
        );
        let edits = self.edits.unwrap_or_default();
        let edits: Vec<(String, Edit)> = edits
            .into_iter()
            .map(|edit| {
                let SiteEdit {
                    path,
                    find,
                    replace,
                    count,
                } = edit;
                let edit = Edit {
                    find,
                    replace,
                    count,
                };
                (path, edit)
            })
            .collect();
        if edits.len() > MAX_EDITS {
            return Err(invalid_request(format!(
                "`changes.edits` has {} entries; {MAX_EDITS} is the most. Send whole files in `set` instead.",
                edits.len()
            )));
        }
        for (index, (_, edit)) in (0..).zip(&edits) {
            check_edit(&format!("changes.edits[{index}]"), edit)?;
        }
        let is_empty = set.is_empty() && delete.is_empty() && edits.is_empty();
        if is_empty && !may_be_empty {
            return Err(invalid_request(
                "`changes` is empty: send `set`, `delete` or `edits`, or other `options` or another `title` beside it.",
            ));
        }
        let edited: BTreeSet<&str> = edits.iter().map(|(path, _)| path.as_str()).collect();
        let mut named: BTreeSet<&str> = set.keys().map(String::as_str).collect();
        let again = delete.iter().map(String::as_str).chain(edited);
        for path in again {
            if !named.insert(path) {
                return Err(invalid_request(format!(
                    "In `changes`: `{path}` is changed twice: set, delete or edit a file."
                )));
            }
        }
        Ok(SiteChanges {
            set: checked_files(set)?,
            delete,
            edits,
        })
    }
}
