//! Links into the console: each works once, in its time, and only its holder has the key.

use futures_util::future::join_all;
use http::Method;
use serde_json::{Value, json};
use svc::workspaces::{CONSOLE_LINK_SECONDS, Role};
use svc_tests::{ReadAnswer, TestServer, disk};

use super::{ConsoleFixture, SESSION_PATH};
use crate::owner::{Owner, text};

/// Lifetime of a key that a link makes, in seconds.
const KEY_SECONDS: u64 = 12 * 3600;

impl ConsoleFixture {
    /// Asks for something below the API with a credential, at the console's host.
    async fn status_with(&self, credential: &str, method: Method, path: &str) -> u16 {
        let request = self.request(method, path).bearer_auth(credential);
        request.answer().await.status
    }

    /// The keys of a workspace that links have made.
    async fn console_keys(&self, workspace: &str) -> Vec<Value> {
        let owner = self.code(workspace, Role::Owner, None).await;
        let owner = self.exchange(&owner).await.expect(200).json();
        let path = format!("/api/v1/workspaces/{workspace}/keys");
        let request = self.request(Method::GET, &path);
        let request = request.bearer_auth(text(&owner["credential"]));
        let keys = request.answer().await.expect(200).json();
        let keys = keys["keys"].as_array().unwrap().iter();
        let made = keys.filter(|key| key["note"] == "console");
        made.cloned().collect()
    }
}

#[tokio::test]
async fn a_link_is_a_key_once() {
    let fixture = ConsoleFixture::start().await;
    Owner::new(&fixture.server, "acme").await;
    let code = fixture.code("acme", Role::Owner, None).await;
    assert_eq!(code.len(), 43);
    assert!(code.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    let answer = fixture.exchange(&code).await.expect(200);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.header("set-cookie"), None);
    let made = answer.json();
    let mut members: Vec<_> = made.as_object().unwrap().keys().collect();
    members.sort();
    assert_eq!(members, ["credential", "expires_at", "role", "workspace"]);
    assert_eq!(made["workspace"]["slug"], "acme");
    assert_eq!(made["role"], "owner");
    let credential = text(&made["credential"]);
    let status = fixture.status_with(&credential, Method::GET, "/api/v1/me");
    assert_eq!(status.await, 200);
    let again = fixture.exchange(&code).await;
    again.problem(401, "unauthorized");
    // The key counts everywhere, and ends by itself.
    let owner = Owner::with_credential(&credential);
    owner.get(&fixture.server, "").await.expect(200);
    fixture.server.advance(KEY_SECONDS + 1);
    let status = fixture.status_with(&credential, Method::GET, "/api/v1/me");
    assert_eq!(status.await, 401);
}

#[tokio::test]
async fn of_ten_exchanges_at_once_one_has_the_key() {
    let fixture = ConsoleFixture::start().await;
    Owner::new(&fixture.server, "acme").await;
    for _ in 0..5 {
        let code = fixture.code("acme", Role::Owner, None).await;
        let racing = (0..10).map(|_| fixture.exchange(&code));
        let answers = join_all(racing).await;
        let won = answers.iter().filter(|answer| answer.status == 200);
        assert_eq!(won.count(), 1);
        for lost in answers.iter().filter(|answer| answer.status != 200) {
            lost.problem(401, "unauthorized");
        }
    }
}

#[tokio::test]
async fn a_link_has_its_time() {
    let fixture = ConsoleFixture::start().await;
    Owner::new(&fixture.server, "acme").await;
    let seconds = u64::try_from(CONSOLE_LINK_SECONDS).unwrap();
    let timed = Some(CONSOLE_LINK_SECONDS);
    for (wait, status) in [(seconds - 1, 200), (seconds, 401)] {
        let code = fixture.code("acme", Role::Owner, timed).await;
        fixture.server.advance(wait);
        assert_eq!(fixture.exchange(&code).await.status, status, "{wait}");
        // One that came too late is gone, too.
        assert_eq!(fixture.exchange(&code).await.status, 401, "{wait}");
    }
    let endless = fixture.code("acme", Role::Owner, None).await;
    fixture.server.advance(400 * 24 * 3600);
    fixture.exchange(&endless).await.expect(200);
}

#[tokio::test]
async fn a_link_without_an_end_ends_with_its_server() {
    let fixture = ConsoleFixture::start().await;
    Owner::new(&fixture.server, "acme").await;
    let endless = fixture.code("acme", Role::Owner, None).await;
    let timed = Some(CONSOLE_LINK_SECONDS);
    let timed = fixture.code("acme", Role::Owner, timed).await;
    let fixture = ConsoleFixture::of(fixture.server.restart().await);
    let ended = fixture.exchange(&endless).await;
    ended.problem(401, "unauthorized");
    fixture.exchange(&timed).await.expect(200);
}

#[tokio::test]
async fn what_is_no_code_is_refused() {
    let fixture = ConsoleFixture::start().await;
    let owner = Owner::new(&fixture.server, "acme").await;
    let codes = [
        String::new(),
        "a".to_owned(),
        "a".repeat(42),
        "a".repeat(43),
        "a".repeat(44),
        "-".repeat(43),
        "é".repeat(21),
        owner.credential,
    ];
    for code in codes {
        let refused = fixture.exchange(&code).await;
        refused.problem(401, "unauthorized");
    }
    let send = async |body: String| {
        let request = fixture.request(Method::POST, SESSION_PATH);
        let request = request.header("content-type", "application/json");
        request.body(body).answer().await
    };
    send("{".to_owned()).await.problem(400, "invalid_json");
    for body in [
        json!({}),
        json!({ "code": 1 }),
        json!({ "code": "a", "b": 1 }),
    ] {
        let refused = send(body.to_string()).await;
        assert_eq!(refused.status, 400, "{body}");
    }
    let long = json!({ "code": "a".repeat(2_000) }).to_string();
    send(long).await.problem(413, "payload_too_large");
    let form = fixture.request(Method::POST, SESSION_PATH);
    let form = form.header("content-type", "application/x-www-form-urlencoded");
    let form = form.body("code=a").answer().await;
    assert!([400, 415].contains(&form.status), "{}", form.text());
}

