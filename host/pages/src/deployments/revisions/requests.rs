//! Requests about revisions, and their checks: for REST and for tools alike.

use serde::Deserialize;
use utoipa::ToSchema;

use super::RevisionError;
use super::model::{
    DraftSource, Edit, NewDraft, NewFrontendContent, RevisionHistoryQuery, RevisionKind,
    RevisionSourceQuery,
};
use super::releases::NewRelease;
use crate::content::Digest;
use crate::deployments::requests::{MAX_TITLE_CHARACTERS, OtherTypesField, check_content};
use crate::http::extract::{check_characters, invalid_request};
use crate::http::problem::Problem;
use svc_sandbox::ContentType;

/// The longest message, in characters.
pub const MAX_MESSAGE_CHARACTERS: usize = 1_000;
/// The most edits of a draft. With the bounds of a source's length and of processor time it bounds the work that a request may cause.
pub(super) const MAX_EDITS: usize = 100;
/// Revisions on a page of the history, if the request does not say.
const DEFAULT_LIMIT: u32 = 50;
/// Revisions on a page of the history at most.
const MAX_LIMIT: u32 = 200;

/// A draft to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateRevision {
    /// The active revision, which the draft is made from.
    #[schema(required = true, value_type = String, format = "uuid")]
    pub base_revision_id: Option<String>,
    /// The whole source. Send this or `edits`.
    #[schema(min_length = 1)]
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
    /// Only a site has files.
    #[serde(default)]
    #[schema(ignore)]
    pub files: OtherTypesField,
    /// Only a site has files to change.
    #[serde(default)]
    #[schema(ignore)]
    pub changes: OtherTypesField,
    /// Only a site has options.
    #[serde(default)]
    #[schema(ignore)]
    pub options: OtherTypesField,
}

impl CreateRevision {
    /// The draft that is asked for.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn checked(self) -> Result<NewDraft, Problem> {
        let base = require_id("base_revision_id", self.base_revision_id)?;
        check_characters("title", self.title.as_deref(), MAX_TITLE_CHARACTERS)?;
        check_characters("message", self.message.as_deref(), MAX_MESSAGE_CHARACTERS)?;
        let source = match (self.content, self.edits) {
            (Some(content), None) => {
                check_content(&content)?;
                DraftSource::Content(content)
            }
            (None, Some(edits)) => {
                check_edits(&edits)?;
                DraftSource::Edits(edits)
            }
            (None, None) => {
                return Err(invalid_request(
                    "missing field `content`: send the source, or `edits`.",
                ));
            }
            (Some(_), Some(_)) => {
                return Err(invalid_request("Send `content` or `edits`, not both."));
            }
        };
        let title = self.title.filter(|title| !title.is_empty());
        Ok(NewDraft {
            base: base.parse().ok(),
            source,
            title,
            message: self.message,
        })
    }
}

/// The id of the active revision, which a caller must have looked up.
pub(super) fn require_id(field: &str, id: Option<String>) -> Result<String, Problem> {
    id.ok_or_else(|| {
        invalid_request(format!(
            "missing field `{field}`: it is the `active_revision_id` that the list of revisions answers (GET …/revisions, or manage_frontend list_revisions). Read what is live before you change it."
        ))
    })
}

fn check_edits(edits: &[Edit]) -> Result<(), Problem> {
    if edits.is_empty() {
        return Err(invalid_request(
            "`edits` is empty: send at least one, or `content`.",
        ));
    }
    if edits.len() > MAX_EDITS {
        return Err(invalid_request(format!(
            "`edits` has {} entries; {MAX_EDITS} is the most. Send `content` instead.",
            edits.len()
        )));
    }
    let mut edits = (0..).zip(edits);
    edits.try_for_each(|(index, edit)| check_edit(&format!("edits[{index}]"), edit))
}

/// Refuses an edit, by its name, that could not be applied to any text.
pub(super) fn check_edit(name: &str, edit: &Edit) -> Result<(), Problem> {
    if edit.find.is_empty() {
        return Err(invalid_request(format!(
            "`{name}.find` is empty: it must occur in the source."
        )));
    }
    match edit.count {
        Some(0) => Err(invalid_request(format!(
            "`{name}.count` must be at least 1."
        ))),
        _ => Ok(()),
    }
}

