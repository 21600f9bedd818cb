//! Model of a revision, and of a draft.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::content::Digest;
use crate::control;
use crate::deployments::files::FileError;
use crate::deployments::frontends::{Frontend, FrontendError};
use crate::deployments::model::DeploymentType;
use crate::deployments::publication::PublishError;
use crate::deployments::sites::{PathFault, SiteManifest, SiteSize};
use crate::deployments::views::Warning;
use svc_base::clock::Timestamp;
use svc_base::ids::{DeploymentId, RevisionId};
use svc_base::numbers::optional_whole_number;
use svc_sandbox::ContentType;

/// How a revision last became what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum RevisionKind {
    /// Made, and never live.
    Draft,
    /// Page that was live when the history began.
    Baseline,
    /// Published at once.
    Publish,
    /// Promotion of a draft.
    Promote,
    /// Put back.
    Rollback,
}

impl RevisionKind {
    /// Returns the name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Baseline => "baseline",
            Self::Publish => "publish",
            Self::Promote => "promote",
            Self::Rollback => "rollback",
        }
    }
}

/// Where a revision is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RevisionState {
    /// Never live.
    Draft,
    /// The revision is live.
    Active,
    /// Was live, until a newer one was.
    Superseded,
    /// Was live, until an older one was put back.
    RolledBack,
}

impl RevisionState {
    /// Returns the name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Active => "active",
            Self::Superseded => "superseded",
            Self::RolledBack => "rolled_back",
        }
    }
}

/// A revision.
#[derive(Clone, Debug)]
pub struct Revision {
    /// The order in which it was made.
    pub number: i64,
    /// Identifier of the revision.
    pub id: RevisionId,
    /// Digest of the source.
    pub source: Digest,
    /// The page without its runtime, once it was rendered for a preview; of a site, its manifest.
    pub preview: Option<Digest>,
    /// Files of a site.
    pub site: Option<SiteSize>,
    /// The page's title.
    pub title: String,
    /// Why it was made.
    pub message: Option<String>,
    /// Kind of the latest release.
    pub kind: RevisionKind,
    /// Where it is in its life.
    pub state: RevisionState,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last became live.
    pub promoted_at: Option<Timestamp>,
    /// Warnings for the author of a site; those of a page are found when it is rendered.
    pub warnings: Vec<Warning>,
}

/// Source of a draft.
#[derive(Clone, Debug)]
pub enum DraftSource {
    /// The whole source.
    Content(String),
    /// Changes to the base revision's source.
    Edits(Vec<Edit>),
}

/// One change: `find`, which must occur exactly `count` times, becomes `replace`.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Edit {
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

/// A draft to make; its fields are within their bounds.
#[derive(Clone, Debug)]
pub struct NewDraft {
    /// The revision that it was made from, which must be the active one; none if what was sent is no id.
    pub base: Option<RevisionId>,
    /// Source of the draft.
    pub source: DraftSource,
    /// The page's title; the active revision's, if there is none.
    pub title: Option<String>,
    /// Why it was made.
    pub message: Option<String>,
}

/// A draft, and whether an older revision has the same content and title and was taken instead.
#[derive(Clone, Debug)]
pub struct CreatedDraft {
    /// Identifier of the frontend.
    pub deployment: DeploymentId,
    /// The revision.
    pub revision: Revision,
    /// Whether it was there already.
    pub deduplicated: bool,
}

/// A page of a frontend's history.
#[derive(Debug)]
pub struct RevisionHistoryPage {
    /// The live revision.
    pub active: RevisionId,
    /// Newest first.
    pub revisions: Vec<Revision>,
    /// Where the next page begins.
    pub next: Option<i64>,
}

/// The source of a revision, or of a frontend that has none yet.
#[derive(Debug)]
pub struct StoredRevisionSource {
    /// Frontend of the source.
    pub frontend: Frontend,
    /// Which revision's; none for a frontend without a history.
    pub revision: Option<RevisionId>,
    /// Digest of the source.
    pub digest: Digest,
    /// Manifest of a site.
    pub manifest: Option<Digest>,
}

