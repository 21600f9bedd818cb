//! Every operation of owners, one row each: the tool that offers it, its function, the node of several that answers it, and whether
//! it changes something. The tests, the OpenAPI description, the documents and the runner of tools read it.
//!
//! The minimum role is read off the type of the function's second argument, so that the list cannot differ from the check. A row with
//! `changes` names the audit actions that the operation may record; one without only reads.

use std::sync::LazyLock;

use crate::access::{OperationMetadata, OperationPlace, minimum_role};
use crate::control::audit::AuditAction;
use crate::{
    accounts, backends, deployments, envelope, payments, projects, realtime, releases, stats,
    visitor_files, visitors,
};

macro_rules! rows {
    ($($id:literal $($tool:literal $action:literal)? $operation:path, at $place:ident $(, changes [$($act:ident),*])?;)+) => {
        vec![$(OperationMetadata {
            id: $id,
            tool: None$(.or(Some(($tool, $action))))?,
            floor: minimum_role(&$operation),
            place: OperationPlace::$place,
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

/// Returns where an action of a tool is answered. A dry run changes nothing, so the backend's database stays where it is; that of a
/// release looks at the control database, too, and has its `dry_run` in the body of REST.
pub fn tool_place(tool: &str, action: &str, dry_run: bool) -> OperationPlace {
    let row = all().iter().find(|row| row.tool == Some((tool, action)));
    match row.map_or(OperationPlace::Control, |row| row.place) {
        OperationPlace::ControlWithBackend if dry_run && tool == "manage_backend" => {
            OperationPlace::Backend
        }
        place => place,
    }
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
        "create_project" "manage_project" "create" projects::operations::create, at Control, changes [ProjectCreate];
        "list_projects" "manage_project" "list" projects::operations::list, at Control;
        "get_project" "manage_project" "get" envelope::operations::get, at Control;
        "update_project" "manage_project" "update" envelope::operations::update, at Control, changes [ProjectUpdate];
        "delete_project" "manage_project" "delete" envelope::operations::delete, at Control, changes [ProjectDelete];
        "release_project" "manage_project" "release" releases::operations::release, at ControlWithBackend,
            changes [ReleasePublish, BackendCreate, BackendMigrate, BackendDefine, ActionDelete, FrontendCreate, FrontendPublish, FrontendDelete, ProjectUpdate];
        "list_visitors" "manage_project" "visitors" visitors::operations::list, at Control;
        "forget_visitor" "manage_project" "forget_visitor" visitor_files::operations::forget, at Control, changes [VisitorForget];
        "list_files" "manage_backend" "files" visitor_files::operations::list, at Backend;
        "get_file_of_visitor" visitor_files::operations::get, at Backend;
        "delete_file_of_visitor" "manage_backend" "delete_file" visitor_files::operations::delete, at Backend, changes [FileDelete];
        "put_blob" deployments::files::operations::put, at Control, changes [];
        "list_domains" "manage_project" "domains" projects::domains::operations::list, at Control;
        "add_domain" "manage_project" "add_domain" projects::domains::operations::create, at Control, changes [DomainCreate];
        "get_domain" projects::domains::operations::get, at Control;
        "update_domain" projects::domains::operations::update, at Control, changes [DomainUpdate];
        "verify_domain" "manage_project" "verify_domain" projects::domains::operations::verify, at Control, changes [DomainVerify];
        "remove_domain" "manage_project" "remove_domain" projects::domains::operations::delete, at Control, changes [DomainDelete];
        "get_stats" "manage_project" "stats" stats::operations::stats, at Control;
        "list_log" "manage_project" "log" stats::operations::log, at Backend;
        "create_frontend" "manage_frontend" "create" deployments::frontends::operations::create, at Control, changes [FrontendCreate];
        "claim_share" "manage_frontend" "claim" deployments::shares::operations::claim, at Control, changes [FrontendClaim];
        "list_frontends" "manage_frontend" "list" deployments::frontends::operations::list, at Control;
        "get_frontend" "manage_frontend" "get" deployments::frontends::operations::get, at Control;
        "republish_frontend" "manage_frontend" "update" deployments::revisions::operations::republish, at Control, changes [FrontendPublish];
        "delete_frontend" "manage_frontend" "delete" deployments::frontends::operations::delete, at Control, changes [FrontendDelete];
        "get_content" "manage_frontend" "content" deployments::revisions::operations::content, at Control;
        "list_revisions" "manage_frontend" "list_revisions" deployments::revisions::operations::list, at Control;
        "get_revision" "manage_frontend" "get_revision" deployments::revisions::operations::get, at Control;
        "create_revision" "manage_frontend" "create_revision" deployments::revisions::operations::create, at Control, changes [RevisionCreate];
        "promote_revision" "manage_frontend" "promote" deployments::revisions::operations::promote, at Control, changes [RevisionPromote];
        "rollback_revision" "manage_frontend" "rollback" deployments::revisions::operations::rollback, at Control, changes [RevisionRollback];
        "delete_revision" "manage_frontend" "delete_revision" deployments::revisions::operations::delete, at Control, changes [RevisionDelete];
        "put_file" deployments::revisions::sites::operations::put_file, at Control, changes [FrontendPublish];
        "delete_file" deployments::revisions::sites::operations::delete_file, at Control, changes [FrontendPublish];
        "get_file" "manage_frontend" "content" deployments::revisions::sites::operations::get_file, at Control;
        "get_archive" deployments::revisions::sites::operations::get_archive, at Control;
        "list_releases" "manage_frontend" "releases" deployments::revisions::operations::releases, at Control;
        "create_backend" "manage_backend" "create" backends::operations::create, at ControlWithBackend, changes [BackendCreate];
        "get_backend" "manage_backend" "get" backends::operations::get, at Backend;
        "update_backend" "manage_backend" "update" backends::operations::update, at ControlWithBackend, changes [BackendMigrate, BackendUpdate];
        "define_actions" "manage_backend" "update" backends::operations::define, at ControlWithBackend, changes [BackendDefine, ActionDelete];
        "list_actions" backends::operations::list_actions, at Backend;
        "list_action_versions" "manage_backend" "action_versions" backends::operations::action_versions, at Control;
        "rollback_action" "manage_backend" "rollback_action" backends::operations::rollback_action, at ControlWithBackend, changes [ActionRollback];
        "delete_action" "manage_backend" "delete_action" backends::operations::delete_action, at ControlWithBackend, changes [ActionDelete];
        "query_backend" "manage_backend" "query" backends::operations::query, at Backend, changes [BackendQuery];
        "call_actions" "manage_backend" "batch" backends::operations::batch, at Backend, changes [BackendCall];
        "delete_backend" "manage_backend" "delete" backends::operations::delete, at Control, changes [BackendDelete];
        "list_backend_history" "manage_backend" "history" backends::operations::history, at Backend;
        "restore_backend" "manage_backend" "restore" backends::operations::restore, at ControlWithBackend, changes [BackendRestore];
        "export_backend" "manage_backend" "export" backends::operations::export, at Backend;
        "list_rooms" "manage_backend" "rooms" realtime::operations::list, at Backend;
        "send_to_room" "manage_backend" "send" realtime::operations::send, at Backend, changes [];
        "list_catalog" "manage_payments" "catalog" payments::operations::catalog, at Control;
        "add_price" "manage_payments" "add_price" payments::operations::add_price, at Control, changes [PriceCreate, PriceDeactivate];
        "deactivate_price" "manage_payments" "deactivate_price" payments::operations::deactivate_price, at Control, changes [PriceDeactivate];
        "list_sessions" "manage_payments" "sessions" payments::operations::sessions, at Control;
        "get_me" accounts::operations::me, at Control;
        "list_workspaces" "manage_workspace" "list" accounts::operations::list, at Control;
        "create_workspace" "manage_workspace" "create" accounts::operations::create, at Control, changes [WorkspaceCreate];
        "get_workspace" "manage_workspace" "get" accounts::operations::get, at Control;
        "update_workspace" "manage_workspace" "update" accounts::operations::update, at Control, changes [WorkspaceUpdate];
        "delete_workspace" "manage_workspace" "delete" accounts::operations::delete, at Control, changes [WorkspaceDelete];
        "list_members" "manage_workspace" "members" accounts::operations::members, at Control;
        "add_member" "manage_workspace" "add_member" accounts::operations::add_member, at Control, changes [MemberAdd];
        "set_role" "manage_workspace" "set_role" accounts::operations::set_role, at Control, changes [MemberUpdate];
        "remove_member" "manage_workspace" "remove_member" accounts::operations::remove_member, at Control, changes [MemberRemove];
        "list_keys" accounts::operations::keys, at Control;
        "create_key" accounts::operations::create_key, at Control, changes [KeyCreate];
        "revoke_key" accounts::operations::revoke_key, at Control, changes [KeyRevoke];
        "list_audit" accounts::audit::operations::list, at Control;
        "buy_plan" accounts::operations::checkout, at Control, changes [];
        "manage_plan" accounts::operations::portal, at Control, changes [];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_action_of_a_tool_has_one_place() {
        for row in all() {
            if let Some((tool, action)) = row.tool {
                assert_eq!(tool_place(tool, action, false), row.place, "{}", row.id);
            }
        }
        for (action, dry_run, place) in [
            ("batch", false, OperationPlace::Backend),
            ("get", false, OperationPlace::Backend),
            ("update", false, OperationPlace::ControlWithBackend),
            ("update", true, OperationPlace::Backend),
            ("delete", true, OperationPlace::Control),
            ("unknown", false, OperationPlace::Control),
        ] {
            assert_eq!(
                tool_place("manage_backend", action, dry_run),
                place,
                "{action}"
            );
        }
    }
}
