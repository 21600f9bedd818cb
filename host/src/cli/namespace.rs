//! `svc namespace create|list|plan|delete`.

use std::process::ExitCode;

use super::Operate;
use super::actor::deed;
use super::table::table;
use crate::guests::status::is_served;
use crate::projects;
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
    /// Change what a namespace may have; the projects that it has already stay
    Plan {
        /// The namespace
        name: String,
        /// What it may have
        #[arg(value_enum)]
        plan: Plan,
        #[command(flatten)]
        operate: Operate,
    },
    /// Delete a namespace with its keys and all of its projects, for good
    Delete {
        /// The namespace
        name: String,
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
                let control = operate.first_control()?;
                let made = operate.workspaces(&control).create(&name, plan).await?;
                let command = format!("namespace create {name} --plan {}", plan.as_str());
                operate.note(&control, command).await;
                operate.answer(&made, &made.credential)
            }
            Self::List { operate } => list(&operate).await,
            Self::Plan {
                name,
                plan,
                operate,
            } => {
                let control = operate.control()?;
                let changed = operate.workspaces(&control).set_plan(&name, plan).await?;
                let plan = plan.as_str();
                operate
                    .note(&control, format!("namespace plan {name} {plan}"))
                    .await;
                operate.answer(&changed, &format!("{name} has the plan {plan}"))
            }
            Self::Delete { name, operate } => delete(&operate, &name).await,
        }
    }
}

async fn list(operate: &Operate) -> anyhow::Result<ExitCode> {
    let control = operate.control()?;
    let namespaces = operate.workspaces(&control).list().await?;
    let rows = namespaces.iter().map(|namespace| {
        [
            namespace.slug.clone(),
            namespace.plan.as_str().to_owned(),
            namespace.id.to_string(),
        ]
    });
    let text = table(["name", "plan", "id"], rows);
    operate.answer(&serde_json::json!({ "namespaces": namespaces }), &text)
}

async fn delete(operate: &Operate, name: &str) -> anyhow::Result<ExitCode> {
    let control = operate.control()?;
    let deed = deed(format!("namespace delete {name}"));
    let workspaces = operate.workspaces(&control);
    let (deleted, projects) = workspaces
        .begin_end(name, deed, projects::begin_ends)
        .await?;
    let served = is_served(&operate.data())?;
    let document = serde_json::json!({
        "id": deleted.id, "slug": name, "deleted": true, "projects": projects, "server_running": served,
    });
    let rest = match served {
        true => "the server removes what they held",
        false => "no server runs: the next start removes what they held",
    };
    operate.answer(
        &document,
        &format!("deleted {name} with its keys and {projects} projects; {rest}"),
    )
}
