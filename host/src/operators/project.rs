//! `svc project list|show` of an installation.

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::installation::{Installation, OperationAnswer};
use crate::overview::{self, DeploymentFilter, sizes};
use crate::terminal::{or_dash, table};
use svc_base::pluralize;

/// Looks at projects: the part of `svc project` that works on an installation.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProjectOperation {
    /// Lists projects, oldest first.
    List {
        /// Only those of one namespace.
        namespace: Option<String>,
    },
    /// Says whose a project is, and what it has.
    Show {
        /// Id of the project, or the first part of its origin.
        project: String,
    },
}

/// Details of a project.
#[derive(Debug, Serialize)]
struct ProjectDetail {
    #[serde(flatten)]
    project: overview::ProjectListEntry,
    /// Frontends, newest first.
    members: Vec<overview::DeploymentListEntry>,
    /// Backend of the project.
    backend: Option<BackendWithSizes>,
}

/// A backend with its sizes.
#[derive(Debug, Serialize)]
struct BackendWithSizes {
    #[serde(flatten)]
    backend: overview::BackendListEntry,
    /// Size of the database with its log, in bytes.
    bytes: u64,
    /// Size of the history, in bytes.
    history_bytes: u64,
}

impl ProjectOperation {
    pub(super) async fn run(self, at: &Installation) -> anyhow::Result<OperationAnswer> {
        match self {
            Self::List { namespace } => list(at, namespace).await,
            Self::Show { project } => show(at, &project).await,
        }
    }
}

async fn list(at: &Installation, namespace: Option<String>) -> anyhow::Result<OperationAnswer> {
    let projects = overview::projects(&at.control, at.clock.now(), namespace).await?;
    let rows = projects.iter().map(|project| {
        [
            project.host_label.clone(),
            project.namespace.clone(),
            project.name.clone(),
            project.frontends.to_string(),
            project.visits.to_string(),
            match project.backend_id {
                Some(_) => "yes".to_owned(),
                None => "-".to_owned(),
            },
            project.created_at.to_string(),
            or_dash(project.expires_at),
            project.id.to_string(),
        ]
    });
    let head = [
        "label",
        "namespace",
        "name",
        "frontends",
        "visits",
        "backend",
        "created",
        "expires",
        "id",
    ];
    let text = table(head, rows);
    OperationAnswer::new(&serde_json::json!({ "projects": projects }), text)
}

async fn show(at: &Installation, named: &str) -> anyhow::Result<OperationAnswer> {
    let now = at.clock.now();
    let project = overview::projects(&at.control, now, None)
        .await?
        .into_iter()
        .find(|one| one.id.to_string() == named || one.host_label == named)
        .with_context(|| format!("there is no project `{named}`: name its id or its label"))?;
    let filter = DeploymentFilter {
        namespace: Some(project.namespace.clone()),
        ..DeploymentFilter::default()
    };
    let mut members = overview::deployments(&at.control, now, filter).await?;
    members.retain(|member| member.project_id == Some(project.id));
    let backend = match project.backend_id {
        Some(id) => overview::backend(&at.control, id).await?,
        None => None,
    };
    let backend = match backend {
        Some(backend) => {
            let (bytes, history_bytes) = sizes::backend_bytes(&at.data, &backend.id)?;
            Some(BackendWithSizes {
                backend,
                bytes,
                history_bytes,
            })
        }
        None => None,
    };
    let shown = ProjectDetail {
        project,
        members,
        backend,
    };
    OperationAnswer::new(&shown, project_text(&shown))
}

fn project_text(shown: &ProjectDetail) -> String {
    let project = &shown.project;
    let backend = shown.backend.as_ref().map(|one| {
        format!(
            "{} and {} of history; {}, {}",
            pluralize(one.bytes, "byte"),
            one.history_bytes,
            pluralize(one.backend.migrations, "migration"),
            pluralize(one.backend.actions, "action")
        )
    });
    let lines = [
        ("label", project.host_label.clone()),
        ("name", project.name.escape_debug().to_string()),
        ("namespace", project.namespace.clone()),
        ("visits", project.visits.to_string()),
        ("backend", or_dash(backend)),
        ("created", project.created_at.to_string()),
        ("expires", or_dash(project.expires_at)),
        ("id", project.id.to_string()),
    ];
    let head = lines
        .map(|(name, value)| format!("{name:10} {value}"))
        .join("\n");
    let rows = shown.members.iter().map(|member| {
        [
            member.slug.clone(),
            member.visits.to_string(),
            member.title.clone(),
        ]
    });
    format!("{head}\n\n{}", table(["frontend", "visits", "title"], rows))
}
