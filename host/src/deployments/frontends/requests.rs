//! Requests about frontends, and their checks: for REST and for tools alike.

use serde::Deserialize;
use utoipa::ToSchema;

use super::{FrontendError, NewContent, NewFrontend};
use crate::content::Digest;
use crate::deployments::requests::{TITLE, check_content, check_slug};
use crate::deployments::revisions::SourceQuery;
use crate::http::extract::{check_characters, invalid};
use crate::http::problem::Problem;
use svc_sandbox::ContentType;

/// Fields of a quick share that a frontend does not have.
const OF_SHARES: [&str; 3] = ["password", "one_time", "expires_in"];

/// Adds to the refusal of a field that only quick shares have what a frontend is like instead.
pub fn explain_share_fields(mut problem: Problem) -> Problem {
    let is_named = |field: &str| problem.detail.contains(&format!("unknown field `{field}`"));
    if OF_SHARES.into_iter().any(is_named) {
        problem.detail.push_str(
            " Only a quick share (POST /api/v1/deploy, or the tool deploy_asset) has `password`, `one_time` and `expires_in`: \
             a frontend is public, and lives as long as its project.",
        );
    }
    problem
}

/// A frontend to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateFrontend {
    /// Type of the source, for good.
    #[serde(rename = "type")]
    pub content_type: ContentType,
    /// The source; never empty.
    #[schema(min_length = 1)]
    pub content: String,
    /// The slug that you would like; with a suffix if it is taken.
    #[schema(pattern = "^[a-z0-9]([a-z0-9\\-]*[a-z0-9])?$", max_length = 63)]
    pub requested_slug: Option<String>,
    /// The page's title; if absent its content's own, else the wanted slug.
    #[schema(max_length = 200)]
    pub title: Option<String>,
}

impl CreateFrontend {
    /// The frontend that is asked for.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn checked(self) -> Result<NewFrontend, Problem> {
        check_content(&self.content)?;
        check_characters("title", self.title.as_deref(), TITLE)?;
        let requested_slug = self.requested_slug.filter(|slug| !slug.is_empty());
        check_slug("requested_slug", requested_slug.as_deref())?;
        Ok(NewFrontend {
            content_type: self.content_type,
            content: self.content,
            requested_slug,
            title: self.title.filter(|title| !title.is_empty()),
        })
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
}

impl Republish {
    /// The content that is sent.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn checked(self) -> Result<NewContent, Problem> {
        check_content(&self.content)?;
        check_characters("title", self.title.as_deref(), TITLE)?;
        if self.requested_slug.is_some_and(|slug| !slug.is_empty()) {
            return Err(invalid(
                "`requested_slug` is refused here: a frontend's slug never changes.",
            ));
        }
        Ok(NewContent {
            content_type: self.content_type,
            content: self.content,
            title: self.title.filter(|title| !title.is_empty()),
        })
    }
}

/// Which source to answer.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WhichContent {
    /// A revision; the live one if absent.
    pub revision_id: Option<String>,
    /// The SHA-256 of what you hold: if it is still that, nothing is sent.
    pub known_content_sha256: Option<String>,
}

impl WhichContent {
    /// The source that is asked for.
    ///
    /// # Errors
    /// `not_found` for what cannot be a revision.
    pub fn checked(self) -> Result<SourceQuery, Problem> {
        let revision = self.revision_id.as_deref().map(str::parse).transpose();
        let revision = revision.map_err(|_| FrontendError::NoRevision)?;
        // What is no digest is nobody's: it is answered like one that does not match.
        let known = self.known_content_sha256.as_deref();
        let known = known.and_then(|known| Digest::from_hex(&known.to_ascii_lowercase()));
        Ok(SourceQuery { revision, known })
    }
}
