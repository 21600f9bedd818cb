//! Every operation of owners, with the tool that offers it and the least role that it takes: one list, which the tests, the
//! OpenAPI description and the documents read.
//!
//! A floor is read off the type of the operation's second argument, so that the list cannot say anything else than what is
//! checked.

use crate::access::{Row, floor};
use crate::control::audit::Act;
use crate::{accounts, backends, deployments, envelope, payments, projects, realtime, visitors};

macro_rules! rows {
    ($($id:literal $($tool:literal $action:literal)? $operation:path;)+) => {
        vec![$(Row {
            id: $id,
            tool: None$(.or(Some(($tool, $action))))?,
            floor: floor(&$operation),
            acts: acts($id),
        },)+]
    };
}

/// All operations, by their ids in the OpenAPI description.
pub fn all() -> Vec<Row> {
    rows! {
        "create_project" "manage_project" "create" projects::operations::create;
        "list_projects" "manage_project" "list" projects::operations::list;
        "get_project" "manage_project" "get" envelope::operations::get;
        "update_project" "manage_project" "update" projects::operations::update;
        "delete_project" "manage_project" "delete" envelope::operations::delete;
        "list_visitors" "manage_project" "visitors" visitors::operations::list;
        "forget_visitor" "manage_project" "forget_visitor" visitors::operations::forget;
        "create_frontend" "manage_frontend" "create" deployments::frontends::operations::create;
        "claim_share" "manage_frontend" "claim" deployments::sharing::operations::claim;
        "list_frontends" "manage_frontend" "list" deployments::frontends::operations::list;
        "get_frontend" "manage_frontend" "get" deployments::frontends::operations::get;
        "republish_frontend" "manage_frontend" "update" deployments::frontends::operations::republish;
        "delete_frontend" "manage_frontend" "delete" deployments::frontends::operations::delete;
        "get_content" "manage_frontend" "content" deployments::frontends::operations::content;
        "list_revisions" "manage_frontend" "list_revisions" deployments::revisions::operations::list;
        "get_revision" "manage_frontend" "get_revision" deployments::revisions::operations::get;
        "create_revision" "manage_frontend" "create_revision" deployments::revisions::operations::create;
        "promote_revision" "manage_frontend" "promote" deployments::revisions::operations::promote;
        "rollback_revision" "manage_frontend" "rollback" deployments::revisions::operations::rollback;
        "list_releases" "manage_frontend" "releases" deployments::revisions::operations::releases;
        "create_backend" "manage_backend" "create" backends::operations::create;
        "get_backend" "manage_backend" "get" backends::operations::get;
        "update_backend" "manage_backend" "update" backends::operations::update;
        "define_actions" "manage_backend" "update" backends::operations::define;
        "delete_backend" "manage_backend" "delete" backends::operations::delete;
        "list_backend_history" "manage_backend" "history" backends::operations::history;
        "restore_backend" "manage_backend" "restore" backends::operations::restore;
        "export_backend" "manage_backend" "export" backends::operations::export;
        "list_rooms" "manage_backend" "rooms" realtime::operations::list;
        "send_to_room" "manage_backend" "send" realtime::operations::send;
        "list_catalog" "manage_payments" "catalog" payments::operations::catalog;
        "add_price" "manage_payments" "add_price" payments::operations::add_price;
        "deactivate_price" "manage_payments" "deactivate_price" payments::operations::deactivate_price;
        "list_sessions" "manage_payments" "sessions" payments::operations::sessions;
        "get_me" accounts::operations::me;
        "list_workspaces" "manage_workspace" "list" accounts::operations::list;
        "create_workspace" "manage_workspace" "create" accounts::operations::create;
        "get_workspace" "manage_workspace" "get" accounts::operations::get;
        "update_workspace" "manage_workspace" "update" accounts::operations::update;
        "delete_workspace" "manage_workspace" "delete" accounts::operations::delete;
        "list_members" "manage_workspace" "members" accounts::operations::members;
        "add_member" "manage_workspace" "add_member" accounts::operations::add_member;
        "set_role" "manage_workspace" "set_role" accounts::operations::set_role;
        "remove_member" "manage_workspace" "remove_member" accounts::operations::remove_member;
        "list_keys" accounts::operations::keys;
        "create_key" accounts::operations::create_key;
        "revoke_key" accounts::operations::revoke_key;
        "list_audit" accounts::audit::operations::list;
        "buy_plan" accounts::operations::checkout;
        "manage_plan" accounts::operations::portal;
    }
}

/// Lists the entries that an operation leaves in the audit, by its id: one for each change that it makes. A test runs
/// every operation and looks; one that is not here leaves none.
fn acts(id: &str) -> &'static [Act] {
    match id {
        "create_project" => &[Act::ProjectCreate],
        "update_project" => &[Act::ProjectUpdate],
        "delete_project" => &[Act::ProjectDelete],
        "forget_visitor" => &[Act::VisitorForget],
        "create_frontend" => &[Act::FrontendCreate],
        "claim_share" => &[Act::FrontendClaim],
        "republish_frontend" => &[Act::FrontendPublish],
        "delete_frontend" => &[Act::FrontendDelete],
        "create_revision" => &[Act::RevisionCreate],
        "promote_revision" => &[Act::RevisionPromote],
        "rollback_revision" => &[Act::RevisionRollback],
        "create_backend" => &[Act::BackendCreate],
        "update_backend" => &[Act::BackendMigrate, Act::BackendUpdate],
        "define_actions" => &[Act::BackendDefine],
        "delete_backend" => &[Act::BackendDelete],
        "restore_backend" => &[Act::BackendRestore],
        "add_price" => &[Act::PriceCreate],
        "deactivate_price" => &[Act::PriceDeactivate],
        "create_workspace" => &[Act::WorkspaceCreate],
        "update_workspace" => &[Act::WorkspaceUpdate],
        "delete_workspace" => &[Act::WorkspaceDelete],
        "add_member" => &[Act::MemberAdd],
        "set_role" => &[Act::MemberUpdate],
        "remove_member" => &[Act::MemberRemove],
        "create_key" => &[Act::KeyCreate],
        "revoke_key" => &[Act::KeyRevoke],
        _ => &[],
    }
}
