//! What requests about revisions and their answers look like.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::model::{Edit, Revision, RevisionKind, RevisionState};
use crate::clock::Timestamp;
use crate::deployments::frontends::views::FrontendView;
use crate::ids::RevisionId;

/// A draft to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateRevision {
    /// The active revision, which the draft is made from.
    #[schema(format = "uuid")]
    pub base_revision_id: String,
    /// The whole source. Send this or `edits`.
    pub content: Option<String>,
    /// Changes to the base revision's source, applied in order. An extension: send this or `content`.
    #[schema(min_items = 1, max_items = 100)]
    pub edits: Option<Vec<Edit>>,
    /// The page's title; the active revision's if absent.
    #[schema(max_length = 200)]
    pub title: Option<String>,
    /// Why it is made.
    #[schema(max_length = 1000)]
    pub message: Option<String>,
}

/// A release.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseRequest {
    /// What shall be live.
    #[schema(format = "uuid")]
    pub revision_id: String,
    /// What you believe is live now; if it is not, nothing happens.
    #[schema(format = "uuid")]
    pub expected_active_revision_id: String,
    /// Why.
    #[schema(max_length = 1000)]
    pub message: Option<String>,
}

/// A revision.
#[derive(Debug, Serialize, ToSchema)]
pub struct RevisionView {
    /// Its identity.
    #[schema(value_type = String, format = "uuid")]
    pub revision_id: RevisionId,
    /// SHA-256 of its source, in hexadecimal.
    pub content_sha256: String,
    /// The page's title.
    pub title: String,
    /// Why it was made.
    pub message: Option<String>,
    /// Its latest release.
    pub kind: RevisionKind,
    /// Where it is in its life.
    pub state: RevisionState,
    /// When it was made.
    #[schema(value_type = String, format = "date-time")]
    pub created_at: Timestamp,
    /// When it last became live.
    #[schema(value_type = Option<String>, format = "date-time")]
    pub promoted_at: Option<Timestamp>,
}

impl From<&Revision> for RevisionView {
    fn from(revision: &Revision) -> Self {
        Self {
            revision_id: revision.id,
            content_sha256: revision.source.to_string(),
            title: revision.title.clone(),
            message: revision.message.clone(),
            kind: revision.kind,
            state: revision.state,
            created_at: revision.created_at,
            promoted_at: revision.promoted_at,
        }
    }
}

/// A draft.
#[derive(Debug, Serialize, ToSchema)]
pub struct RevisionCreated {
    /// The revision.
    pub revision: RevisionView,
    /// Where to look at it.
    #[schema(format = "uri")]
    pub preview_url: String,
    /// Whether an older revision has the same content and title, and is answered instead.
    pub deduplicated: bool,
}

/// A page of a frontend's history.
#[derive(Debug, Serialize, ToSchema)]
pub struct RevisionList {
    /// What is live.
    #[schema(value_type = String, format = "uuid")]
    pub active_revision_id: RevisionId,
    /// Newest first.
    pub revisions: Vec<RevisionView>,
    /// The `cursor` of the next page, if there is one.
    pub next_cursor: Option<String>,
}

/// What a release did.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReleaseView {
    /// The frontend as it is now.
    pub frontend: FrontendView,
    /// What is live.
    pub revision: RevisionView,
}

/// Something that became live.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReleaseEntryView {
    /// What.
    #[schema(value_type = String, format = "uuid")]
    pub revision_id: RevisionId,
    /// How: baseline, publish, promote or rollback.
    pub kind: String,
    /// Why.
    pub message: Option<String>,
    /// When.
    #[schema(value_type = String, format = "date-time")]
    pub at: Timestamp,
}

/// All that ever was live.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReleaseList {
    /// Newest first.
    pub releases: Vec<ReleaseEntryView>,
}

/// Which part of the history.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WhichRevisions {
    /// How many; 50 if absent.
    #[param(minimum = 1, maximum = 200)]
    pub limit: Option<u32>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}
