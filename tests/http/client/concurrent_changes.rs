//! Changes on the server between the plan of `svc apply` and its work.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::routing::any;
use http::Method;
use serde_json::json;
use svc_tests::run_command;

use super::apply::start_with_folder;
use super::failures::serve_router;

#[tokio::test]
async fn somebody_elses_release_is_not_overwritten_unseen() {
    let fixture = start_with_folder().await;
    fixture.run_for_stdout(&["apply", "--yes"]).await;
    fixture.write("about.md", "# About all of us\n");
    fixture.write("theirs.md", "# About them\n");
    // Another user publishes between the plan and the release.
    let meanwhile = fixture.command(&["push", "theirs.md", "--slug", "about"]);
    let revision = (Method::GET, "/about/revisions");
    let between = serve_with_interruption(fixture.url(), revision, meanwhile).await;
    let mut command = fixture.command(&["apply", "--yes"]);
    command.env("SVC_SERVER", format!("http://{between}"));
    let output = run_command(command).await;
    assert_eq!(output.code, Some(5), "{output:?}");
    assert!(output.stderr.contains("`about`"), "{output:?}");
    assert_eq!(fixture.fetch_source("about").await, "# About them\n");
}

/// An apply that was killed a moment ago may still be answered: what it asks for last comes after the next one has looked.
#[tokio::test]
async fn what_was_under_way_is_not_made_twice() {
    let fixture = start_with_folder().await;
    for created in ["/projects", "/backend", "/frontends"] {
        // The one before does all that is left, between the plan of this one and what it makes.
        let before = fixture.command(&["apply", "--yes"]);
        let between = serve_with_interruption(fixture.url(), (Method::POST, created), before).await;
        let mut command = fixture.command(&["apply", "--yes"]);
        command.env("SVC_SERVER", format!("http://{between}"));
        let output = run_command(command).await;
        assert!(output.success, "{created}: {output:?}");
        assert_eq!(
            fixture.json(&["apply"]).await["plan"],
            json!([]),
            "{created}"
        );
        let projects = fixture.json(&["project", "list"]).await;
        assert_eq!(projects["projects"].as_array().unwrap().len(), 1);
        let pages = fixture.json(&["frontend", "list"]).await;
        assert_eq!(pages["frontends"].as_array().unwrap().len(), 2, "{pages}");
        // A page that was deleted meanwhile is created again, though its source is unchanged.
        let gone: &[&str] = match created {
            "/projects" => &["backend", "delete", "--yes"],
            "/backend" => &["frontend", "delete", "about", "--yes"],
            _ => &["project", "delete", "Guest book", "--yes"],
        };
        fixture.run_for_stdout(gone).await;
    }
    fixture.run_for_stdout(&["apply", "--yes"]).await;
    assert_eq!(fixture.json(&["apply"]).await["plan"], json!([]));
    assert_eq!(fixture.fetch_source("about").await, "# About\n");
    // Under another name it is another project, which the folder's is made beside.
    fixture
        .run_for_stdout(&["project", "update", "Guest book", "--name", "Kept"])
        .await;
    fixture.run_for_stdout(&["apply", "--yes"]).await;
    let projects = fixture.json(&["project", "list"]).await;
    assert_eq!(projects["projects"].as_array().unwrap().len(), 2);
}

/// Starts a proxy that runs a command before the first request with this method and end of path.
async fn serve_with_interruption(
    server: String,
    (method, end): (Method, &'static str),
    command: Command,
) -> SocketAddr {
    let command = Arc::new(Mutex::new(Some(command)));
    let client = svc_tests::http_client().no_proxy().build().unwrap();
    let pass = move |request: Request| {
        let (command, client, server) = (Arc::clone(&command), client.clone(), server.clone());
        let is_due = request.method() == method && request.uri().path().ends_with(end);
        async move {
            let (parts, body) = request.into_parts();
            let due = is_due.then(|| command.lock().unwrap().take()).flatten();
            if let Some(command) = due {
                let output = run_command(command).await;
                assert!(output.success, "{output:?}");
            }
            let mut headers = parts.headers;
            headers.remove("host");
            let sent = client
                .request(parts.method, format!("{server}{}", parts.uri))
                .headers(headers)
                .body(to_bytes(body, 1 << 20).await.unwrap());
            let answer = sent.send().await.unwrap();
            let mut headers = answer.headers().clone();
            headers.remove("transfer-encoding");
            (answer.status(), headers, answer.bytes().await.unwrap())
        }
    };
    serve_router(Router::new().fallback(any(pass))).await
}
