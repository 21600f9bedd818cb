//! Model of a project.

use crate::control;
use crate::workspaces::{WorkspaceError, WorkspaceRef};
use svc_base::clock::Timestamp;
use svc_base::ids::{BackendId, ProjectId};
use svc_base::pluralize;
use svc_base::random::NoRandomness;

/// The longest name, in characters.
pub const MAX_NAME_CHARS: usize = svc_base::names::PROJECT_NAME_LENGTH;
/// The longest description, in characters.
pub const MAX_DESCRIPTION_CHARS: usize = 2_000;
/// The shortest life, in seconds.
pub const MIN_TTL_SECONDS: u64 = 60;
/// The longest life, in seconds: ten years.
pub const MAX_TTL_SECONDS: u64 = 315_360_000;

/// A project.
#[derive(Clone, Debug)]
pub struct Project {
    /// Identifier of the project.
    pub id: ProjectId,
    /// Workspace that owns the project.
    pub workspace: WorkspaceRef,
    /// Name for people.
    pub name: String,
    /// Description of the project.
    pub description: Option<String>,
    /// The name of its origin.
    pub host_label: String,
    /// Sign-in providers that its frontends may offer; all, if there is no list.
    pub allowed_providers: Option<Vec<String>>,
    /// The slug of the frontend that its origin leads to; the oldest, if there is none.
    pub home: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its fields last changed.
    pub updated_at: Timestamp,
    /// Identifier of the backend, if there is one.
    pub backend: Option<BackendId>,
    /// When it ends, with all that is in it.
    pub expires_at: Option<Timestamp>,
}

impl Project {
    /// A project to be made, which has no host label yet.
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

/// Project to make; its fields are within their bounds.
#[derive(Clone, Debug)]
pub struct NewProject {
    /// Name for people.
    pub name: String,
    /// Description of the project.
    pub description: Option<String>,
    /// How long it lives; for good, if absent.
    pub ttl_seconds: Option<u64>,
}

/// Changes of a project; their fields are within their bounds.
#[derive(Clone, Debug, Default)]
pub struct ProjectChanges {
    /// A new name.
    pub name: Option<String>,
    /// A new description; an empty one clears it.
    pub description: Option<String>,
    /// A new list of providers; an empty one clears it.
    pub allowed_providers: Option<Vec<String>>,
    /// The slug of a new home; an empty one clears it.
    pub home: Option<String>,
}

/// Why a project could not be made, found or changed.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// Nobody has it.
    #[error("there is no such project")]
    NotFound,
    /// The text that should name a project is no id.
    #[error("this is no id of a project")]
    InvalidId,
    /// It is another workspace's, or nobody's.
    #[error("the project belongs to somebody else")]
    Forbidden,
    /// The caller's role in its workspace does not suffice.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The plan allows no more.
    #[error("the plan of this workspace allows {}", pluralize(.0, "project"))]
    PlanLimit(u64),
    /// A home that is no frontend of the project's.
    #[error("the project has no frontend `{0}`")]
    NoSuchHome(String),
    /// A sign-in provider that the operator has not configured.
    #[error("there is no sign-in provider `{0}`")]
    UnknownProvider(String, Vec<String>),
    /// The database's.
    #[error(transparent)]
    Store(#[from] control::Error),
    /// No id could be made.
    #[error(transparent)]
    Random(#[from] NoRandomness),
    /// Everything else, for the log.
    #[error(transparent)]
    Internal(#[from] anyhow::Error),
}
