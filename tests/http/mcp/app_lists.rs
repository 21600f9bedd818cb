//! The list of an app's tools, whatever its owner has defined: bounded, in pages, and whole.

use http::Method;
use serde_json::{Value, json};
use svc_tests::TestServer;

use super::client::Client;
use crate::project_fixture::{GUESTS, ProjectFixture};

/// The most bytes of a page of the list, with what stands around it.
const PAGE: usize = 66_000;

/// A fixture whose actions are tools, with so many of them.
async fn start_app_with(actions: &[Value]) -> ProjectFixture {
    let fixture = ProjectFixture::on_server(TestServer::start().await, GUESTS).await;
    for batch in actions.chunks(200) {
        fixture.put(&json!(batch)).await.expect(200);
    }
    let agents = json!({ "agents": true });
    fixture.send(Method::PATCH, "", &agents).await.expect(200);
    fixture
}

/// All pages of the list: how many there were, and the tools.
async fn list_all_pages(client: &Client<'_>) -> (usize, Vec<Value>) {
    let (mut tools, mut pages) = (Vec::new(), 0);
    let mut params = json!({});
    loop {
        let answer = client.send_request("tools/list", &params).await.expect(200);
        assert!(answer.body.len() <= PAGE, "{} bytes", answer.body.len());
        pages += 1;
        let result = answer.json()["result"].take();
        tools.extend(result["tools"].as_array().unwrap().iter().cloned());
        match result["nextCursor"].as_str() {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => return (pages, tools),
        }
    }
}

#[tokio::test]
async fn a_thousand_actions_come_in_pages() {
    let note = "Adds what is said. ".repeat(100);
    let note = note.get(..1_000).unwrap();
    let name = |n: usize| format!("action_{n:04}");
    let actions: Vec<_> = (0..1_000)
        .map(|n| json!({ "name": name(n), "sql": "SELECT :a AS a, :b AS b", "note": note }))
        .collect();
    let fixture = start_app_with(&actions).await;
    for client in [
        Client::for_app(&fixture.server, "room"),
        Client::for_app(&fixture.server, "room").legacy(),
    ] {
        let (pages, tools) = list_all_pages(&client).await;
        assert!((15..30).contains(&pages), "{pages}");
        let names: Vec<_> = tools.iter().map(|tool| tool["name"].clone()).collect();
        let expected: Vec<_> = (0..1_000).map(|n| json!(name(n))).collect();
        assert_eq!(names, expected);
        assert!(tools.iter().all(|tool| tool["description"] == note));
    }
    let client = Client::for_app(&fixture.server, "room");
    for cursor in ["", "A", "action 1", "42", "a\u{0}"] {
        let answer = client
            .send_request("tools/list", &json!({ "cursor": cursor }))
            .await;
        assert_eq!(answer.json()["error"]["code"], -32602, "{cursor}");
    }
    // A cursor is a position; no action needs to have its name.
    let params = json!({ "cursor": "action_0998x" });
    let rest = client.result("tools/list", &params).await;
    assert_eq!(rest["tools"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn what_no_agent_could_read_is_no_tool() {
    let list = |n: usize, bind: &dyn Fn(usize) -> String| -> String {
        let binds: Vec<_> = (0..n).map(|n| format!(":{} AS c{n}", bind(n))).collect();
        format!("SELECT {}", binds.join(", "))
    };
    let fixture = start_app_with(&[
        json!({ "name": "few", "sql": list(20, &|n| format!("b{n}")), "note": "\u{1}\"\\".repeat(300) }),
        json!({ "name": "many", "sql": list(400, &|n| format!("b{n}")) }),
    ])
    .await;
    let client = Client::for_app(&fixture.server, "room");
    let (_, tools) = list_all_pages(&client).await;
    let [few] = tools.as_slice() else {
        panic!("{tools:?}");
    };
    assert_eq!(few["name"], "few");
    let params = json!({ "name": "many", "arguments": {} });
    let answer = client.send_request("tools/call", &params).await;
    assert_eq!(answer.json()["error"]["code"], -32602);
}

#[tokio::test]
async fn a_result_is_cut_to_what_an_agent_can_read() {
    let rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :rows)
        SELECT i, replace(hex(zeroblob(500)), '00', 'words') AS text FROM n";
    let fixture = start_app_with(&[json!({ "name": "rows", "sql": rows })]).await;
    let client = Client::for_app(&fixture.server, "room");
    let whole = client.call_ok("rows", json!({ "rows": 2 })).await;
    assert_eq!(whole["rows"].as_array().unwrap().len(), 2);
    assert_eq!(whole["truncated"], false);
    // Two of some hundred kilobytes, and as many as may be at once.
    let calls = (0..8).map(|_| client.call_ok("rows", json!({ "rows": 300 })));
    for cut in futures_util::future::join_all(calls).await {
        let shown = cut["rows"].as_array().unwrap().len();
        assert_eq!(cut["rows_left_out"], 300 - shown, "{cut}");
        assert_eq!(cut["truncated"], true);
    }
}
