//! `svc namespace create|list`.

use std::fmt::Write as _;
use std::process::ExitCode;

use super::Operate;
use crate::workspaces::{Plan, Workspaces};

#[derive(Debug, clap::Subcommand)]
pub(super) enum Namespace {
    /// Make a namespace and print its credential, which is shown this once
    Create {
        /// 1 to 63 of a-z, 0-9 and -
        name: String,
        /// What it may have
        #[arg(long, value_enum, default_value = "free")]
        plan: Plan,
        #[command(flatten)]
        operate: Operate,
    },
    /// List the namespaces
    List {
        #[command(flatten)]
        operate: Operate,
    },
}

impl Namespace {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Create {
                name,
                plan,
                operate,
            } => {
                Workspaces::check_name(&name)?;
                let made = operate.first_workspaces()?.create(&name, plan).await?;
                operate.answer(&made, &made.credential)
            }
            Self::List { operate } => {
                let namespaces = operate.workspaces()?.list().await?;
                let mut text = String::new();
                for namespace in &namespaces {
                    let plan = namespace.plan.as_str();
                    writeln!(text, "{}\t{plan}\t{}", namespace.slug, namespace.id)?;
                }
                operate.answer(&serde_json::json!({ "namespaces": namespaces }), &text)
            }
        }
    }
}
