//! Errors that a caller cannot act on without knowing more: they say what to do next, by REST and by the tools.

use http::Method;
use serde_json::{Value, json};
use svc_tests::{ReadAnswer, TestServer};

use super::client::Client;
use super::listing::tools;
use crate::owner::Owner;

#[tokio::test]
async fn what_is_missing_or_misnamed_is_told_with_the_next_step() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let client = Client::with_credential(&server, &owner.credential);
    let id = owner.project(&server, "House").await;
    owner.frontend(&server, &id, "room").await;
    let room = |action: &str, more: Value| {
        let mut arguments = more;
        arguments["action"] = action.into();
        arguments["project_id"] = id.as_str().into();
        arguments["slug"] = "room".into();
        arguments
    };
    let release = json!({ "revision_id": id });
    for (tool, arguments, code, says) in [
        (
            "manage_project",
            json!({ "action": "get", "project_id": "House" }),
            "not_found",
            &["by its name", "manage_project list", "`id`"][..],
        ),
        (
            "manage_frontend",
            room("create_revision", json!({ "content": "x" })),
            "invalid_request",
            &[
                "`base_revision_id`",
                "`active_revision_id`",
                "list_revisions",
            ],
        ),
        (
            "manage_frontend",
            room("promote", release.clone()),
            "invalid_request",
            &["`expected_active_revision_id`", "list_revisions"],
        ),
        (
            "manage_frontend",
            room("rollback", release),
            "invalid_request",
            &["`expected_active_revision_id`", "list_revisions"],
        ),
        (
            "manage_backend",
            json!({ "action": "get", "project_id": id }),
            "not_found",
            &["has no backend", "manage_backend create"],
        ),
        (
            "deploy_asset",
            json!({ "content": "x", "slug": "No!" }),
            "invalid_request",
            &["`slug` cannot be a slug"],
        ),
    ] {
        let problem = client.call_refused(tool, arguments.clone(), code).await;
        let detail = problem["detail"].as_str().unwrap();
        for said in says {
            assert!(detail.contains(said), "{arguments}: {detail}");
        }
    }
    // A deletion by a name is none, and gone is what it wants.
    owner.delete(&server, "/House").await.expect(204);
    let name = json!({ "content": "x", "name": "No!" });
    let refused = server.json("/api/v1/deploy", &name).answer().await;
    let detail = refused.problem(400, "invalid_request");
    assert!(
        detail["detail"]
            .to_string()
            .contains("`name` cannot be a slug")
    );
}

#[tokio::test]
async fn calls_that_find_no_backend_or_action_say_what_would_help() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let id = owner.project(&server, "House").await;
    owner.frontend(&server, &id, "room").await;
    server
        .publish_slug(&json!({ "content": "x", "name": "share" }))
        .await;
    let call = async |slug: &str| {
        let request = server.json(&format!("/{slug}/api/op"), &json!({ "action": "all" }));
        let problem = request.answer().await.problem(404, "not_found");
        problem["detail"].as_str().unwrap().to_owned()
    };
    let detail = call("share").await;
    assert!(detail.contains("A quick share has no backend"), "{detail}");
    // A page that never had one needs no second publication.
    let detail = call("room").await;
    assert!(
        detail.contains("Making one for its project gives it to the page"),
        "{detail}"
    );
    let path = format!("/{id}/backend");
    let table = json!({ "ddl": "CREATE TABLE t (n)" });
    owner.post(&server, &path, &table).await.expect(201);
    let detail = call("room").await;
    assert!(
        detail.contains("no action `all`") && detail.contains("define the action"),
        "{detail}"
    );
    let actions = json!({ "actions": [{ "name": "all", "sql": "SELECT n FROM t" }] });
    let path = format!("{path}/actions");
    owner
        .send(&server, Method::PUT, &path, &actions)
        .await
        .expect(200);
    let request = server.json("/room/api/op", &json!({ "action": "all" }));
    request.answer().await.expect(200);
}

#[tokio::test]
async fn a_batch_is_not_called_a_trial() {
    let server = TestServer::start().await;
    let tools = tools(&Client::anonymous(&server)).await;
    let about = tools[3]["description"].as_str().unwrap();
    assert!(!about.contains("try them out"), "{about}");
    assert!(about.contains("what they write stays written"), "{about}");
}
