//! Operators' commands on an installation, each written once: a running server runs it, else it works on the files.
//!
//! A command of the terminal becomes an [`Operation`]. [`run_command`] sends it to the server over a socket in the data directory,
//! and the server answers when the operation is in effect; where no server runs, `run_command` holds the data directory's lock
//! and runs it itself. A node of several that has no control passes it on (`forward`).
//!
//! To add a command, add its file here and its line in the table below. What only reads the files, as a backup
//! does, is asked of the server with [`run_on_server`], and done by the command where none runs.

mod audit;
mod console;
mod content;
mod counts;
mod deployment;
mod dispatch;
mod domain;
mod forward;
mod guest;
mod installation;
mod key;
mod maintenance;
mod namespace;
mod node;
mod payments;
mod project;
mod report;
mod rerender;
mod socket;
mod visitors;
mod workspace;

use std::path::PathBuf;

use clap::Subcommand;
use serde::{Deserialize, Serialize};

pub use counts::ShowCounts;
pub use dispatch::{check_not_of_node, run_command, run_on_server};
pub use domain::DomainOperation;
pub use guest::{
    GuestChange, GuestChangeEffect, GuestChangeOutcome, SwitchGuest, check_guests_directory,
};
pub use installation::{
    Installation, OperationAnswer, OperationProgressSink, OperationProgressStep,
};
pub use maintenance::{CheckInstallation, MakeBackup, check_one_machine};
pub use namespace::warn_if_origin_is_shared;
pub use node::NodeOperation;
pub use project::ProjectOperation;
pub use rerender::RerenderOperation;
pub use socket::{OperatorSocketListener, SOCKET_FILE};

/// The arguments that all operators' commands have.
#[derive(Clone, Debug, clap::Args)]
pub struct OperatorArgs {
    /// The data directory [default: ./data]
    #[arg(long, global = true, env = "SVC_DATA")]
    pub data: Option<PathBuf>,
    /// Answer with one JSON document
    #[arg(long, global = true)]
    pub json: bool,
}

/// A group of commands with the arguments of all.
#[derive(Debug, clap::Args)]
pub struct CommandGroup<C: Subcommand> {
    #[command(subcommand)]
    command: C,
    #[command(flatten)]
    args: OperatorArgs,
}

/// A command with the arguments of all.
#[derive(Debug, clap::Args)]
pub struct SingleCommand<C: clap::Args> {
    #[command(flatten)]
    command: C,
    #[command(flatten)]
    args: OperatorArgs,
}

macro_rules! operations {
    (
        commands { $($(#[doc = $about:literal])* $name:ident($kind:ident<$arguments:ty>);)+ }
        parts { $($(#[doc = $of:literal])* $part:ident($input:ty);)+ }
    ) => {
        /// The commands of the terminal that are operations.
        #[derive(Debug, Subcommand)]
        pub enum OperatorCommand {
            $($(#[doc = $about])* $name($kind<$arguments>),)+
        }

        impl OperatorCommand {
            /// Splits the command into its arguments and its operation.
            pub fn split(self) -> (OperatorArgs, Operation) {
                match self {
                    $(Self::$name(one) => (one.args, Operation::$name(one.command)),)+
                }
            }
        }

        /// An operation, as it is sent to the server.
        #[derive(Debug, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Operation {
            $($(#[doc = $about])* $name($arguments),)+
            $($(#[doc = $of])* $part($input),)+
        }

        impl Operation {
            async fn run(self, at: &Installation) -> anyhow::Result<OperationAnswer> {
                match self {
                    $(Self::$name(one) => one.run(at).await,)+
                    $(Self::$part(one) => one.run(at).await,)+
                }
            }
        }
    };
}

operations! {
    commands {
        /// Make, list, change and delete namespaces, which own projects
        Namespace(CommandGroup<namespace::NamespaceOperation>);
        /// Make, list and revoke the keys of a namespace
        Key(CommandGroup<key::KeyOperation>);
        /// Print a link that signs whoever opens it in to the console, once and within 15 minutes
        Console(SingleCommand<console::MakeConsoleLink>);
        /// Let people into workspaces, and out
        Workspace(CommandGroup<workspace::WorkspaceOperation>);
        /// Look at deployments, take them down, or put them back
        Deployment(CommandGroup<deployment::DeploymentOperation>);
        /// Block bytes everywhere, and look at what a project has
        Content(CommandGroup<content::ContentOperation>);
        /// Read what people report, and close what is done
        Report(CommandGroup<report::ReportOperation>);
        /// Look at what the payment provider has said, and derive from it anew
        Payments(CommandGroup<payments::PaymentsOperation>);
        /// List a project's visitors, and erase one
        Visitors(CommandGroup<visitors::VisitorsOperation>);
        /// Read who changed what
        Audit(SingleCommand<audit::ListAuditEntries>);
    }
    parts {
        /// Looks at projects: a part of `svc project`.
        Project(project::ProjectOperation);
        /// Looks at domains, takes one down, or puts it back: `svc domain`.
        Domain(domain::DomainOperation);
        /// Asks for a rerender, or for how far it is: a part of `svc guest rerender`.
        Rerender(rerender::RerenderOperation);
        /// Counts what there is: a part of `svc status`.
        Counts(counts::ShowCounts);
        /// Makes a backup: `svc backup`, where a server runs.
        Backup(maintenance::MakeBackup);
        /// Verifies everything that is stored: `svc check`, where a server runs.
        Check(maintenance::CheckInstallation);
        /// Asks a node of several for the nodes, or to take control: `svc node` and `svc promote`.
        Node(node::NodeOperation);
        /// Has another guest serve: a part of `svc guest install` and `svc guest rollback`.
        Guest(guest::SwitchGuest);
    }
}

impl Operation {
    /// Whether the operation may create an installation: the first namespace is made before the first start.
    ///
    /// # Errors
    /// Invalid arguments, before anything is made.
    pub fn creates_installation(&self) -> anyhow::Result<bool> {
        match self {
            Self::Namespace(namespace) => namespace.creates_installation(),
            _ => Ok(false),
        }
    }
}
