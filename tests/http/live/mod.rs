//! Live queries over real sockets and streams: each rule of them in a file of its subject.

mod crashes;
mod ends;
mod frames;
mod hostile;
mod identity;
mod memory;
mod property;
mod stream;
mod syncs;
mod tokens;
mod updates;

use serde_json::{Value, json};
use svc_tests::{Builder, Socket, TestServer};

use crate::project_fixture::ProjectFixture;

pub(crate) use crashes::FAULT_GROUPS;

/// Tables with keys that cascade, without rowids, and a view.
const SCHEMA: &str = "
CREATE TABLE polls (id INTEGER PRIMARY KEY, title TEXT NOT NULL);
CREATE TABLE votes (id INTEGER PRIMARY KEY, poll INTEGER NOT NULL REFERENCES polls ON DELETE CASCADE, choice TEXT NOT NULL);
CREATE TABLE keys (k TEXT PRIMARY KEY, v) WITHOUT ROWID;
CREATE VIEW counts AS SELECT poll, choice, count(*) AS n FROM votes GROUP BY poll, choice;
INSERT INTO polls VALUES (1, 'Tea or coffee?');";

/// Actions that the pages call.
const ACTIONS: [(&str, &str); 12] = [
    (
        "counts",
        "SELECT choice, n FROM counts WHERE poll = :poll ORDER BY choice",
    ),
    ("total", "SELECT count(*) AS n FROM votes"),
    ("all_keys", "SELECT k, v FROM keys ORDER BY k"),
    ("polls", "SELECT id, title FROM polls ORDER BY id"),
    (
        "vote",
        "INSERT INTO votes (poll, choice) VALUES (:poll, :choice)",
    ),
    ("set", "REPLACE INTO keys VALUES (:k, :v)"),
    ("clear", "DELETE FROM keys"),
    ("close", "DELETE FROM polls WHERE id = :poll"),
    ("mine", "SELECT :svc_user_id AS me"),
    (
        "endless",
        "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) AS n FROM c",
    ),
    (
        "large",
        "SELECT v, hex(zeroblob(100000)) AS filling FROM keys ORDER BY k",
    ),
    (
        "huge",
        "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 100) SELECT x, hex(zeroblob(30000)) AS filling, (SELECT count(*) FROM votes) AS n FROM c",
    ),
];

/// A fixture with polls, and its page `room`.
async fn start_fixture() -> ProjectFixture {
    start_fixture_with(TestServer::builder()).await
}

/// Creates a fixture on a given server.
pub(crate) async fn start_fixture_with(builder: Builder) -> ProjectFixture {
    let fixture = ProjectFixture::on_server(builder.start().await, SCHEMA).await;
    fixture.define(&ACTIONS).await;
    fixture
}

/// Opens a socket from the page `room`.
pub(crate) async fn open(fixture: &ProjectFixture) -> Socket {
    fixture.server.socket("/room/api/live", &[]).await.unwrap()
}

fn subscribe(id: &str, action: &str, params: &Value) -> String {
    json!({ "v": 1, "type": "subscribe", "id": id, "action": action, "params": params }).to_string()
}

fn unsubscribe(id: &str) -> String {
    json!({ "v": 1, "type": "unsubscribe", "id": id }).to_string()
}

/// Subscribes; answers the first result's frame.
pub(crate) async fn subscribe_and_read_first(
    socket: &mut Socket,
    id: &str,
    action: &str,
    params: &Value,
) -> Value {
    socket.send(subscribe(id, action, params)).await;
    let frame = socket.envelope().await;
    assert_eq!(frame["type"], "result", "{frame}");
    assert_eq!(
        (&frame["id"], &frame["seq"]),
        (&json!(id), &json!(1)),
        "{frame}"
    );
    frame
}

/// The next frame, which is a result of this subscription with this number; answers its rows.
pub(crate) async fn next_rows(socket: &mut Socket, id: &str, seq: u64) -> Value {
    let mut frame = socket.envelope().await;
    assert_eq!(frame["type"], "result", "{frame}");
    assert_eq!(
        (&frame["id"], &frame["seq"]),
        (&json!(id), &json!(seq)),
        "{frame}"
    );
    frame["result"]["rows"].take()
}

/// The next frame, which is an error of this code; returns it.
async fn next_error(socket: &mut Socket, id: Option<&str>, code: &str) -> Value {
    let frame = socket.envelope().await;
    assert_eq!(frame["type"], "error", "{frame}");
    assert_eq!(
        (&frame["v"], &frame["id"]),
        (&json!(1), &json!(id)),
        "{frame}"
    );
    assert_eq!(frame["problem"]["code"], code, "{frame}");
    let problem = &frame["problem"];
    for member in ["type", "title", "detail"] {
        assert!(
            problem[member]
                .as_str()
                .is_some_and(|text| !text.is_empty()),
            "{frame}"
        );
    }
    assert!(problem["status"].as_u64() >= Some(400), "{frame}");
    frame
}

/// Sees that a socket is still served, and that nothing else is on its way.
async fn assert_still_served(socket: &mut Socket) {
    socket.send("{}").await;
    next_error(socket, None, "invalid_request").await;
}
