//! `svc project …`: operators see the projects of a data directory, everybody else their own on a server.
//!
//! `list` and `show` exist for both. They read the data directory that `--data` or its variable names; without it, or with
//! `--server` or `--profile`, they ask a server.

use std::process::ExitCode;

use anyhow::Context as _;

use crate::client::{self, EnvironmentArgs, ProjectChangeCommand, ServerSelectionArgs};
use crate::operators::{self, Operation, OperatorArgs};

#[derive(Debug, clap::Subcommand)]
pub(super) enum ProjectCommand {
    /// List your projects on a server, or with --data all of a data directory, oldest first
    List {
        /// Only those of one namespace; of a data directory
        #[arg(long)]
        namespace: Option<String>,
        #[command(flatten)]
        args: OperatorArgs,
        #[command(flatten)]
        remote: ServerSelectionArgs,
    },
    /// Say what a project has, and with --data whose it is
    Show {
        /// Id of the project, or the first part of its origin; on a server its name, too [default there: that of ./svc.toml, else the
        /// only one]
        project: Option<String>,
        #[command(flatten)]
        environment: EnvironmentArgs,
        #[command(flatten)]
        args: OperatorArgs,
        #[command(flatten)]
        remote: ServerSelectionArgs,
    },
    #[command(flatten)]
    Change(ProjectChangeCommand),
}

impl ProjectCommand {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let (args, wanted) = match self {
            Self::List {
                namespace,
                args,
                remote,
            } => match is_remote(&args, &remote) && namespace.is_none() {
                true => return Ok(client::list_projects(&remote, args.json).await),
                false => (args, operators::ProjectOperation::List { namespace }),
            },
            Self::Show {
                project,
                environment,
                args,
                remote,
            } => match is_remote(&args, &remote) {
                true => {
                    let wanted = (project.as_deref(), &environment);
                    return Ok(client::show_project(&remote, args.json, wanted).await);
                }
                false => {
                    let project = project
                        .context("Name the project: its id, or the first part of its origin.")?;
                    (args, operators::ProjectOperation::Show { project })
                }
            },
            Self::Change(change) => return Ok(client::change_project(change).await),
        };
        let answer = args.run_operation(Operation::Project(wanted)).await?;
        args.print_document_or_text(&answer.document, &answer.text)
    }
}

/// Whether a server is asked: because it is named, or because no data directory is.
fn is_remote(args: &OperatorArgs, remote: &ServerSelectionArgs) -> bool {
    remote.is_named() || args.data.is_none()
}
