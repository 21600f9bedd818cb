//! Views of a project with its contents.

use serde::Serialize;
use utoipa::ToSchema;

use crate::config::Config;
use crate::deployments::frontends::{FrontendState, FrontendSummary};
use crate::deployments::model::DeploymentType;
use crate::projects::Project;
use crate::projects::views::ProjectView;
use svc_base::ids::DeploymentId;

/// A project with what is in it.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProjectDetail {
    #[serde(flatten)]
    project: ProjectView,
    /// Views of all members.
    visits: VisitTotal,
    /// Frontends, oldest first.
    members: Vec<Member>,
    /// Room for files: those of sites, those that wait for one, and those of visitors.
    storage: StorageView,
}

/// Room that a project's files take.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct StorageView {
    /// Bytes that they take, each distinct file once.
    used_bytes: u64,
    /// Most bytes that they may take.
    limit_bytes: u64,
}

/// Sum of views.
#[derive(Debug, Serialize, ToSchema)]
pub struct VisitTotal {
    /// All of them; those of the last seconds may be missing.
    total: u64,
}

/// A frontend, in short.
#[derive(Debug, Serialize, ToSchema)]
pub struct Member {
    /// Identifier of the frontend.
    #[schema(value_type = String, format = "uuid")]
    id: DeploymentId,
    /// Where it answers.
    slug: String,
    /// Type of the source, or that it is a site.
    #[serde(rename = "type")]
    content_type: DeploymentType,
    /// Where it is in its life.
    state: FrontendState,
    /// Number of views.
    visits: u64,
}

impl From<FrontendSummary> for Member {
    fn from(member: FrontendSummary) -> Self {
        Self {
            id: member.id,
            slug: member.slug,
            content_type: member.content_type,
            state: member.state,
            visits: member.visits,
        }
    }
}

impl ProjectDetail {
    /// A project with its members as it is answered.
    pub fn new(
        project: &Project,
        members: Vec<FrontendSummary>,
        (used_bytes, limit_bytes): (u64, u64),
        config: &Config,
    ) -> Self {
        let members: Vec<Member> = members.into_iter().map(Member::from).collect();
        let total = members.iter().map(|member| member.visits).sum();
        Self {
            project: ProjectView::new(project, config),
            visits: VisitTotal { total },
            members,
            storage: StorageView {
                used_bytes,
                limit_bytes,
            },
        }
    }
}
