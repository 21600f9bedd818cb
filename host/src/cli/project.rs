//! `svc project …`: an operator looks at the projects of a data directory, everybody else at their own on a server.
//!
//! `list` and `show` are both, for a project is one thing: they work on the data directory that `--data` or its variable names, and
//! else, or where `--server` or `--profile` says so, ask a server.

use std::process::ExitCode;

use anyhow::Context as _;
use serde::Serialize;

use super::Operate;
use super::table::{or_dash, table};
use crate::client::{self, ProjectChange, Remote};
use crate::clock::Clock;
use crate::overview::{self, Wanted, sizes};

#[derive(Debug, clap::Subcommand)]
pub(super) enum Project {
    /// List your projects on a server, or with --data all of a data directory, oldest first
    List {
        /// Only those of one namespace; of a data directory
        #[arg(long)]
        namespace: Option<String>,
        #[command(flatten)]
        operate: Operate,
        #[command(flatten)]
        remote: Remote,
    },
    /// Say what a project has, and with --data whose it is
    Show {
        /// Its id, or the first part of its origin; on a server its name, too
        project: String,
        #[command(flatten)]
        operate: Operate,
        #[command(flatten)]
        remote: Remote,
    },
    #[command(flatten)]
    Change(ProjectChange),
}

/// Everything about a project.
#[derive(Debug, Serialize)]
struct Shown {
    #[serde(flatten)]
    project: overview::Project,
    /// Its frontends, newest first.
    members: Vec<overview::Deployment>,
    /// Its backend.
    backend: Option<Backend>,
}

/// A backend with its sizes.
#[derive(Debug, Serialize)]
struct Backend {
    #[serde(flatten)]
    backend: overview::Backend,
    /// Bytes of the database with its log.
    bytes: u64,
    /// Bytes of its history.
    history_bytes: u64,
}

impl Project {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::List {
                namespace,
                operate,
                remote,
            } => match is_remote(&operate, &remote) && namespace.is_none() {
                true => Ok(client::list_projects(&remote, operate.json).await),
                false => list(&operate, namespace).await,
            },
            Self::Show {
                project,
                operate,
                remote,
            } => match is_remote(&operate, &remote) {
                true => Ok(client::show_project(&remote, operate.json, &project).await),
                false => show(&operate, &project).await,
            },
            Self::Change(change) => Ok(client::change_project(change).await),
        }
    }
}

/// Whether a server is asked: it is named, or no data directory is.
fn is_remote(operate: &Operate, remote: &Remote) -> bool {
    remote.is_named() || operate.data.is_none()
}

async fn list(operate: &Operate, namespace: Option<String>) -> anyhow::Result<ExitCode> {
    let control = operate.control()?;
    let projects = overview::projects(&control, Clock::system().now(), namespace).await?;
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
    operate.answer(&serde_json::json!({ "projects": projects }), &text)
}

async fn show(operate: &Operate, named: &str) -> anyhow::Result<ExitCode> {
    let control = operate.control()?;
    let now = Clock::system().now();
    let project = overview::projects(&control, now, None)
        .await?
        .into_iter()
        .find(|one| one.id.to_string() == named || one.host_label == named)
        .with_context(|| format!("there is no project `{named}`: name its id or its label"))?;
    let wanted = Wanted {
        namespace: Some(project.namespace.clone()),
        ..Wanted::default()
    };
    let mut members = overview::deployments(&control, now, wanted).await?;
    members.retain(|member| member.project_id == Some(project.id));
    let backend = match project.backend_id {
        Some(id) => overview::backend(&control, id).await?,
        None => None,
    };
    let backend = match backend {
        Some(backend) => {
            let (bytes, history_bytes) = sizes::of_backend(&operate.data(), &backend.id)?;
            Some(Backend {
                backend,
                bytes,
                history_bytes,
            })
        }
        None => None,
    };
    let shown = Shown {
        project,
        members,
        backend,
    };
    operate.answer(&shown, &text(&shown))
}

fn text(shown: &Shown) -> String {
    let project = &shown.project;
    let backend = shown.backend.as_ref().map(|one| {
        format!(
            "{} bytes and {} of history; {} migrations, {} actions",
            one.bytes, one.history_bytes, one.backend.migrations, one.backend.actions
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
