//! The log: requests, what serves, and what is unsafe.

use super::*;

/// The lines of a log in JSON.
fn log_lines(server: &Process) -> Vec<Value> {
    let said = server.stderr();
    let lines = said.lines().map(serde_json::from_str);
    lines
        .map(|line| line.unwrap_or_else(|e| panic!("{e}: {said}")))
        .collect()
}

async fn wait_for_log_line(server: &Process, message: &str) -> Value {
    let found = async || {
        log_lines(server)
            .into_iter()
            .find(|line| line["message"] == message)
    };
    wait_until(message, found).await
}

#[tokio::test]
async fn requests_are_logged_by_route_if_that_is_wanted() {
    let data = TempDir::new().unwrap();
    let arguments = [
        "--access-log",
        "--log-format",
        "json",
        "--trusted-proxies",
        "127.0.0.0/8",
    ];
    let server = svc().serve(data.path(), &arguments).await;
    let once = json!({ "content": "0123456789", "name": "hidden-slug", "one_time": true, "password": "pass-word" });
    server.json("/api/v1/deploy", &once).await.expect(201);
    let url = server.url("/hidden-slug?token=hidden-query");
    let view = server
        .client()
        .get(url)
        .header("x-forwarded-for", "203.0.113.9");
    view.answer().await.expect(401);
    let page = json!({ "content": "0123456789", "name": "page" });
    server.json("/api/v1/deploy", &page).await.expect(201);
    server.get("/page").await.expect(200);
    server.get("/page/raw").await.expect(200);
    server.get("/%00").await.expect(404);
    let all = async || {
        let found: Vec<_> = log_lines(&server)
            .into_iter()
            .filter(|line| line["target"] == "access")
            .collect();
        (found.len() == 6).then_some(found)
    };
    let found = wait_until("six lines", all).await;
    let shown: Vec<_> = found
        .iter()
        .map(|line| {
            format!(
                "{} {} {}",
                text(&line["method"]),
                text(&line["route"]),
                line["status"]
            )
        })
        .collect();
    let expected = [
        "POST /api/v1/deploy 201",
        "GET /{slug} 401",
        "POST /api/v1/deploy 201",
        "GET /{slug} 200",
        "GET /{slug}/raw 200",
        "GET none 404",
    ];
    assert_eq!(shown, expected);
    assert_eq!(found[1]["client"], "203.0.113.9");
    assert_eq!(found[4]["bytes"], 10);
    assert!(found.iter().all(|line| line["ms"].as_f64().unwrap() > 0.0));
    for secret in ["hidden-slug", "hidden-query", "pass-word"] {
        assert!(!server.stderr().contains(secret), "{secret}");
    }
}

#[tokio::test]
async fn the_log_says_what_serves_and_who_did_what_and_no_more() {
    let data = TempDir::new().unwrap();
    let server = svc().serve(data.path(), &["--log-format", "json"]).await;
    let summary = wait_for_log_line(&server, "serving").await;
    for (key, value) in [
        ("version", json!(env!("CARGO_PKG_VERSION"))),
        ("address", json!(server.address().to_string())),
        ("data", json!(data.path())),
        (
            "base_url",
            json!(format!("http://localhost:{}", server.address().port())),
        ),
        ("render", json!("built in")),
    ] {
        assert_eq!(summary[key], value, "{key}: {summary}");
    }
    let page = json!({ "content": "x", "name": "page" });
    server.json("/api/v1/deploy", &page).await.expect(201);
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" },
    } });
    let url = server.url("/mcp");
    let call = server.client().post(url).json(&call);
    call.header("accept", "application/json, text/event-stream")
        .answer()
        .await
        .expect(200);
    let run = async |arguments: &[&str]| svc().run(data.path(), arguments).await;
    for (command, line) in [
        (
            &["deployment", "disable", "page"][..],
            "deployment disable page",
        ),
        (&["deployment", "enable", "page"], "deployment enable page"),
        (
            &["namespace", "create", "acme"],
            "namespace create acme --plan free",
        ),
        (&["namespace", "delete", "acme"], "namespace delete acme"),
    ] {
        let output = run(command).await;
        assert!(output.success, "{output:?}");
        let found = async || {
            log_lines(&server)
                .into_iter()
                .find(|one| one["command"] == line)
        };
        let found = wait_until(line, found).await;
        assert!(!text(&found["by"]).is_empty(), "{found}");
    }
    // Neither the calls of tools, nor credentials.
    let said = server.stderr();
    let names_package = |after: &&str| {
        let package = after.split_once("::").map_or("", |(package, _)| package);
        !package.is_empty() && package.bytes().all(|byte| byte.is_ascii_lowercase())
    };
    let is_credential = |after: &&str| !names_package(after);
    let found = said.split("svc_").skip(1).find(is_credential);
    assert!(!said.contains("rmcp") && found.is_none(), "{said}");
    assert!(!said.contains("\"target\":\"access\""), "{said}");
    assert!(!said.contains("WARN"), "{said}");
}

#[tokio::test]
async fn what_is_unsafe_is_warned_of() {
    let data = TempDir::new().unwrap();
    let run = async |name: &str| svc().run(data.path(), &["namespace", "create", name]).await;
    assert!(run("one").await.success);
    let arguments = ["--base-url", "https://share.example.com"];
    let server = svc().serve(data.path(), &arguments).await;
    let warned = || server.stderr().matches("set `sites_domain`").count();
    assert_eq!(warned(), 0, "one owner trusts themselves");
    assert!(run("two").await.success);
    wait_until("a warning of the second", async || {
        (warned() == 1).then_some(())
    })
    .await;
    server.kill().await;
    let server = svc().serve(data.path(), &arguments).await;
    let warned = || server.stderr().matches("set `sites_domain`").count();
    wait_until("a warning at the start", async || {
        (warned() == 1).then_some(())
    })
    .await;
    server.kill().await;
    let server = svc().serve(data.path(), &["--listen", "0.0.0.0:0"]).await;
    let warned = async || server.stderr().contains("set `base_url`").then_some(());
    wait_until("a warning of links that lead nowhere", warned).await;
}