/// A release.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseRequest {
    /// Revision to make live.
    #[schema(format = "uuid")]
    pub revision_id: String,
    /// Revision that you believe is live; if it is not, nothing happens.
    #[schema(required = true, value_type = String, format = "uuid")]
    pub expected_active_revision_id: Option<String>,
    /// Reason for the release.
    #[schema(max_length = 1000)]
    pub message: Option<String>,
    /// Of a site: whether tabs that were opened before get no file of then any more.
    pub forget: Option<bool>,
}

impl ReleaseRequest {
    /// The release that is asked for.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn checked(self, kind: RevisionKind) -> Result<NewRelease, Problem> {
        let expected = require_id(
            "expected_active_revision_id",
            self.expected_active_revision_id,
        )?;
        check_characters("message", self.message.as_deref(), MAX_MESSAGE_CHARACTERS)?;
        Ok(NewRelease {
            revision: self.revision_id.parse().ok(),
            expected: expected.parse().ok(),
            message: self.message,
            kind,
            forget: self.forget.unwrap_or(false),
        })
    }
}

/// Which part of the history.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RevisionsQuery {
    /// How many; 50 if absent.
    #[param(minimum = 1, maximum = 200)]
    pub limit: Option<u32>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

impl RevisionsQuery {
    /// The page that is asked for.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn checked(self) -> Result<RevisionHistoryQuery, Problem> {
        let limit = self.limit.unwrap_or(DEFAULT_LIMIT);
        if !(1..=MAX_LIMIT).contains(&limit) {
            return Err(invalid_request(format!(
                "`limit` must be from 1 to {MAX_LIMIT}."
            )));
        }
        let before = match self.cursor.as_deref() {
            Some(cursor) => Some(cursor.parse().map_err(|_| {
                invalid_request(
                    "`cursor` is not valid: send `next_cursor` of the previous page, or leave it out.",
                )
            })?),
            None => None,
        };
        Ok(RevisionHistoryQuery { limit, before })
    }
}

/// New content for a frontend.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Republish {
    /// The source; never empty.
    #[schema(min_length = 1)]
    pub content: String,
    /// The page's title; as it was, if absent.
    #[schema(max_length = 200)]
    pub title: Option<String>,
    /// May repeat the frontend's type; another one is refused.
    #[serde(rename = "type")]
    pub content_type: Option<ContentType>,
    /// A slug never changes: anything but an empty one is refused.
    pub requested_slug: Option<String>,
    /// Of a site; a page has no files that open tabs load, so that this changes nothing.
    pub forget: Option<bool>,
    /// Only a site has files.
    #[serde(default)]
    #[schema(ignore)]
    pub files: OtherTypesField,
    /// Only a site has options.
    #[serde(default)]
    #[schema(ignore)]
    pub options: OtherTypesField,
}

impl Republish {
    /// The content that is sent.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn checked(self) -> Result<NewFrontendContent, Problem> {
        check_content(&self.content)?;
        check_characters("title", self.title.as_deref(), MAX_TITLE_CHARACTERS)?;
        refuse_new_slug(self.requested_slug.as_deref())?;
        Ok(NewFrontendContent {
            content_type: self.content_type,
            content: self.content,
            title: self.title.filter(|title| !title.is_empty()),
        })
    }
}

/// Refuses another slug for a frontend that is there.
pub(super) fn refuse_new_slug(requested: Option<&str>) -> Result<(), Problem> {
    match requested.is_some_and(|slug| !slug.is_empty()) {
        true => Err(invalid_request(
            "`requested_slug` is refused here: a frontend's slug never changes.",
        )),
        false => Ok(()),
    }
}

/// Which source to answer.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ContentQuery {
    /// A revision; the live one if absent.
    pub revision_id: Option<String>,
    /// The SHA-256 of what you hold: if it is still that, nothing is sent.
    pub known_content_sha256: Option<String>,
}

impl ContentQuery {
    /// The source that is asked for.
    ///
    /// # Errors
    /// `not_found` for what cannot be a revision.
    pub fn checked(self) -> Result<RevisionSourceQuery, Problem> {
        let revision = self.revision_id.as_deref().map(str::parse).transpose();
        let revision = revision.map_err(|_| RevisionError::NoRevision)?;
        // A text that is not a digest is answered like a digest that does not match.
        let known = self.known_content_sha256.as_deref();
        let known = known.and_then(|known| Digest::from_hex(&known.to_ascii_lowercase()));
        Ok(RevisionSourceQuery { revision, known })
    }
}
