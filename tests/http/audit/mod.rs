//! The audit: each change leaves exactly one entry, whichever door it came through, and nothing else leaves any.

mod crashes;
mod pages;
pub(crate) mod rows;
mod walk;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use svc::control::audit;
use svc::operations;
use svc_base::ids::WorkspaceId;
use svc_tests::{NOW, TestServer};

use self::walk::OperationsWalk;

const PROJECTS: &str = "/api/v1/projects";

const WORKSPACES: &str = "/api/v1/workspaces";

/// All entries of a workspace, newest first, whether or not it is there.
async fn entries(server: &TestServer, workspace: &str) -> Vec<Value> {
    let control = &server.server().app().control;
    let workspace: WorkspaceId = workspace.parse().unwrap();
    let found = audit::list_entries(control, Some(workspace), None, 1_000, NOW).await;
    let found = found.unwrap().entries;
    found.iter().map(|entry| json!(entry)).collect()
}

/// Operations that lead to the payment provider's pages and change nothing here: its events do.
const CHECKOUT_OPERATIONS: [&str; 2] = ["buy_plan", "manage_plan"];

#[tokio::test]
async fn every_operation_that_changes_something_leaves_one_entry() {
    for as_tools in [false, true] {
        let walk = OperationsWalk::run(as_tools).await;
        let all: BTreeSet<_> = operations::all().iter().map(|row| row.id).collect();
        let run: BTreeSet<_> = CHECKOUT_OPERATIONS.into_iter().chain(walk.done).collect();
        assert_eq!(run, all, "each was run");
        let left = json!(entries(&walk.fixture.server, &walk.workspace).await).to_string();
        for secret in ["secret-words", "svc_", "svcd_", "Acme", "House"] {
            assert!(!left.contains(secret), "{secret}: {left}");
        }
    }
}

#[tokio::test]
async fn what_changes_is_in_the_list_of_acts() {
    let changing = [
        "create_",
        "update_",
        "delete_",
        "add_",
        "set_",
        "remove_",
        "revoke_",
        "deactivate_",
        "forget_",
    ];
    let named = [
        "republish_",
        "claim_",
        "promote_",
        "release_",
        "rollback_",
        "define_",
        "restore_",
        "verify_",
        "query_",
        "call_",
        "put_file",
    ];
    for row in operations::all() {
        let begins = |prefix: &&str| row.id.starts_with(prefix);
        let changes = changing.iter().chain(&named).any(begins);
        assert_eq!(!row.audit_actions.is_empty(), changes, "{}", row.id);
    }
}
