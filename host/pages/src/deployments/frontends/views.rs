//! Views of frontends.

use serde::Serialize;
use utoipa::ToSchema;

use super::{Frontend, FrontendState};
use crate::config::Config;
use crate::deployments::model::{DeploymentType, display_title};
use crate::deployments::sites::SiteSize;
use crate::deployments::views::Warning;
use crate::projects::Project;
use svc_base::clock::Timestamp;
use svc_base::ids::{DeploymentId, RevisionId};

/// A frontend.
#[derive(Debug, Serialize, ToSchema)]
pub struct FrontendView {
    /// Identifier of the frontend.
    #[schema(value_type = String, format = "uuid")]
    pub id: DeploymentId,
    /// Where it answers.
    pub slug: String,
    /// Address of the page. A site that its project's origin leads to answers there: its address has no slug.
    #[schema(format = "uri")]
    pub url: String,
    /// Where its backend answers.
    #[schema(format = "uri")]
    pub api_base: String,
    /// Type of the source, or that it is a site.
    #[serde(rename = "type")]
    pub content_type: DeploymentType,
    /// The live page's title: as it was given, else its content's own, else the wanted slug.
    pub title: String,
    /// Warnings for the author, in answers that publish; absent where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// Where it is in its life.
    pub state: FrontendState,
    /// SHA-256 of the live source, in hexadecimal; of a site, of the canonical form of its files and options.
    pub content_sha256: Option<String>,
    /// Number and length of a site's live files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<SiteSize>,
    /// Number of views; those of the last seconds may be missing.
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

impl FrontendView {
    /// A frontend as it is answered.
    pub fn new(frontend: &Frontend, project: &Project, config: &Config) -> Self {
        let origin = config.project_origin(&project.host_label);
        let url = match frontend.at_root && config.sites_domain.is_some() {
            true => format!("{origin}/"),
            false => format!("{origin}/{}", frontend.slug),
        };
        Self {
            id: frontend.id,
            slug: frontend.slug.clone(),
            api_base: format!("{}/api", url.trim_end_matches('/')),
            url,
            content_type: frontend.content_type,
            title: display_title(&frontend.title),
            warnings: frontend.warnings.clone(),
            state: frontend.state,
            content_sha256: frontend.source.map(|digest| digest.to_string()),
            site: frontend.site,
            visits: frontend.visits,
            created_at: frontend.created_at,
            updated_at: frontend.updated_at,
            active_revision_id: frontend.active_revision,
            revision_count: frontend.active_revision.map(|_| frontend.revision_count),
        }
    }
}
