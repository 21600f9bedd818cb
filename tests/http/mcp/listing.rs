//! Listing of the tools for a model: small, flat, and true.

use serde_json::{Value, json};
use svc_tests::{ReadAnswer, TestServer};

use super::client::Client;
use crate::owner::Owner;

pub(super) async fn tools(client: &Client<'_>) -> Vec<Value> {
    let listed = client.result("tools/list", &json!({})).await;
    listed["tools"].as_array().unwrap().clone()
}

#[tokio::test]
async fn the_list_is_small() {
    let server = TestServer::start().await;
    for client in [
        Client::anonymous(&server),
        Client::anonymous(&server).legacy(),
    ] {
        let size = client
            .send_request("tools/list", &json!({}))
            .await
            .body
            .len();
        // What a model reads before it does anything: an addition must be balanced by a removal.
        assert!(size <= 18_000, "{size} bytes");
        assert!(size > 2_000, "{size} bytes");
    }
}

#[tokio::test]
async fn an_agent_that_makes_a_page_learns_what_pages_can_do() {
    let server = TestServer::start().await;
    let tools = tools(&Client::anonymous(&server)).await;
    let frontends = tools
        .iter()
        .find(|tool| tool["name"] == "manage_frontend")
        .unwrap();
    let said = frontends["description"].as_str().unwrap();
    let typings = server.get("/_svc/runtime.d.ts").answer().await.expect(200);
    for (name, typed) in [
        ("svc.db.op(", "op<"),
        ("svc.db.live(", "live<"),
        ("svc.auth.user(", "user("),
        ("svc.ws.room(", "room("),
        ("svc.payments.checkout(", "checkout("),
        ("/_svc/runtime.d.ts", ""),
    ] {
        assert!(said.contains(name), "{name}: {said}");
        assert!(typings.text().contains(typed), "{typed}");
    }
}

#[tokio::test]
async fn schemas_are_flat_and_every_argument_is_explained() {
    let server = TestServer::start().await;
    let tools = tools(&Client::anonymous(&server)).await;
    let names: Vec<_> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "deploy_asset",
            "manage_project",
            "manage_frontend",
            "manage_backend",
            "manage_payments",
            "manage_workspace"
        ]
    );
    for tool in &tools {
        let name = tool["name"].as_str().unwrap();
        assert!(tool["outputSchema"].is_null(), "{name}");
        let hints = &tool["annotations"];
        assert_eq!(hints["readOnlyHint"], false, "{name}");
        assert_eq!(hints["destructiveHint"], name != "deploy_asset");
        assert_eq!(hints["idempotentHint"], false, "{name}");
        let schema = &tool["inputSchema"];
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["additionalProperties"], false);
        for word in ["oneOf", "anyOf", "allOf", "$ref", "$defs", "const"] {
            assert!(
                !schema.to_string().contains(&format!("\"{word}\"")),
                "{name}: {word}"
            );
        }
        let arguments = schema["properties"].as_object().unwrap();
        // The tool's description explains the actions.
        for (argument, about) in arguments.iter().filter(|(name, _)| *name != "action") {
            let described = about["description"].as_str().unwrap_or_default();
            assert!(!described.is_empty(), "{name}: {argument}");
            assert!(!about["type"].is_null(), "{name}: {argument}");
        }
        for required in schema["required"].as_array().unwrap() {
            assert!(arguments.contains_key(required.as_str().unwrap()));
        }
        if name == "deploy_asset" {
            continue;
        }
        assert!(
            schema["required"]
                .as_array()
                .unwrap()
                .contains(&json!("action"))
        );
        let actions = arguments["action"]["enum"].as_array().unwrap();
        let text = format!("{} {}", tool["description"], schema["properties"]);
        for action in actions {
            assert!(text.contains(action.as_str().unwrap()), "{name}: {action}");
        }
    }
}

