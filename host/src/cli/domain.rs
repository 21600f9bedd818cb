//! `svc domain …`: owners bring domains for their projects on a server, operators look at all of a data directory and take some down.
//!
//! `list` exists for both. It reads the data directory that `--data` or its variable names; without it, or with `--server` or
//! `--profile`, it asks a server.

use std::process::ExitCode;

use crate::client::{self, DomainChangeCommand, ProjectSelectionArgs, ServerSelectionArgs};
use crate::operators::{DomainOperation, Operation, OperatorArgs};

#[derive(Debug, clap::Subcommand)]
pub(super) enum DomainCommand {
    /// List the domains of a project on a server, or with --data all of a data directory
    List {
        #[command(flatten)]
        project: ProjectSelectionArgs,
        #[command(flatten)]
        args: OperatorArgs,
        #[command(flatten)]
        remote: ServerSelectionArgs,
    },
    /// Take a domain down in all projects; of a data directory
    Disable {
        /// Host name, such as www.example.com
        #[arg(value_name = "DOMAIN")]
        name: String,
        #[command(flatten)]
        args: OperatorArgs,
    },
    /// Let projects prove a domain again that was taken down; of a data directory
    Enable {
        /// Host name, such as www.example.com
        #[arg(value_name = "DOMAIN")]
        name: String,
        #[command(flatten)]
        args: OperatorArgs,
    },
    #[command(flatten)]
    Change(DomainChangeCommand),
}

impl DomainCommand {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let (args, wanted) = match self {
            Self::List {
                project,
                args,
                remote,
            } => {
                let is_of_project = project.is_named() || args.data.is_none();
                match is_of_project || remote.is_named() {
                    true => return Ok(client::list_domains(&remote, args.json, &project).await),
                    false => (args, DomainOperation::List),
                }
            }
            Self::Disable { name, args } => (args, DomainOperation::Disable { name }),
            Self::Enable { name, args } => (args, DomainOperation::Enable { name }),
            Self::Change(change) => return Ok(client::change_domain(change).await),
        };
        let answer = args.run_operation(Operation::Domain(wanted)).await?;
        args.print_document_or_text(&answer.document, &answer.text)
    }
}
