//! `svc visitors list|forget`.

use anyhow::bail;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::installation::{Installation, OperationAnswer};
use crate::terminal::table;
use crate::visitors::operators;
use crate::visitors::views::VisitorView;

/// Default length of a list.
const DEFAULT_LIMIT: u32 = 1_000;

#[derive(Debug, clap::Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VisitorsOperation {
    /// List the visitors who have signed in to a project, newest first
    List {
        /// The project's id, or the first part of its origin
        project: String,
        /// How many at most
        #[arg(long, default_value_t = DEFAULT_LIMIT)]
        limit: u32,
    },
    /// Erase what is known of a visitor, and end the visitor's sessions
    Forget {
        /// The project's id, or the first part of its origin
        project: String,
        /// The visitor's id (usr_…)
        user_id: String,
    },
}

impl VisitorsOperation {
    pub(super) async fn run(self, at: &Installation) -> anyhow::Result<OperationAnswer> {
        match self {
            Self::List { project, limit } => list(at, &project, limit).await,
            Self::Forget { project, user_id } => forget(at, &project, user_id).await,
        }
    }
}

async fn list(at: &Installation, project: &str, limit: u32) -> anyhow::Result<OperationAnswer> {
    let project = at.project(project).await?;
    let found = operators::list(&at.control, project, limit).await?;
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
    OperationAnswer::new(&json!({ "visitors": found }), text)
}

async fn forget(
    at: &Installation,
    project: &str,
    user_id: String,
) -> anyhow::Result<OperationAnswer> {
    let (project, now) = (at.project(project).await?, at.clock.now());
    if !operators::forget(&at.control, project, user_id.clone(), now).await? {
        bail!(
            "the project has no visitor `{user_id}`: `svc visitors list {project}` has their ids"
        );
    }
    let answer = OperationAnswer::new(&json!({ "id": user_id }), format!("forgot {user_id}"))?;
    Ok(answer.logged_as(format!("visitors forget {project} {user_id}")))
}
