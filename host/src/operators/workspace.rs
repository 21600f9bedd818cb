//! `svc workspace member add|list|remove`.

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::installation::{Installation, OperationAnswer};
use crate::accounts::views::{MemberList, MemberView};
use crate::control::kept_answers::AnswerRecorder;
use crate::terminal::table;
use crate::workspaces::{Role, UserId, WorkspaceError};

#[derive(Debug, clap::Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceOperation {
    /// List, add and remove the members of a workspace
    #[command(subcommand)]
    Member(MemberOperation),
}

#[derive(Debug, clap::Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberOperation {
    /// Add a user to a workspace, or give a member another role
    Add {
        /// The workspace, by its name or id
        workspace: String,
        /// The user's id (usr_…), which `GET /api/v1/me` shows to the user
        user_id: String,
        /// Role of the user in the workspace
        #[arg(long, value_enum)]
        role: Role,
    },
    /// List the members of a workspace, oldest first
    List {
        /// The workspace, by its name or id
        workspace: String,
    },
    /// Remove a member: the next request of that user is refused
    Remove {
        /// The workspace, by its name or id
        workspace: String,
        /// The user's id (usr_…)
        user_id: String,
    },
}

impl WorkspaceOperation {
    pub(super) async fn run(self, at: &Installation) -> anyhow::Result<OperationAnswer> {
        let Self::Member(member) = self;
        match member {
            MemberOperation::Add {
                workspace,
                user_id,
                role,
            } => add(at, &workspace, &user_id, role).await,
            MemberOperation::List { workspace } => list(at, &workspace).await,
            MemberOperation::Remove { workspace, user_id } => {
                remove(at, &workspace, &user_id).await
            }
        }
    }
}

async fn add(
    at: &Installation,
    workspace: &str,
    user_id: &str,
    role: Role,
) -> anyhow::Result<OperationAnswer> {
    let (workspaces, user) = (at.workspaces(), parse_user_id(user_id)?);
    let id = workspaces.find(workspace).await?.id;
    let added = workspaces
        .add_member(id, None, (user, role), AnswerRecorder::none())
        .await;
    let member = match added {
        Err(WorkspaceError::UnknownUser(user)) => bail!(
            "there is no user `{user}`: a person becomes one by calling this service once with a token of the issuer in `[oauth]`"
        ),
        Err(WorkspaceError::LastOwner) => return refuse_last_owner_change(workspace, user_id),
        added => MemberView::from(added?),
    };
    let text = format!("{user_id} is {} of {workspace}", role.as_str());
    let command = format!(
        "workspace member add {workspace} {user_id} --role {}",
        role.as_str()
    );
    Ok(OperationAnswer::new(&member, text)?.logged_as(command))
}

async fn list(at: &Installation, workspace: &str) -> anyhow::Result<OperationAnswer> {
    let workspaces = at.workspaces();
    let id = workspaces.find(workspace).await?.id;
    let members = workspaces.members(id).await?;
    let rows = members.iter().map(|member| {
        [
            member.user.to_string(),
            member.role.as_str().to_owned(),
            member.email.clone().unwrap_or_else(|| "-".to_owned()),
            member.created_at.to_string(),
        ]
    });
    let text = table(["user", "role", "email", "since"], rows);
    OperationAnswer::new(&MemberList::from(members), text)
}

async fn remove(
    at: &Installation,
    workspace: &str,
    user_id: &str,
) -> anyhow::Result<OperationAnswer> {
    let (workspaces, user) = (at.workspaces(), parse_user_id(user_id)?);
    let id = workspaces.find(workspace).await?.id;
    match workspaces.remove_member(id, None, user).await {
        Err(WorkspaceError::LastOwner) => return refuse_last_owner_change(workspace, user_id),
        removed => removed?,
    }
    let document = json!({ "user_id": user_id, "removed": true });
    let answer = OperationAnswer::new(&document, format!("removed {user_id} from {workspace}"))?;
    Ok(answer.logged_as(format!("workspace member remove {workspace} {user_id}")))
}

/// Refuses a change that would leave a workspace without an owner.
fn refuse_last_owner_change(workspace: &str, user_id: &str) -> anyhow::Result<OperationAnswer> {
    bail!("{user_id} is the last owner of {workspace}: make somebody else an owner first")
}

/// Parses the id of a user.
fn parse_user_id(id: &str) -> anyhow::Result<UserId> {
    let read = id.parse().ok();
    read.with_context(|| {
        format!(
            "`{id}` is no user's id: it begins with usr_, and `GET /api/v1/me` shows it to the user"
        )
    })
}
