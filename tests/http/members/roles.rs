//! The table of roles, walked: every operation, as a route and as a tool's action, with every role, in one's own workspace and in
//! another's, and without a credential. What a caller may not do is refused as such; what it may is refused for what is wrong
//! with the request, so that nothing is done on the way.

use http::Method;
use serde_json::{Value, json};
use svc::operations;
use svc::workspaces::Role;

use super::{MembersFixture, User, WORKSPACES_PATH};
use crate::openapi::{description, operations as described};
use crate::owner::{Owner, operator_key, text};
use crate::svc;

/// A caller with its role in each of the two workspaces.
pub(super) struct RoleCaller {
    pub(super) name: &'static str,
    pub(super) owner: Owner,
    pub(super) roles: [Option<Role>; 2],
}

/// A workspace, what is in it, and how it is asked for.
pub(super) struct WorkspaceFixture {
    pub(super) workspace: String,
    pub(super) project: String,
    pub(super) slug: &'static str,
}

async fn create_key(fixture: &MembersFixture, of: &User, slug: &str, role: &str) -> Owner {
    let body = json!({ "role": role });
    let made = of
        .send(
            fixture,
            Method::POST,
            &format!("{WORKSPACES_PATH}/{slug}/keys"),
            body,
        )
        .await;
    Owner::with_credential(&text(&made.expect(201).json()["credential"]))
}

async fn create_workspace_fixture(
    fixture: &MembersFixture,
    of: &User,
    slug: &'static str,
) -> WorkspaceFixture {
    let workspace = of.workspace(fixture, slug).await;
    let pro = fixture
        .server
        .command(&svc(), &["namespace", "plan", slug, "pro"])
        .await;
    assert!(pro.success, "{pro:?}");
    let new = json!({ "name": slug, "workspace": slug });
    let made = of.owner.post(&fixture.server, "", &new).await.expect(201);
    let project = text(&made.json()["id"]);
    let backend = json!({ "ddl": "CREATE TABLE t (n)", "realtime": true });
    let path = format!("/{project}/backend");
    let made = of.owner.post(&fixture.server, &path, &backend).await;
    made.expect(201);
    of.owner.frontend(&fixture.server, &project, slug).await;
    WorkspaceFixture {
        workspace,
        project,
        slug,
    }
}

/// Two workspaces, four users, five keys.
pub(super) async fn create_callers(
    fixture: &MembersFixture,
) -> (Vec<WorkspaceFixture>, Vec<RoleCaller>) {
    use Role::{Admin, Editor, Owner as Owns, Viewer};
    let alice = fixture.user("alice").await;
    let (bob, carol, dave) = (
        fixture.user("bob").await,
        fixture.user("carol").await,
        fixture.user("dave").await,
    );
    let places = vec![
        create_workspace_fixture(fixture, &alice, "acme").await,
        create_workspace_fixture(fixture, &bob, "zeta").await,
    ];
    alice.add_member(fixture, "acme", &bob, "viewer").await;
    alice.add_member(fixture, "acme", &carol, "admin").await;
    bob.add_member(fixture, "zeta", &carol, "editor").await;
    let machine = create_key(fixture, &alice, "acme", "editor").await;
    let reader = create_key(fixture, &alice, "acme", "viewer").await;
    let other = create_key(fixture, &bob, "zeta", "editor").await;
    let admin = operator_key(&fixture.server, "acme", "admin").await;
    let owner = operator_key(&fixture.server, "zeta", "owner").await;
    let people = [
        ("alice", alice.owner, [Some(Owns), None]),
        ("bob", bob.owner, [Some(Viewer), Some(Owns)]),
        ("carol", carol.owner, [Some(Admin), Some(Editor)]),
        ("dave", dave.owner, [None, None]),
        ("a machine", machine, [Some(Editor), None]),
        ("a reader", reader, [Some(Viewer), None]),
        ("another machine", other, [None, Some(Editor)]),
        ("an admin's machine", admin, [Some(Admin), None]),
        ("an owner's machine", owner, [None, Some(Owns)]),
    ];
    let people = people.map(|(name, owner, roles)| RoleCaller { name, owner, roles });
    (places, people.into())
}

