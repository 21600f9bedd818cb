//! Views of projects.

use serde::Serialize;
use utoipa::ToSchema;

use super::model::Project;
use crate::config::Config;
use crate::workspaces::WorkspaceRef;
use svc_base::clock::Timestamp;
use svc_base::ids::{BackendId, ProjectId};

/// A project.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProjectView {
    /// Identifier of the project.
    #[schema(value_type = String, format = "uuid")]
    id: ProjectId,
    /// Name for people.
    name: String,
    /// Description of the project.
    description: Option<String>,
    /// The name of its origin.
    host_label: String,
    /// Origin of the project.
    #[schema(format = "uri")]
    pub url: String,
    /// Workspace that owns the project.
    workspace: WorkspaceRef,
    /// Whether it lives for good.
    permanent: bool,
    /// When it was made.
    #[schema(value_type = String, format = "date-time")]
    created_at: Timestamp,
    /// When its fields last changed.
    #[schema(value_type = String, format = "date-time")]
    updated_at: Timestamp,
    /// When it ends, with all that is in it.
    #[schema(value_type = Option<String>, format = "date-time")]
    expires_at: Option<Timestamp>,
    /// Sign-in providers that its frontends may offer; all, if null.
    allowed_providers: Option<Vec<String>>,
    /// The slug of the frontend that its origin leads to; its oldest, if null.
    home: Option<String>,
    /// Backend, if the project has one.
    backend: Option<BackendRef>,
}

/// The backend of a project.
#[derive(Debug, Serialize, ToSchema)]
pub struct BackendRef {
    /// Identifier of the backend.
    #[schema(value_type = String, format = "uuid")]
    id: BackendId,
}

/// All projects of a workspace.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProjectList {
    /// Oldest first.
    projects: Vec<ProjectView>,
}

impl ProjectView {
    /// Returns the view of a project.
    pub fn new(project: &Project, config: &Config) -> Self {
        Self {
            id: project.id,
            name: project.name.clone(),
            description: project.description.clone(),
            host_label: project.host_label.clone(),
            url: config.project_origin(&project.host_label),
            workspace: project.workspace.clone(),
            permanent: project.expires_at.is_none(),
            created_at: project.created_at,
            updated_at: project.updated_at,
            expires_at: project.expires_at,
            allowed_providers: project.allowed_providers.clone(),
            home: project.home.clone(),
            backend: project.backend.map(|id| BackendRef { id }),
        }
    }
}

impl ProjectList {
    /// Returns the view of several projects.
    pub fn new(projects: &[Project], config: &Config) -> Self {
        let projects = projects.iter();
        Self {
            projects: projects.map(|p| ProjectView::new(p, config)).collect(),
        }
    }
}
