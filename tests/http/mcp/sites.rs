//! Sites over the tools alone: published, looked at, changed by lines, promoted, rolled back and shared.

use serde_json::{Value, json};
use svc_tests::{ReadAnswer, TestServer};

use super::client::Client;
use crate::owner::{Owner, text};

/// An agent with a project.
struct SiteAgent<'a> {
    client: Client<'a>,
    project: String,
}

impl<'a> SiteAgent<'a> {
    async fn new(server: &'a TestServer) -> Self {
        let owner = Owner::new(server, "acme").await;
        let project = owner.project(server, "House").await;
        Self {
            client: Client::with_credential(server, &owner.credential),
            project,
        }
    }

    fn arguments(&self, action: &str, more: Value) -> Value {
        let mut arguments = more;
        arguments["action"] = action.into();
        arguments["project_id"] = self.project.as_str().into();
        if action != "create" {
            arguments["slug"] = "garden".into();
        }
        arguments
    }

    async fn call(&self, action: &str, more: Value) -> Value {
        self.client
            .call_ok("manage_frontend", self.arguments(action, more))
            .await
    }

    async fn refuse(&self, action: &str, more: Value, code: &str) -> Value {
        self.client
            .call_refused("manage_frontend", self.arguments(action, more), code)
            .await
    }

    async fn create(&self, files: Value) -> Value {
        let site = json!({ "type": "site", "files": files, "requested_slug": "garden" });
        self.call("create", site).await
    }

    /// Reads a file as visitors do.
    async fn read(&self, path: &str) -> String {
        let server = self.client.server;
        let host = format!("house-acme.localhost:{}", server.address().port());
        let answer = server.get_raw(&host, &format!("/garden/{path}")).await;
        answer.expect(200).text().to_owned()
    }
}

/// Bytes that are no text.
const DOT: &str = "R0lGODlhAQABAAAAACw=";

#[tokio::test]
async fn an_agent_publishes_changes_previews_promotes_and_rolls_back() {
    let server = TestServer::start().await;
    let agent = SiteAgent::new(&server).await;
    let made = agent
        .create(json!({
            "index.html": { "text": "<!doctype html><title>Garden</title><link rel=stylesheet href=css/site.css><h1>Beans</h1>" },
            "about.html": { "text": "<!doctype html><title>About</title><p>Ours" },
            "css/site.css": { "text": "h1 { color: teal }" },
            "js/app.js": { "text": "document.title += '!'" },
            "dot.gif": { "base64": DOT },
        }))
        .await;
    assert_eq!(
        (&made["type"], &made["title"]),
        (&json!("site"), &json!("Garden"))
    );
    assert_eq!(made["site"]["files"], 5);
    // What there is, and one line of it.
    let listed = agent.call("content", json!({})).await;
    let paths: Vec<_> = listed["files"].as_object().unwrap().keys().collect();
    let expected = [
        "about.html",
        "css/site.css",
        "dot.gif",
        "index.html",
        "js/app.js",
    ];
    assert_eq!(paths, expected);
    assert_eq!(listed["files"]["dot.gif"]["media_type"], "image/gif");
    let find = json!({ "path": "css/site.css", "find": "teal" });
    let found = agent.call("content", find).await;
    assert_eq!(found["found"][0]["content"], "h1 { color: teal }");
    let first = text(&found["revision_id"]);
    let edits = json!([{ "path": "css/site.css", "find": "teal", "replace": "navy" }]);
    let base =
        json!({ "base_revision_id": first, "changes": { "edits": edits }, "message": "blue" });
    let drafted = agent.call("create_revision", base).await;
    let draft = text(&drafted["revision"]["revision_id"]);
    let preview = text(&drafted["preview_url"]);
    let preview = &preview[preview.find("/_preview/").unwrap()..];
    let seen = server.get(&format!("{preview}css/site.css")).answer().await;
    assert_eq!(seen.expect(200).text(), "h1 { color: navy }");
    let of_draft = json!({ "path": "css/site.css", "revision_id": draft });
    let of_draft = agent.call("content", of_draft).await;
    assert_eq!(of_draft["content"], "h1 { color: navy }");
    assert_eq!(of_draft["revision_id"], draft);
    assert_eq!(agent.read("css/site.css").await, "h1 { color: teal }");
    let release = json!({ "revision_id": draft, "expected_active_revision_id": first });
    let live = agent.call("promote", release.clone()).await;
    assert_eq!(live["frontend"]["site"]["files"], 5);
    assert_eq!(agent.read("css/site.css").await, "h1 { color: navy }");
    agent.refuse("promote", release, "revision_conflict").await;
    let back = json!({ "revision_id": first, "expected_active_revision_id": draft });
    agent.call("rollback", back).await;
    assert_eq!(agent.read("css/site.css").await, "h1 { color: teal }");
    // What was tried goes, and what is live stays.
    let gone = agent
        .call("delete_revision", json!({ "revision_id": draft }))
        .await;
    assert_eq!(gone, json!({ "deleted": true }));
    let live = json!({ "revision_id": first });
    agent
        .refuse("delete_revision", live, "revision_conflict")
        .await;
    agent
        .refuse("get_revision", json!({ "revision_id": draft }), "not_found")
        .await;
    let all = json!({ "files": { "index.html": { "text": "<p>all" } } });
    let published = agent.call("update", all).await;
    assert_eq!(published["site"], json!({ "files": 1, "bytes": 6 }));
    assert_eq!(agent.read("").await, "<p>all");
}

