//! What requests about frontends and their answers look like.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Frontend, FrontendState};
use crate::clock::Timestamp;
use crate::config::Config;
use crate::ids::{DeploymentId, RevisionId};
use crate::projects::Project;
use crate::sandbox::ContentType;

/// A frontend to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateFrontend {
    /// What its source is written in, for good.
    #[serde(rename = "type")]
    pub content_type: ContentType,
    /// The source; never empty.
    #[schema(min_length = 1)]
    pub content: String,
    /// The slug that you would like; with a suffix if it is taken.
    #[schema(pattern = "^[a-z0-9]([a-z0-9\\-]*[a-z0-9])?$", max_length = 63)]
    pub requested_slug: Option<String>,
    /// The page's title; the slug if absent.
    #[schema(max_length = 200)]
    pub title: Option<String>,
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

/// A frontend.
#[derive(Debug, Serialize, ToSchema)]
pub struct FrontendView {
    /// Its identity.
    #[schema(value_type = String, format = "uuid")]
    pub id: DeploymentId,
    /// Where it answers.
    pub slug: String,
    /// Its address.
    #[schema(format = "uri")]
    pub url: String,
    /// Where its backend answers.
    #[schema(format = "uri")]
    pub api_base: String,
    /// What its source is written in.
    #[serde(rename = "type")]
    pub content_type: ContentType,
    /// The live page's title.
    pub title: String,
    /// Where it is in its life.
    pub state: FrontendState,
    /// SHA-256 of the live source, in hexadecimal.
    pub content_sha256: Option<String>,
    /// Its views; those of the last seconds may be missing.
    pub visits: u64,
    /// When it was made.
    #[schema(value_type = String, format = "date-time")]
    pub created_at: Timestamp,
    /// When its page last changed.
    #[schema(value_type = String, format = "date-time")]
    pub updated_at: Timestamp,
    /// The live revision; absent until the frontend is in the revision workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "uuid")]
    pub active_revision_id: Option<RevisionId>,
    /// How many revisions it has, drafts too; absent until the frontend is in the revision workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision_count: Option<u64>,
}

/// All frontends of a project.
#[derive(Debug, Serialize, ToSchema)]
pub struct FrontendList {
    /// Oldest first.
    pub frontends: Vec<FrontendView>,
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

/// A source, or that it has not changed.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum ContentView {
    /// What you hold is what is stored.
    Unchanged {
        /// Always true.
        unchanged: bool,
        /// Its SHA-256.
        content_sha256: String,
    },
    /// The source.
    Content {
        /// Exactly as it was published.
        content: String,
        /// Its SHA-256.
        content_sha256: String,
        /// What it is written in.
        #[serde(rename = "type")]
        content_type: ContentType,
        /// Its revision; null until the frontend is in the revision workflow.
        #[schema(value_type = Option<String>, format = "uuid")]
        revision_id: Option<RevisionId>,
    },
}

impl FrontendView {
    /// A frontend as it is answered.
    pub fn new(frontend: &Frontend, project: &Project, config: &Config) -> Self {
        let url = format!(
            "{}/{}",
            config.project_origin(&project.host_label),
            frontend.slug
        );
        Self {
            id: frontend.id,
            slug: frontend.slug.clone(),
            api_base: format!("{url}/api"),
            url,
            content_type: frontend.content_type,
            title: frontend.title.clone(),
            state: frontend.state,
            content_sha256: frontend.source.map(|digest| digest.to_string()),
            visits: frontend.visits,
            created_at: frontend.created_at,
            updated_at: frontend.updated_at,
            active_revision_id: frontend.active_revision,
            revision_count: frontend.active_revision.map(|_| frontend.revision_count),
        }
    }
}
