//! Twenty thousand sockets, ended in every way: nothing of them is left.

use http::Method;
use serde_json::{Value, json};
use svc::workspaces::Plan;
use svc_tests::{ReadAnswer, Resources, Socket, TestServer, wait_until};
use tokio::task::JoinSet;

/// Sockets at once, and how many rounds of them.
const AT_ONCE: usize = 250;
const ROUNDS: usize = 80;
/// Rounds after which everything that is made once is made.
const WARM: usize = 8;
/// Kilobytes that an allocator may keep to itself; a leak of one socket in three would be more.
const SLACK: u64 = 8 * 1024;

/// A server with the page `room`, whose backend has rooms; returns its project's path and its owner's credential.
async fn start_room_server() -> (TestServer, String, String) {
    let builder = TestServer::builder().system_clock();
    let server = builder
        .limits(|limits| limits.sockets_per_backend = 100_000)
        .start()
        .await;
    let workspaces = &server.server().app().workspaces;
    let credential = workspaces
        .create("acme", Plan::Pro)
        .await
        .unwrap()
        .credential;
    let send = async |method: Method, path: &str, body: Value| {
        let request = server.request(method, &format!("/api/v1/projects{path}"));
        let answer = request.bearer_auth(&credential).json(&body).answer().await;
        answer.expect(201).json()
    };
    let project = send(Method::POST, "", json!({ "name": "House" })).await;
    let project = format!("/{}", project["id"].as_str().unwrap());
    let backend = json!({ "ddl": "CREATE TABLE t (a INTEGER)", "realtime": true });
    send(Method::POST, &format!("{project}/backend"), backend).await;
    let page = json!({ "type": "html", "content": "x", "requested_slug": "room" });
    send(Method::POST, &format!("{project}/frontends"), page).await;
    (server, project, credential)
}

/// Opens a socket, uses it, and ends it in one of four ways.
async fn use_and_end_socket(address: std::net::SocketAddr, n: usize) {
    let path = format!("/room/ws?room=r{}", n % 50);
    let mut socket = Socket::open(address, &path, &[]).await.unwrap();
    socket.wait_for_envelope("svc:welcome").await;
    socket.send_envelope("hello", json!(n)).await;
    match n % 4 {
        0 => socket.close().await,
        1 => drop(socket),
        2 => {
            socket.send("x".repeat(20_000)).await;
            assert_eq!(socket.wait_for_close().await, Some(1009));
        }
        _ => {
            socket.send("{").await;
            socket.wait_for_envelope("svc:error").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_thousand_sockets_leave_nothing() {
    let (server, project, credential) = start_room_server().await;
    let address = server.address();
    let nobody = async || {
        let path = format!("/api/v1/projects{project}/backend");
        let detail = server
            .get(&path)
            .bearer_auth(&credential)
            .answer()
            .await
            .json();
        (detail["realtime"] == json!({ "enabled": true, "rooms": 0, "sockets": 0 })).then_some(())
    };
    let mut before = Resources::of_this_process();
    for round in 0..ROUNDS {
        let mut sockets = JoinSet::new();
        for n in 0..AT_ONCE {
            sockets.spawn(use_and_end_socket(address, n));
        }
        sockets.join_all().await;
        if round == WARM {
            wait_until("the sockets to be gone", nobody).await;
            before = Resources::of_this_process();
        }
    }
    wait_until("the sockets to be gone", nobody).await;
    let closed = async || (Resources::of_this_process().files <= before.files + 5).then_some(());
    wait_until("the files to be closed", closed).await;
    let after = Resources::of_this_process();
    let grown = after.memory.saturating_sub(before.memory);
    assert!(
        grown <= SLACK,
        "{grown} KB more after {} sockets",
        ROUNDS * AT_ONCE
    );
    let joined = server.socket("/room/ws?room=a", &[]).await;
    joined.unwrap().wait_for_envelope("svc:welcome").await;
}
