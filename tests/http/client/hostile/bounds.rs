//! Answers without an end: each command reads as much as such an answer may have, says so, and leaves nothing behind.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use serde_json::json;

use super::names::VictimFolder;
use super::{ID, command, run};
use crate::client::failures::serve_router;

/// Bound of bytes that a command may read into memory.
const READ_BOUND: u64 = 64 << 20;

/// Makes an endless body; counts its bytes as they are read.
fn endless_body(count: Arc<AtomicU64>) -> Body {
    let part = Bytes::from(vec![b' '; 1 << 16]);
    let parts = std::iter::repeat_with(move || {
        count.fetch_add(part.len() as u64, Ordering::Relaxed);
        Ok::<_, std::io::Error>(part.clone())
    });
    Body::from_stream(futures_util::stream::iter(parts))
}

#[tokio::test]
async fn an_answer_without_end_is_given_up() {
    let trap = VictimFolder::new();
    for status in [200, 400, 500] {
        let count = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&count);
        let answer = async move || {
            let status = StatusCode::from_u16(status).unwrap();
            (status, endless_body(counted))
        };
        let server = serve_router(Router::new().fallback(any(answer))).await;
        for arguments in [
            &["project", "list"][..],
            &["backend", "export"],
            &["pull", "new"],
            &["publish", "copy/page.md"],
            &["action", "call", "a", "--project", "Shop"],
        ] {
            let before = trap.snapshot();
            count.store(0, Ordering::Relaxed);
            let output = run(&trap, server, arguments).await;
            assert_eq!(output.code, Some(6), "{arguments:?}: {output:?}");
            let read = count.load(Ordering::Relaxed);
            assert!(read < READ_BOUND, "{arguments:?}: {read} bytes");
            assert!(trap.snapshot() == before, "{arguments:?}");
        }
    }
}

/// A truthful server of a project, but for one answer.
async fn serve_truth_except(
    last: &'static str,
    lie: impl Fn() -> Response + Clone + Send + Sync + 'static,
) -> std::net::SocketAddr {
    let project = json!({"id": ID, "name": "Shop", "host_label": "shop-acme", "description": null, "home": null, "backend": {"id": ID}});
    let page = json!({"id": ID, "slug": "page", "url": "http://a.localhost/page", "type": "markdown", "title": "Page", "state": "active"});
    let backend =
        json!({"id": ID, "migrations": [], "actions": [], "realtime": {"enabled": false}});
    let answer = async move |request: Request| {
        let path = request.uri().path().to_owned();
        let end = path.rsplit('/').next().unwrap_or_default();
        match end {
            end if end == last => lie(),
            "projects" => axum::Json(json!({ "projects": [project] })).into_response(),
            "frontends" => axum::Json(json!({ "frontends": [page] })).into_response(),
            "backend" => axum::Json(backend).into_response(),
            "catalog" => axum::Json(json!({ "products": [] })).into_response(),
            _ => axum::Json(page).into_response(),
        }
    };
    serve_router(Router::new().fallback(any(answer))).await
}

#[tokio::test]
async fn a_source_a_database_and_rows_have_their_bounds() {
    let trap = VictimFolder::new();
    let before = trap.snapshot();
    for (last, arguments) in [
        ("content", &["frontend", "content", "page"][..]),
        ("content", &["frontend", "content", "page", "-o", "new.md"]),
        ("content", &["frontend", "diff", "page", "copy/page.md"]),
        ("backend", &["backend", "show"]),
        ("backend", &["pull", "copy", "--yes"]),
        ("op", &["action", "call", "a"]),
        ("query", &["backend", "query", "SELECT 1"]),
    ] {
        let count = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&count);
        let server = serve_truth_except(last, move || {
            endless_body(Arc::clone(&counted)).into_response()
        })
        .await;
        let output = run(&trap, server, arguments).await;
        assert_eq!(output.code, Some(6), "{arguments:?}: {output:?}");
        assert!(
            output.stderr.contains("too large"),
            "{arguments:?}: {output:?}"
        );
        assert!(count.load(Ordering::Relaxed) < READ_BOUND, "{arguments:?}");
        assert!(trap.snapshot() == before, "{arguments:?}");
    }
}

/// Each page would be a request.
#[tokio::test]
async fn a_project_of_very_many_pages_is_not_begun() {
    let trap = VictimFolder::new();
    let before = trap.snapshot();
    let many = || {
        let page = |number: u32| json!({"id": ID, "slug": format!("p{number}"), "url": "http://a.localhost/p", "type": "markdown", "title": "P", "state": "active"});
        let pages: Vec<_> = (0..=10_000).map(page).collect();
        axum::Json(json!({ "frontends": pages })).into_response()
    };
    let server = serve_truth_except("frontends", many).await;
    let output = run(&trap, server, &["pull", "new", "--project", "Shop"]).await;
    assert_eq!(output.code, Some(6), "{output:?}");
    assert!(
        output.stderr.contains("more than 10000 files"),
        "{output:?}"
    );
    assert!(trap.snapshot() == before, "{output:?}");
}

