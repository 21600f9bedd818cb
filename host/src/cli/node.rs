//! `svc node` and `svc promote`, which a running node answers.

use std::process::ExitCode;

use anyhow::bail;

use super::OperatorArgs;
use super::actor::current_actor_name;
use crate::operators::{self, NodeOperation, Operation, OperationProgressSink};

#[derive(Debug, clap::Subcommand)]
pub(super) enum NodeCommand {
    /// List the nodes of the cluster, and say which one answers
    List {
        #[command(flatten)]
        args: OperatorArgs,
    },
    /// Take a node that is gone for good off the list
    Remove {
        /// The name of the node
        name: String,
        #[command(flatten)]
        args: OperatorArgs,
    },
}

impl NodeCommand {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::List { args } => ask_node(&args, NodeOperation::List {}).await,
            Self::Remove { name, args } => ask_node(&args, NodeOperation::Remove { name }).await,
        }
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct PromoteCommand {
    #[command(flatten)]
    args: OperatorArgs,
}

impl PromoteCommand {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        ask_node(&self.args, NodeOperation::Promote {}).await
    }
}

/// Has the node that runs on the data directory run an operation.
async fn ask_node(args: &OperatorArgs, operation: NodeOperation) -> anyhow::Result<ExitCode> {
    let data = args.installation()?;
    let operation = Operation::Node(operation);
    let silent = OperationProgressSink::default();
    let actor = current_actor_name();
    let asked = operators::run_on_server(&data, &operation, &actor, &silent);
    let Some(answer) = asked.await? else {
        bail!("no node runs on {}: start one", data.display());
    };
    args.print_document_or_text(&answer.document, &answer.text)
}