#[tokio::test]
async fn what_is_wrong_with_arguments_is_named() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let client = Client::with_credential(&server, &owner.credential);
    let id = owner.project(&server, "House").await;
    // The project exists, so that the arguments are checked next.
    owner.frontend(&server, &id, "a").await;
    let backend = json!({ "ddl": "CREATE TABLE t (n)" });
    owner
        .post(&server, &format!("/{id}/backend"), &backend)
        .await
        .expect(201);
    for (tool, arguments, says) in [
        ("manage_project", json!({}), "missing field `action`"),
        (
            "manage_project",
            json!({ "action": "promote" }),
            "create, get, update, list, delete",
        ),
        ("manage_project", json!({ "action": 7 }), "`action`"),
        (
            "manage_project",
            json!({ "action": "create" }),
            "missing field `name`",
        ),
        (
            "manage_project",
            json!({ "action": "create", "name": 7 }),
            "`name`",
        ),
        (
            "manage_project",
            json!({ "action": "create", "name": "a", "nam": 1 }),
            "`nam`",
        ),
        (
            "manage_project",
            json!({ "action": "get" }),
            "missing field `project_id`",
        ),
        (
            "manage_project",
            json!({ "action": "get", "project_id": null }),
            "missing field `project_id`",
        ),
        (
            "manage_project",
            json!({ "action": "get", "project_id": 7 }),
            "`project_id` must be a string",
        ),
        (
            "manage_project",
            json!({ "action": "get", "project_id": id, "name": "x" }),
            "takes no `name`",
        ),
        (
            "manage_project",
            json!({ "action": "get", "project_id": id, "nonsense": null }),
            "takes no `nonsense`",
        ),
        (
            "manage_project",
            json!({ "action": "create", "name": "a", "nonsense": null }),
            "unknown field `nonsense`",
        ),
        (
            "manage_frontend",
            json!({ "action": "get", "project_id": id }),
            "`slug`",
        ),
        (
            "manage_frontend",
            json!({ "action": "get", "project_id": id, "slug": "a", "id": "b" }),
            "send one of them",
        ),
        (
            "manage_frontend",
            json!({ "action": "create", "project_id": id, "content": "x" }),
            "missing field `type`",
        ),
        (
            "manage_frontend",
            json!({ "action": "create", "project_id": id, "content": "x", "type": "pdf" }),
            "`type`",
        ),
        (
            "manage_frontend",
            json!({ "action": "create", "project_id": id, "content": "x", "type": "html", "slug": "a" }),
            "`slug`",
        ),
        (
            "manage_frontend",
            json!({ "action": "content", "project_id": id, "slug": "a", "offset": -1 }),
            "`offset`",
        ),
        (
            "manage_frontend",
            json!({ "action": "create_revision", "project_id": id, "slug": "a" }),
            "`base_revision_id`",
        ),
        (
            "manage_backend",
            json!({ "action": "create", "project_id": id }),
            "missing field `ddl`",
        ),
        (
            "manage_backend",
            json!({ "action": "update", "project_id": id, "actions": [], "ddl": "x" }),
            "`ddl`",
        ),
        (
            "manage_backend",
            json!({ "action": "update", "project_id": id, "actions": [{ "name": "a" }] }),
            "`sql`",
        ),
        ("deploy_asset", json!({}), "missing field `content`"),
        (
            "deploy_asset",
            json!({ "content": "x", "name": "a" }),
            "`slug`",
        ),
        (
            "deploy_asset",
            json!({ "content": "x", "nonsense": null }),
            "unknown field `nonsense`",
        ),
        (
            "deploy_asset",
            json!({ "content": "x", "one_time": "yes" }),
            "`one_time`",
        ),
    ] {
        let problem = client
            .call_refused(tool, arguments.clone(), "invalid_request")
            .await;
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(says), "{arguments}: {detail}");
    }
}

#[tokio::test]
async fn texts_say_the_numbers_that_are_set() {
    let builder = TestServer::builder().limits(|l| {
        l.quick_share_seconds = 7_200;
        l.body_bytes = 3 << 20;
        l.database_bytes = 2 << 20;
        l.mcp_per_minute = 77;
        l.deploy_per_minute = 78;
    });
    let server = builder.start().await;
    let tools = tools(&Client::anonymous(&server)).await;
    let described = |index: usize| tools[index]["description"].as_str().unwrap().to_owned();
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let legacy = Client::anonymous(&server).legacy();
    let begun = legacy.result("initialize", &params).await;
    let guide = server.get("/llms.txt").answer().await.expect(200);
    let api = server
        .get("/api/v1/openapi.json")
        .answer()
        .await
        .expect(200);
    let texts = [
        (described(0), &["for 2 hours"][..]),
        (described(3), &["up to 2 MB"]),
        (
            begun["instructions"].as_str().unwrap().to_owned(),
            &["for 2 hours", "3 MB at most", "77 a minute"],
        ),
        (
            guide.text().to_owned(),
            &[
                "for 2 hours",
                "has 3 MB",
                "publishes 78 times",
                "77 messages",
            ],
        ),
        (
            api.text().to_owned(),
            &["lives for 2 hours", "for 2 hours, without"],
        ),
    ];
    for (text, expected) in texts {
        for said in expected {
            // A text may break where it says so.
            let text = text.replace('\n', " ");
            assert!(text.contains(said), "{said}: {text:.2000}");
        }
        assert!(
            !text.contains("{{"),
            "a number that is not known: {text:.2000}"
        );
    }
}
