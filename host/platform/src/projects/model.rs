//! Model of a project.

use crate::control;
use crate::workspaces::{WorkspaceError, WorkspaceRef};
use svc_base::clock::Timestamp;
use svc_base::ids::{BackendId, ProjectId};
use svc_base::pluralize;
use svc_base::random::RandomSourceError;

/// Maximum length of a name, in characters.
pub const MAX_NAME_CHARS: usize = svc_base::names::PROJECT_NAME_LENGTH;
/// Maximum length of a description, in characters.
pub const MAX_DESCRIPTION_CHARS: usize = 2_000;
/// Minimum lifetime, in seconds.
pub const MIN_TTL_SECONDS: u64 = 60;
/// Maximum lifetime, in seconds: ten years.
pub const MAX_TTL_SECONDS: u64 = 315_360_000;

#[derive(Clone, Debug)]
pub struct Project {
    pub id: ProjectId,
    pub workspace: WorkspaceRef,
    pub name: String,
    pub description: Option<String>,
    /// DNS label of the project's origin.
    pub host_label: String,
    /// Sign-in providers that its frontends may offer; `None` allows all.
    pub allowed_providers: Option<Vec<String>>,
    /// Slug of the frontend that the origin leads to; `None` means the oldest.
    pub home: Option<String>,
    pub created_at: Timestamp,
    /// When its fields last changed.
    pub updated_at: Timestamp,
    /// Identifier of the backend, if there is one.
    pub backend: Option<BackendId>,
    /// Time at which the project ends, with its contents.
    pub expires_at: Option<Timestamp>,
}

impl Project {
    /// Returns a project that is not stored yet and has no host label.
    pub fn new(id: ProjectId, workspace: WorkspaceRef, new: NewProject, now: Timestamp) -> Self {
        let seconds = |ttl| i64::try_from(ttl).unwrap_or(i64::MAX);
        Self {
            id,
            workspace,
            name: new.name,
            description: new.description.filter(|text| !text.is_empty()),
            host_label: String::new(),
            allowed_providers: None,
            home: None,
            created_at: now,
            updated_at: now,
            backend: None,
            expires_at: new.ttl_seconds.map(|ttl| now.plus_seconds(seconds(ttl))),
        }
    }
}

/// Project to create; its fields are within their bounds.
#[derive(Clone, Debug)]
pub struct NewProject {
    pub name: String,
    pub description: Option<String>,
    /// Lifetime; unlimited if absent.
    pub ttl_seconds: Option<u64>,
}

/// Changes of a project; their fields are within their bounds, and `None` leaves a field as it is.
#[derive(Clone, Debug, Default)]
pub struct ProjectChanges {
    pub name: Option<String>,
    /// New description; an empty one clears it.
    pub description: Option<String>,
    /// New list of providers; an empty one clears it.
    pub allowed_providers: Option<Vec<String>>,
    /// Slug of the new home; an empty one clears it.
    pub home: Option<String>,
}

/// Error of an operation on projects.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// No live project has the id.
    #[error("there is no such project")]
    NotFound,
    /// The text is not the id of a project.
    #[error("this is no id of a project")]
    InvalidId,
    /// The project belongs to another workspace, or to none.
    #[error("the project belongs to somebody else")]
    Forbidden,
    /// The caller's role in the workspace does not suffice.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The plan allows no more projects.
    #[error("the plan of this workspace allows {}", pluralize(.0, "project"))]
    PlanLimit(u64),
    /// The home is not a frontend of the project.
    #[error("the project has no frontend `{0}`")]
    NoSuchHome(String),
    /// The operator has not configured this sign-in provider.
    #[error("there is no sign-in provider `{0}`")]
    UnknownProvider(String, Vec<String>),
    /// The control database failed.
    #[error(transparent)]
    Store(#[from] control::Error),
    /// No id could be generated.
    #[error(transparent)]
    Random(#[from] RandomSourceError),
    /// Any other error, for the log.
    #[error(transparent)]
    Internal(#[from] anyhow::Error),
}
