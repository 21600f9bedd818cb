//! `manage_workspace`: who works together.

use rmcp::model::Tool as Description;
use serde_json::{Value, json};

use super::{Harm, Session, answer, deleted, describe, string};
use crate::access::{MinimumRole, WorkspaceChooser};
use crate::accounts::operations;
use crate::accounts::requests::ListWorkspaces;
use crate::accounts::scope::{UserScope, WorkspaceScope};
use crate::control::kept_answers::AnswerKeeper;
use crate::http::problem::Problem;
use crate::mcp::arguments::{Action as _, Arguments, actions};

actions!(Action {
    List "list",
    Get "get",
    Create "create",
    Update "update",
    Delete "delete",
    Members "members",
    AddMember "add_member",
    SetRole "set_role",
    RemoveMember "remove_member",
});

const ABOUT: &str = "Workspaces: who owns projects together. \
Roles: viewer reads; editor changes projects; admin also members and display_name; owner also plan and deletion. \
list: yours. get, members. create: you own it; a key cannot. update: display_name, plan. \
add_member, set_role, remove_member: from that user's next request on; nobody gives or takes a role above their own. \
delete: for good, with all projects; ask the user first.";

pub(super) fn description() -> Description {
    let arguments = json!({
        "action": { "type": "string", "enum": Action::names() },
        "workspace": string("All but list and create (required): id or slug."),
        "display_name": string("create (required), update: for people."),
        "slug": string("create: for addresses; made of display_name if absent."),
        "plan": { "type": "string", "enum": ["free", "pro"], "description": "update: only free can be set; pro is bought." },
        "user_id": string("add_member, set_role, remove_member (required): usr_…, shown by GET /api/v1/me."),
        "role": { "type": "string", "enum": ["owner", "admin", "editor", "viewer"], "description": "add_member, set_role (required)." },
    });
    describe(
        "manage_workspace",
        ABOUT,
        Harm::Can,
        &arguments,
        &["action"],
    )
}

pub(super) async fn call(
    session: Session,
    wanted: Action,
    mut arguments: Arguments,
) -> Result<Value, Problem> {
    let accounts = session.services.accounts.clone();
    let given = &mut arguments;
    match wanted {
        Action::List => {
            let ListWorkspaces {} = arguments.rest()?;
            let by = WorkspaceChooser::new(accounts.workspaces(), session.caller).await?;
            answer(operations::list(accounts, by).await?)
        }
        Action::Create => {
            let (by, input) = (UserScope::of(session.caller)?, arguments.rest()?);
            answer(operations::create(accounts, by, input, AnswerKeeper::none()).await?)
        }
        Action::Get => {
            let at = session.workspace(given).await?;
            arguments.none()?;
            answer(operations::get(accounts, at).await?)
        }
        Action::Update => {
            let at = session.workspace(given).await?;
            answer(operations::update(accounts, at, arguments.rest()?).await?)
        }
        Action::Delete => {
            let at = session.workspace(given).await?;
            arguments.none()?;
            deleted(operations::delete(accounts, at).await)
        }
        Action::Members => {
            let at = session.workspace(given).await?;
            arguments.none()?;
            answer(operations::members(accounts, at).await?)
        }
        Action::AddMember => {
            let at = session.workspace(given).await?;
            let (input, keep) = (arguments.rest()?, AnswerKeeper::none());
            answer(operations::add_member(accounts, at, input, keep).await?)
        }
        Action::SetRole => {
            let at = session.workspace(given).await?;
            let input = (arguments.text("user_id")?, arguments.rest()?);
            answer(operations::set_role(accounts, at, input).await?)
        }
        Action::RemoveMember => {
            let at = session.workspace(given).await?;
            let member = arguments.text("user_id")?;
            arguments.none()?;
            deleted(operations::remove_member(accounts, at, member).await)
        }
    }
}

impl Session {
    /// A workspace that the caller has a role in.
    async fn workspace<F: MinimumRole>(
        &self,
        arguments: &mut Arguments,
    ) -> Result<WorkspaceScope<F>, Problem> {
        let name = arguments.text("workspace")?;
        let workspaces = self.services.accounts.workspaces();
        Ok(WorkspaceScope::find(workspaces, &self.caller, &name).await?)
    }
}
