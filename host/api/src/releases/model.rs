//! Model of a release.

use std::fmt;

use crate::backends::BackendError;
use crate::backends::model::{ActionConflict, ActionRemoval, MigrationStatus, NewAction};
use crate::backends::releases::NewMigration;
use crate::control;
use crate::deployments::publication::PublishError;
use crate::deployments::revisions::{
    ExpectedPage, PageConflict, PageReleaseError, PageToRelease, ReleasedPage, RevisionError,
};
use crate::projects::ProjectError;

/// A release to make; its fields are within their bounds.
#[derive(Debug, Default)]
pub struct NewRelease {
    /// Migrations, in order.
    pub migrations: Vec<NewMigration>,
    /// Actions to define.
    pub actions: Vec<NewAction>,
    /// Actions to end.
    pub action_removals: Vec<ActionRemoval>,
    /// Pages to publish.
    pub pages: Vec<PageToRelease>,
    /// Slugs of pages to remove.
    pub page_removals: Vec<String>,
    /// Revisions that the caller believes are live: those of the pages to publish, then of those to remove.
    pub expected_pages: Vec<ExpectedPage>,
    /// Slug of the project's home; an empty one for none.
    pub home: Option<String>,
    /// Reason for the release.
    pub message: Option<String>,
    /// Whether it is only tried.
    pub dry_run: bool,
}

/// Part of a release, with its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleasePart {
    Migration(usize),
    Action(usize),
    ActionRemoval(usize),
    Page(usize),
    PageRemoval(usize),
    Home,
}

impl fmt::Display for ReleasePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Migration(index) => write!(f, "migrations[{index}]"),
            Self::Action(index) => write!(f, "actions[{index}]"),
            Self::ActionRemoval(index) => write!(f, "remove_actions[{index}]"),
            Self::Page(index) => write!(f, "pages[{index}]"),
            Self::PageRemoval(index) => write!(f, "remove_pages[{index}]"),
            Self::Home => f.write_str("home"),
        }
    }
}

/// Pages and actions that are other ones than the caller believes.
#[derive(Clone, Debug, Default)]
pub struct ReleaseConflicts {
    pub pages: Vec<PageConflict>,
    pub actions: Vec<ActionConflict>,
}

impl ReleaseConflicts {
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty() && self.actions.is_empty()
    }
}

/// Outcome of a release.
#[derive(Clone, Debug)]
pub struct ReleaseOutcome {
    /// Version and status of each migration.
    pub migrations: Vec<(u32, MigrationStatus)>,
    /// Name and version of each action.
    pub actions: Vec<(String, u32)>,
    pub pages: Vec<ReleasedPage>,
    /// Names of the actions that have ended.
    pub ended_actions: Vec<String>,
    /// Slugs of the pages that are removed.
    pub removed_pages: Vec<String>,
}

/// Reason why nothing was released.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    /// A part is refused.
    #[error("{part}: {error}")]
    Part {
        part: ReleasePart,
        error: Box<ReleaseError>,
    },
    /// Something has changed since the caller looked.
    #[error("something has changed")]
    Conflict(Box<ReleaseConflicts>),
    /// The project's.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// The pages'.
    #[error(transparent)]
    Pages(#[from] PageReleaseError),
    /// The backend's.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The database's.
    #[error(transparent)]
    Store(#[from] control::Error),
}

impl ReleaseError {
    /// Names the part that an error is about.
    pub fn of_part(part: ReleasePart, error: impl Into<Self>) -> Self {
        Self::Part {
            part,
            error: Box::new(error.into()),
        }
    }

    /// Whether somebody else has made the project's backend meanwhile, which the first migration was to make.
    pub fn is_backend_there(&self) -> bool {
        match self {
            Self::Part { error, .. } => error.is_backend_there(),
            error => matches!(error, Self::Backend(BackendError::Exists)),
        }
    }
}

impl From<PublishError> for ReleaseError {
    fn from(error: PublishError) -> Self {
        Self::Pages(error.into())
    }
}

impl From<RevisionError> for ReleaseError {
    fn from(error: RevisionError) -> Self {
        Self::Pages(error.into())
    }
}
