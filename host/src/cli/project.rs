//! `svc project …`: an operator looks at the projects of a data directory, everybody else at their own on a server.
//!
//! `list` and `show` are both, for a project is one thing: they work on the data directory that `--data` or its variable names, and
//! else, or where `--server` or `--profile` says so, ask a server.

use std::process::ExitCode;

use crate::client::{self, ProjectChange, Remote};
use crate::operators::{self, Operate, Operation};

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

impl Project {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let (operate, wanted) = match self {
            Self::List {
                namespace,
                operate,
                remote,
            } => match is_remote(&operate, &remote) && namespace.is_none() {
                true => return Ok(client::list_projects(&remote, operate.json).await),
                false => (operate, operators::Project::List { namespace }),
            },
            Self::Show {
                project,
                operate,
                remote,
            } => match is_remote(&operate, &remote) {
                true => return Ok(client::show_project(&remote, operate.json, &project).await),
                false => (operate, operators::Project::Show { project }),
            },
            Self::Change(change) => return Ok(client::change_project(change).await),
        };
        let answer = operate.reach(Operation::Project(wanted)).await?;
        operate.print(answer.document, answer.text)
    }
}

/// Whether a server is asked: it is named, or no data directory is.
fn is_remote(operate: &Operate, remote: &Remote) -> bool {
    remote.is_named() || operate.data.is_none()
}
