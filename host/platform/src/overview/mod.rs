//! Overview of an installation for operators: its resources, their owners and sizes, and the server's status.

pub mod sizes;
pub mod status_file;

mod store;

use serde::{Deserialize, Serialize};

use crate::config::Limits;
use crate::content::Digest;
use crate::control::{ControlDatabase, Error};
use svc_base::clock::Timestamp;
use svc_base::ids::{BackendId, DeploymentId, ProjectId};

/// Numbers of resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceCounts {
    /// Number of shares and frontends, as their cap counts them.
    pub deployments: u64,
    /// Number of shares.
    pub shares: u64,
    /// Number of frontends.
    pub frontends: u64,
    /// Number of disabled shares and frontends.
    pub disabled: u64,
    /// Number of databases.
    pub backends: u64,
    /// Number of projects.
    pub projects: u64,
    /// Number of namespaces.
    pub namespaces: u64,
    /// Number of open reports.
    pub open_reports: u64,
    /// Number of files, each counted once for every project that has it.
    pub files: u64,
    /// Number of those that wait for a publication.
    pub staged_files: u64,
    /// Number of files of visitors, their smaller copies not counted.
    pub visitor_files: u64,
    /// Number of those that have ended, and whose bytes the history may bring back, with their copies.
    pub ended_visitor_files: u64,
    /// Bytes of the files, as their cap counts them.
    pub file_bytes: u64,
    /// Number of digests that are blocked.
    pub blocked: u64,
}

/// Counts the resources.
pub async fn counts(control: &ControlDatabase, now: Timestamp) -> Result<ResourceCounts, Error> {
    control.read(move |c| store::counts(c, now)).await
}

/// Use of a cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CapUseSummary {
    /// Number in use.
    pub used: u64,
    /// Largest number that may be in use.
    pub cap: u64,
}

/// Lists the use of the server's caps, by the names of their limits.
pub fn cap_uses(counts: &ResourceCounts, limits: &Limits) -> [(&'static str, CapUseSummary); 3] {
    let used = |used, cap| CapUseSummary { used, cap };
    [
        (
            "active_deployments",
            used(counts.deployments, limits.active_deployments),
        ),
        ("backends", used(counts.backends, limits.backends)),
        (
            "storage_total_bytes",
            used(counts.file_bytes, limits.storage_total_bytes),
        ),
    ]
}

/// Filter of a list of deployments.
#[derive(Clone, Debug, Default)]
pub struct DeploymentFilter {
    /// Only those of one namespace.
    pub namespace: Option<String>,
    /// Number of disabled shares and frontends.
    pub disabled: bool,
    /// Only the one at this slug.
    pub slug: Option<String>,
}

/// Kind of a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DeploymentKind {
    /// A quick share, which has no owner.
    Share,
    /// A project's frontend.
    Frontend,
}

/// A deployment in a list.
#[derive(Clone, Debug, Serialize)]
pub struct DeploymentListEntry {
    /// Identifier of the deployment.
    pub id: DeploymentId,
    /// Slug of the deployment.
    pub slug: String,
    /// Kind of the deployment.
    pub kind: DeploymentKind,
    /// Type of the source.
    #[serde(rename = "type")]
    pub content_type: String,
    /// Title; empty for a one-time share.
    pub title: String,
    /// Namespace that owns it.
    pub namespace: Option<String>,
    /// Project of a frontend.
    pub project_id: Option<ProjectId>,
    /// Whether it is a one-time share.
    pub one_time: bool,
    /// Whether it has a password.
    pub protected: bool,
    /// Time at which it was disabled.
    pub disabled_at: Option<Timestamp>,
    /// Number of stored views.
    pub visits: u64,
    /// Time of its publication.
    pub created_at: Timestamp,
    /// Time of its expiry.
    pub expires_at: Option<Timestamp>,
    /// Digest of the source in the content store.
    #[serde(skip)]
    pub source: Option<Digest>,
    /// Digest of the page in the content store.
    #[serde(skip)]
    pub page: Option<Digest>,
}

/// Lists the deployments that have not expired, disabled ones included; newest first.
pub async fn deployments(
    control: &ControlDatabase,
    now: Timestamp,
    filter: DeploymentFilter,
) -> Result<Vec<DeploymentListEntry>, Error> {
    let counters = control.counters();
    control
        .read(move |c| store::deployments(c, &counters, now, &filter))
        .await
}

/// Further details of a deployment.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct DeploymentCounts {
    /// Number of revisions.
    pub revisions: u64,
    /// Number of releases.
    pub releases: u64,
    /// Number of open reports.
    pub open_reports: u64,
}

/// Reads further details of a deployment.
pub async fn deployment_counts(
    control: &ControlDatabase,
    of: &DeploymentListEntry,
) -> Result<DeploymentCounts, Error> {
    let (id, slug) = (of.id, of.slug.clone());
    control
        .read(move |c| store::deployment_counts(c, &id, &slug))
        .await
}

/// A project in a list.
#[derive(Clone, Debug, Serialize)]
pub struct ProjectListEntry {
    /// Identifier of the project.
    pub id: ProjectId,
    /// Name for people.
    pub name: String,
    /// The first part of its origin.
    pub host_label: String,
    /// Namespace that owns the project.
    pub namespace: String,
    /// Number of frontends.
    pub frontends: u64,
    /// Number of stored views.
    pub visits: u64,
    /// Identifier of the backend.
    pub backend_id: Option<BackendId>,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// Time of its expiry.
    pub expires_at: Option<Timestamp>,
}

/// Lists the active projects, oldest first; with `namespace`, only its own.
pub async fn projects(
    control: &ControlDatabase,
    now: Timestamp,
    namespace: Option<String>,
) -> Result<Vec<ProjectListEntry>, Error> {
    let counters = control.counters();
    control
        .read(move |c| store::projects(c, &counters, now, namespace.as_deref()))
        .await
}

/// A backend with the numbers of its definitions.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct BackendListEntry {
    /// Identifier of the backend.
    pub id: BackendId,
    /// Number of migrations.
    pub migrations: u64,
    /// Number of actions, without their earlier versions.
    pub actions: u64,
    /// Time of its creation.
    pub created_at: Timestamp,
}

/// Reads a backend.
pub async fn backend(
    control: &ControlDatabase,
    id: BackendId,
) -> Result<Option<BackendListEntry>, Error> {
    control.read(move |c| store::backend(c, &id)).await
}
