//! `svc visitors list|forget`.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use serde_json::json;

use super::Operate;
use super::actor::deed;
use super::table::table;
use crate::clock::Clock;
use crate::control::Control;
use crate::ids::ProjectId;
use crate::overview;
use crate::visitors::operate;
use crate::visitors::views::VisitorView;

/// Visitors that a list has at most, if the command does not say.
const MOST: u32 = 1_000;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Visitors {
    /// List the visitors who have signed in to a project, newest first
    List {
        /// The project's id, or the first part of its origin
        project: String,
        /// How many at most
        #[arg(long, default_value_t = MOST)]
        limit: u32,
        #[command(flatten)]
        operate: Operate,
    },
    /// Erase what is known of a visitor, and end the visitor's sessions
    Forget {
        /// The project's id, or the first part of its origin
        project: String,
        /// The visitor's id (usr_…)
        user_id: String,
        #[command(flatten)]
        operate: Operate,
    },
}

impl Visitors {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::List {
                project,
                limit,
                operate,
            } => list(&operate, &project, limit).await,
            Self::Forget {
                project,
                user_id,
                operate,
            } => forget(&operate, &project, user_id).await,
        }
    }
}

async fn list(operate: &Operate, project: &str, limit: u32) -> anyhow::Result<ExitCode> {
    let control = operate.control()?;
    let project = named(&control, project).await?;
    let found = operate::list(&control, project, limit).await?;
    let found: Vec<VisitorView> = found.into_iter().map(Into::into).collect();
    let dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let rows = found.iter().map(|one| {
        [
            one.id.clone(),
            dash(&one.name),
            dash(&one.email),
            one.provider.clone(),
            one.created_at.to_string(),
            one.last_seen_at.to_string(),
        ]
    });
    let head = ["id", "name", "email", "provider", "created", "last seen"];
    let text = table(head, rows);
    operate.answer(&json!({ "visitors": found }), &text)
}

async fn forget(operate: &Operate, project: &str, user_id: String) -> anyhow::Result<ExitCode> {
    let control = operate.control()?;
    let project = named(&control, project).await?;
    let command = format!("visitors forget {project} {user_id}");
    let now = Clock::system().now();
    let gone = operate::forget(&control, project, user_id.clone(), now, deed(command)).await?;
    if !gone {
        bail!(
            "the project has no visitor `{user_id}`: `svc visitors list {project}` has their ids"
        );
    }
    operate.answer(&json!({ "id": user_id }), &format!("forgot {user_id}"))
}

/// The project that an operator names.
async fn named(control: &Control, named: &str) -> anyhow::Result<ProjectId> {
    let projects = overview::projects(control, Clock::system().now(), None).await?;
    let mut projects = projects.into_iter();
    let found = projects.find(|one| one.id.to_string() == named || one.host_label == named);
    let found = found
        .with_context(|| format!("there is no project `{named}`: name its id or its label"))?;
    Ok(found.id)
}