/// A copy goes to the disk, so its bound is larger; what is announced beyond it is not begun.
#[tokio::test]
async fn a_copy_of_a_database_has_its_bound_and_leaves_nothing() {
    let trap = VictimFolder::new();
    let before = trap.snapshot();
    let announced = || {
        let length = (500_u64 << 30).to_string();
        let none = Arc::new(AtomicU64::new(0));
        ([(header::CONTENT_LENGTH, length)], endless_body(none)).into_response()
    };
    let broken = || {
        // The bytes that are sent before the connection breaks.
        let part = || Ok(Bytes::from_static(&[b'x'; 1 << 16]));
        let parts = std::iter::repeat_with(part).take(64);
        let parts = parts.chain([Err(std::io::Error::other("gone"))]);
        let body = Body::from_stream(futures_util::stream::iter(parts));
        ([(header::CONTENT_LENGTH, "100000000")], body).into_response()
    };
    let export = ["backend", "export"];
    let server = serve_truth_except("export", announced).await;
    let output = run(&trap, server, &export).await;
    assert_eq!(output.code, Some(6), "{output:?}");
    assert!(output.stderr.contains("more than 1024 MB"), "{output:?}");
    assert!(trap.snapshot() == before, "{output:?}");
    let server = serve_truth_except("export", broken).await;
    let output = run(&trap, server, &export).await;
    assert_eq!(output.code, Some(6), "{output:?}");
    assert!(output.stderr.contains("not whole"), "{output:?}");
    assert!(trap.snapshot() == before, "{output:?}");
}

/// A copy whose reader has ended is not read to its end for nobody.
#[tokio::test]
async fn a_copy_ends_with_its_reader() {
    let trap = VictimFolder::new();
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    let endless = move || endless_body(Arc::clone(&counted)).into_response();
    let server = serve_truth_except("export", endless).await;
    let mut export = command(&trap, server, &["backend", "export", "-o", "-"]);
    export.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = export.spawn().unwrap();
    drop(child.stdout.take());
    let waiting = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap());
    let output = waiting.await.unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("standard output"), "{said}");
    assert!(count.load(Ordering::Relaxed) < READ_BOUND);
}

/// A description of the API that has no end, or leads in circles, makes no error unclear that it was to make clearer.
#[tokio::test]
async fn a_description_without_end_is_left() {
    let trap = VictimFolder::new();
    let missing = || {
        let problem = json!({"title": "Not found", "detail": "Nothing.", "code": "not_found"});
        (StatusCode::NOT_FOUND, axum::Json(problem)).into_response()
    };
    let circle = json!({"paths": {"/api/v1/projects": {"get": {
        "parameters": [], "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/a"}}}},
    }}}, "a": {"oneOf": [{"$ref": "#/a"}, {"$ref": "#/a"}]}});
    let count = Arc::new(AtomicU64::new(0));
    for is_endless in [true, false] {
        let (circle, count) = (circle.clone(), Arc::clone(&count));
        let answer = async move |request: Request| match request.uri().path() {
            "/api/v1/openapi.json" if is_endless => endless_body(count).into_response(),
            "/api/v1/openapi.json" => axum::Json(circle).into_response(),
            _ => missing(),
        };
        let server = serve_router(Router::new().fallback(any(answer))).await;
        let output = run(&trap, server, &["project", "list"]).await;
        assert_eq!(output.code, Some(4), "{output:?}");
        assert!(output.stderr.contains("Nothing."), "{output:?}");
    }
    assert!(count.load(Ordering::Relaxed) < READ_BOUND);
}

/// Texts of a problem are a stranger's, too.
#[tokio::test]
async fn a_problem_steers_no_terminal() {
    let trap = VictimFolder::new();
    let hostile = "\u{1b}[2J\u{9b}31m\r\u{202e}\nerror: forged".repeat(1000);
    let problem = json!({
        "title": hostile, "detail": hostile, "code": hostile, "request_id": hostile, "reason": hostile, "position": {"line": hostile},
        "missing": [hostile, 5], "extra": {}, "errors": [{"name": hostile, "detail": hostile}, 5, {"name": 5}],
    });
    let answer = async move || (StatusCode::BAD_REQUEST, axum::Json(problem));
    let server = serve_router(Router::new().fallback(any(answer))).await;
    for arguments in [&["project", "list"][..], &["project", "list", "--json"]] {
        // `run` checks the output.
        let output = run(&trap, server, arguments).await;
        assert_eq!(output.code, Some(1), "{output:?}");
        let forged = output.stderr.lines().skip(1);
        assert!(
            !forged.clone().any(|line| line.starts_with("error")),
            "{output:?}"
        );
    }
}
