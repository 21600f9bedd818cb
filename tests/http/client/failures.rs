//! Failures between a command and its server: each with its number, and with what to do.

use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt as _;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{any, get};
use rustix::process::Signal;
use serde_json::{Value, json};
use svc_tests::{run_command, wait_until};
use tokio::net::TcpListener;

use super::{ClientFixture, RunningCommand, list_files};

/// Serves a router, as a server that is not quite ours.
pub(super) async fn serve_router(router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    address
}

/// Runs a command of the owner against another address.
async fn run_against(
    fixture: &ClientFixture,
    address: SocketAddr,
    arguments: &[&str],
) -> svc_tests::Output {
    let mut command = fixture.command(arguments);
    command.env("SVC_SERVER", format!("http://{address}"));
    run_command(command).await
}

fn problem_response(status: u16, code: &str) -> impl IntoResponse + Clone + use<> {
    let document = json!({"type": "x", "title": "Not found", "status": status, "detail": "Nothing.", "code": code});
    let status = StatusCode::from_u16(status).unwrap();
    (
        status,
        [(header::CONTENT_TYPE, "application/problem+json")],
        document.to_string(),
    )
}

#[tokio::test]
async fn without_a_server_it_is_said_which() {
    let fixture = ClientFixture::new().await;
    fixture.write("a.md", "# A");
    let nobody: SocketAddr = "127.0.0.1:1".parse().unwrap();
    let output = run_against(&fixture, nobody, &["publish", "a.md"]).await;
    assert_eq!(output.code, Some(6), "{output:?}");
    assert!(
        output
            .stderr
            .contains("http://127.0.0.1:1/ cannot be reached"),
        "{output:?}"
    );
    // Programs read it, too.
    let output = run_against(&fixture, nobody, &["project", "list", "--json"]).await;
    let document: Value = serde_json::from_str(&output.stderr).unwrap();
    assert_eq!(document["error"]["exit"], 6);
    assert!(output.stdout.is_empty());
    for wrong in ["ftp://a.example", "http://a.example/b"] {
        let output = run_command(
            fixture.command_without_credential(&["publish", "a.md", "--server", wrong]),
        )
        .await;
        assert_eq!(output.code, Some(1), "{output:?}");
    }
}

#[tokio::test]
async fn what_does_not_answer_as_svc_is_told_from_it() {
    let fixture = ClientFixture::new().await;
    fixture.write("a.md", "# A");
    for (status, body) in [
        (200, "<h1>Welcome to nginx!</h1>"),
        (502, "Bad gateway"),
        (404, "{}"),
        (200, "[1]"),
    ] {
        let status = StatusCode::from_u16(status).unwrap();
        let other =
            serve_router(Router::new().fallback(any(move || async move { (status, body) }))).await;
        let output = run_against(&fixture, other, &["project", "list", "--json"]).await;
        if body == "[1]" {
            // A document, and yet no list of projects.
            let output = run_against(&fixture, other, &["project", "show", "x"]).await;
            assert_eq!(output.code, Some(6), "{output:?}");
            continue;
        }
        assert_eq!(output.code, Some(6), "{output:?}");
        assert!(output.stderr.contains("not as svc does"), "{output:?}");
    }
}

#[tokio::test]
async fn a_credential_that_is_wrong_or_missing_says_so() {
    let fixture = ClientFixture::new().await;
    let mut wrong = fixture.command(&["project", "list"]);
    wrong.env("SVC_CREDENTIAL", "svc_wrongwro_0");
    let output = run_command(wrong).await;
    assert_eq!(output.code, Some(3), "{output:?}");
    assert!(
        output.stderr.contains("svc login") && !output.stderr.contains("wrongwro"),
        "{output:?}"
    );
    // A share needs none.
    fixture.write("a.md", "# A");
    let mut share = fixture.command(&["publish", "a.md"]);
    share.env("SVC_CREDENTIAL", "svc_wrongwro_0");
    assert!(run_command(share).await.success);
    let output = run_command(fixture.command_without_credential(&[
        "project",
        "list",
        "--server",
        &fixture.url(),
    ]))
    .await;
    assert_eq!(output.code, Some(3), "{output:?}");
    assert!(
        output.stderr.contains("`svc login URL` keeps a credential"),
        "{output:?}"
    );
}

