//! Authority at the tools: without a credential, with a wrong one, with another's.

use serde_json::json;
use svc_tests::{ReadAnswer, TestServer};

use super::client::{Client, MODERN};
use crate::owner::Owner;

#[tokio::test]
async fn without_a_credential_only_quick_shares_are_published() {
    let server = TestServer::start().await;
    for client in [
        Client::anonymous(&server),
        Client::anonymous(&server).legacy(),
    ] {
        client.result("tools/list", &json!({})).await;
        client
            .call_ok("deploy_asset", json!({ "content": "x" }))
            .await;
        for tool in [
            "manage_project",
            "manage_frontend",
            "manage_backend",
            "manage_workspace",
        ] {
            // Whatever the arguments are: nobody learns more than how to authenticate.
            for arguments in [
                json!({}),
                json!({ "action": "list" }),
                json!({ "action": "get", "project_id": "x" }),
            ] {
                let problem = client.call_refused(tool, arguments, "unauthorized").await;
                assert_eq!(problem["status"], 401);
                let detail = problem["detail"].as_str().unwrap();
                assert!(detail.contains("Authorization: Bearer"), "{detail}");
            }
        }
    }
}

#[tokio::test]
async fn an_empty_credential_is_none() {
    let server = TestServer::start().await;
    let client = Client::anonymous(&server);
    let call = json!({ "name": "deploy_asset", "arguments": { "content": "x" } });
    for header in ["Bearer", "Bearer ", ""] {
        let request = client.message("tools/call", &call);
        let answer = request.header("authorization", header).answer().await;
        assert_eq!(answer.expect(200).json()["result"]["isError"], json!(false));
        let list = json!({ "name": "manage_project", "arguments": { "action": "list" } });
        let request = client.message("tools/call", &list);
        let answer = request.header("authorization", header).answer().await;
        let result = &answer.expect(200).json()["result"];
        assert_eq!(result["structuredContent"]["code"], "unauthorized");
    }
}

#[tokio::test]
async fn a_wrong_credential_is_refused_before_anything_is_done() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let before = server.snapshot();
    let base = format!("http://localhost:{}", server.address().port());
    let challenge = format!(
        "Bearer error=\"invalid_token\", resource_metadata=\"{base}/.well-known/oauth-protected-resource/mcp\""
    );
    let mut changed = owner.credential.clone();
    // Its checksum may end in any letter or digit.
    let other = if changed.pop() == Some('x') { 'y' } else { 'x' };
    changed.push(other);
    for header in [
        "Bearer nonsense",
        "Bearer ${SVC_CREDENTIAL}",
        "Basic abc",
        &format!("Bearer {changed}"),
    ] {
        for client in [
            Client::anonymous(&server),
            Client::anonymous(&server).legacy(),
        ] {
            for (method, params) in [
                ("tools/list", json!({})),
                (
                    "tools/call",
                    json!({ "name": "deploy_asset", "arguments": { "content": "x" } }),
                ),
                (
                    "tools/call",
                    json!({ "name": "manage_project", "arguments": { "action": "list" } }),
                ),
                ("no/such", json!({})),
            ] {
                let request = client
                    .message(method, &params)
                    .header("authorization", header);
                let answer = request.answer().await;
                answer.problem(401, "unauthorized");
                assert_eq!(
                    answer.header("www-authenticate"),
                    Some(&*challenge),
                    "{header}"
                );
            }
        }
    }
    assert_eq!(server.snapshot(), before);
    // What is wrong with the protocol's headers is told first.
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": super::client::meta() } });
    let request = server.json("/mcp", &body).bearer_auth("nonsense");
    let answer = request
        .header("mcp-protocol-version", MODERN)
        .answer()
        .await
        .expect(400);
    assert_eq!(answer.json()["error"]["code"], -32020);
}

#[tokio::test]
async fn a_credential_is_only_taken_from_its_header() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let client = Client::anonymous(&server);
    let credential = &owner.credential;
    for name in ["credential", "token", "authorization", "Authorization"] {
        let arguments = json!({ "action": "list", name: credential });
        client
            .call_refused("manage_project", arguments, "unauthorized")
            .await;
    }
    let known = Client::with_credential(&server, credential);
    let listed = known
        .call_ok("manage_project", json!({ "action": "list" }))
        .await;
    assert_eq!(listed, json!({ "projects": [] }));
    let extra = json!({ "action": "list", "credential": credential });
    known
        .call_refused("manage_project", extra, "invalid_request")
        .await;
}

#[tokio::test]
async fn what_is_anothers_is_forbidden() {
    let server = TestServer::start().await;
    let (owner, other) = (
        Owner::new(&server, "acme").await,
        Owner::new(&server, "zeta").await,
    );
    let project = owner.project(&server, "Mine").await;
    owner.frontend(&server, &project, "room").await;
    let client = Client::with_credential(&server, &other.credential);
    for (tool, arguments) in [
        (
            "manage_project",
            json!({ "action": "get", "project_id": project }),
        ),
        (
            "manage_project",
            json!({ "action": "delete", "project_id": project }),
        ),
        (
            "manage_frontend",
            json!({ "action": "content", "project_id": project, "slug": "room" }),
        ),
        (
            "manage_frontend",
            json!({ "action": "delete", "project_id": project, "slug": "room" }),
        ),
        (
            "manage_backend",
            json!({ "action": "create", "project_id": project, "ddl": "CREATE TABLE t (a)" }),
        ),
    ] {
        let problem = client.call_refused(tool, arguments, "forbidden").await;
        assert_eq!(problem["status"], 403);
    }
}

#[tokio::test]
async fn calls_are_counted_by_tool_and_action() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let client = Client::with_credential(&server, &owner.credential);
    client
        .call_ok("manage_project", json!({ "action": "list" }))
        .await;
    let gone = json!({ "action": "get", "project_id": "x" });
    client
        .call_refused("manage_project", gone, "not_found")
        .await;
    client
        .call_refused(
            "manage_project",
            json!({ "action": "x" }),
            "invalid_request",
        )
        .await;
    let metrics = server.server().app().metrics.encode().unwrap();
    for line in [
        r#"svc_tool_calls_total{tool="manage_project",action="list",code="ok"} 1"#,
        r#"svc_tool_calls_total{tool="manage_project",action="get",code="not_found"} 1"#,
        r#"svc_tool_calls_total{tool="manage_project",action="none",code="invalid_request"} 1"#,
        r#"svc_tool_seconds_count{tool="manage_project",action="list"} 1"#,
    ] {
        assert!(metrics.contains(line), "{line}");
    }
}
