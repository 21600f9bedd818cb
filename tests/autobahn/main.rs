//! The Autobahn test suite before the server's own WebSocket codec, which echoes for it: `just autobahn`.
//!
//! The suite runs on Python 2.7 alone, so that no plain run of the tests can count on it; `tests/websockets` has its groups of
//! cases for clients of today. A relay of texts closes binary messages, and agrees on no compression: that is looked at, too.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::IntoResponse;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde_json::{Value, json};
use svc::http::stall::StallTimeoutStream;
use svc::http::websocket::{self, AcceptedUpgrade, UpgradeRequest, frame};
use tokio::net::{TcpListener, TcpStream};

/// The largest message of the suite, in bytes.
const LARGEST_MESSAGE: usize = 16 << 20;
/// More messages than a case has on their way at once.
const QUEUE: usize = 100_000;
/// The name of the server in the suite's report.
const AGENT: &str = "svc";
/// Cases whose messages are binary.
const BINARY: [&str; 5] = ["1.2.", "9.2.", "9.4.", "9.6.", "9.8."];
/// Cases of compression.
const COMPRESSION: [&str; 2] = ["12.", "13."];

/// Echoes every text of a connection.
async fn echo(accepted: AcceptedUpgrade) {
    let Some(socket) = accepted.into_socket(LARGEST_MESSAGE).await else {
        return;
    };
    let (outbox, mut running) = socket.open(QUEUE);
    outbox.allow_reading_before_write();
    let mut answer = |incoming: websocket::SocketEvent<'_>| {
        if let websocket::SocketEvent::Text(text) = incoming {
            // A closed connection is not answered.
            let _ = outbox.push(frame::text_frame(text));
        }
        Ok(())
    };
    running.run(&mut answer).await;
    running.end().await;
}

async fn serve(stream: TcpStream) {
    let service = service_fn(|request: hyper::Request<Incoming>| async move {
        let mut request: Request = request.map(Body::new);
        let response = match UpgradeRequest::from_request(&mut request) {
            Ok(upgrade) => {
                let (response, accepted) = upgrade.accept();
                tokio::spawn(echo(accepted));
                response
            }
            Err(problem) => problem.into_response(),
        };
        Ok::<_, Infallible>(response)
    });
    let stream = TokioIo::new(StallTimeoutStream::new(stream, Duration::from_secs(60)));
    let builder = auto::Builder::new(TokioExecutor::new());
    // A connection that breaks is the client's affair.
    let _ = builder
        .serve_connection_with_upgrades(stream, service)
        .await;
}

async fn start() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    address
}

fn required_variable(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set: run `just autobahn`"))
}

/// Has the suite try everything; answers its report, case by case.
fn run_suite(address: SocketAddr, directory: &Path) -> Value {
    let home = PathBuf::from(required_variable("AUTOBAHN_HOME"))
        .canonicalize()
        .unwrap();
    let reports = directory.join("reports");
    let specification = json!({
        "options": { "failByDrop": false },
        "outdir": &reports,
        "servers": [{ "agent": AGENT, "url": format!("ws://{address}"), "options": { "version": 18 } }],
        "cases": ["*"],
        "exclude-cases": [],
        "exclude-agent-cases": {},
    });
    let file = directory.join("fuzzingclient.json");
    std::fs::write(&file, specification.to_string()).unwrap();
    let mut suite = Command::new(required_variable("AUTOBAHN_PYTHON"));
    suite.env("PYTHONPATH", &home).current_dir(directory);
    suite.arg(home.join("bin/wstest"));
    let output = suite
        .args(["-m", "fuzzingclient", "-s"])
        .arg(&file)
        .output()
        .unwrap();
    let index = std::fs::read(reports.join("index.json"));
    let index = index.unwrap_or_else(|_| panic!("{output:?}"));
    let mut index: Value = serde_json::from_slice(&index).unwrap();
    index[AGENT].take()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_case_that_applies_passes() {
    let address = start().await;
    let directory = tempfile::TempDir::new().unwrap();
    let path = directory.path().to_owned();
    let report = tokio::task::spawn_blocking(move || run_suite(address, &path)).await;
    let report = report.unwrap();
    let cases = report.as_object().unwrap();
    let mut counts = std::collections::BTreeMap::new();
    let mut wrong = Vec::new();
    for (case, found) in cases {
        let (behavior, closing) = (&found["behavior"], &found["behaviorClose"]);
        let begins = |groups: &[&str]| groups.iter().any(|group| case.starts_with(group));
        let is_right = if begins(&BINARY) {
            found["remoteCloseCode"] == 1003
        } else if begins(&COMPRESSION) {
            behavior == "UNIMPLEMENTED"
        } else {
            let passes = ["OK", "NON-STRICT", "INFORMATIONAL"];
            passes.iter().any(|pass| behavior == pass) && passes.iter().any(|pass| closing == pass)
        };
        if !is_right {
            wrong.push(format!("{case}: {found}"));
        }
        let group = case.split('.').next().unwrap().to_owned();
        *counts.entry((group, behavior.to_string())).or_insert(0) += 1;
    }
    println!("{counts:?}");
    assert!(cases.len() > 300, "{} cases", cases.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
