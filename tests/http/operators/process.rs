//! The process: one for a data directory, its end, and what it prints.

use rustix::process::Signal;
use serde_json::json;
use svc_tests::{ReadAnswer, wait_until};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::namespaces::assert_credential_form;
use crate::svc;

#[tokio::test]
async fn a_data_directory_has_one_server() {
    let data = TempDir::new().unwrap();
    let server = svc().serve(data.path(), &[]).await;
    let second = svc()
        .run(data.path(), &["serve", "--listen", "127.0.0.1:0"])
        .await;
    assert!(!second.success);
    assert_eq!(second.stdout, "");
    let holder = server.address().to_string();
    assert!(second.stderr.contains(&holder), "{}", second.stderr);
    assert!(second.stderr.contains("in use"), "{}", second.stderr);
    server.get("/healthz").await.expect(200);
}

#[tokio::test]
async fn a_stop_finishes_what_runs_and_succeeds() {
    for signal in [Signal::TERM, Signal::INT] {
        let data = TempDir::new().unwrap();
        let server = svc().serve(data.path(), &[]).await;
        let body = json!({ "content": "x", "name": "page" });
        server.json("/api/v1/deploy", &body).await.expect(201);
        for _ in 0..3 {
            server.get("/page").await.expect(200);
        }
        let address = server.address();
        server.signal(signal);
        let (status, stdout) = server.wait_for_exit().await;
        assert!(status.success(), "{status}");
        assert_eq!(stdout, format!("ready http://{address}\n"));
        // The views of the last moment were written down.
        let server = svc().serve(data.path(), &[]).await;
        let counters = rusqlite::Connection::open(data.path().join("counters.db")).unwrap();
        let visits: i64 = counters
            .query_row("SELECT count FROM visits", [], |row| row.get(0))
            .unwrap();
        assert_eq!(visits, 3);
        server.get("/page").await.expect(200);
    }
}

#[tokio::test]
async fn a_second_signal_ends_the_process_at_once() {
    let data = TempDir::new().unwrap();
    let server = svc().serve(data.path(), &[]).await;
    let mut slow = TcpStream::connect(server.address()).await.unwrap();
    let head = format!(
        "POST /api/v1/deploy HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n",
        server.address()
    );
    slow.write_all(head.as_bytes()).await.unwrap();
    // The server waits for the body, which never comes.
    slow.read_u8().await.unwrap();
    server.signal(Signal::TERM);
    let said = async || server.stderr().contains("stopping").then_some(());
    wait_until("word that the server stops", said).await;
    server.signal(Signal::TERM);
    let (status, _) = server.wait_for_exit().await;
    assert_eq!(status.code(), Some(1));
}

#[tokio::test]
async fn standard_output_has_one_line_and_the_log_is_elsewhere() {
    let data = TempDir::new().unwrap();
    let server = svc()
        .serve(data.path(), &["--dev", "--log-format", "json"])
        .await;
    let said = async || server.stderr().contains("svc_").then(|| server.stderr());
    let said = wait_until("the credential of dev", said).await;
    let credential = said
        .split_whitespace()
        .find(|word| word.starts_with("svc_"))
        .unwrap();
    assert_credential_form(credential);
    let url = server.url("/api/v1/deploy");
    let request = server.client().post(url).json(&json!({ "content": "x" }));
    request.bearer_auth(credential).answer().await.expect(201);
    server.signal(Signal::TERM);
    let (status, stdout) = server.wait_for_exit().await;
    assert!(status.success());
    assert_eq!(stdout.lines().count(), 1, "{stdout}");
    // The second time there is nothing to show.
    let server = svc().serve(data.path(), &["--dev"]).await;
    let said = async || server.stderr().contains("there already").then_some(());
    wait_until("word of the namespace that is there", said).await;
    let listed = svc()
        .run(data.path(), &["namespace", "list", "--json"])
        .await
        .json();
    assert_eq!(listed["namespaces"].as_array().unwrap().len(), 1);
}
