//! Arguments are read as they were written: what REST refuses of a body, a tool refuses of them in the same words.

use serde_json::{Value, json};
use svc_tests::{Answer, ReadAnswer, TestServer};

use super::client::Client;
use crate::owner::Owner;

/// A call, whose arguments no library of ours has written.
async fn call_with_text(server: &TestServer, owner: &Owner, tool: &str, arguments: &str) -> Value {
    let params = format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#);
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
    let request = server.post("/mcp").bearer_auth(&owner.credential);
    let answer = request.body(body).answer().await.expect(200).json();
    assert!(answer["error"].is_null(), "{arguments}: {answer}");
    answer["result"].clone()
}

/// The code and the detail of a problem, without the place of the request that it is about.
fn code_and_detail(problem: &Value) -> (Value, String) {
    let detail = problem["detail"].as_str().unwrap();
    let detail = detail.replace("In the body: ", "In the arguments: ");
    let detail = detail.split(" at line ").next().unwrap();
    (
        problem["code"].clone(),
        detail.trim_end_matches('.').to_owned(),
    )
}

async fn post_text(server: &TestServer, owner: &Owner, path: &str, body: &str) -> Answer {
    let request = server.post(path).bearer_auth(&owner.credential);
    request.body(body.to_owned()).answer().await
}

#[tokio::test]
async fn numbers_that_nothing_holds_and_names_given_twice_are_refused_as_in_rest() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    let client = Client::with_credential(&server, &owner.credential);
    let of_backend = |action: &str| json!({ "action": action, "project_id": project });
    let mut send_request = of_backend("create");
    send_request["ddl"] = "CREATE TABLE t (n)".into();
    client.call_ok("manage_backend", send_request).await;
    let mut send_request = of_backend("update");
    send_request["actions"] = json!([{ "name": "add", "sql": "INSERT INTO t VALUES (:n)" }]);
    client.call_ok("manage_backend", send_request).await;
    owner.frontend(&server, &project, "room").await;
    for params in [
        r#"{"n":12345678901234567890123}"#,
        r#"{"n":9223372036854775808}"#,
        r#"{"n":1e400}"#,
        r#"{"n":-1e400}"#,
        r#"{"n":1,"n":2}"#,
        r#"{"n":{"base64":"AA==","base64":"AQ=="}}"#,
    ] {
        let ops = format!(r#""ops":[{{"action":"add","params":{params}}}]"#);
        let rest = post_text(&server, &owner, "/room/api/op", &format!("{{{ops}}}")).await;
        let rest = rest.problem(400, "invalid_request");
        let arguments = format!(r#"{{"action":"batch","project_id":"{project}",{ops}}}"#);
        let result = call_with_text(&server, &owner, "manage_backend", &arguments).await;
        assert_eq!(result["isError"], true, "{params}: {result}");
        let problem = &result["structuredContent"];
        assert_eq!(code_and_detail(problem), code_and_detail(&rest), "{params}");
        assert_eq!(problem["index"], rest["index"], "{params}");
    }
    let found = client.call_ok("manage_backend", of_backend("get")).await;
    let rows = found["inventory"]["tables"].as_array().unwrap();
    assert!(rows.iter().all(|table| table["rows"] == 0), "{rows:?}");
    for members in [
        r#""name":"a","name":"b""#,
        r#""name":"a","ttl_seconds":1e400"#,
        r#""name":"a","ttl_seconds":12345678901234567890123"#,
        r#""name":1e400"#,
        r#""name":"\ud800""#,
    ] {
        let rest = post_text(
            &server,
            &owner,
            "/api/v1/projects",
            &format!("{{{members}}}"),
        )
        .await;
        assert_eq!(rest.status, 400, "{members}");
        let arguments = format!(r#"{{"action":"create",{members}}}"#);
        let result = call_with_text(&server, &owner, "manage_project", &arguments).await;
        assert_eq!(result["isError"], true, "{members}: {result}");
        let (tool, rest) = (
            code_and_detail(&result["structuredContent"]),
            code_and_detail(&rest.json()),
        );
        assert_eq!(tool.0, rest.0, "{members}: {tool:?}");
        if tool.0 == "invalid_request" {
            assert_eq!(tool.1, rest.1, "{members}");
        }
    }
}

#[tokio::test]
async fn an_action_that_is_given_twice_is_none() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    for arguments in [
        format!(r#"{{"action":"get","action":"delete","project_id":"{project}"}}"#),
        format!(r#"{{"action":"delete","project_id":"{project}","\u0061ction":"get"}}"#),
        format!(r#"{{"action":"delete","project_id":null,"project_id":"{project}"}}"#),
    ] {
        let result = call_with_text(&server, &owner, "manage_project", &arguments).await;
        assert_eq!(result["isError"], true, "{arguments}: {result}");
        let problem = &result["structuredContent"];
        assert_eq!(problem["code"], "invalid_request", "{problem}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("duplicate field"), "{detail}");
    }
    owner.get(&server, &format!("/{project}")).await.expect(200);
}

#[tokio::test]
async fn a_null_is_an_absence_of_what_a_tool_takes_alone() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    let client = Client::with_credential(&server, &owner.credential);
    let get = json!({ "action": "get", "project_id": project, "name": null, "workspace": null });
    client.call_ok("manage_project", get).await;
    let table = "CREATE TABLE t (n)";
    let new = json!({ "action": "create", "project_id": project, "ddl": table });
    client.call_ok("manage_backend", new).await;
    let mut update = json!({ "action": "update", "project_id": project, "actions": null });
    let problem = client.call_refused("manage_backend", update.clone(), "invalid_request");
    let detail = problem.await["detail"].to_string();
    assert!(detail.contains("`actions`: invalid type: null"), "{detail}");
    update["ddl"] = table.into();
    let done = client.call_ok("manage_backend", update).await;
    assert_eq!(done["status"], "already_applied");
}

#[tokio::test]
async fn the_note_of_an_update_is_that_of_its_actions() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    let client = Client::with_credential(&server, &owner.credential);
    let create = json!({ "action": "create", "project_id": project, "ddl": "CREATE TABLE t (n)" });
    client.call_ok("manage_backend", create).await;
    let sql = "INSERT INTO t VALUES (:n)";
    let update = json!({
        "action": "update", "project_id": project, "note": "why",
        "actions": [{ "name": "add", "sql": sql }, { "name": "own", "sql": sql, "note": "its own" }],
    });
    client.call_ok("manage_backend", update).await;
    let path = format!("/{project}/backend/actions");
    let list = owner.get(&server, &path).await.expect(200).json();
    let notes: Vec<&Value> = list["actions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["note"])
        .collect();
    assert_eq!(notes, ["why", "its own"]);
}
