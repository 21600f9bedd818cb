//! How messages are framed: what is served, and what is refused with which status and error.

use http::Method;
use serde_json::{Value, json};
use svc_tests::{ReadAnswer, TestServer};

use super::client::{Client, LEGACY, MODERN, meta};

fn initialize() -> Value {
    json!({ "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } })
}

#[tokio::test]
async fn the_era_with_initialize_is_served() {
    let server = TestServer::start().await;
    let client = Client::anonymous(&server).legacy();
    let result = client.result("initialize", &initialize()).await;
    assert_eq!(result["protocolVersion"], LEGACY);
    assert_eq!(result["serverInfo"]["name"], "svc");
    let capabilities: Vec<_> = result["capabilities"].as_object().unwrap().keys().collect();
    assert_eq!(capabilities, ["resources", "tools"]);
    let instructions = result["instructions"].as_str().unwrap();
    assert!(instructions.contains("create_revision"), "{instructions}");
    let body = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let answer = server.json("/mcp", &body).answer().await.expect(202);
    assert!(answer.header("mcp-session-id").is_none());
    assert!(answer.body.is_empty());
    assert_eq!(client.result("ping", &json!({})).await, json!({}));
    let tools = client.result("tools/list", &json!({})).await;
    assert_eq!(tools["tools"].as_array().unwrap().len(), 6);
    let shared = client
        .call_ok("deploy_asset", json!({ "content": "<p>hello" }))
        .await;
    let slug = shared["slug"].as_str().unwrap();
    let page = server.get(&format!("/{slug}")).answer().await.expect(200);
    assert!(page.text().contains("<p>hello"));
}

#[tokio::test]
async fn the_stateless_era_is_served() {
    let server = TestServer::start().await;
    let client = Client::anonymous(&server);
    let found = client.result("server/discover", &json!({})).await;
    let versions = found["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!(MODERN)) && versions.contains(&json!(LEGACY)));
    assert!(found["instructions"].is_string());
    let tools = client.result("tools/list", &json!({})).await;
    assert_eq!(tools["resultType"], "complete");
    let shared = client
        .call_ok(
            "deploy_asset",
            json!({ "content": "# Hi", "type": "markdown", "slug": "hi" }),
        )
        .await;
    assert_eq!(shared["slug"], "hi");
}

#[tokio::test]
async fn bodies_that_are_no_message() {
    let server = TestServer::start().await;
    for (body, code) in [
        ("", -32700),
        ("{", -32700),
        ("{\"jsonrpc\":\"2.0\"} x", -32700),
        ("[]", -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
        ("7", -32600),
        ("{}", -32600),
        (r#"{"id":1,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, -32600),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#,
            -32600,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"deploy_asset"}}"#,
            -32600,
        ),
    ] {
        let answer = server.post("/mcp").body(body).answer().await;
        assert_eq!(answer.status, 400, "{body}: {}", answer.text());
        assert_eq!(answer.header("content-type"), Some("application/json"));
        let error = answer.json();
        assert_eq!(error["jsonrpc"], "2.0", "{body}");
        assert_eq!(error["error"]["code"], code, "{body}: {error}");
        assert!(!error["error"]["message"].as_str().unwrap().is_empty());
        assert!(answer.header("x-request-id").is_some());
    }
}

#[tokio::test]
async fn methods_that_are_not_ours() {
    let server = TestServer::start().await;
    for (client, status) in [
        (Client::anonymous(&server), 404),
        (Client::anonymous(&server).legacy(), 200),
    ] {
        for method in [
            "prompts/list",
            "prompts/get",
            "resources/subscribe",
            "completion/complete",
            "logging/setLevel",
            "subscriptions/listen",
            "tasks/get",
            "no/such",
        ] {
            let params = json!({
                "name": "x:", "uri": "x:", "level": "info", "taskId": "x:", "notifications": {},
                "ref": { "type": "ref/prompt", "name": "x" }, "argument": { "name": "x", "value": "" },
            });
            let answer = client.send_request(method, &params).await;
            assert_eq!(answer.status, status, "{method}: {}", answer.text());
            assert_eq!(answer.json()["error"]["code"], -32601, "{method}");
        }
    }
    for method in ["initialize", "ping"] {
        let answer = Client::anonymous(&server)
            .send_request(method, &json!({}))
            .await;
        assert_eq!(answer.status, 404, "{method}: {}", answer.text());
        assert_eq!(answer.json()["error"]["code"], -32601, "{method}");
    }
    let legacy = Client::anonymous(&server).legacy();
    for params in [
        json!({}),
        json!({ "name": 7 }),
        json!({ "name": "deploy_asset", "arguments": [] }),
    ] {
        let answer = legacy
            .send_request("tools/call", &params)
            .await
            .expect(200)
            .json();
        assert_eq!(answer["error"]["code"], -32602, "{params}: {answer}");
    }
    let unknown = json!({ "name": "no_such", "arguments": {} });
    let answer = legacy.send_request("tools/call", &unknown).await.json();
    assert_eq!(answer["error"]["code"], -32602);
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("no_such") && message.contains("manage_project"));
}

#[tokio::test]
async fn headers_of_the_stateless_era_must_fit_the_body() {
    let server = TestServer::start().await;
    let call = json!({
        "jsonrpc": "2.0", "id": 7, "method": "tools/call",
        "params": { "name": "deploy_asset", "arguments": { "content": "x" }, "_meta": meta() },
    });
    let headers = |version: &'static str, method: &'static str, name: &'static str| {
        let all = [
            ("mcp-protocol-version", version),
            ("mcp-method", method),
            ("mcp-name", name),
        ];
        all.into_iter().filter(|(_, value)| !value.is_empty())
    };
    let before = server.snapshot();
    for (version, method, name, code) in [
        ("", "tools/call", "deploy_asset", -32020),
        (MODERN, "", "deploy_asset", -32020),
        (MODERN, "tools/list", "deploy_asset", -32020),
        (MODERN, "tools/call", "", -32020),
        (MODERN, "tools/call", "manage_project", -32020),
        (LEGACY, "tools/call", "deploy_asset", -32020),
    ] {
        let mut request = server.json("/mcp", &call);
        for (header, value) in headers(version, method, name) {
            request = request.header(header, value);
        }
        let answer = request.answer().await;
        assert_eq!(
            answer.status,
            400,
            "{version} {method} {name}: {}",
            answer.text()
        );
        let error = answer.json();
        assert_eq!(
            error["error"]["code"], code,
            "{version} {method} {name}: {error}"
        );
        assert_eq!(error["id"], 7);
    }
    assert_eq!(server.snapshot(), before);
    let mut future = call.clone();
    future["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    let request = server
        .json("/mcp", &future)
        .header("mcp-protocol-version", "2099-01-01");
    let request = request
        .header("mcp-method", "tools/call")
        .header("mcp-name", "deploy_asset");
    let answer = request.answer().await.expect(400).json();
    assert_eq!(answer["error"]["code"], -32022, "{answer}");
    let supported = answer["error"]["data"]["supported"].as_array().unwrap();
    assert!(supported.contains(&json!(MODERN)));
    // Without `_meta` it is a client of the other era, whose version must be one all the same.
    let ping = json!({ "jsonrpc": "2.0", "id": 7, "method": "ping" });
    let request = server
        .json("/mcp", &ping)
        .header("mcp-protocol-version", "1999-01-01");
    let answer = request.answer().await.expect(400).json();
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(7), &json!(-32600))
    );
}

