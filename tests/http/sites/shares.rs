//! Sites as quick shares: anybody's, sandboxed, and claimed with their files.

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Answer, ReadAnswer, TestServer};

use super::{SiteFixture, collected_objects, put, sha256, texts};
use crate::owner::{Owner, text};
use crate::svc;

async fn deploy(server: &TestServer, body: &Value) -> Answer {
    server.json("/api/v1/deploy", body).answer().await
}

#[tokio::test]
async fn anybody_shares_a_folder_for_a_time() {
    let server = TestServer::start().await;
    let before = collected_objects(&server).await;
    let files = texts(&[
        ("index.html", "<title>Demo</title>demo"),
        ("a.svg", "<svg/>"),
    ]);
    let body = json!({ "type": "site", "files": files, "name": "demo", "expires_in": 10_000 });
    let shared = deploy(&server, &body).await.expect(201).json();
    assert_eq!(
        (&shared["slug"], &shared["title"]),
        (&json!("demo"), &json!("Demo"))
    );
    let page = server.get("/demo/").answer().await.expect(200);
    assert!(page.text().ends_with("demo"));
    for path in ["/demo/", "/demo/a.svg"] {
        let answer = server.get(path).answer().await.expect(200);
        assert!(
            answer
                .header("content-security-policy")
                .unwrap()
                .starts_with("sandbox")
        );
        assert_eq!(answer.header("x-robots-tag"), Some("noindex"));
    }
    let check = server.command(&svc(), &["check", "--json"]).await.json();
    assert_eq!(check["errors"], json!([]));
    assert_eq!(
        collected_objects(&server).await,
        before + 4,
        "they are kept"
    );
    server.advance(10_000);
    server.server().app().expiry.sweep().await.unwrap();
    assert_eq!(server.get("/demo/").answer().await.status, 404);
    assert_eq!(collected_objects(&server).await, before);
}

#[tokio::test]
async fn shares_of_folders_have_bounds() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    let theirs = put(&owner, &server, &project, b"theirs").await;
    let site = |files: Value| json!({ "type": "site", "files": files });
    let many: serde_json::Map<String, Value> = (0..101)
        .map(|number| (format!("f{number}"), json!({ "text": "x" })))
        .collect();
    let refused = deploy(&server, &site(Value::Object(many))).await;
    refused.problem(403, "plan_limit");
    let known = site(json!({ "a": { "sha256": theirs } }));
    let unknown = site(json!({ "a": { "sha256": sha256(b"nobody's") } }));
    let [known, unknown] = [
        deploy(&server, &known).await,
        deploy(&server, &unknown).await,
    ];
    let details = [known, unknown].map(|it| it.problem(400, "invalid_request")["detail"].clone());
    assert_eq!(details[0], details[1], "a digest tells nothing");
    for (field, value) in [
        ("password", json!("x")),
        ("one_time", json!(true)),
        ("content", json!("x")),
    ] {
        let mut body = site(texts(&[("a", "b")]));
        body[field] = value;
        let problem = deploy(&server, &body).await.problem(400, "invalid_request");
        assert!(text(&problem["detail"]).contains(field), "{problem}");
    }
    let refused = deploy(&server, &site(texts(&[("../a", "b")]))).await;
    refused.problem(400, "path_refused");
}

#[tokio::test]
async fn a_claimed_folder_is_a_projects_site() {
    let fixture = SiteFixture::empty(TestServer::start().await).await;
    let before = collected_objects(&fixture.server).await;
    fixture.put(b"both").await;
    let files = texts(&[("index.html", "mine"), ("both", "both")]);
    let body = json!({ "type": "site", "files": files, "name": "site" });
    let shared = deploy(&fixture.server, &body).await.expect(201).json();
    let claim = json!({ "id": shared["id"], "delete_token": shared["delete_token"] });
    let path = format!("/{}/frontends/claim", fixture.project);
    let claimed = fixture.owner.post(&fixture.server, &path, &claim).await;
    let claimed = claimed.expect(201).json();
    assert_eq!(claimed["type"], "site");
    assert_eq!(claimed["site"], json!({ "files": 2, "bytes": 8 }));
    assert_eq!(fixture.read("/site/").await, "mine");
    fixture.server.advance(1_000_000);
    fixture.server.server().app().expiry.sweep().await.unwrap();
    collected_objects(&fixture.server).await;
    assert_eq!(fixture.read("/site/both").await, "both");
    let draft = json!({ "changes": { "set": { "new": { "text": "new" } } } });
    let draft = fixture.draft(&draft).await;
    fixture
        .release("promote", &draft["revision"]["revision_id"])
        .await
        .expect(200);
    assert_eq!(fixture.read("/site/").await, "mine");
    let check = fixture
        .server
        .command(&svc(), &["check", "--json"])
        .await
        .json();
    assert_eq!(check["errors"], json!([]));
    fixture.send(Method::DELETE, "", None).await.expect(204);
    assert_eq!(collected_objects(&fixture.server).await, before);
}