#[tokio::test]
async fn guesses_take_tokens_of_passwords() {
    let builder = TestServer::builder().limits(|limits| limits.auth_burst = 3);
    let fixture = ConsoleFixture::with(builder).await;
    Owner::new(&fixture.server, "acme").await;
    let code = fixture.code("acme", Role::Owner, None).await;
    for _ in 0..3 {
        let guess = fixture.exchange(&"a".repeat(43)).await;
        guess.problem(401, "unauthorized");
    }
    fixture.exchange(&code).await.problem(429, "rate_limited");
    // It was not used up.
    fixture.server.advance(60);
    fixture.exchange(&code).await.expect(200);
}

#[tokio::test]
async fn a_link_has_the_role_that_it_was_made_for() {
    let fixture = ConsoleFixture::start().await;
    Owner::new(&fixture.server, "acme").await;
    for (role, name, makes, looks) in [
        (Role::Viewer, "viewer", 403, 403),
        (Role::Editor, "editor", 201, 403),
        (Role::Admin, "admin", 201, 200),
        (Role::Owner, "owner", 201, 200),
    ] {
        let code = fixture.code("acme", role, None).await;
        let made = fixture.exchange(&code).await.expect(200).json();
        assert_eq!(made["role"], name);
        let credential = text(&made["credential"]);
        let project = fixture.request(Method::POST, "/api/v1/projects");
        let project = project.bearer_auth(&credential);
        let project = project.json(&json!({ "name": name }));
        assert_eq!(project.answer().await.status, makes, "{name}");
        let audit = "/api/v1/workspaces/acme/audit";
        let status = fixture.status_with(&credential, Method::GET, audit);
        assert_eq!(status.await, looks, "{name}");
    }
}

#[tokio::test]
async fn signing_out_revokes_the_key_of_a_link_alone() {
    let fixture = ConsoleFixture::start().await;
    let pasted = Owner::new(&fixture.server, "acme").await;
    let code = fixture.code("acme", Role::Viewer, None).await;
    let made = fixture.exchange(&code).await.expect(200).json();
    let came_by_link = text(&made["credential"]);
    for (credential, after) in [(&came_by_link, 401), (&pasted.credential, 200)] {
        let out = fixture.status_with(credential, Method::DELETE, SESSION_PATH);
        assert_eq!(out.await, 204);
        let me = fixture.status_with(credential, Method::GET, "/api/v1/me");
        assert_eq!(me.await, after);
    }
    let nobody = fixture.request(Method::DELETE, SESSION_PATH);
    nobody.answer().await.problem(401, "unauthorized");
}

#[tokio::test]
async fn keys_of_links_that_have_ended_are_removed_and_all_are_in_the_audit() {
    let fixture = ConsoleFixture::start().await;
    Owner::new(&fixture.server, "acme").await;
    assert_eq!(fixture.console_keys("acme").await.len(), 1);
    assert_eq!(fixture.console_keys("acme").await.len(), 2);
    fixture.server.advance(KEY_SECONDS);
    let keys = fixture.console_keys("acme").await;
    assert_eq!(keys.len(), 1, "{keys:?}");
    let code = fixture.code("acme", Role::Owner, None).await;
    let made = fixture.exchange(&code).await.expect(200).json();
    let audit = fixture.request(Method::GET, "/api/v1/workspaces/acme/audit");
    let audit = audit.bearer_auth(text(&made["credential"]));
    let audit = audit.answer().await.expect(200).json();
    let entries = audit["entries"].as_array().unwrap().iter();
    let made = entries.filter(|entry| entry["action"] == "key.create");
    let made: Vec<_> = made.collect();
    assert_eq!(made.len(), 4, "{audit}");
    assert!(made.iter().all(|entry| entry["principal"] == "operator"));
}

#[tokio::test]
async fn a_workspace_that_ends_takes_its_links_along() {
    let fixture = ConsoleFixture::start().await;
    Owner::new(&fixture.server, "acme").await;
    let code = fixture.code("acme", Role::Owner, None).await;
    let other = fixture.code("acme", Role::Owner, None).await;
    let made = fixture.exchange(&other).await.expect(200).json();
    let credential = text(&made["credential"]);
    let path = "/api/v1/workspaces/acme";
    let ended = fixture.status_with(&credential, Method::DELETE, path);
    assert!([202, 204].contains(&ended.await));
    let late = fixture.exchange(&code).await;
    late.problem(401, "unauthorized");
}

#[tokio::test]
async fn neither_a_code_nor_its_key_lies_on_the_disk() {
    let fixture = ConsoleFixture::start().await;
    if fixture.server.has_several_nodes() {
        return;
    }
    Owner::new(&fixture.server, "acme").await;
    let used = fixture.code("acme", Role::Owner, None).await;
    let waiting = fixture.code("acme", Role::Owner, None).await;
    let made = fixture.exchange(&used).await.expect(200).json();
    let credential = text(&made["credential"]);
    let data = fixture.server.stop().await;
    for secret in [used, waiting, credential] {
        assert_eq!(disk::holding(data.path(), &secret), Vec::<String>::new());
    }
}