/// Query for a source.
#[derive(Clone, Copy, Debug)]
pub struct RevisionSourceQuery {
    /// A revision's; the live one, if there is none.
    pub revision: Option<RevisionId>,
    /// Digest of the source that the client holds: if it is still this one, the answer needs no text.
    pub known: Option<Digest>,
}

/// A source, without its content if the caller has it already.
#[derive(Debug)]
pub struct FetchedRevisionSource {
    /// Frontend, revision and digest of the source.
    pub stored: StoredRevisionSource,
    /// Exactly as it was published.
    pub content: FetchedContent,
}

/// Content of a source.
#[derive(Debug)]
pub enum FetchedContent {
    /// The caller has it.
    Known,
    /// Text of a page.
    Text(String),
    /// Files and options of a site.
    Site(Box<SiteManifest>),
}

/// Query for a part of a history.
#[derive(Clone, Copy, Debug)]
pub struct RevisionHistoryQuery {
    /// How many revisions.
    pub limit: u32,
    /// Only those older than this number.
    pub before: Option<i64>,
}

/// A revision to add, which is a draft until it is released.
#[derive(Debug)]
pub(super) struct NewRevision<'a> {
    /// Identifier of the revision.
    pub(super) id: RevisionId,
    /// The page's title.
    pub(super) title: &'a str,
    /// Digest of the source.
    pub(super) source: Digest,
    /// The page without its runtime, if it was rendered; of a site, its manifest.
    pub(super) preview: Option<Digest>,
    /// Files of a site.
    pub(super) site: Option<SiteSize>,
    /// Bytes of both.
    pub(super) bytes: u64,
    /// Why it is made.
    pub(super) message: Option<&'a str>,
    /// How it becomes what it is.
    pub(super) kind: RevisionKind,
    /// Warnings for the author of a site.
    pub(super) warnings: &'a [Warning],
}

/// New content of a frontend; its fields are within their bounds.
#[derive(Clone, Debug)]
pub struct NewFrontendContent {
    /// Type of the source, if the request names it: another type than the frontend's is refused.
    pub content_type: Option<ContentType>,
    /// The source.
    pub content: String,
    /// The page's title; as it was, if there is none.
    pub title: Option<String>,
}

/// Why nothing was done to a frontend's revisions.
#[derive(Debug, thiserror::Error)]
pub enum RevisionError {
    /// The frontend has no such revision.
    #[error("the frontend has no such revision")]
    NoRevision,
    /// Another revision was released meanwhile.
    #[error("the active revision is {0}")]
    Conflict(RevisionId),
    /// A rollback to what never was live.
    #[error("the revision was never live, so there is nothing to roll back to: promote it instead")]
    NeverReleased,
    /// A republish that names another type.
    #[error("the frontend is of type {}", .0.as_str())]
    TypeMismatch(DeploymentType),
    /// Content that does not fit the frontend's type.
    #[error("{0}")]
    Content(&'static str),
    /// The site has no such file.
    #[error("the site has no file `{0}`")]
    NoFile(String),
    /// A path that a site cannot have.
    #[error(transparent)]
    Path(#[from] PathFault),
    /// An edit that does not fit the source.
    #[error("{0}")]
    Edit(String),
    /// The edited source is larger than a request may be.
    #[error("the edited source has {0} bytes")]
    TooLarge(usize),
    /// The frontend's.
    #[error(transparent)]
    Frontend(#[from] FrontendError),
}

impl RevisionError {
    /// Whether other immutable files of the site became live meanwhile, so that the same may be tried again.
    pub(super) fn is_moved(&self) -> bool {
        matches!(
            self,
            Self::Frontend(FrontendError::Files(FileError::ImmutablesMoved))
        )
    }
}

impl From<PublishError> for RevisionError {
    fn from(error: PublishError) -> Self {
        Self::Frontend(error.into())
    }
}

impl From<FileError> for RevisionError {
    fn from(error: FileError) -> Self {
        Self::Frontend(error.into())
    }
}

impl From<control::Error> for RevisionError {
    fn from(error: control::Error) -> Self {
        Self::Frontend(error.into())
    }
}