/// Operations that name no place in their address.
pub(super) const UNSCOPED_OPERATIONS: [&str; 5] = [
    "create_project",
    "list_projects",
    "get_me",
    "list_workspaces",
    "create_workspace",
];

/// Whether a caller may do an operation in a workspace, or in any if the operation names none.
fn is_allowed(row: &svc::access::OperationMetadata, somebody: &RoleCaller, number: usize) -> bool {
    match row.id {
        "create_workspace" => !somebody.name.contains("machine") && somebody.name != "a reader",
        "create_project" => somebody
            .roles
            .iter()
            .flatten()
            .any(|role| *role >= row.floor),
        id if UNSCOPED_OPERATIONS.contains(&id) => true,
        _ => somebody.roles[number].is_some_and(|role| role >= row.floor),
    }
}

pub(super) fn fill_path(path: &str, place: &WorkspaceFixture) -> String {
    let id = if path.starts_with("/api/v1/projects") {
        &place.project
    } else {
        &place.workspace
    };
    path.replace("{id}", id)
        .replace("{target}", place.slug)
        .replace("{revision_id}", "01a1fc50-0000-7000-8000-000000000000")
        .replace("{room}", "lobby")
        .replace("{user_id}", "usr_nobody")
        .replace("{key_id}", "23456789")
        .replace("{file_id}", "file_00000000000000000000000000")
}

#[tokio::test]
async fn every_route_takes_its_role_from_everybody() {
    let fixture = MembersFixture::new().await;
    let (places, people) = create_callers(&fixture).await;
    let before = fixture.server.snapshot();
    let routes = described(&description(&fixture.server).await);
    for row in operations::all() {
        let found = routes
            .iter()
            .find(|(_, _, operation)| operation["operationId"] == row.id);
        let (path, method, operation) = found.unwrap_or_else(|| panic!("no route {}", row.id));
        assert_eq!(operation["x-role"], row.floor.as_str(), "{}", row.id);
        for (number, place) in places.iter().enumerate() {
            // An error in the query is told only to callers with permission.
            let path = format!("{}?nonsense=1", fill_path(path, place));
            let nobody = fixture.server.request(method.clone(), &path);
            let nobody = svc_tests::ReadAnswer::answer(nobody).await;
            nobody.problem(401, "unauthorized");
            for somebody in &people {
                let request = somebody
                    .owner
                    .request(&fixture.server, method.clone(), &path);
                let answer = svc_tests::ReadAnswer::answer(request.json(&json!({}))).await;
                let may = is_allowed(row, somebody, number);
                let what = format!("{} {path} by {}: {}", row.id, somebody.name, answer.text());
                match (may, answer.status) {
                    (false, 403) => drop(answer.problem(403, "forbidden")),
                    (true, 400) => {
                        let problem = answer.problem(400, "invalid_request");
                        assert!(text(&problem["detail"]).contains("nonsense"), "{what}");
                    }
                    // Of a revision or a domain that is not there.
                    (true, 404) if path.contains("01a1fc50") || path.contains("/domains/") => {}
                    _ => panic!("{what}"),
                }
            }
        }
    }
    assert_eq!(fixture.server.snapshot(), before, "nothing was done");
}

/// Arguments with which an action of a tool finds what it is about, and one that it does not take.
fn tool_arguments(tool: &str, action: &str, place: &WorkspaceFixture) -> Value {
    let mut arguments = match tool {
        "manage_workspace" => json!({ "workspace": place.workspace, "user_id": "usr_nobody" }),
        "manage_frontend" => json!({ "project_id": place.project, "slug": place.slug }),
        "manage_backend" => json!({ "project_id": place.project, "room": "lobby" }),
        _ => json!({ "project_id": place.project }),
    };
    let takes = arguments.as_object_mut().unwrap();
    match (tool, action) {
        ("manage_frontend", "create" | "list" | "claim") => drop(takes.remove("slug")),
        ("manage_project" | "manage_workspace", "create" | "list") => takes.clear(),
        _ => {}
    }
    arguments["action"] = action.into();
    arguments["nonsense"] = 1.into();
    arguments
}

