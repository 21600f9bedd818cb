//! The list of operations holds: each is a route and an action of a tool, and there is no other of either.

use std::collections::BTreeSet;

use serde_json::Value;
use svc::operations;
use svc_tests::{ReadAnswer, TestServer};

use super::client::Client;
use super::listing::tools;

/// Routes that are no tool's actions: who calls is the client's to know, types are for compilers, raw bytes fit no tool, what makes
/// credentials or leads to a checkout is for people, and the list of domains has all of each.
const REST_ONLY: [&str; 15] = [
    "get_file_of_visitor",
    "put_blob",
    "get_domain",
    "update_domain",
    "put_file",
    "delete_file",
    "get_archive",
    "list_actions",
    "get_me",
    "list_keys",
    "create_key",
    "revoke_key",
    "list_audit",
    "buy_plan",
    "manage_plan",
];

/// Operations of another role than their names say, each with its role: those that make a workspace take a user with any role or none,
/// and queries of viewers read.
const OTHER_ROLES: [(&str, &str); 13] = [
    ("query_backend", "viewer"),
    ("create_workspace", "viewer"),
    ("update_workspace", "admin"),
    ("delete_workspace", "owner"),
    ("add_member", "admin"),
    ("set_role", "admin"),
    ("remove_member", "admin"),
    ("list_keys", "admin"),
    ("create_key", "admin"),
    ("revoke_key", "admin"),
    ("list_audit", "admin"),
    ("buy_plan", "owner"),
    ("manage_plan", "owner"),
];

/// The operations of the description that need an owner's credential, with the roles that it names, and whether their methods may
/// change something.
async fn described_operations(server: &TestServer) -> BTreeSet<(String, String, bool)> {
    let document = server.get("/api/v1/openapi.json").answer().await.json();
    let mut found = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let owners = ["/api/v1/projects", "/api/v1/workspaces", "/api/v1/me"];
        let owners = owners.iter().any(|prefix| path.starts_with(prefix));
        for (method, operation) in item.as_object().unwrap().iter().filter(|_| owners) {
            let id = operation["operationId"].as_str().unwrap();
            let role = operation["x-role"].as_str().unwrap_or("none");
            found.insert((id.to_owned(), role.to_owned(), method != "get"));
        }
    }
    found
}

#[tokio::test]
async fn every_operation_is_a_route_with_its_floor_and_its_kind_of_method() {
    let server = TestServer::start().await;
    let listed: BTreeSet<_> = operations::all()
        .iter()
        .map(|row| {
            (
                row.id.to_owned(),
                row.floor.as_str().to_owned(),
                row.changes,
            )
        })
        .collect();
    assert_eq!(listed, described_operations(&server).await);
}

#[tokio::test]
async fn every_operation_is_an_action_of_a_tool() {
    let server = TestServer::start().await;
    let mut offered = BTreeSet::new();
    for tool in tools(&Client::anonymous(&server)).await {
        let name = tool["name"].as_str().unwrap().to_owned();
        let actions = tool["inputSchema"]["properties"]["action"]["enum"].as_array();
        let actions = actions.into_iter().flatten().filter_map(Value::as_str);
        offered.extend(actions.map(|action| (name.clone(), action.to_owned())));
    }
    let owned = |(tool, action): (&str, &str)| (tool.to_owned(), action.to_owned());
    let rows = operations::all();
    let listed = rows.iter().filter_map(|row| row.tool).map(owned);
    let listed: BTreeSet<_> = listed.collect();
    assert_eq!(listed, offered);
    let alone = rows.iter().filter(|row| row.tool.is_none());
    let alone: Vec<_> = alone.map(|row| row.id).collect();
    assert_eq!(alone, REST_ONLY);
}

#[tokio::test]
async fn what_only_reads_takes_the_lowest_role() {
    for row in operations::all() {
        let reads = ["get_", "list_", "export_"];
        let reads = reads.iter().any(|prefix| row.id.starts_with(prefix));
        let own = OTHER_ROLES.iter().find(|(id, _)| *id == row.id);
        let expected = match own {
            Some((_, role)) => role,
            None if reads => "viewer",
            None => "editor",
        };
        assert_eq!(row.floor.as_str(), expected, "{}", row.id);
    }
}
