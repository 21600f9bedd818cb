//! Rules about bodies, in the description and on the wire: whatever the one refuses, the other refuses too.

use http::Method;
use serde_json::{Value, json};
use svc_tests::{ReadAnswer, TestServer};

use crate::openapi::{description, operations};
use crate::openapi_examples::schema_mismatch;
use crate::owner::{Owner, text};

/// A server with a page that has a backend, and the base of its history.
struct RulesFixture {
    server: TestServer,
    owner: Owner,
    description: Value,
    project: String,
    base: String,
}

impl RulesFixture {
    async fn new() -> Self {
        let server = TestServer::start().await;
        let owner = Owner::new(&server, "acme").await;
        let project = owner.project(&server, "House").await;
        let ddl = json!({ "ddl": "CREATE TABLE notes (id INTEGER PRIMARY KEY, text)" });
        let path = format!("/{project}/backend");
        owner.post(&server, &path, &ddl).await.expect(201);
        owner.frontend(&server, &project, "room").await;
        let actions = json!({ "actions": [
            { "name": "add", "sql": "INSERT INTO notes (text) VALUES (:text)" },
            { "name": "newest", "sql": "SELECT max(id) AS id FROM notes" },
        ] });
        let path = format!("/{project}/backend/actions");
        let put = owner.send(&server, Method::PUT, &path, &actions);
        put.await.expect(200);
        let path = format!("/{project}/frontends/room/revisions");
        let history = owner.get(&server, &path).await.expect(200).json();
        Self {
            base: text(&history["active_revision_id"]),
            description: description(&server).await,
            server,
            owner,
            project,
        }
    }

    /// Sends each body; the description and the server must both take it, or both not.
    async fn assert_agreement(&self, method: Method, path: &str, bodies: &[(Value, bool)]) {
        let item = &self.description["paths"][path][method.as_str().to_lowercase()];
        let schema = &item["requestBody"]["content"]["application/json"]["schema"];
        let path = path.replace("{id}", &self.project);
        let path = path.replace("{target}", "room").replace("{slug}", "room");
        for (body, taken) in bodies {
            let misfit = schema_mismatch(&self.description, schema, body);
            assert_eq!(
                misfit.is_none(),
                *taken,
                "{method} {path}, {body}: {misfit:?}"
            );
            let request = self.owner.request(&self.server, method.clone(), &path);
            let answer = request.json(body).answer().await;
            let says = answer.text();
            assert_eq!(
                answer.status < 300,
                *taken,
                "{method} {path}, {body}: {says}"
            );
        }
    }
}

#[tokio::test]
async fn bodies_of_projects() {
    let fixture = RulesFixture::new().await;
    let (post, patch) = (Method::POST, Method::PATCH);
    let bodies = [
        (json!({}), false),
        (json!({ "name": null }), false),
        (json!({ "name": "" }), false),
        (
            json!({ "name": null, "description": null, "allowed_providers": null }),
            false,
        ),
        (json!({ "name": "Hut" }), true),
        (json!({ "name": "Hut", "nickname": "H" }), false),
        (json!({ "description": "" }), true),
        (json!({ "description": "x".repeat(2001) }), false),
        (json!({ "allowed_providers": [] }), true),
    ];
    fixture
        .assert_agreement(patch, "/api/v1/projects/{id}", &bodies)
        .await;
    let bodies = [
        (json!({ "name": "A", "permanent": false }), false),
        (
            json!({ "name": "A", "permanent": true, "ttl_seconds": 60 }),
            false,
        ),
        (json!({ "name": "A", "ttl_seconds": 59 }), false),
        (json!({ "name": "A", "ttl_seconds": 60.5 }), false),
        (json!({ "name": "A", "ttl_seconds": 315_360_001 }), false),
        (
            json!({ "name": "A", "permanent": null, "ttl_seconds": null }),
            true,
        ),
        (
            json!({ "name": "B", "permanent": true, "ttl_seconds": null }),
            true,
        ),
        (
            json!({ "name": "C", "permanent": false, "ttl_seconds": 60 }),
            true,
        ),
        // To JSON it is the same number.
        (json!({ "name": "D", "ttl_seconds": 60.0 }), true),
    ];
    fixture
        .assert_agreement(post, "/api/v1/projects", &bodies)
        .await;
}

#[tokio::test]
async fn bodies_of_frontends_and_revisions() {
    let fixture = RulesFixture::new().await;
    let base = &fixture.base;
    let edit = |count: Value| json!({ "find": "One", "replace": "One", "count": count });
    let bodies = [
        (json!({ "base_revision_id": base }), false),
        (
            json!({ "base_revision_id": base, "content": null, "edits": null }),
            false,
        ),
        (json!({ "base_revision_id": base, "content": "" }), false),
        (json!({ "base_revision_id": base, "edits": [] }), false),
        (
            json!({ "base_revision_id": base, "content": "x", "edits": [edit(json!(1))] }),
            false,
        ),
        (
            json!({ "base_revision_id": base, "edits": [edit(json!(0))] }),
            false,
        ),
        (
            json!({ "base_revision_id": base, "content": "x", "edits": null }),
            true,
        ),
        (
            json!({ "base_revision_id": base, "edits": [edit(json!(null))] }),
            true,
        ),
        (
            json!({ "base_revision_id": base, "edits": [edit(json!(1.0))] }),
            true,
        ),
    ];
    let revisions = "/api/v1/projects/{id}/frontends/{target}/revisions";
    fixture
        .assert_agreement(Method::POST, revisions, &bodies)
        .await;
    let bodies = [
        (json!({ "content": "" }), false),
        (json!({ "content": "x", "requested_slug": "room" }), false),
        (json!({ "content": "x", "requested_slug": "" }), true),
    ];
    let frontend = "/api/v1/projects/{id}/frontends/{target}";
    fixture
        .assert_agreement(Method::PUT, frontend, &bodies)
        .await;
    // An empty wish is none, and the pattern of wishes says so.
    let schemas = &fixture.description["components"]["schemas"];
    let wish = &schemas["CreateFrontend"]["properties"]["requested_slug"]["pattern"];
    assert_eq!(wish, "^([a-z0-9]([a-z0-9\\-]*[a-z0-9])?)?$");
    let bodies = [(
        json!({ "type": "html", "content": "x", "requested_slug": "" }),
        true,
    )];
    let frontends = "/api/v1/projects/{id}/frontends";
    fixture
        .assert_agreement(Method::POST, frontends, &bodies)
        .await;
}