#[tokio::test]
async fn a_file_is_text_or_base64_or_elsewhere() {
    let server = TestServer::start().await;
    let agent = SiteAgent::new(&server).await;
    let long: String = (0..20_000).map(|line| format!("Grüße {line}\n")).collect();
    let binary = "/+".repeat(50_000);
    agent
        .create(json!({
            "index.html": { "text": "<p>x" },
            "dot.gif": { "base64": DOT },
            "long.txt": { "text": long },
            "a b/large.bin": { "base64": binary },
        }))
        .await;
    let dot = agent.call("content", json!({ "path": "dot.gif" })).await;
    assert_eq!((&dot["base64"], &dot["size"]), (&json!(DOT), &json!(14)));
    let known = json!({ "path": "dot.gif", "known_content_sha256": dot["sha256"] });
    let known = agent.call("content", known).await;
    assert_eq!(known["unchanged"], true);
    // A long text in ranges, without a character lost.
    let (mut read, mut offset) = (String::new(), json!(0));
    while !offset.is_null() {
        let range = json!({ "path": "long.txt", "offset": offset });
        let part = agent.call("content", range).await;
        read.push_str(part["content"].as_str().unwrap());
        offset = part["next_offset"].clone();
        assert_eq!(part["note"].is_null(), offset.is_null());
    }
    assert!(read == long);
    let line = json!({ "path": "long.txt", "find": 7 });
    let line = agent.call("content", line).await;
    assert_eq!(line["found"][0]["line"], 7);
    // What no result can hold says where it is.
    let large = json!({ "path": "a b/large.bin" });
    let large = agent.call("content", large).await;
    assert_eq!(large["base64"], Value::Null);
    assert!(text(&large["note"]).contains("Authorization: Bearer"));
    let url = text(&large["url"]);
    let url = &url[url.find("/api/").unwrap()..];
    let credential = agent.client.credential.as_deref().unwrap();
    let fetched = server.get(url).bearer_auth(credential).answer().await;
    assert_eq!(fetched.expect(200).body.len(), 75_000);
    for (more, code, said) in [
        (json!({ "find": "x" }), "invalid_request", "`path`"),
        (json!({ "path": "none" }), "not_found", "no such file"),
        (json!({ "path": 7 }), "invalid_request", "`path`"),
        (
            json!({ "path": "dot.gif", "limit": 1 }),
            "invalid_request",
            "for texts",
        ),
        (
            json!({ "path": "dot.gif", "find": "x" }),
            "invalid_request",
            "for texts",
        ),
        (
            json!({ "path": "index.html", "offset": 5 }),
            "invalid_request",
            "4 characters",
        ),
        (
            json!({ "path": "index.html", "limit": 0 }),
            "invalid_request",
            "`limit`",
        ),
        (json!({ "offset": 5 }), "invalid_request", "4 files"),
    ] {
        let problem = agent.refuse("content", more.clone(), code).await;
        assert!(text(&problem["detail"]).contains(said), "{more}: {problem}");
    }
}

