//! Overview of an installation for its operators: what it has, whose it is, how large it is, and how the server does.

pub mod sizes;
pub mod status_file;

mod store;

use serde::{Deserialize, Serialize};

use crate::config::Limits;
use crate::content::Digest;
use crate::control::{Control, Error};
use svc_base::clock::Timestamp;
use svc_base::ids::{BackendId, DeploymentId, ProjectId};

/// How many there are of everything that is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Shares and frontends, as their cap counts them.
    pub deployments: u64,
    /// Number of shares.
    pub shares: u64,
    /// Number of frontends.
    pub frontends: u64,
    /// Those that are taken down.
    pub disabled: u64,
    /// Number of databases.
    pub backends: u64,
    /// Number of projects.
    pub projects: u64,
    /// Number of namespaces.
    pub namespaces: u64,
    /// Open reports.
    pub open_reports: u64,
}

/// Counts everything.
pub async fn counts(control: &Control, now: Timestamp) -> Result<Counts, Error> {
    control.read(move |c| store::counts(c, now)).await
}

/// A number and the cap that it must not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CapUse {
    /// Number in use.
    pub used: u64,
    /// Most that may be in use.
    pub cap: u64,
}

/// Lists the use of every cap of the server's, by the name of its limit.
pub fn cap_uses(counts: &Counts, limits: &Limits) -> [(&'static str, CapUse); 2] {
    let used = |used, cap| CapUse { used, cap };
    [
        (
            "active_deployments",
            used(counts.deployments, limits.active_deployments),
        ),
        ("backends", used(counts.backends, limits.backends)),
    ]
}

/// Filter of a list of deployments.
#[derive(Clone, Debug, Default)]
pub struct DeploymentFilter {
    /// Those of one namespace.
    pub namespace: Option<String>,
    /// Those that are taken down.
    pub disabled: bool,
    /// The one at this slug.
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

/// A deployment, as a list has it.
#[derive(Clone, Debug, Serialize)]
pub struct Deployment {
    /// Identifier of the deployment.
    pub id: DeploymentId,
    /// Where it answers.
    pub slug: String,
    /// Whether it has an owner.
    pub kind: DeploymentKind,
    /// Type of the source.
    #[serde(rename = "type")]
    pub content_type: String,
    /// Title; empty for a share that is read once.
    pub title: String,
    /// Namespace that owns it.
    pub namespace: Option<String>,
    /// In which project.
    pub project_id: Option<ProjectId>,
    /// Whether its first reader is its last.
    pub one_time: bool,
    /// Whether it has a password.
    pub protected: bool,
    /// Since when it is taken down.
    pub disabled_at: Option<Timestamp>,
    /// Views that are written down.
    pub visits: u64,
    /// When it was published.
    pub created_at: Timestamp,
    /// When it stops to resolve.
    pub expires_at: Option<Timestamp>,
    /// Digest of the source in the content store.
    #[serde(skip)]
    pub source: Option<Digest>,
    /// Digest of the page in the content store.
    #[serde(skip)]
    pub page: Option<Digest>,
}

/// Deployments that answer, or would if they were not taken down; newest first.
pub async fn deployments(
    control: &Control,
    now: Timestamp,
    filter: DeploymentFilter,
) -> Result<Vec<Deployment>, Error> {
    let counters = control.counters();
    control
        .read(move |c| store::deployments(c, &counters, now, &filter))
        .await
}

/// Further details of a deployment.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct DeploymentHistory {
    /// States of its content that are kept.
    pub revisions: u64,
    /// How often something became live.
    pub releases: u64,
    /// Open reports of it.
    pub open_reports: u64,
}

/// Reads further details of a deployment.
pub async fn history(control: &Control, of: &Deployment) -> Result<DeploymentHistory, Error> {
    let (id, slug) = (of.id, of.slug.clone());
    control.read(move |c| store::history(c, &id, &slug)).await
}

/// A project, as a list has it.
#[derive(Clone, Debug, Serialize)]
pub struct Project {
    /// Identifier of the project.
    pub id: ProjectId,
    /// Name for people.
    pub name: String,
    /// The first part of its origin.
    pub host_label: String,
    /// Namespace that owns the project.
    pub namespace: String,
    /// How many frontends it has.
    pub frontends: u64,
    /// Number of views that are written down.
    pub visits: u64,
    /// Identifier of the backend.
    pub backend_id: Option<BackendId>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
}

/// Projects that live, oldest first; those of one namespace, if it is named.
pub async fn projects(
    control: &Control,
    now: Timestamp,
    namespace: Option<String>,
) -> Result<Vec<Project>, Error> {
    let counters = control.counters();
    control
        .read(move |c| store::projects(c, &counters, now, namespace.as_deref()))
        .await
}

/// Content of a backend.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Backend {
    /// Identifier of the backend.
    pub id: BackendId,
    /// Scripts that made its schema.
    pub migrations: u64,
    /// Actions, the newest version of each.
    pub actions: u64,
    /// When it was made.
    pub created_at: Timestamp,
}

/// Reads the content of a backend.
pub async fn backend(control: &Control, id: BackendId) -> Result<Option<Backend>, Error> {
    control.read(move |c| store::backend(c, &id)).await
}