#[tokio::test]
async fn bodies_of_backends_and_calls() {
    let fixture = RulesFixture::new().await;
    let ddl = "CREATE TABLE more (x)";
    let bodies = [
        (json!({}), false),
        (json!({ "note": "x" }), false),
        (json!({ "ddl": null, "realtime": null }), false),
        (json!({ "ddl": "" }), false),
        (json!({ "ddl": ddl, "realtime": true }), false),
        (json!({ "realtime": true, "note": "x" }), false),
        (json!({ "realtime": true, "note": null, "ddl": null }), true),
        (json!({ "ddl": ddl, "realtime": null, "note": "x" }), true),
    ];
    let backend = "/api/v1/projects/{id}/backend";
    fixture
        .assert_agreement(Method::PATCH, backend, &bodies)
        .await;
    let add = |value: Value| json!({ "action": "add", "params": { "text": value } });
    let from = json!({ "from": [0, "id"] });
    let bodies = [
        (json!({}), false),
        (json!({ "action": "" }), false),
        (json!({ "ops": [] }), false),
        (json!({ "ops": [{ "action": "" }] }), false),
        (json!({ "ops": vec![add(json!(1)); 21] }), false),
        (add(json!([1])), false),
        (add(json!({})), false),
        (add(json!({ "base64": 1 })), false),
        (add(json!({ "base64": "AA==", "more": 1 })), false),
        (add(from), false),
        (add(json!(null)), true),
        (add(json!(true)), true),
        (add(json!(i64::MIN)), true),
        (add(json!(1.5)), true),
        (add(json!("text")), true),
        (add(json!({ "base64": "AA==" })), true),
        (json!({ "ops": vec![add(json!(1)); 20] }), true),
        (
            json!({ "ops": [{ "action": "newest" }, add(json!({ "from": [0.0, "id"] }))] }),
            true,
        ),
    ];
    fixture
        .assert_agreement(Method::POST, "/{slug}/api/op", &bodies)
        .await;
    let message =
        |version: &str, id: Value| json!({ "jsonrpc": version, "id": id, "method": "tools/list" });
    let bodies = [
        (json!({}), false),
        (json!({ "jsonrpc": "2.0" }), false),
        (message("1.0", json!(1)), false),
        (message("2.0", json!({})), false),
        (message("2.0", json!(1)), true),
        (message("2.0", json!("one")), true),
    ];
    fixture
        .assert_agreement(Method::POST, "/mcp", &bodies)
        .await;
}

#[tokio::test]
async fn idempotency_keys_are_described_as_they_are_read() {
    let server = TestServer::start().await;
    let mut seen = 0;
    for (path, method, operation) in operations(&description(&server).await) {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        for parameter in parameters.filter(|parameter| parameter["name"] == "Idempotency-Key") {
            let schema = &parameter["schema"];
            let rule = (
                &schema["type"],
                &schema["pattern"],
                &schema["minLength"],
                &schema["maxLength"],
            );
            let wanted = (json!("string"), json!("^[!-~]+$"), json!(1), json!(128));
            assert_eq!(
                rule,
                (&wanted.0, &wanted.1, &wanted.2, &wanted.3),
                "{method} {path}"
            );
            seen += 1;
        }
    }
    assert!(seen >= 6, "{seen}");
    for (key, status) in [
        ("!~".to_owned(), 201),
        ("k".repeat(128), 201),
        ("k".repeat(129), 400),
        ("a b".to_owned(), 400),
        (String::new(), 400),
    ] {
        let request = server.json("/api/v1/deploy", &json!({ "content": "x" }));
        let answer = request.header("idempotency-key", &key).answer().await;
        assert_eq!(answer.status, status, "{key:?}");
    }
}

#[tokio::test]
async fn a_path_without_a_canonical_form_is_not_found_as_described() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    for (path, method, operation) in operations(&description(&server).await) {
        if !path.contains('{') {
            continue;
        }
        let strange = path.replace('{', "%00").replace('}', "");
        let answer = owner
            .request(&server, method.clone(), &strange)
            .answer()
            .await;
        // A file that is to be published there is told the rule of its path.
        let is_upload = method == Method::PUT && path.ends_with("/files/{path}");
        let expected = if is_upload { 400 } else { 404 };
        assert_eq!(answer.status, expected, "{method} {strange}");
        assert!(!operation["responses"]["404"].is_null(), "{method} {path}");
    }
}
