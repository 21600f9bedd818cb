//! Every operation of owners, with the tool that offers it and the least role that it takes: one list, which the tests, the
//! OpenAPI description and the documents read.
//!
//! A floor is read off the type of the operation's second argument, so that the list cannot say anything else than what is
//! checked. Behind the arrow stands what the operation leaves in the audit; a test runs each and looks.

use crate::access::{Row, floor};
use crate::control::audit::Act;
use crate::{accounts, backends, deployments, envelope, projects, realtime};

macro_rules! rows {
    ($($id:literal $([$tool:literal $action:literal])? $operation:path $(=> $($act:ident)+)?;)+) => {
        vec![$(Row {
            id: $id,
            tool: None$(.or(Some(($tool, $action))))?,
            floor: floor(&$operation),
            acts: &[$($(Act::$act,)+)?],
        },)+]
    };
}

/// All operations, by their ids in the OpenAPI description.
pub fn all() -> Vec<Row> {
    rows! {
        "create_project" ["manage_project" "create"] projects::operations::create => ProjectCreate;
        "list_projects" ["manage_project" "list"] projects::operations::list;
        "get_project" ["manage_project" "get"] envelope::operations::get;
        "update_project" ["manage_project" "update"] projects::operations::update => ProjectUpdate;
        "delete_project" ["manage_project" "delete"] envelope::operations::delete => ProjectDelete;
        "create_frontend" ["manage_frontend" "create"] deployments::frontends::operations::create => FrontendCreate;
        "claim_share" ["manage_frontend" "claim"] deployments::sharing::operations::claim => FrontendClaim;
        "list_frontends" ["manage_frontend" "list"] deployments::frontends::operations::list;
        "get_frontend" ["manage_frontend" "get"] deployments::frontends::operations::get;
        "republish_frontend" ["manage_frontend" "update"] deployments::frontends::operations::republish => FrontendPublish;
        "delete_frontend" ["manage_frontend" "delete"] deployments::frontends::operations::delete => FrontendDelete;
        "get_content" ["manage_frontend" "content"] deployments::frontends::operations::content;
        "list_revisions" ["manage_frontend" "list_revisions"] deployments::revisions::operations::list;
        "get_revision" ["manage_frontend" "get_revision"] deployments::revisions::operations::get;
        "create_revision" ["manage_frontend" "create_revision"] deployments::revisions::operations::create => RevisionCreate;
        "promote_revision" ["manage_frontend" "promote"] deployments::revisions::operations::promote => RevisionPromote;
        "rollback_revision" ["manage_frontend" "rollback"] deployments::revisions::operations::rollback => RevisionRollback;
        "list_releases" ["manage_frontend" "releases"] deployments::revisions::operations::releases;
        "create_backend" ["manage_backend" "create"] backends::operations::create => BackendCreate;
        "get_backend" ["manage_backend" "get"] backends::operations::get;
        "update_backend" ["manage_backend" "update"] backends::operations::update => BackendMigrate BackendUpdate;
        "define_actions" ["manage_backend" "update"] backends::operations::define => BackendDefine;
        "delete_backend" ["manage_backend" "delete"] backends::operations::delete => BackendDelete;
        "list_backend_history" ["manage_backend" "history"] backends::operations::history;
        "restore_backend" ["manage_backend" "restore"] backends::operations::restore => BackendRestore;
        "export_backend" ["manage_backend" "export"] backends::operations::export;
        "list_rooms" ["manage_backend" "rooms"] realtime::operations::list;
        "send_to_room" ["manage_backend" "send"] realtime::operations::send;
        "get_me" accounts::operations::me;
        "list_workspaces" ["manage_workspace" "list"] accounts::operations::list;
        "create_workspace" ["manage_workspace" "create"] accounts::operations::create => WorkspaceCreate;
        "get_workspace" ["manage_workspace" "get"] accounts::operations::get;
        "update_workspace" ["manage_workspace" "update"] accounts::operations::update => WorkspaceUpdate;
        "delete_workspace" ["manage_workspace" "delete"] accounts::operations::delete => WorkspaceDelete;
        "list_members" ["manage_workspace" "members"] accounts::operations::members;
        "add_member" ["manage_workspace" "add_member"] accounts::operations::add_member => MemberAdd;
        "set_role" ["manage_workspace" "set_role"] accounts::operations::set_role => MemberUpdate;
        "remove_member" ["manage_workspace" "remove_member"] accounts::operations::remove_member => MemberRemove;
        "list_keys" accounts::operations::keys;
        "create_key" accounts::operations::create_key => KeyCreate;
        "list_audit" accounts::audit::operations::list;
        "revoke_key" accounts::operations::revoke_key => KeyRevoke;
    }
}
