//! Tools of owners' and visitors' agents through nodes that have neither control nor the database.

use http::{Method, header};
use serde_json::{Value, json};
use svc_tests::ReadAnswer;
use svc_tests::cluster::{Cluster, ClusterNode};

use crate::several::{databases, start_two};

/// Version of the protocol that begins with `initialize`.
const VERSION: &str = "2025-11-25";

/// Sends a message to the tools at a path of a node; returns the result.
async fn send(
    node: &ClusterNode,
    (path, credential): (&str, Option<&str>),
    method: &str,
    params: &Value,
) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let mut request = node.process.client().post(node.process.url(path));
    if let Some(credential) = credential {
        request = request.bearer_auth(credential);
    }
    let request = request
        .header(header::ACCEPT, "application/json, text/event-stream")
        .header("mcp-protocol-version", VERSION);
    let answer = request.json(&body).answer().await.expect(200).json();
    assert!(answer["error"].is_null(), "{method}: {answer}");
    answer["result"].clone()
}

/// Calls an action of the tool of backends at a node.
async fn manage(cluster: &Cluster, node: &ClusterNode, mut arguments: Value) -> Value {
    arguments["project_id"] = json!(cluster.project());
    let params = json!({ "name": "manage_backend", "arguments": arguments });
    let to = ("/mcp", Some(cluster.credential()));
    let result = send(node, to, "tools/call", &params).await;
    assert_ne!(result["isError"], true, "{arguments}: {result}");
    result["structuredContent"].clone()
}

/// Has agents use all kinds of tools through a node: those of control, of the database, and of both. `number` is another one each time.
async fn use_tools(cluster: &Cluster, node: &ClusterNode, number: u64) {
    let before = cluster.entries(node).await.len();
    let params = json!({ "writer": 50, "number": number });
    let ops = json!([{ "action": "add", "params": params }]);
    manage(cluster, node, json!({ "action": "batch", "ops": ops })).await;
    let params = json!({ "writer": 51, "number": number });
    let call = json!({ "name": "add", "arguments": params });
    let added = send(node, ("/room/mcp", None), "tools/call", &call).await;
    assert_eq!(added["structuredContent"]["rows_affected"], 1, "{added}");
    assert_eq!(cluster.entries(node).await.len(), before + 2);
    let ddl = json!(format!("CREATE TABLE made_{number} (x)"));
    let change = json!({ "action": "update", "ddl": ddl, "dry_run": true });
    let tried = manage(cluster, node, change).await;
    assert_eq!(tried["status"], "applied", "{tried}");
    let shown = manage(cluster, node, json!({ "action": "get" })).await;
    assert!(!shown.to_string().contains(&format!("made_{number}")));
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_use_every_kind_of_tool_through_every_node() {
    let (cluster, before, owner) = start_two().await;
    let agents = json!({ "agents": true });
    let switched = cluster
        .ask(&before, Method::PATCH, "/backend", &agents)
        .await;
    switched.expect(200);
    let hello = json!({
        "protocolVersion": VERSION, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" },
    });
    let key = Some(cluster.credential());
    for (to, method, params) in [
        (("/mcp", key), "initialize", &hello),
        (("/mcp", key), "tools/list", &json!({})),
        (("/room/mcp", None), "initialize", &hello),
        (("/room/mcp", None), "tools/list", &json!({})),
    ] {
        let [here, there] = [&before, &owner].map(|node| send(node, to, method, params));
        assert_eq!(here.await, there.await, "{method}");
    }
    for (number, node) in (1..).zip([&before, &owner]) {
        use_tools(&cluster, node, number).await;
    }
    // Then control is at one node, and the database at the other.
    assert!(cluster.promote(&owner).await.success);
    before.process.wait_for_exit().await;
    let follower = cluster.start("n3", false).await;
    follower.wait_until_ready().await;
    follower.add((1, 1)).await.expect(200);
    for (number, node) in (3..).zip([&follower, &owner]) {
        use_tools(&cluster, node, number).await;
    }
    assert_eq!(databases(&cluster, &owner, "n3").await, 1);
    // What needs both brings the database to control, from wherever it is asked.
    let change = json!({ "action": "update", "ddl": "CREATE TABLE later (x)" });
    manage(&cluster, &follower, change).await;
    assert_eq!(databases(&cluster, &owner, "n3").await, 0);
    let shown = manage(&cluster, &follower, json!({ "action": "get" })).await;
    assert!(shown.to_string().contains("later"), "{shown}");
}
