//! Every operation of owners, one row each: the tool that offers it, its function, and whether it changes something. The tests, the
//! OpenAPI description, the documents and the runner of tools read it.
//!
//! The minimum role is read off the type of the function's second argument, so that the list cannot differ from the check. A row with
//! `changes` names the audit actions that the operation may record; one without only reads.

use std::sync::LazyLock;

use crate::access::{OperationMetadata, minimum_role};
use crate::control::audit::AuditAction;
use crate::{accounts, backends, deployments, envelope, payments, projects, realtime, visitors};

macro_rules! rows {
    ($($id:literal $($tool:literal $action:literal)? $operation:path $(, changes [$($act:ident),*])?;)+) => {
        vec![$(OperationMetadata {
            id: $id,
            tool: None$(.or(Some(($tool, $action))))?,
            floor: minimum_role(&$operation),
            audit_actions: audit_actions!($([$($act)*])?),
            changes: changes!($([$($act)*])?),
        },)+]
    };
}

macro_rules! audit_actions {
    () => { &[] };
    ([$($act:ident)*]) => { &[$(AuditAction::$act),*] };
}

macro_rules! changes {
    () => {
        false
    };
    ([$($act:ident)*]) => {
        true
    };
}

/// Returns all operations, by their ids in the OpenAPI description.
pub fn all() -> &'static [OperationMetadata] {
    static ROWS: LazyLock<Vec<OperationMetadata>> = LazyLock::new(rows);
    &ROWS
}

/// Whether an action of a tool runs only operations that read. An unknown action is taken to change something.
pub fn only_reads(tool: &str, action: &str) -> bool {
    let mut rows = all()
        .iter()
        .filter(|row| row.tool == Some((tool, action)))
        .peekable();
    rows.peek().is_some() && rows.all(|row| !row.changes)
}

fn rows() -> Vec<OperationMetadata> {
    rows! {
        "create_project" "manage_project" "create" projects::operations::create, changes [ProjectCreate];
        "list_projects" "manage_project" "list" projects::operations::list;
        "get_project" "manage_project" "get" envelope::operations::get;
        "update_project" "manage_project" "update" envelope::operations::update, changes [ProjectUpdate];
        "delete_project" "manage_project" "delete" envelope::operations::delete, changes [ProjectDelete];
        "list_visitors" "manage_project" "visitors" visitors::operations::list;
        "forget_visitor" "manage_project" "forget_visitor" visitors::operations::forget, changes [VisitorForget];
        "create_frontend" "manage_frontend" "create" deployments::frontends::operations::create, changes [FrontendCreate];
        "claim_share" "manage_frontend" "claim" deployments::shares::operations::claim, changes [FrontendClaim];
        "list_frontends" "manage_frontend" "list" deployments::frontends::operations::list;
        "get_frontend" "manage_frontend" "get" deployments::frontends::operations::get;
        "republish_frontend" "manage_frontend" "update" deployments::revisions::operations::republish, changes [FrontendPublish];
        "delete_frontend" "manage_frontend" "delete" deployments::frontends::operations::delete, changes [FrontendDelete];
        "get_content" "manage_frontend" "content" deployments::revisions::operations::content;
        "list_revisions" "manage_frontend" "list_revisions" deployments::revisions::operations::list;
        "get_revision" "manage_frontend" "get_revision" deployments::revisions::operations::get;
        "create_revision" "manage_frontend" "create_revision" deployments::revisions::operations::create, changes [RevisionCreate];
        "promote_revision" "manage_frontend" "promote" deployments::revisions::operations::promote, changes [RevisionPromote];
        "rollback_revision" "manage_frontend" "rollback" deployments::revisions::operations::rollback, changes [RevisionRollback];
        "list_releases" "manage_frontend" "releases" deployments::revisions::operations::releases;
        "create_backend" "manage_backend" "create" backends::operations::create, changes [BackendCreate];
        "get_backend" "manage_backend" "get" backends::operations::get;
        "update_backend" "manage_backend" "update" backends::operations::update, changes [BackendMigrate, BackendUpdate];
        "define_actions" "manage_backend" "update" backends::operations::define, changes [BackendDefine];
        "delete_backend" "manage_backend" "delete" backends::operations::delete, changes [BackendDelete];
        "list_backend_history" "manage_backend" "history" backends::operations::history;
        "restore_backend" "manage_backend" "restore" backends::operations::restore, changes [BackendRestore];
        "export_backend" "manage_backend" "export" backends::operations::export;
        "list_rooms" "manage_backend" "rooms" realtime::operations::list;
        "send_to_room" "manage_backend" "send" realtime::operations::send, changes [];
        "list_catalog" "manage_payments" "catalog" payments::operations::catalog;
        "add_price" "manage_payments" "add_price" payments::operations::add_price, changes [PriceCreate];
        "deactivate_price" "manage_payments" "deactivate_price" payments::operations::deactivate_price, changes [PriceDeactivate];
        "list_sessions" "manage_payments" "sessions" payments::operations::sessions;
        "get_me" accounts::operations::me;
        "list_workspaces" "manage_workspace" "list" accounts::operations::list;
        "create_workspace" "manage_workspace" "create" accounts::operations::create, changes [WorkspaceCreate];
        "get_workspace" "manage_workspace" "get" accounts::operations::get;
        "update_workspace" "manage_workspace" "update" accounts::operations::update, changes [WorkspaceUpdate];
        "delete_workspace" "manage_workspace" "delete" accounts::operations::delete, changes [WorkspaceDelete];
        "list_members" "manage_workspace" "members" accounts::operations::members;
        "add_member" "manage_workspace" "add_member" accounts::operations::add_member, changes [MemberAdd];
        "set_role" "manage_workspace" "set_role" accounts::operations::set_role, changes [MemberUpdate];
        "remove_member" "manage_workspace" "remove_member" accounts::operations::remove_member, changes [MemberRemove];
        "list_keys" accounts::operations::keys;
        "create_key" accounts::operations::create_key, changes [KeyCreate];
        "revoke_key" accounts::operations::revoke_key, changes [KeyRevoke];
        "list_audit" accounts::audit::operations::list;
        "buy_plan" accounts::operations::checkout, changes [];
        "manage_plan" accounts::operations::portal, changes [];
    }
}