#[tokio::test]
async fn whoever_takes_json_is_served_whatever_they_call_the_body() {
    let server = TestServer::start().await;
    let body = json!({ "jsonrpc": "2.0", "id": "a", "method": "tools/list" }).to_string();
    for (accept, kind, status) in [
        (None, None, 200),
        (Some("*/*"), Some("application/json; charset=utf-8"), 200),
        (Some("application/json"), Some("text/plain"), 200),
        (Some("application/json, text/event-stream"), None, 200),
        (Some("text/html"), None, 406),
        (Some("text/event-stream"), None, 406),
    ] {
        let accept = accept
            .map(|accept| format!("Accept: {accept}\r\n"))
            .unwrap_or_default();
        let kind = kind
            .map(|kind| format!("Content-Type: {kind}\r\n"))
            .unwrap_or_default();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nOrigin: https://elsewhere.example\r\n{accept}{kind}Content-Length: {}\r\n\r\n{body}",
            server.address(),
            body.len(),
        );
        let answer = server.raw(head.clone()).await;
        assert_eq!(answer.status, status, "{head}: {}", answer.text());
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
        assert_eq!(answer.json()["id"], "a");
    }
}

#[tokio::test]
async fn other_methods_hosts_and_sizes_are_refused_as_everywhere() {
    let server = TestServer::start().await;
    for method in [Method::GET, Method::DELETE, Method::PUT] {
        let answer = server.request(method.clone(), "/mcp").answer().await;
        answer.problem(405, "method_not_allowed");
        assert_eq!(answer.header("allow"), Some("POST"), "{method}");
    }
    let sizes = server
        .post("/mcp")
        .body("x".repeat(1_048_577))
        .answer()
        .await;
    sizes.problem(413, "payload_too_large");
    let coded = server
        .post("/mcp")
        .header("content-encoding", "gzip")
        .body("x");
    coded.answer().await.problem(415, "unsupported_media_type");
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let to = |host: &str| {
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let port = server.address().port();
    for host in [
        format!("localhost:{port}"),
        format!("LOCALHOST:{port}"),
        format!("127.0.0.1:{port}"),
    ] {
        let answer = server.raw(to(&host)).await;
        assert_eq!(answer.status, 200, "{host}: {}", answer.text());
    }
    server
        .raw(to("evil.example"))
        .await
        .problem(421, "misdirected");
    let preflight = server
        .request(Method::OPTIONS, "/mcp")
        .answer()
        .await
        .expect(204);
    let allowed = preflight.header("access-control-allow-headers").unwrap();
    assert!(allowed.contains("Mcp-Method") && allowed.contains("MCP-Protocol-Version"));
}

#[tokio::test]
async fn requests_are_limited_by_client() {
    let server = TestServer::builder().service_limits().start().await;
    let client = Client::anonymous(&server).legacy();
    for _ in 0..15 {
        client.send_request("ping", &json!({})).await.expect(200);
    }
    let answer = client.send_request("ping", &json!({})).await;
    let problem = answer.problem(429, "rate_limited");
    // The refusal says which rate is allowed, and who can change it.
    for part in [
        "30 a minute",
        "15 at once",
        "`mcp_per_minute`",
        "`mcp_burst`",
        "[limits]",
    ] {
        assert!(
            problem["detail"].as_str().unwrap().contains(part),
            "{part}: {problem}"
        );
    }
    assert_eq!(answer.header("retry-after"), Some("60"));
    let policy = answer.header("ratelimit-policy").unwrap();
    assert_eq!(policy, "\"mcp\";q=30;w=60");
    server.advance(2);
    client.send_request("ping", &json!({})).await.expect(200);
}

/// An agent that builds an app on its own machine calls tools as fast as it thinks.
#[tokio::test]
async fn while_developing_tools_are_called_as_often_as_rest_is() {
    for (set, burst) in [(None, 100), (Some(3), 3)] {
        let server = TestServer::builder()
            .service_limits()
            .settings(|settings| {
                settings.dev = true;
                settings.limits.mcp_burst = set.unwrap_or(settings.limits.mcp_burst);
            })
            .start()
            .await;
        let client = Client::anonymous(&server);
        for _ in 0..burst {
            client
                .send_request("tools/list", &json!({}))
                .await
                .expect(200);
        }
        let answer = client.send_request("tools/list", &json!({})).await;
        let problem = answer.problem(429, "rate_limited");
        let said = problem["detail"].as_str().unwrap();
        assert!(said.contains(&format!("{burst} at once")), "{said}");
        assert!(said.contains("600 a minute"), "{said}");
    }
}
