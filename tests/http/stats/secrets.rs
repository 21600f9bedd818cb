//! Secrecy: nothing that visitors send is in an entry of the log: no params, rows, codes, credentials or addresses.

use http::Method;
use serde_json::json;
use svc_tests::{ReadAnswer, TestServer};

use crate::project_fixture::GUESTS;
use crate::visitors::guest_book::GuestBook;

/// Text that only visitors send.
const SECRET: &str = "hunter2secret";

#[tokio::test]
async fn nothing_that_was_sent_is_in_the_log() {
    let book = GuestBook::with_dev_provider().await;
    let fixture = &book.fixture;
    let server: &TestServer = &fixture.server;
    fixture.migrate(GUESTS).await.expect(200);
    fixture.define(&super::ACTIONS).await;
    let mut browser = book.browser();
    let form = format!("name={SECRET}&email={SECRET}%40example.com");
    book.sign_in(&mut browser, &form, "").await;
    let secret =
        |name: &str| json!({ "action": name, "params": { "name": SECRET, "email": SECRET } });
    for body in [
        secret("add"),
        secret("add"),
        secret("all"),
        json!({ "action": "path", "params": { "path": format!("$.{SECRET}'") } }),
        json!({ "action": "path", "params": { "path": SECRET } }),
        json!({ "action": format!("{SECRET} x") }),
        json!({ "action": "named", "params": { "name": { SECRET: 1 } } }),
        json!({ "action": "named", "params": SECRET }),
        json!({ "action": "named", "params": { "svc_hunter2secret": SECRET } }),
        json!({ "action": SECRET.to_uppercase(), "params": { SECRET: SECRET } }),
        json!({ "action": 5_550_123_456_u64 }),
        json!({ SECRET: 1 }),
        json!({ "ops": [{ "action": "add", "params": { "name": null, "email": SECRET } }, { SECRET: 1 }] }),
        json!({ "ops": [{ "action": "named", "params": { "name": { "from": [0, SECRET] } } }] }),
        // The first answers no row.
        json!({ "ops": [
            { "action": "named", "params": { "name": "nobody" } },
            { "action": "named", "params": { "name": { "from": [0, SECRET] } } },
        ] }),
        json!({ "action": "all", "as": { "user_id": SECRET } }),
    ] {
        fixture.call("room", &body).await;
    }
    let raw = format!("{{\"action\": \"all\", \"{SECRET}\": {SECRET}");
    server
        .post("/room/api/op")
        .body(raw)
        .answer()
        .await
        .expect(400);
    for sql in [
        "SELECT name FROM guests",
        &format!("SELECT '{SECRET}' FROM nowhere"),
    ] {
        fixture.query(sql, &json!({ "x": SECRET })).await;
    }
    for path in [
        format!("/room/api/live?action=named&params=%7B%22name%22:%22{SECRET}%22%7D"),
        format!("/room/api/live?action=named&params=%7B%22{SECRET}%22:1%7D"),
        format!("/room/api/live?action=named&params={SECRET}"),
        format!("/room/api/live?{SECRET}={SECRET}"),
    ] {
        let request = server.get(&path).header("accept", "text/event-stream");
        let request = request.bearer_auth(SECRET);
        drop(request.send().await.unwrap());
    }
    for path in [
        format!("/room/ws?room={SECRET}!"),
        format!("/room/auth/login?return_to=/{SECRET}"),
        format!("/room/auth/login?provider={SECRET}"),
        format!("/room/auth/complete?ticket={SECRET}"),
        format!("/_svc/auth/callback/dev?state={SECRET}&code={SECRET}"),
    ] {
        browser.get(&format!("{}{path}", book.origin)).await;
    }
    let checkout = json!({ "price": SECRET, SECRET: 1 });
    server
        .json("/room/payments/checkout", &checkout)
        .answer()
        .await;
    fixture
        .send(Method::PATCH, "", &json!({ "agents": true }))
        .await
        .expect(200);
    for (tool, arguments) in [
        ("named", json!({ "name": SECRET })),
        ("named", json!({ SECRET: 1 })),
    ] {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool, "arguments": arguments } });
        server.json("/room/mcp", &body).answer().await.expect(200);
    }
    let log = fixture.seen("log?limit=500").await;
    let all = log["entries"].as_array().unwrap();
    assert!(all.len() >= 25, "{log}");
    for kind in ["call", "query", "live", "sign_in", "tool"] {
        assert!(
            all.iter().any(|entry| entry["kind"] == kind),
            "{kind}: {log}"
        );
    }
    for entry in all {
        let text = entry.to_string().to_lowercase();
        for secret in [
            "hunter2",
            "5550123456",
            "127.0.0.1",
            "svc_session",
            &fixture.owner.credential.to_lowercase(),
        ] {
            assert!(!text.contains(secret), "{secret}: {entry}");
        }
    }
}
