//! Authority: every owner route gives the same answers to those who are not its owner.

use http::Method;
use serde_json::json;
use svc_tests::{ReadAnswer, TestServer};

use crate::openapi::{description, operations};
use crate::owner::Owner;
use crate::svc;

const UNUSED_ID: &str = "00000000-0000-7000-8000-000000000000";
const MISSING_ID: &str = "01a1fc50-0000-7000-8000-000000000000";

/// Every operation that the description secures: its method, and its path below a project's.
async fn owner_routes(server: &TestServer) -> Vec<(Method, String)> {
    let operations = operations(&description(server).await).into_iter();
    let secured = operations.filter(|(_, _, operation)| {
        let schemes = operation["security"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        !schemes.is_empty() && schemes.iter().all(|scheme| scheme.get("bearer").is_some())
    });
    let routes: Vec<_> = secured.map(|(path, method, _)| (method, path)).collect();
    assert!(routes.len() >= 23, "{routes:?}");
    routes
}

fn owner_path(path: &str, project: &str) -> String {
    path.replace("{id}", project)
        .replace("{target}", "room")
        .replace("{slug}", "room")
        .replace("{revision_id}", MISSING_ID)
        .replace("{user_id}", "usr_nobody")
        .replace("{key_id}", "23456789")
}

#[tokio::test]
async fn without_a_valid_credential_every_owner_route_is_a_401() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    let made = server
        .command(&svc(), &["key", "create", "acme", "--json"])
        .await
        .json();
    let (key, revoked) = (
        made["key_id"].as_str().unwrap(),
        made["credential"].as_str().unwrap(),
    );
    let answer = server
        .command(&svc(), &["key", "revoke", "acme", key])
        .await;
    assert!(answer.success, "{answer:?}");
    let mut wrong = owner.credential.clone();
    wrong.replace_range(14..15, if &wrong[14..15] == "x" { "y" } else { "x" });
    for (method, path) in owner_routes(&server).await {
        let path = owner_path(&path, &project);
        let send_request = || server.request(method.clone(), &path);
        let answer = send_request().answer().await;
        answer.problem(401, "unauthorized");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{path}");
        for bad in ["nonsense", &wrong, revoked] {
            let answer = send_request().bearer_auth(bad).answer().await;
            answer.problem(401, "unauthorized");
            let challenge = answer.header("www-authenticate");
            assert_eq!(challenge, Some("Bearer error=\"invalid_token\""), "{path}");
        }
        let in_query = format!("{path}?access_token={}", owner.credential);
        server
            .request(method, &in_query)
            .answer()
            .await
            .problem(401, "unauthorized");
    }
}

#[tokio::test]
async fn what_is_somebody_elses_is_a_403_and_what_is_nobodys_a_404() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let stranger = Owner::new(&server, "other").await;
    let project = owner.project(&server, "House").await;
    owner.frontend(&server, &project, "room").await;
    // An id has one spelling; others are nobody's.
    let undashed = project.replace('-', "");
    for (method, path) in owner_routes(&server).await {
        if !path.starts_with("/api/v1/projects/{id}") {
            continue;
        }
        for (id, status, code) in [
            (project.as_str(), 403, "forbidden"),
            (UNUSED_ID, 403, "forbidden"),
            (MISSING_ID, 404, "not_found"),
            ("nonsense", 404, "not_found"),
            (&undashed, 404, "not_found"),
            (&format!("urn:uuid:{project}"), 404, "not_found"),
        ] {
            let request = stranger.request(&server, method.clone(), &owner_path(&path, id));
            let answer = request.answer().await;
            if method == Method::DELETE && path.ends_with("{id}") && status == 404 {
                answer.expect(204);
            } else {
                answer.problem(status, code);
            }
        }
    }
    owner
        .get(&server, &format!("/{project}/frontends/room"))
        .await
        .expect(200);
}

#[tokio::test]
async fn checks_of_owner_routes_run_in_their_order() {
    let server = TestServer::start().await;
    let (owner, stranger) = (
        Owner::new(&server, "acme").await,
        Owner::new(&server, "other").await,
    );
    let project = owner.project(&server, "House").await;
    let path = format!("/api/v1/projects/{project}/frontends");
    // Longer than a site may be.
    let large = || json!({ "content": "x".repeat(4_300_000) }).to_string();
    // The method before the credential, the credential before the length, the length before the owner.
    server
        .request(Method::PATCH, &path)
        .answer()
        .await
        .problem(405, "method_not_allowed");
    server
        .post(&path)
        .body(large())
        .answer()
        .await
        .problem(401, "unauthorized");
    let request = stranger.request(&server, Method::POST, &path);
    request
        .body(large())
        .answer()
        .await
        .problem(413, "payload_too_large");
    let request = stranger.request(&server, Method::POST, &path);
    request.body("{").answer().await.problem(403, "forbidden");
    let request = owner.request(&server, Method::POST, &path);
    request
        .body("{")
        .answer()
        .await
        .problem(400, "invalid_json");
    let project = format!("/api/v1/projects/{project}");
    for (method, path) in [
        (Method::GET, "/api/v1/projects"),
        (Method::DELETE, project.as_str()),
    ] {
        let request = stranger.request(&server, method, &format!("{path}?x=1"));
        request
            .body(large())
            .answer()
            .await
            .problem(413, "payload_too_large");
    }
    // A missing resource is reported before an invalid query.
    for (path, status) in [("", 400), ("/room", 404), ("/room/content", 404)] {
        let path = format!("{project}/frontends{path}?x=1");
        let answer = owner.request(&server, Method::GET, &path).answer().await;
        assert_eq!(answer.status, status, "{path}");
    }
    for below in ["revisions", &format!("revisions/{MISSING_ID}"), "releases"] {
        let path = format!("{project}/frontends/room/{below}?x=1");
        let request = owner.request(&server, Method::GET, &path);
        request.answer().await.problem(404, "not_found");
    }
    let delete = |who: &Owner, path: &str| who.request(&server, Method::DELETE, path).answer();
    delete(&stranger, &format!("{project}?x=1"))
        .await
        .problem(403, "forbidden");
    delete(&owner, &format!("{project}?x=1"))
        .await
        .problem(400, "invalid_request");
    delete(&owner, &format!("/api/v1/projects/{MISSING_ID}?x=1"))
        .await
        .expect(204);
    delete(&owner, &project).await.expect(204);
}

#[tokio::test]
async fn an_owner_has_a_bucket_of_their_own() {
    let limits = TestServer::builder().limits(|limits| {
        limits.owner_burst = 3;
        limits.owner_per_minute = 60;
    });
    let server = limits.start().await;
    let (one, other) = (
        Owner::new(&server, "one").await,
        Owner::new(&server, "other").await,
    );
    for left in ["2", "1", "0"] {
        let answer = one.get(&server, "").await.expect(200);
        let state = format!("\"owner\";r={left};t=1");
        assert_eq!(answer.header("ratelimit"), Some(state.as_str()));
        assert_eq!(
            answer.header("ratelimit-policy"),
            Some("\"owner\";q=60;w=60")
        );
    }
    let refused = one.get(&server, "").await;
    refused.problem(429, "rate_limited");
    assert_eq!(refused.header("retry-after"), Some("60"));
    other.get(&server, "").await.expect(200);
    server.advance(1);
    one.get(&server, "").await.expect(200);
}
