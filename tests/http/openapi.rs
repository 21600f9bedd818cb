//! The description: OpenAPI 3.1, and as complete as the service is.

use std::collections::BTreeSet;

use http::Method;
use serde_json::{Value, json};
use svc::http::problem::ProblemCode;
use svc_tests::{ReadAnswer, TestServer};

use crate::owner::{Owner, text};
use crate::uploads::{self, PHOTOS};

pub(crate) async fn description(server: &TestServer) -> Value {
    let answer = server
        .get("/api/v1/openapi.json")
        .answer()
        .await
        .expect(200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    answer.json()
}

/// Every operation: its path, its method, and itself.
pub(crate) fn operations(description: &Value) -> Vec<(String, Method, Value)> {
    let mut operations = Vec::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let method = method.to_uppercase().parse().unwrap();
            operations.push((path.clone(), method, operation.clone()));
        }
    }
    operations
}

/// A path with its parameters filled in.
pub(crate) fn fill_path(path: &str, slug: &str) -> String {
    path.replace("{slug}", slug)
        .replace("{code}", "internal")
        .replace("{guide}", "share")
        .replace("{image}", "page.webp")
}

/// Whether a path leads to a page's backend.
fn calls_backend(path: &str) -> bool {
    path.starts_with("/{slug}/api/")
}

/// A project with a backend, a frontend and a history, for the paths that lead below them.
struct OpenapiFixture {
    owner: Owner,
    fill: Vec<(&'static str, String)>,
}

impl OpenapiFixture {
    async fn new(server: &TestServer) -> Self {
        let owner = Owner::new(server, "furnished").await;
        let project = owner.project(server, "House").await;
        let ddl = format!("CREATE TABLE guests (name); {PHOTOS}");
        let backend = json!({ "ddl": ddl, "realtime": true });
        let path = format!("/{project}/backend");
        owner.post(server, &path, &backend).await.expect(201);
        let agents = json!({ "agents": true });
        let switched = owner.send(server, Method::PATCH, &path, &agents).await;
        switched.expect(200);
        let actions = json!({ "actions": uploads::actions() });
        let actions_path = format!("{path}/actions");
        let defined = owner
            .send(server, Method::PUT, &actions_path, &actions)
            .await;
        defined.expect(200);
        let frontend = text(&owner.frontend(server, &project, "room").await["id"]);
        let revisions = format!("/{project}/frontends/room/revisions");
        let revisions = owner.get(server, &revisions).await.expect(200).json();
        let page = server.get("/room").answer().await;
        let runtime = page
            .text()
            .split("/_svc/runtime/")
            .nth(1)
            .unwrap()
            .split('"')
            .next();
        let uploaded = server.post("/room/api/files/add").body("a file");
        let uploaded = uploaded.answer().await.expect(201).json();
        let fill = vec![
            ("{action}/{file_id}", "see/{file_id}".to_owned()),
            ("{action}", "add".to_owned()),
            ("{file_id}", text(&uploaded["file"]["id"])),
            ("{id}", project),
            ("{target}", "room".to_owned()),
            ("{room}", "kitchen".to_owned()),
            ("{deployment_id}", frontend),
            ("{revision_id}", text(&revisions["active_revision_id"])),
            ("{file}", runtime.unwrap().to_owned()),
            ("{picture}", "app-dark.webp".to_owned()),
        ];
        Self { owner, fill }
    }

