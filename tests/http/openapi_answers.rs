//! Answers on the wire are in the description: the status, and the kind of content.

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Answer, ReadAnswer, TestServer, wait_until};

use crate::openapi::{BELOW_SITES, description, fill_path, operations};
use crate::owner::Owner;
use crate::svc;

/// The description of the answer, by its status and kind.
fn answer_description<'a>(operation: &'a Value, answer: &Answer) -> Option<&'a Value> {
    let kind = answer.header("content-type").unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default();
    let response = &operation["responses"][answer.status.to_string()];
    let content = response["content"].get(kind);
    if answer.body.is_empty() {
        return Some(response).filter(|response| !response.is_null());
    }
    content
}

#[tokio::test]
async fn a_method_that_an_address_does_not_have_is_described_for_programs_and_for_browsers() {
    let server = TestServer::start().await;
    for (path, _, operation) in operations(&description(&server).await) {
        // Below a page that is no site nothing is, whatever the method.
        if path == BELOW_SITES[0] {
            continue;
        }
        for accept in ["application/json", "text/html"] {
            let request = server.request(Method::TRACE, &fill_path(&path, "page"));
            let answer = request.header("accept", accept).answer().await;
            assert_eq!(answer.status, 405, "{path}: {}", answer.text());
            let found = answer_description(&operation, &answer);
            assert!(found.is_some(), "{path} for {accept}");
            assert!(answer.header("allow").is_some(), "{path}");
            let allow = &operation["responses"]["405"]["headers"]["Allow"];
            assert!(!allow.is_null(), "{path}");
        }
    }
}

#[tokio::test]
async fn what_browsers_get_of_pages_is_described() {
    let server = TestServer::builder().system_clock().start().await;
    for (name, source, kind) in [
        ("plain", "x", "html"),
        ("rows", "a,b\n1,2", "csv"),
        ("data", "[1]", "json"),
        ("off", "x", "html"),
    ] {
        let body = json!({ "name": name, "content": source, "type": kind });
        server.publish_slug(&body).await;
    }
    let locked = json!({ "name": "locked", "content": "x", "password": "p" });
    server.publish_slug(&locked).await;
    let (command, disable) = (svc(), ["deployment", "disable", "off"]);
    assert!(server.command(&command, &disable).await.success);
    let refused = async || (server.get("/off").answer().await.status == 403).then_some(());
    wait_until("the page to be disabled", refused).await;
    let description = description(&server).await;
    let (get, post) = (Method::GET, Method::POST);
    let form = ("content-type", "application/x-www-form-urlencoded");
    let range = ("range", "bytes=0-1");
    let beyond = ("range", "bytes=9000000-");
    for (method, route, path, header, status) in [
        (&get, "/{slug}", "/nowhere", range, 404),
        (&get, "/{slug}", "/off", range, 403),
        (&get, "/{slug}", "/plain", beyond, 416),
        (&get, "/{slug}", "/plain", range, 206),
        (&post, "/{slug}", "/nowhere", range, 404),
        (&post, "/{slug}", "/plain", range, 405),
        (&get, "/{slug}/", "/nowhere/", range, 404),
        (&get, "/{slug}/", "/off/", range, 403),
        (&get, "/{slug}/raw", "/plain/raw", range, 206),
        (&get, "/{slug}/raw", "/rows/raw", range, 206),
        (&get, "/{slug}/raw", "/data/raw", range, 206),
        (&get, "/{slug}/raw", "/rows/raw", form, 200),
        (&get, "/{slug}/raw", "/data/raw", form, 200),
        (&get, "/{slug}/raw", "/nowhere/raw", form, 404),
        (
            &get,
            "/_preview/{deployment_id}/{revision_id}/",
            "/_preview/a/b/",
            range,
            404,
        ),
        (
            &get,
            "/_preview/{deployment_id}/{revision_id}",
            "/_preview/a/b",
            range,
            404,
        ),
        (&get, "/problems/{code}", "/problems/none", range, 404),
        (
            &post,
            "/api/v1/auth/{slug}",
            "/api/v1/auth/locked",
            form,
            401,
        ),
        (&post, "/{slug}/api/op", "/plain/api/op", form, 404),
    ] {
        let operation = &description["paths"][route][method.as_str().to_lowercase()];
        for accept in ["application/json", "text/html"] {
            let request = server
                .request(method.clone(), path)
                .header("accept", accept);
            let request = request.header(header.0, header.1);
            let answer = match path.starts_with("/api/") {
                true => request.body("password=wrong").answer().await,
                false => request.answer().await,
            };
            assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
            let kind = answer.header("content-type");
            let found = answer_description(operation, &answer);
            assert!(found.is_some(), "{method} {path}, {status}: {kind:?}");
        }
    }
}

#[tokio::test]
async fn what_the_way_to_a_projects_only_page_answers_is_described() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    let found = owner.get(&server, &format!("/{project}")).await.json();
    let host = found["url"].as_str().unwrap().split("://").nth(1).unwrap();
    let operation = &description(&server).await["paths"]["/"]["get"];
    for status in [404, 302] {
        let answer = server.get_raw(host, "/").await.expect(status);
        assert!(answer_description(operation, &answer).is_some(), "{status}");
        owner
            .frontend(&server, &project, &format!("room{status}"))
            .await;
    }
}

#[tokio::test]
async fn bad_bodies_of_calls_and_members_of_problems_are_described() {
    let server = TestServer::start().await;
    let description = description(&server).await;
    for path in ["/{slug}/api/op", "/{slug}/api/query"] {
        let bad = &description["paths"][path]["post"]["responses"]["400"];
        let examples = &bad["content"]["application/problem+json"]["examples"];
        assert!(!examples["invalid_request"].is_null(), "{path}");
        assert!(!examples["invalid_json"].is_null(), "{path}");
    }
    let members = &description["components"]["schemas"]["Problem"]["properties"];
    // Every member that a problem is ever given.
    let mut given = 0;
    for source in [
        include_str!("../../host/backends/src/backends/problems.rs"),
        include_str!("../../host/backends/src/backends/calls/requests.rs"),
        include_str!("../../host/pages/src/deployments/frontends/problems.rs"),
        include_str!("../../host/pages/src/deployments/publication/problems.rs"),
        include_str!("../../host/pages/src/deployments/revisions/problems.rs"),
    ] {
        for with in source.split(".with(").skip(1) {
            let name = with.trim_start().trim_start_matches('"');
            let name = name.split('"').next().unwrap();
            assert!(!members[name].is_null(), "{name}");
            given += 1;
        }
    }
    assert!(given >= 12, "{given}");
}
