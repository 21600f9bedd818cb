//! Views of a release.

use serde::Serialize;
use utoipa::ToSchema;

use super::model::ReleaseOutcome;
use crate::backends::changes::SchemaDifference;
use crate::backends::model::MigrationStatus;
use crate::backends::views::{BrokenAction, SchemaChange, WarningView};
use crate::config::Config;
use crate::deployments::views::Warning;
use crate::projects::Project;
use svc_base::ids::{DeploymentId, RevisionId};

/// Answer to a release: what was released, or what would be.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum ProjectReleaseView {
    /// Of a release that was only tried.
    Tried(Box<TriedRelease>),
    /// Of a release.
    Released(ReleasedParts),
}

/// Parts of a project that a release has made.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReleasedParts {
    /// Migrations, as they were sent.
    migrations: Vec<ReleasedMigration>,
    /// Actions that were sent, with the versions that they have now.
    actions: Vec<ReleasedAction>,
    /// Pages that were sent.
    pages: Vec<ReleasedPageView>,
    /// Parts that have ended.
    removed: RemovedParts,
}

/// A migration of a release.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReleasedMigration {
    /// Version in the ledger.
    version: u32,
    /// Whether it was applied now.
    status: MigrationStatus,
}

/// An action of a release.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReleasedAction {
    /// Name by which the action is called.
    name: String,
    /// Version that is live; an unchanged action keeps its own.
    version: u32,
}

/// A page of a release.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReleasedPageView {
    /// Slug at which it answers.
    slug: String,
    /// Identifier of the frontend.
    #[schema(value_type = String, format = "uuid")]
    deployment_id: DeploymentId,
    /// Live revision. A page with an unchanged content and title keeps its own.
    #[schema(value_type = String, format = "uuid")]
    revision_id: RevisionId,
    /// Address of the page. A site that its project's origin leads to answers there: its address has no slug.
    #[schema(format = "uri")]
    url: String,
    /// Warnings for the author; absent where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    warnings: Vec<Warning>,
}

/// Parts that a release has ended; one that was not there is not listed.
#[derive(Debug, Serialize, ToSchema)]
pub struct RemovedParts {
    /// Names of actions.
    actions: Vec<String>,
    /// Slugs of pages.
    pages: Vec<String>,
}

/// Effects that a release would have; nothing of it is kept.
#[derive(Debug, Serialize, ToSchema)]
pub struct TriedRelease {
    /// Migrations, as they were sent.
    pub migrations: Vec<TriedMigration>,
    /// Actions to define, then those to end.
    pub actions: Vec<TriedAction>,
    /// Pages to publish, then those to remove.
    pub pages: Vec<TriedPage>,
    /// The live actions that would not work any more; those that the release replaces or ends are not among them.
    pub broken_actions: Vec<BrokenAction>,
}

/// A migration that is only tried, after those before it.
#[derive(Debug, Serialize, ToSchema)]
pub struct TriedMigration {
    /// Outcome that the migration would have.
    pub status: MigrationStatus,
    /// The difference between the two schemas.
    pub changes: SchemaDifference,
    /// The schema before and after.
    pub schema: SchemaChange,
    /// Of the last migration: the release's own `broken_actions`.
    pub broken_actions: Vec<BrokenAction>,
    /// Warnings that the migration would bring; absent where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub warnings: Vec<WarningView>,
}

/// Effect that a release would have on a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum PartChange {
    /// Content that it has already. A page may be given to a backend that the release makes.
    None,
    /// It would be made.
    New,
    /// It would get another version.
    Changed,
    /// It would end.
    Removed,
}

/// An action that is only tried.
#[derive(Debug, Serialize, ToSchema)]
pub struct TriedAction {
    /// Name of the action.
    pub name: String,
    /// Effect that the release would have on it.
    pub change: PartChange,
}

/// A page that is only tried.
#[derive(Debug, Serialize, ToSchema)]
pub struct TriedPage {
    /// Slug at which it answers, or would answer.
    pub slug: String,
    /// Effect that the release would have on it.
    pub change: PartChange,
    /// Lines that its source would gain; of a site, files that would be new or other than before.
    pub added_lines: usize,
    /// Lines that its source would lose; of a site, files that would be gone or other than before.
    pub removed_lines: usize,
}

impl ReleasedParts {
    /// Returns the view of a release's outcome.
    pub fn new(made: &ReleaseOutcome, project: &Project, config: &Config) -> Self {
        let origin = config.project_origin(&project.host_label);
        let migrations = made.migrations.iter();
        let actions = made.actions.iter();
        let pages = made.pages.iter();
        Self {
            migrations: migrations
                .map(|&(version, status)| ReleasedMigration { version, status })
                .collect(),
            actions: actions
                .map(|(name, version)| ReleasedAction {
                    name: name.clone(),
                    version: *version,
                })
                .collect(),
            pages: pages
                .map(|page| ReleasedPageView {
                    slug: page.slug.clone(),
                    deployment_id: page.deployment,
                    revision_id: page.revision,
                    url: match page.at_root && config.sites_domain.is_some() {
                        true => format!("{origin}/"),
                        false => format!("{origin}/{}", page.slug),
                    },
                    warnings: page.warnings.clone(),
                })
                .collect(),
            removed: RemovedParts {
                actions: made.ended_actions.clone(),
                pages: made.removed_pages.clone(),
            },
        }
    }
}
