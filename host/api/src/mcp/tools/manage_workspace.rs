//! `manage_workspace`: workspaces and their members.

use rmcp::model::Tool as Description;
use serde_json::{Value, json};

use super::{ToolDataRisk, ToolSession, deletion_result, describe, string_argument, to_json};
use crate::access::{CallerChoosingWorkspace, MinimumRole};
use crate::accounts::operations;
use crate::accounts::requests::ListWorkspacesQuery;
use crate::accounts::scope::{AuthorizedWorkspace, UserCaller};
use crate::control::kept_answers::AnswerRecorder;
use crate::http::problem::Problem;
use crate::mcp::arguments::{ToolAction as _, ToolArguments, actions};

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

const TOOL_DESCRIPTION: &str = "Workspaces: who owns projects together. \
Roles: viewer reads; editor changes projects; admin also members and display_name; owner also plan and deletion. \
list: yours. get, members. create: you own it; a key cannot. update: display_name, plan. \
add_member, set_role, remove_member: from that user's next request on; nobody gives or takes a role above their own. \
delete: for good, with all projects; ask the user first.";

pub(super) fn description() -> Description {
    let arguments = json!({
        "action": { "type": "string", "enum": Action::names() },
        "workspace": string_argument("All but list and create (required): id or slug."),
        "display_name": string_argument("create (required), update: for people."),
        "slug": string_argument("create: for addresses; made of display_name if absent."),
        "plan": { "type": "string", "enum": ["free", "pro"], "description": "update: only free can be set; pro is bought." },
        "user_id": string_argument("*_member, set_role (required): usr_…, shown by GET /api/v1/me."),
        "role": { "type": "string", "enum": ["owner", "admin", "editor", "viewer"], "description": "add_member, set_role (required)." },
    });
    describe(
        "manage_workspace",
        TOOL_DESCRIPTION,
        ToolDataRisk::Destructive,
        &arguments,
        &["action"],
    )
}

pub(super) async fn call(
    session: ToolSession,
    wanted: Action,
    mut arguments: ToolArguments,
) -> Result<Value, Problem> {
    let accounts = session.services.accounts.clone();
    let given = &mut arguments;
    match wanted {
        Action::List => {
            let ListWorkspacesQuery {} = arguments.parse_rest()?;
            let by = CallerChoosingWorkspace::new(accounts.workspaces(), session.caller).await?;
            to_json(operations::list(accounts, by).await?)
        }
        Action::Create => {
            let (by, input) = (
                UserCaller::require(session.caller)?,
                arguments.parse_rest()?,
            );
            to_json(operations::create(accounts, by, input, AnswerRecorder::none()).await?)
        }
        Action::Get => {
            let at = session.require_named_workspace(given).await?;
            arguments.expect_none_left()?;
            to_json(operations::get(accounts, at).await?)
        }
        Action::Update => {
            let at = session.require_named_workspace(given).await?;
            to_json(operations::update(accounts, at, arguments.parse_rest()?).await?)
        }
        Action::Delete => {
            let at = session.require_named_workspace(given).await?;
            arguments.expect_none_left()?;
            deletion_result(operations::delete(accounts, at).await)
        }
        Action::Members => {
            let at = session.require_named_workspace(given).await?;
            arguments.expect_none_left()?;
            to_json(operations::members(accounts, at).await?)
        }
        Action::AddMember => {
            let at = session.require_named_workspace(given).await?;
            let (input, keep) = (arguments.parse_rest()?, AnswerRecorder::none());
            to_json(operations::add_member(accounts, at, input, keep).await?)
        }
        Action::SetRole => {
            let at = session.require_named_workspace(given).await?;
            let input = (arguments.required_text("user_id")?, arguments.parse_rest()?);
            to_json(operations::set_role(accounts, at, input).await?)
        }
        Action::RemoveMember => {
            let at = session.require_named_workspace(given).await?;
            let member = arguments.required_text("user_id")?;
            arguments.expect_none_left()?;
            deletion_result(operations::remove_member(accounts, at, member).await)
        }
    }
}

impl ToolSession {
    /// Finds the workspace that the arguments name, and checks the caller's role.
    async fn require_named_workspace<F: MinimumRole>(
        &self,
        arguments: &mut ToolArguments,
    ) -> Result<AuthorizedWorkspace<F>, Problem> {
        let name = arguments.required_text("workspace")?;
        let workspaces = self.services.accounts.workspaces();
        Ok(AuthorizedWorkspace::find(workspaces, &self.caller, &name).await?)
    }
}