    fn fill_path(&self, path: &str, slug: &str) -> String {
        // A backend answers through the pages of its own project alone.
        let through = calls_backend(path)
            || matches!(path, "/{slug}/ws" | "/{slug}/mcp")
            || path.starts_with("/{slug}/auth/")
            || path.starts_with("/{slug}/payments/");
        let slug = if through { "room" } else { slug };
        let path = fill_path(path, slug);
        self.fill
            .iter()
            .fold(path, |path, (name, value)| path.replace(name, value))
    }
}

#[tokio::test]
async fn it_is_of_version_31_and_names_this_server() {
    let server = TestServer::start().await;
    let description = description(&server).await;
    let version = description["openapi"].as_str().unwrap();
    assert!(version.starts_with("3.1."), "{version}");
    assert_eq!(description["info"]["version"], "1.0.0");
    let base = format!("http://localhost:{}", server.address().port());
    assert_eq!(description["servers"][0]["url"], base);
}

/// Addresses of files, which only sites have: `tests/http/sites` asks for them.
pub(crate) const BELOW_SITES: [&str; 3] = [
    "/{slug}/{path}",
    "/{slug}/_svc/runtime.js",
    "/_preview/{deployment_id}/{revision_id}/{path}",
];

#[tokio::test]
async fn every_route_is_in_it_and_answers() {
    let server = TestServer::builder()
        .settings(|s| s.contact = Some("abuse@example.com".to_owned()))
        .start()
        .await;
    let body = json!({ "content": "x", "name": "page", "password": "p" });
    server.publish_slug(&body).await;
    let description = description(&server).await;
    let operations = operations(&description);
    let described: BTreeSet<_> = operations
        .iter()
        .map(|(path, method, _)| format!("{method} {path}"))
        .collect();
    for route in [
        "POST /api/v1/deploy",
        "POST /api/v1/auth/{slug}",
        "POST /api/v1/reports",
        "GET /api/v1/openapi.json",
        "GET /{slug}",
        "POST /{slug}",
        "GET /{slug}/",
        "GET /{slug}/raw",
        "GET /problems/{code}",
        "GET /healthz",
        "GET /readyz",
        "GET /",
        "GET /llms.txt",
        "GET /robots.txt",
        "GET /favicon.ico",
        "GET /favicon.svg",
        "GET /_svc/preview",
        "GET /_svc/docs/",
        "GET /_svc/docs/{guide}",
        "GET /_svc/docs/search.json",
        "POST /_svc/preview",
        "POST /api/v1/projects/{id}/backend",
        "GET /api/v1/projects/{id}/backend",
        "PATCH /api/v1/projects/{id}/backend",
        "DELETE /api/v1/projects/{id}/backend",
        "PUT /api/v1/projects/{id}/backend/actions",
        "GET /api/v1/projects/{id}/backend/history",
        "POST /api/v1/projects/{id}/backend/restore",
        "POST /{slug}/api/op",
        "POST /{slug}/mcp",
        "GET /api/v1/workspaces/{id}/audit",
        "POST /{slug}/api/query",
        "GET /{slug}/api/schema",
    ] {
        assert!(described.contains(route), "{route} is not described");
    }
    // Routes that the router makes beside its description are in it all the same.
    let router = include_str!("../../host/src/router/mod.rs");
    for route in router.split(".route(").skip(1) {
        let path = &route.split('"').nth(1).unwrap().replace("{*", "{");
        // The server of a folder alone has what is for developing.
        let is_for_developing = path.starts_with("/_svc/dev/");
        assert!(
            is_for_developing || !description["paths"][path].is_null(),
            "{path} is not described"
        );
    }
    let fixture = OpenapiFixture::new(&server).await;
    for (path, method, _) in operations {
        // A page has no files below its address.
        if BELOW_SITES.contains(&path.as_str()) {
            continue;
        }
        // The token belongs to no share here.
        let path = match path.strip_suffix("/deploy/{id}") {
            Some(_) if method == Method::DELETE => "/api/v1/deploy/x".to_owned(),
            _ => fixture.fill_path(&path, "page"),
        };
        let answer = server.request(method.clone(), &path).answer().await;
        let exists = !matches!(answer.status, 404 | 421)
            && answer.header("allow").is_none_or(|_| path == "/page");
        assert!(exists, "{method} {path}: {}", answer.text());
    }
}

#[tokio::test]
async fn every_operation_is_told_apart_and_explained() {
    let server = TestServer::start().await;
    let operations = operations(&description(&server).await);
    let mut ids = BTreeSet::new();
    for (path, method, operation) in operations {
        let id = operation["operationId"].as_str().unwrap().to_owned();
        assert!(ids.insert(id), "{method} {path}");
        assert!(!operation["summary"].as_str().unwrap().is_empty(), "{path}");
        for (status, response) in operation["responses"].as_object().unwrap() {
            let said = response["description"].as_str().unwrap();
            assert!(!said.is_empty(), "{method} {path} {status}");
        }
        let named: BTreeSet<_> = operation["parameters"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|parameter| parameter["in"] == "path")
            .map(|parameter| format!("{{{}}}", parameter["name"].as_str().unwrap()))
            .collect();
        let wanted = path.split('/').filter(|part| part.starts_with('{'));
        assert_eq!(named, wanted.map(str::to_owned).collect(), "{path}");
    }
}

#[tokio::test]
async fn every_code_is_answered_somewhere_with_its_status() {
    let server = TestServer::start().await;
    let description = description(&server).await;
    let listed = &description["components"]["schemas"]["Problem"]["properties"]["code"]["enum"];
    let operations = operations(&description);
    for code in ProblemCode::ALL {
        let (name, status) = (code.as_str(), code.status().as_u16().to_string());
        assert!(listed.as_array().unwrap().contains(&json!(name)), "{name}");
        let answered = operations.iter().any(|(_, _, operation)| {
            let problem = &operation["responses"][&status]["content"]["application/problem+json"];
            problem["examples"][name]["value"]["code"] == name
        });
        assert!(answered, "no operation answers {name}");
    }
}

#[tokio::test]
async fn every_code_that_a_route_names_is_one() {
    let server = TestServer::start().await;
    for (path, method, operation) in operations(&description(&server).await) {
        // Responses without a problem code stay as the route describes them.
        let unknown = &operation["x-problems"];
        assert!(unknown.is_null(), "{method} {path}: {unknown} is no code");
    }
}

#[tokio::test]
async fn references_lead_somewhere() {
    let server = TestServer::start().await;
    let description = description(&server).await;
    let text = description.to_string();
    let mut seen = 0;
    for reference in text.split("\"$ref\":\"#").skip(1) {
        let pointer = reference.split('"').next().unwrap();
        assert!(description.pointer(pointer).is_some(), "{pointer}");
        seen += 1;
    }
    assert!(seen > 10);
    // An unreferenced schema is a leftover of a renamed type.
    for name in description["components"]["schemas"]
        .as_object()
        .unwrap()
        .keys()
    {
        let used = format!("\"#/components/schemas/{name}\"");
        assert!(text.contains(&used), "{name} is unused");
    }
}

#[tokio::test]
async fn every_route_below_api_names_an_unknown_query_parameter() {
    let server = TestServer::start().await;
    let body = json!({ "content": "x", "name": "safe", "password": "p" });
    server.publish_slug(&body).await;
    let mut seen = 0;
    let fixture = OpenapiFixture::new(&server).await;
    let share = server.deploy(&json!({ "content": "x" })).await;
    for (path, method, operation) in operations(&description(&server).await) {
        if !path.starts_with("/api/") && !calls_backend(&path) {
            continue;
        }
        // A key lacks the roles for operations on workspaces, and cannot create one; the test of the roles table covers them.
        let makes_workspace = path == "/api/v1/workspaces" && method == Method::POST;
        if path.starts_with("/api/v1/workspaces/{id}") || makes_workspace {
            continue;
        }
        let owned = path.starts_with("/api/v1/projects")
            || operation["security"].to_string().contains("bearer");
        let by_token = operation["security"].to_string().contains("delete_token");
        let path = match by_token {
            true => path.replace("{id}", share["id"].as_str().unwrap()),
            false => fixture.fill_path(&path, "safe"),
        };
        let path = format!("{path}?surprise=1");
        let request = if by_token {
            let token = share["delete_token"].as_str().unwrap();
            server.request(method, &path).bearer_auth(token)
        } else if owned {
            fixture.owner.request(&server, method, &path)
        } else {
            server.request(method, &path)
        };
        // Raw bytes need a length, and clients leave out that of none.
        let request = match path.contains("/blobs/") || path.contains("/files/") {
            true => request.header("content-length", 0),
            false => request,
        };
        let answer = request.answer().await;
        // Of a domain, or a visitor's file, that is not there.
        if answer.status == 404 && (path.contains("/domains/") || path.contains("/api/files/")) {
            seen += 1;
            continue;
        }
        let problem = answer.problem(400, "invalid_request");
        assert!(
            problem["detail"].as_str().unwrap().contains("surprise"),
            "{path}"
        );
        seen += 1;
    }
    assert!(seen >= 27);
}

#[tokio::test]
async fn examples_of_requests_work() {
    let server = TestServer::start().await;
    let description = description(&server).await;
    let example =
        &description["components"]["schemas"]["DeployRequest"]["properties"]["content"]["example"];
    let body = json!({ "content": example, "type": "markdown" });
    server.deploy(&body).await;
}
