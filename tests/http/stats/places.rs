//! Counts and entries are the page's, wherever it is asked for and whatever it was released as: sites, domains, other revisions.

use http::Method;
use serde_json::{Value, json};
use svc_tests::dns::DnsServer;
use svc_tests::{Answer, ReadAnswer, TestServer};

use super::{entries, start_fixture, start_on, sums};
use crate::domains::use_dns;
use crate::owner::text;
use crate::project_fixture::ProjectFixture;

/// Domain of the project.
const NAME: &str = "www.shop.com";

impl ProjectFixture {
    /// Asks a host of the project, as a browser that opens a page.
    async fn open_at(&self, host: &str, path: &str) -> Answer {
        let port = self.server.address().port();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\nAccept: text/html\r\n\r\n"
        );
        self.server.raw(request).await
    }

    /// Calls an action of `room` at a host.
    async fn call_at(&self, host: &str, body: &Value) -> Answer {
        let (port, body) = (self.server.address().port(), body.to_string());
        let request = format!(
            "POST /room/api/op HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.server.raw(request).await
    }

    /// Sends a document below the project, as its owner.
    async fn post(&self, below: &str, body: &Value) -> Answer {
        let path = format!("/{}{below}", self.project);
        self.owner.post(&self.server, &path, body).await
    }

    /// Proves a domain of the project.
    async fn prove(&self, dns: &DnsServer) {
        let added = self.post("/domains", &json!({ "name": NAME })).await;
        dns.set_record(&added.expect(201).json()["records"][0]);
        let verify = format!("/domains/{NAME}/verify");
        self.post(&verify, &json!({})).await.expect(200);
    }
}

#[tokio::test]
async fn what_is_asked_at_a_domain_is_the_projects() {
    let dns = DnsServer::start().await;
    let server = TestServer::builder().settings(|settings| use_dns(settings, &dns));
    let fixture = start_on(server.start().await).await;
    let files = json!({
        "index.html": { "text": "home" }, "about.html": { "text": "about" }, "app.js": { "text": "1" },
        "404.html": { "text": "none" },
    });
    let site = json!({ "type": "site", "files": files, "requested_slug": "site" });
    fixture.post("/frontends", &site).await.expect(201);
    let at_root = json!({ "home": "site" });
    let of_project = format!("/{}", fixture.project);
    let changing = fixture
        .owner
        .send(&fixture.server, Method::PATCH, &of_project, &at_root);
    changing.await.expect(200);
    fixture.prove(&dns).await;
    for (host, path, status) in [
        ("house-acme.localhost", "/site/", 200),
        ("house-acme.localhost", "/site/about", 200),
        ("house-acme.localhost", "/about", 200),
        (NAME, "/", 200),
        (NAME, "/about", 200),
        (NAME, "/app.js", 200),
        (NAME, "/nothing", 404),
        (NAME, "/room", 200),
    ] {
        let answer = fixture.open_at(host, path).await;
        assert_eq!(answer.status, status, "{host}{path}");
    }
    let call = |action: &str| json!({ "action": action });
    fixture.call_at(NAME, &call("all")).await.expect(200);
    fixture.call_at(NAME, &call("none")).await.expect(404);
    let stats = fixture.seen("stats").await;
    let pages = json!([{ "slug": "site", "views": 5 }, { "slug": "room", "views": 1 }]);
    assert_eq!(stats["pages"], pages, "{stats}");
    let day = fixture.sums().await;
    assert_eq!((&day["views"], &day["calls"]), (&json!(6), &json!(2)));
    let log = fixture.seen("log?kind=call").await;
    let seen = entries(&log, &["slug", "status", "action"]);
    assert_eq!(
        seen,
        [
            [json!("room"), json!(200), json!("all")],
            [json!("room"), json!(404), json!("none")]
        ]
    );
}

#[tokio::test]
async fn counts_go_on_over_releases() {
    let fixture = start_fixture().await;
    let path = "/frontends/room";
    let revisions = format!("{path}/revisions");
    for n in 0..3 {
        fixture.server.get("/room").answer().await.expect(200);
        fixture.call_ok("all", &json!({})).await;
        let of_owner = format!("/{}{revisions}", fixture.project);
        let list = fixture.owner.get(&fixture.server, &of_owner).await;
        let active = text(&list.expect(200).json()["active_revision_id"]);
        let draft = json!({ "base_revision_id": active, "content": format!("# Draft {n}") });
        let drafted = fixture.post(&revisions, &draft).await.expect(200).json();
        let revision = text(&drafted["revision"]["revision_id"]);
        let promoted = json!({ "revision_id": revision, "expected_active_revision_id": active });
        let promote = format!("{path}/promote");
        fixture.post(&promote, &promoted).await.expect(200);
        // A changed action is the same one by its name.
        let sql = format!("SELECT id, name FROM guests ORDER BY id LIMIT {}", n + 1);
        fixture.define(&[("all", sql.as_str())]).await;
    }
    fixture.server.get("/room").answer().await.expect(200);
    let stats = fixture.seen("stats").await;
    assert_eq!(stats["pages"], json!([{ "slug": "room", "views": 4 }]));
    assert_eq!(stats["actions"][0]["calls"], 3, "{stats}");
    // What owners do is no request of a page.
    let log = fixture.seen("log").await;
    assert_eq!(log["entries"].as_array().unwrap().len(), 3, "{log}");
}

#[tokio::test]
async fn a_release_of_all_parts_begins_nothing_anew() {
    let fixture = start_fixture().await;
    fixture.call_ok("all", &json!({})).await;
    let release = json!({
        "actions": [{ "name": "all", "sql": "SELECT id FROM guests" }],
        "remove_actions": [{ "name": "named" }],
    });
    fixture.post("/release", &release).await.expect(200);
    fixture.call_ok("all", &json!({})).await;
    let ended = fixture.call_action("named", &json!({ "name": "x" })).await;
    ended.problem(404, "not_found");
    let expected = sums(&[("calls", 3), ("errors", 1)]);
    assert_eq!(fixture.sums().await, expected);
    let stats = fixture.seen("stats").await;
    let all = stats["actions"].as_array().unwrap();
    assert_eq!((all.len(), &all[0]["calls"]), (1, &json!(2)), "{stats}");
    let log = fixture.seen("log?action=named").await;
    assert_eq!(entries(&log, &["code"]), [[json!("not_found")]]);
    let ending = format!("/{}/backend/actions/all", fixture.project);
    let ended = fixture.owner.delete(&fixture.server, &ending).await;
    ended.expect(204);
    let stats = fixture.seen("stats").await;
    assert_eq!(stats["actions"][0]["calls"], 2, "{stats}");
}
