//! The socket of operators: whose it is, and what comes through it.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};
use svc_tests::wait_until;
use tempfile::TempDir;

use super::{CommandFixture, SOCKET, text};
use crate::svc;

#[tokio::test]
async fn the_socket_is_its_owners_and_ends_with_the_server() {
    let mut site = CommandFixture::start().await;
    let path = site.data.path().join(SOCKET);
    let socket = std::fs::metadata(&path).unwrap();
    assert!(socket.file_type().is_socket());
    assert_eq!(socket.permissions().mode() & 0o777, 0o600);
    // A server that was killed leaves its socket, which is in nobody's way.
    site.server.kill().await;
    assert!(path.exists());
    let run = async |site: &Path| {
        svc()
            .run(site, &["namespace", "create", "acme", "--json"])
            .await
    };
    run(site.data.path()).await.json();
    site.server = svc().serve(site.data.path(), &[]).await;
    let named = svc()
        .run(site.data.path(), &["namespace", "list", "--json"])
        .await
        .json();
    assert_eq!(named["namespaces"][0]["slug"], "acme");
    site.server.signal(Signal::TERM);
    let (status, _) = site.server.wait_for_exit().await;
    assert!(status.success());
    assert!(!path.exists(), "it is gone");
}

/// Says something to the socket; returns what is answered.
fn send_to_socket(data: &Path, request: &[u8]) -> Value {
    let mut stream = UnixStream::connect(data.join(SOCKET)).unwrap();
    stream.write_all(request).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    serde_json::from_str(&answer).unwrap()
}

#[tokio::test]
async fn what_is_no_request_of_this_version_is_told_why() {
    let site = CommandFixture::start().await;
    let version = env!("CARGO_PKG_VERSION");
    let send_request = |version: &str, operation: Value| {
        let asked = json!({ "version": version, "actor": "me", "operation": operation });
        send_to_socket(site.data.path(), asked.to_string().as_bytes())
    };
    let list = json!({ "namespace": { "list": {} } });
    let answered = send_request(version, list.clone());
    assert_eq!(answered["answer"]["document"], "{\"namespaces\":[]}");
    let cases = [
        (send_request("0.0.1", list), "this command svc 0.0.1"),
        (
            send_request(version, json!({ "nothing": {} })),
            "does not know this command",
        ),
        (
            send_to_socket(site.data.path(), b"GET / HTTP/1.1\r\n\r\n"),
            "none of this server's",
        ),
        (
            send_to_socket(site.data.path(), b""),
            "none of this server's",
        ),
        (
            send_to_socket(site.data.path(), &vec![b'['; 1 << 16]),
            "none of this server's",
        ),
    ];
    for (answer, says) in cases {
        assert!(text(&answer["error"]).contains(says), "{says}: {answer}");
    }
    site.server.get("/healthz").await.expect(200);
}

/// Lines that the server answers to an operation.
fn response_lines(data: &Path, operation: &Value) -> Vec<Value> {
    let version = env!("CARGO_PKG_VERSION");
    let asked = json!({ "version": version, "actor": "me", "operation": operation });
    let mut stream = UnixStream::connect(data.join(SOCKET)).unwrap();
    stream.write_all(asked.to_string().as_bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let lines = answer.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

#[tokio::test]
async fn what_takes_in_everything_is_the_servers_work_and_says_how_far_it_is() {
    let mut site = CommandFixture::start().await;
    let body = json!({ "content": "x", "name": "page" });
    site.server.json("/api/v1/deploy", &body).await.expect(201);
    let vault = TempDir::new().unwrap();
    let directory = vault.path().join("backup");
    let wanted = json!({ "backup": { "directory": directory } });
    let said = response_lines(site.data.path(), &wanted);
    let (answer, steps) = said.split_last().unwrap();
    assert!(!steps.is_empty(), "{said:?}");
    for step in steps {
        assert!(step["step"]["all"].is_u64(), "{step}");
    }
    let made: Value = serde_json::from_str(text(&answer["answer"]["document"])).unwrap();
    assert_eq!(
        (&made["complete"], &made["errors"]),
        (&json!(true), &json!([]))
    );
    let last = site.run(&["status"]).await["backup"]["complete"].take();
    assert_eq!(last["moment"], made["moment"]);
    let found = site.run(&["check"]).await;
    assert_eq!(
        (&found["deployments"], &found["errors"]),
        (&json!(1), &json!([]))
    );
    // What goes wrong is told as an operation's error is.
    let inside = site.data.path().join("backup");
    let inside = json!({ "backup": { "directory": inside } });
    let refused = response_lines(site.data.path(), &inside);
    let said = text(&refused.last().unwrap()["error"]);
    assert!(said.contains("inside the data directory"), "{said}");
}

#[tokio::test]
async fn a_path_that_is_too_long_for_a_socket_is_none_for_a_command() {
    let root = TempDir::new().unwrap();
    let data = root.path().join("d".repeat(60)).join("e".repeat(60));
    std::fs::create_dir_all(&data).unwrap();
    let server = svc().serve(&data, &[]).await;
    let made = svc().run(&data, &["namespace", "create", "acme"]).await;
    assert!(made.success, "{made:?}");
    let said = async || {
        server
            .stderr()
            .contains("namespace create acme")
            .then_some(())
    };
    wait_until("the server to say so", said).await;
}