#[tokio::test]
async fn an_older_server_is_told_from_a_wrong_address() {
    let fixture = ClientFixture::new().await;
    let mut description = fixture
        .server
        .get("/api/v1/openapi.json")
        .await
        .expect(200)
        .json();
    let paths = description["paths"].as_object_mut().unwrap();
    paths
        .remove("/api/v1/projects/{id}/backend/history")
        .unwrap();
    for schema in ["DeployRequest", "DeploySite"] {
        let members = &mut description["components"]["schemas"][schema]["properties"];
        let members = members.as_object_mut().unwrap();
        members.remove("expires_in").unwrap();
    }
    let projects = json!({"projects": [{"id": "1", "name": "A", "host_label": "a", "description": null, "home": null, "backend": null}]});
    let old = Router::new()
        .route(
            "/api/v1/openapi.json",
            get(move || async move { axum::Json(description) }),
        )
        .route(
            "/api/v1/projects",
            get(move || async move { axum::Json(projects) }),
        )
        .route(
            "/api/v1/deploy",
            any(|| async { problem_response(400, "invalid_request") }),
        )
        .fallback(any(|| async { problem_response(404, "not_found") }));
    let old = serve_router(old).await;
    let output = run_against(&fixture, old, &["backend", "history"]).await;
    assert_eq!(output.code, Some(1), "{output:?}");
    let said = "does not know `GET /api/v1/projects/{id}/backend/history`";
    assert!(
        output.stderr.contains("too old") && output.stderr.contains(said),
        "{output:?}"
    );
    // A server that knows the request, but not one of its members.
    fixture.write("a.md", "# A");
    let output = run_against(&fixture, old, &["publish", "a.md", "--expires-in", "1h"]).await;
    assert!(
        output
            .stderr
            .contains("`expires_in` of `POST /api/v1/deploy`"),
        "{output:?}"
    );
    // A missing resource of a known route is reported as not found.
    let output = run_against(&fixture, old, &["backend", "show"]).await;
    assert_eq!(output.code, Some(4), "{output:?}");
    assert!(output.stderr.contains("Nothing."), "{output:?}");
}

#[tokio::test]
async fn what_is_too_large_is_refused_with_the_reason() {
    let fixture = ClientFixture::new().await;
    fixture.write("large.md", &"# Large\n\n".repeat(200_000));
    let refused = fixture.run_for_failure(1, &["publish", "large.md"]).await;
    assert!(
        refused.contains("Too large") && refused.contains("1048576"),
        "{refused}"
    );
    // An answer that is no page is not read.
    let huge = std::fs::File::create(fixture.path_of("huge.md")).unwrap();
    huge.set_len(10 << 30).unwrap();
    let refused = fixture.run_for_failure(1, &["publish", "huge.md"]).await;
    assert!(
        refused.contains("huge.md") && refused.contains("Nothing was sent"),
        "{refused}"
    );
    fixture.write("picture.md", "\u{0}PNG");
    let refused = fixture.run_for_failure(1, &["publish", "picture.md"]).await;
    assert!(refused.contains("UTF-8"), "{refused}");
    fixture.run_for_failure(4, &["publish", "missing.md"]).await;
    fixture.run_for_failure(1, &["publish", "."]).await;
    fixture.run_for_failure(2, &["publish"]).await;
}

#[tokio::test]
async fn a_server_without_room_is_waited_for_only_by_long_work() {
    let fixture = ClientFixture::new().await;
    let busy = || async {
        let (status, headers, body) = (
            StatusCode::TOO_MANY_REQUESTS,
            [(header::RETRY_AFTER, "1")],
            json!({"title": "Too many requests", "detail": "Wait.", "code": "rate_limited"})
                .to_string(),
        );
        (status, headers, body)
    };
    let full = serve_router(Router::new().fallback(any(busy))).await;
    let output = run_against(&fixture, full, &["project", "list"]).await;
    assert_eq!(output.code, Some(7), "{output:?}");
    fixture.write("svc.toml", "project = \"A\"");
    let mut command = fixture.command(&["apply"]);
    command.env("SVC_SERVER", format!("http://{full}"));
    let waiting = RunningCommand::start(&command);
    waiting.wait_for_stderr("waiting for 1 s").await;
}

#[tokio::test]
async fn ctrl_c_ends_a_command_in_the_middle() {
    let fixture = ClientFixture::new().await;
    fixture.write("a.md", "# A");
    // A server that takes the request and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut command = fixture.command(&["publish", "a.md"]);
    command.env(
        "SVC_SERVER",
        format!("http://{}", silent.local_addr().unwrap()),
    );
    let mut running = RunningCommand::start(&command);
    let _connection = silent.accept().await.unwrap();
    running.signal(Signal::INT);
    assert_eq!(
        running.wait_for_exit().await.signal(),
        Some(2),
        "{}",
        running.stderr()
    );
    assert!(running.stdout().is_empty());
    // Half a copy is no copy.
    let projects = json!({"projects": [{"id": "1", "name": "A", "host_label": "a", "description": null, "home": null, "backend": {"id": "1"}}]});
    let half = || async {
        let first = futures_util::stream::once(async {
            Ok::<_, std::io::Error>(Bytes::from_static(b"SQLite format 3"))
        });
        Body::from_stream(futures_util::StreamExt::chain(
            first,
            futures_util::stream::pending(),
        ))
    };
    let slow = Router::new()
        .route(
            "/api/v1/projects",
            get(move || async move { axum::Json(projects) }),
        )
        .route("/api/v1/projects/{id}/backend/export", get(half));
    let mut command = fixture.command(&["backend", "export"]);
    command.env("SVC_SERVER", format!("http://{}", serve_router(slow).await));
    let mut running = RunningCommand::start(&command);
    wait_until("the first bytes of a copy", async || {
        let names = list_files(fixture.folder.path());
        names.iter().any(|name| name != "a.md").then_some(())
    })
    .await;
    running.signal(Signal::INT);
    assert_eq!(
        running.wait_for_exit().await.code(),
        Some(130),
        "{}",
        running.stderr()
    );
    assert_eq!(list_files(fixture.folder.path()), ["a.md"]);
}
