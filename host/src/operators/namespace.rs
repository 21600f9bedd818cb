//! `svc namespace create|list|plan|delete`.

use serde::{Deserialize, Serialize};

use super::installation::{Installation, OperationAnswer};
use crate::app::App;
use crate::projects;
use crate::terminal::table;
use crate::workspaces::{Plan, Workspaces};
use svc_base::pluralize;

#[derive(Debug, clap::Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NamespaceOperation {
    /// Make a namespace and print its credential, which is shown this once
    Create {
        /// 1 to 63 of a-z, 0-9 and -
        name: String,
        /// Plan of the namespace
        #[arg(long, value_enum, default_value = "free")]
        plan: Plan,
    },
    /// List the namespaces
    List {},
    /// Change what a namespace may have; the projects that it has already stay
    Plan {
        /// The namespace
        name: String,
        /// Plan of the namespace
        #[arg(value_enum)]
        plan: Plan,
    },
    /// Delete a namespace with its keys and all of its projects, for good
    Delete {
        /// The namespace
        name: String,
    },
}

impl NamespaceOperation {
    /// Whether the command may create an installation.
    pub(super) fn creates_installation(&self) -> anyhow::Result<bool> {
        if let Self::Create { name, .. } = self {
            Workspaces::check_name(name)?;
            return Ok(true);
        }
        Ok(false)
    }

    pub(super) async fn run(self, at: &Installation) -> anyhow::Result<OperationAnswer> {
        match self {
            Self::Create { name, plan } => {
                let made = at.workspaces().create(&name, plan).await?;
                if let Some(app) = &at.server {
                    warn_if_origin_is_shared(app).await?;
                }
                let command = format!("namespace create {name} --plan {}", plan.as_str());
                Ok(OperationAnswer::new(&made, &made.credential)?.logged_as(command))
            }
            Self::List {} => list(at).await,
            Self::Plan { name, plan } => {
                let changed = at.workspaces().set_plan(&name, plan).await?;
                let plan = plan.as_str();
                let answer = OperationAnswer::new(&changed, format!("{name} has the plan {plan}"))?;
                Ok(answer.logged_as(format!("namespace plan {name} {plan}")))
            }
            Self::Delete { name } => delete(at, &name).await,
        }
    }
}

/// Warns if several namespaces share one origin.
pub async fn warn_if_origin_is_shared(app: &App) -> anyhow::Result<()> {
    if app.config.sites_domain.is_none() && app.workspaces.list().await?.len() > 1 {
        tracing::warn!(
            "several namespaces share one origin, since there is no `sites_domain`: the pages of each can act for the visitors of every other; \
             set `sites_domain` unless all of them trust each other"
        );
    }
    Ok(())
}

async fn list(at: &Installation) -> anyhow::Result<OperationAnswer> {
    let namespaces = at.workspaces().list().await?;
    let rows = namespaces.iter().map(|namespace| {
        [
            namespace.slug.clone(),
            namespace.plan.as_str().to_owned(),
            namespace.id.to_string(),
        ]
    });
    let text = table(["name", "plan", "id"], rows);
    OperationAnswer::new(&serde_json::json!({ "namespaces": namespaces }), text)
}

async fn delete(at: &Installation, name: &str) -> anyhow::Result<OperationAnswer> {
    let workspaces = at.workspaces();
    let (deleted, projects) = workspaces
        .begin_deletion(name, projects::begin_deletions)
        .await?;
    if let Some(app) = &at.server {
        app.teardown.run().await?;
    }
    let served = at.server.is_some();
    let document = serde_json::json!({
        "id": deleted.id, "slug": name, "deleted": true, "projects": projects, "server_running": served,
    });
    let rest = match served {
        true => "what they held is gone",
        false => "no server runs: the next start removes what they held",
    };
    let projects = pluralize(projects, "project");
    let text = format!("deleted {name} with its keys and {projects}; {rest}");
    Ok(OperationAnswer::new(&document, text)?.logged_as(format!("namespace delete {name}")))
}