#[tokio::test]
async fn a_long_list_of_files_is_read_in_parts() {
    let server = TestServer::start().await;
    let agent = SiteAgent::new(&server).await;
    let file = |number: usize| {
        (
            format!("docs/a \"page\" {number:04}.html"),
            json!({ "text": "x" }),
        )
    };
    let files: serde_json::Map<String, Value> = (0..500).map(file).collect();
    agent.create(Value::Object(files.clone())).await;
    let (mut read, mut offset) = (Vec::new(), Value::Null);
    loop {
        let part = match offset.is_null() {
            true => agent.call("content", json!({})).await,
            false => agent.call("content", json!({ "offset": offset })).await,
        };
        assert_eq!(part["truncated"], Value::Null);
        assert_eq!(part["total_files"], 500);
        read.extend(part["files"].as_object().unwrap().keys().cloned());
        offset = part["next_offset"].clone();
        if offset.is_null() {
            break;
        }
    }
    assert_eq!(read, Vec::from_iter(files.keys().cloned()));
    let two = agent
        .call("content", json!({ "offset": 498, "limit": 1 }))
        .await;
    assert_eq!(two["files"].as_object().unwrap().len(), 1);
    assert_eq!(two["next_offset"], 499);
}

#[tokio::test]
async fn anybody_shares_a_site_by_the_tool() {
    let server = TestServer::start().await;
    let nobody = Client::anonymous(&server);
    let files =
        json!({ "index.html": { "text": "<title>Kit</title>kit" }, "dot.gif": { "base64": DOT } });
    let site = json!({ "type": "site", "files": files, "slug": "kit" });
    let shared = nobody.call_ok("deploy_asset", site.clone()).await;
    assert_eq!(
        (&shared["slug"], &shared["title"]),
        (&json!("kit"), &json!("Kit"))
    );
    let page = server.get("/kit/").answer().await.expect(200);
    assert!(page.text().ends_with("kit"));
    for (argument, value) in [
        ("password", json!("x")),
        ("one_time", json!(true)),
        ("content", json!("x")),
        ("name", json!("x")),
    ] {
        let mut with = site.clone();
        with[argument] = value;
        let problem = nobody
            .call_refused("deploy_asset", with, "invalid_request")
            .await;
        assert!(text(&problem["detail"]).contains(argument), "{problem}");
    }
}

#[tokio::test]
async fn files_may_be_more_than_other_arguments() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let agent = SiteAgent {
        client: Client::with_credential(&server, &owner.credential),
        project: owner.project(&server, "House").await,
    };
    let files = |bytes: usize| json!({ "index.html": { "text": "x".repeat(bytes) } });
    let made = agent.create(files(2_000_000)).await;
    assert_eq!(made["site"]["files"], 1, "{made}");
    let site = |bytes: usize| {
        let site = json!({ "type": "site", "files": files(bytes), "requested_slug": "other" });
        agent.arguments("create", site)
    };
    let page = json!({ "type": "markdown", "content": "x".repeat(2_000_000) });
    let page = agent.arguments("create", page);
    let share = json!({ "type": "site", "files": files(2_000_000) });
    for (tool, arguments, is_owner) in [
        ("manage_frontend", page, true),
        ("manage_frontend", site(4_200_000), true),
        ("manage_frontend", site(2_000_000), false),
        ("manage_backend", site(2_000_000), true),
        ("deploy_asset", share.clone(), true),
        ("deploy_asset", share, false),
    ] {
        let message = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": tool, "arguments": arguments },
        });
        let mut request = server.post("/mcp").json(&message);
        if is_owner {
            request = request.bearer_auth(&owner.credential);
        }
        let refused = request.answer().await;
        refused.problem(413, "payload_too_large");
    }
}
