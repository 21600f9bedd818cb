//! Changes on the server between the plan of `svc apply` and its work.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
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
    // It comes before the dry run, and before the release.
    for (number, theirs) in [(1, "# About them\n"), (2, "# About them all\n")] {
        fixture.write("theirs.md", theirs);
        let meanwhile = fixture.command(&["push", "theirs.md", "--slug", "about", "-m", "Theirs"]);
        let release = (Method::POST, "/release", number);
        let between = serve_with_interruption(fixture.url(), release, meanwhile).await;
        let mut command = fixture.command(&["apply", "--yes"]);
        command.env("SVC_SERVER", format!("http://{between}"));
        let output = run_command(command).await;
        assert_eq!(output.code, Some(5), "{output:?}");
        let is_told = output
            .stderr
            .contains("page about: both have changed it; the server's was released 20")
            && output.stderr.contains(": Theirs");
        assert!(is_told, "{output:?}");
        assert_eq!(fixture.fetch_source("about").await, theirs);
    }
}

/// An apply that was killed a moment ago may still be answered: what it asks for last comes after the next one has looked.
#[tokio::test]
async fn what_was_under_way_is_not_made_twice() {
    let fixture = start_with_folder().await;
    for (created, number) in [("/projects", 1), ("/release", 1), ("/release", 2)] {
        // The one before does all that is left, between the plan of this one and what it makes.
        let before = fixture.command(&["apply", "--yes"]);
        let between =
            serve_with_interruption(fixture.url(), (Method::POST, created, number), before).await;
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
        fixture
            .run_for_stdout(&["project", "delete", "Guest book", "--yes"])
            .await;
        if number == 1 {
            // The project is there, and all else is still to come.
            fixture
                .run_for_stdout(&["project", "create", "Guest book"])
                .await;
        }
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

/// Starts a proxy that runs a command before the request of this number with this method and end of path.
async fn serve_with_interruption(
    server: String,
    (method, end, number): (Method, &'static str, u32),
    command: Command,
) -> SocketAddr {
    let command = Arc::new(Mutex::new((number, Some(command))));
    let client = svc_tests::http_client().no_proxy().build().unwrap();
    let pass = move |request: Request| {
        let (command, client, server) = (Arc::clone(&command), client.clone(), server.clone());
        let is_due = request.method() == method && request.uri().path().ends_with(end);
        async move {
            let due = is_due.then(|| count_down(&command)).flatten();
            if let Some(command) = due {
                let output = run_command(command).await;
                assert!(output.success, "{output:?}");
            }
            forward(&client, &server, request).await
        }
    };
    serve_router(Router::new().fallback(any(pass))).await
}

/// Passes a request on to a server.
pub(super) async fn forward(client: &reqwest::Client, server: &str, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let mut headers = parts.headers;
    headers.remove("host");
    let sent = client
        .request(parts.method, format!("{server}{}", parts.uri))
        .headers(headers)
        .body(to_bytes(body, 8 << 20).await.unwrap());
    let answer = sent.send().await.unwrap();
    let mut headers = answer.headers().clone();
    headers.remove("transfer-encoding");
    let status = answer.status();
    (status, headers, answer.bytes().await.unwrap()).into_response()
}

/// Takes the command when its number of requests is reached.
fn count_down(command: &Mutex<(u32, Option<Command>)>) -> Option<Command> {
    let mut waiting = command.lock().unwrap();
    waiting.0 = waiting.0.saturating_sub(1);
    match waiting.0 {
        0 => waiting.1.take(),
        _ => None,
    }
}

/// Starts a proxy that lists the requests that it passes on.
pub(super) async fn serve_with_record(server: String) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let client = svc_tests::http_client().no_proxy().build().unwrap();
    let listed = Arc::clone(&seen);
    let pass = move |request: Request| {
        let (client, server) = (client.clone(), server.clone());
        let line = format!("{} {}", request.method(), request.uri());
        listed.lock().unwrap().push(line);
        async move { forward(&client, &server, request).await }
    };
    let address = serve_router(Router::new().fallback(any(pass))).await;
    (address, seen)
}