#[tokio::test]
async fn every_action_of_a_tool_takes_its_role_from_everybody() {
    let fixture = MembersFixture::new().await;
    let (places, people) = create_callers(&fixture).await;
    let before = fixture.server.snapshot();
    let call = async |owner: Option<&Owner>, tool: &str, arguments: Value| {
        let params = json!({ "name": tool, "arguments": arguments });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let request = fixture.server.json("/mcp", &body);
        let request = request.header("mcp-protocol-version", "2025-11-25");
        let request = match owner {
            Some(owner) => request.bearer_auth(&owner.credential),
            None => request,
        };
        svc_tests::ReadAnswer::answer(request).await
    };
    for row in operations::all() {
        let Some((tool, action)) = row.tool else {
            continue;
        };
        for (number, place) in places.iter().enumerate() {
            let given = tool_arguments(tool, action, place);
            let nobody = call(None, tool, given.clone()).await;
            nobody.problem(401, "unauthorized");
            for somebody in &people {
                let answer = call(Some(&somebody.owner), tool, given.clone()).await;
                let problem = answer.expect(200).json()["result"]["structuredContent"].clone();
                let expected: &[&str] = match is_allowed(row, somebody, number) {
                    true => &["invalid_request", "not_found"],
                    false => &["forbidden"],
                };
                let code = problem["code"].as_str().unwrap_or_default();
                let what = format!("{tool} {action} by {}: {problem}", somebody.name);
                assert!(expected.contains(&code), "{what}");
                if code == "not_found" {
                    assert!(given["revision_id"].is_string(), "{what}");
                }
            }
        }
    }
    assert_eq!(fixture.server.snapshot(), before, "nothing was done");
}

#[tokio::test]
async fn queries_and_schemas_are_for_members() {
    let fixture = MembersFixture::new().await;
    let (places, people) = create_callers(&fixture).await;
    for (number, place) in places.iter().enumerate() {
        for somebody in &people {
            let slug = place.slug;
            for (sql, floor) in [
                ("SELECT count(*) AS n FROM t", Role::Viewer),
                ("INSERT INTO t VALUES (1)", Role::Editor),
            ] {
                let body = json!({ "sql": sql });
                let path = format!("/{slug}/api/query");
                let owner = &somebody.owner;
                let answer = owner
                    .send_request(&fixture.server, Method::POST, &path, Some(&body))
                    .await;
                let expected = match somebody.roles[number] {
                    None => 401,
                    Some(role) if role < floor => 403,
                    Some(_) => 200,
                };
                assert_eq!(answer.status, expected, "{sql} by {}", somebody.name);
            }
            // To call as a visitor of one's choice takes an editor.
            let body = json!({ "action": "none", "as": { "user_id": "usr_test" } });
            let path = format!("/{slug}/api/op");
            let owner = &somebody.owner;
            let answer = owner
                .send_request(&fixture.server, Method::POST, &path, Some(&body))
                .await;
            let expected = match somebody.roles[number] {
                Some(role) if role >= Role::Editor => 404,
                _ => 403,
            };
            assert_eq!(answer.status, expected, "as by {}", somebody.name);
            let path = format!("/{slug}/api/schema");
            let answer = somebody
                .owner
                .send_request(&fixture.server, Method::GET, &path, None)
                .await;
            let expected = if somebody.roles[number].is_some() {
                200
            } else {
                401
            };
            assert_eq!(answer.status, expected, "{}", somebody.name);
        }
    }
}
