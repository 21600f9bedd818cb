//! Shares that people can live with: shorter lives, deletion by token, the claim for a project, and files as they are.

mod files;

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Answer, ReadAnswer, TestServer, disk, wait_until};

use crate::owner::{Owner, text};
use crate::svc;

const DEPLOY: &str = "/api/v1/deploy";

async fn delete(server: &TestServer, share: &Value) -> Answer {
    let path = format!("{DEPLOY}/{}", text(&share["id"]));
    let request = server.request(Method::DELETE, &path);
    let token = text(&share["delete_token"]);
    request.bearer_auth(token).answer().await
}

async fn claim(server: &TestServer, owner: &Owner, project: &str, share: &Value) -> Answer {
    let body = json!({ "id": share["id"], "delete_token": share["delete_token"] });
    let path = format!("/{project}/frontends/claim");
    owner.post(server, &path, &body).await
}

async fn put(server: &TestServer, file: &str, body: impl Into<Vec<u8>>) -> Answer {
    let request = server.request(Method::PUT, &format!("{DEPLOY}/{file}"));
    request.body(body.into()).answer().await
}

async fn disable(server: &TestServer, slug: &str) {
    let command = ["deployment", "disable", slug];
    assert!(server.command(&svc(), &command).await.success);
    let path = format!("/{slug}");
    let refused = async || (server.get(&path).answer().await.status == 403).then_some(());
    wait_until("the page to be disabled", refused).await;
}

#[tokio::test]
async fn a_share_lives_as_long_as_it_is_told() {
    let server = TestServer::start().await;
    let brief = json!({ "content": "x", "name": "brief", "expires_in": 60 });
    let share = server.deploy(&brief).await;
    assert_eq!(share["expires_at"], "2026-11-20T12:01:00.000Z");
    let whole = json!({ "content": "x", "expires_in": 604_800 });
    let whole = server.deploy(&whole).await;
    assert_eq!(whole["expires_at"], "2026-11-27T12:00:00.000Z");
    for wrong in [
        json!(59),
        json!(604_801),
        json!(0),
        json!(-1),
        json!("60"),
        json!(60.5),
    ] {
        let body = json!({ "content": "x", "expires_in": wrong });
        let answer = server.json(DEPLOY, &body).answer().await;
        let problem = answer.problem(400, "invalid_request");
        assert!(text(&problem["detail"]).contains("expires_in"), "{problem}");
    }
    server.advance(59);
    server.get("/brief").answer().await.expect(200);
    server.advance(1);
    let gone = server.get("/brief").answer().await;
    gone.problem(404, "not_found");
    delete(&server, &share).await.expect(204);
}

#[tokio::test]
async fn a_token_deletes_its_share_and_no_other() {
    let server = TestServer::start().await;
    let one = server
        .deploy(&json!({ "content": "x", "name": "one" }))
        .await;
    let two = server
        .deploy(&json!({ "content": "x", "name": "two" }))
        .await;
    let token = text(&one["delete_token"]);
    let secret = token.strip_prefix("svcd_").expect("its prefix");
    assert!(secret.len() == 43 && secret.bytes().all(|b| b.is_ascii_alphanumeric()));
    assert_eq!(disk::holding(server.data(), secret), [] as [&str; 0]);

    let path = format!("{DEPLOY}/{}", text(&one["id"]));
    let bare = server.request(Method::DELETE, &path).answer().await;
    bare.problem(401, "unauthorized");
    assert_eq!(bare.header("www-authenticate"), Some("Bearer"));
    let empty = server.request(Method::DELETE, &path).bearer_auth("");
    empty.answer().await.problem(401, "unauthorized");
    let unknown = json!({ "id": "01a1fc20-6ee3-7da4-ae81-ade539ecfe63", "delete_token": token });
    let mut said = Vec::new();
    for wrong in [
        json!({ "id": one["id"], "delete_token": two["delete_token"] }),
        json!({ "id": one["id"], "delete_token": format!("{token}x") }),
        json!({ "id": one["id"], "delete_token": token.to_uppercase() }),
        json!({ "id": text(&one["id"]).replace('-', ""), "delete_token": token }),
        json!({ "id": "one", "delete_token": token }),
        unknown,
    ] {
        said.push(delete(&server, &wrong).await.problem(404, "not_found"));
    }
    assert!(said.iter().all(|problem| *problem == said[0]), "{said:?}");
    let basic = server
        .request(Method::DELETE, &path)
        .basic_auth("a", Some("b"));
    basic.answer().await.problem(404, "not_found");
    let query = server
        .request(Method::DELETE, &format!("{path}?a=1"))
        .bearer_auth(&token);
    query.answer().await.problem(400, "invalid_request");
    server.get("/one").answer().await.expect(200);

    assert!(delete(&server, &one).await.expect(204).body.is_empty());
    server.get("/one").answer().await.problem(404, "not_found");
    server
        .get("/one/raw")
        .answer()
        .await
        .problem(404, "not_found");
    delete(&server, &one).await.expect(204);
    let again = server
        .deploy(&json!({ "content": "y", "name": "one" }))
        .await;
    assert_eq!(again["slug"], "one", "the slug is free");
    delete(&server, &one).await.expect(204);
    server.get("/one").answer().await.expect(200);
    server.get("/two").answer().await.expect(200);
    let server = server.restart().await;
    delete(&server, &one).await.expect(204);
}

#[tokio::test]
async fn a_token_deletes_what_burns_and_what_is_locked() {
    let server = TestServer::start().await;
    let once = json!({ "content": "burning-words", "name": "once", "one_time": true });
    let once = server.deploy(&once).await;
    delete(&server, &once).await.expect(204);
    assert_eq!(
        disk::holding(server.data(), "burning-words"),
        [] as [&str; 0]
    );
    server
        .post("/once")
        .answer()
        .await
        .problem(404, "not_found");
    let burnt = json!({ "content": "x", "name": "burnt", "one_time": true });
    let burnt = server.deploy(&burnt).await;
    server.post("/burnt").answer().await.expect(200);
    delete(&server, &burnt).await.expect(204);
    let locked = json!({ "content": "x", "name": "locked", "password": "p" });
    let locked = server.deploy(&locked).await;
    let cookie = server.unlock("locked", "p").await;
    delete(&server, &locked).await.expect(204);
    let request = server.get("/locked").header("cookie", cookie);
    request.answer().await.problem(404, "not_found");
}

#[tokio::test]
async fn the_publisher_of_a_disabled_share_does_not_get_its_slug_back() {
    let server = TestServer::builder().system_clock().start().await;
    let share = server
        .deploy(&json!({ "content": "phishing", "name": "bank", "expires_in": 60 }))
        .await;
    disable(&server, "bank").await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    claim(&server, &owner, &project, &share)
        .await
        .problem(403, "disabled");
    delete(&server, &share).await.expect(204);
    server.get("/bank").answer().await.problem(404, "not_found");
    let again = server
        .deploy(&json!({ "content": "y", "name": "bank" }))
        .await;
    assert_eq!(again["slug"], "bank-2");
    let enable = ["deployment", "enable", "bank"];
    server.command(&svc(), &enable).await;
    server.get("/bank").answer().await.problem(404, "not_found");
    delete(&server, &share).await.expect(204);
    let check = server.command(&svc(), &["check"]).await;
    assert!(check.success, "{}", check.stdout);
}

#[tokio::test]
async fn the_answer_to_a_key_is_replayed_whole_and_kept_sealed() {
    let server = TestServer::start().await;
    for body in [
        json!({ "content": "x", "title": "burning-title", "one_time": true }),
        json!({ "content": "x", "title": "a-shown-title" }),
    ] {
        let send = async |body: &Value| {
            let request = server.json(DEPLOY, body);
            request.header("idempotency-key", "k-1").answer().await
        };
        let key = text(&body["title"]);
        let request = || server.json(DEPLOY, &body).header("idempotency-key", &key);
        let first = request().answer().await.expect(201);
        let again = request().answer().await.expect(201);
        assert_eq!(again.header("idempotency-replayed"), Some("true"));
        assert_eq!(again.body, first.body);
        let secret = text(&first.json()["delete_token"]);
        assert_eq!(disk::holding(server.data(), &secret), [] as [&str; 0]);
        if body["one_time"] == true {
            // The key has the title's words, so what is looked for is another answer's.
            let one = json!({ "content": "x", "title": "ashes-to-ashes", "one_time": true });
            send(&one).await.expect(201);
            for path in disk::holding(server.data(), "ashes-to-ashes") {
                assert!(path.starts_with("once/"), "{path}");
            }
        }
        delete(&server, &again.json()).await.expect(204);
    }
}

#[tokio::test]
async fn a_claimed_share_is_a_frontend() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    owner.frontend(&server, &project, "first").await;
    let page = "<!doctype html><title>Mine</title><p>hi";
    let share = json!({ "content": page, "name": "mine", "title": "A title" });
    let share = server.deploy(&share).await;
    for _ in 0..3 {
        server.get("/mine").answer().await.expect(200);
    }
    assert_eq!(server.visits("mine").await, 3);
    server.advance(60);
    let made = claim(&server, &owner, &project, &share).await.expect(201);
    let origin = format!("http://house-acme.localhost:{}", server.address().port());
    assert_eq!(made.header("location"), Some(&*format!("{origin}/mine")));
    let made = made.json();
    for (field, expected) in [
        ("id", share["id"].clone()),
        ("slug", json!("mine")),
        ("url", json!(format!("{origin}/mine"))),
        ("type", json!("html")),
        ("title", json!("A title")),
        ("state", json!("active")),
        ("visits", json!(3)),
        ("created_at", json!("2026-11-20T12:01:00.000Z")),
    ] {
        assert_eq!(made[field], expected, "{field}");
    }
    let found = owner
        .get(&server, &format!("/{project}/frontends/mine"))
        .await;
    assert_eq!(found.expect(200).json(), made);
    // At once it is an owner's page: at home, with its script, and for search engines.
    let host = format!("house-acme.localhost:{}", server.address().port());
    let home = server.get_raw(&host, "/mine").await.expect(200);
    assert_eq!(home.header("content-security-policy"), None);
    assert_eq!(home.header("x-robots-tag"), None);
    assert!(home.text().contains("/_svc/runtime/"), "{}", home.text());
    let elsewhere = server.get("/mine").answer().await.expect(200);
    assert_eq!(elsewhere.header("x-robots-tag"), None);
    let sandbox = elsewhere.header("content-security-policy").unwrap();
    assert!(sandbox.starts_with("sandbox "), "{sandbox}");
    assert_eq!(server.get("/mine/raw").answer().await.text(), page);
    // The project's way in is still its first page.
    let root = server.get_raw(&host, "/").await.expect(302);
    assert_eq!(root.header("location"), Some("/first"));
    // The expiry of the share no longer counts, and its token is no longer valid.
    server.advance(8 * 24 * 3600);
    server.server().app().expiry.sweep().await.unwrap();
    server.get("/mine").answer().await.expect(200);
    delete(&server, &share).await.expect(204);
    server.get("/mine").answer().await.expect(200);
    claim(&server, &owner, &project, &share)
        .await
        .problem(404, "not_found");
    // A claimed share has a history, as every frontend.
    let path = format!("/{project}/frontends/mine");
    let body = json!({ "content": "<p>two" });
    owner
        .send(&server, Method::PUT, &path, &body)
        .await
        .expect(200);
    owner.delete(&server, &path).await.expect(204);
    server.get("/mine").answer().await.problem(404, "not_found");
}

#[tokio::test]
async fn what_cannot_be_claimed_is_said() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let other = Owner::new(&server, "zeta").await;
    let project = owner.project(&server, "House").await;
    let share = server
        .deploy(&json!({ "content": "x", "name": "mine" }))
        .await;
    claim(&server, &other, &project, &share)
        .await
        .problem(403, "forbidden");
    let path = format!("/api/v1/projects/{project}/frontends/claim");
    let body = json!({ "id": share["id"], "delete_token": share["delete_token"] });
    let anonymous = server.json(&path, &body).answer().await;
    anonymous.problem(401, "unauthorized");
    for (body, says) in [
        (json!({ "id": share["id"] }), "delete_token"),
        (json!({ "delete_token": "x" }), "`id`"),
        (
            json!({ "id": share["id"], "delete_token": "x", "slug": "y" }),
            "slug",
        ),
    ] {
        let path = format!("/{project}/frontends/claim");
        let answer = owner.post(&server, &path, &body).await;
        let problem = answer.problem(400, "invalid_request");
        assert!(text(&problem["detail"]).contains(says), "{problem}");
    }
    for (body, says) in [
        (json!({ "content": "x", "one_time": true }), "one-time"),
        (json!({ "content": "x", "password": "p" }), "protected"),
    ] {
        let share = server.deploy(&body).await;
        let answer = claim(&server, &owner, &project, &share).await;
        let problem = answer.problem(400, "invalid_request");
        assert!(text(&problem["detail"]).contains(says), "{problem}");
    }
    let wrong = json!({ "id": share["id"], "delete_token": "svcd_x" });
    claim(&server, &owner, &project, &wrong)
        .await
        .problem(404, "not_found");
    server.advance(8 * 24 * 3600);
    claim(&server, &owner, &project, &share)
        .await
        .problem(404, "not_found");
    let members = owner.get(&server, &format!("/{project}/frontends")).await;
    assert_eq!(members.json(), json!({ "frontends": [] }));
}

#[tokio::test]
async fn of_racing_claims_and_deletions_one_has_the_share() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    for round in 0..8 {
        let name = format!("race-{round}");
        let share = server
            .deploy(&json!({ "content": "x", "name": name }))
            .await;
        let (claimed, again, deleted) = tokio::join!(
            claim(&server, &owner, &project, &share),
            claim(&server, &owner, &project, &share),
            delete(&server, &share),
        );
        deleted.expect(204);
        let made = [&claimed, &again]
            .iter()
            .filter(|a| a.status == 201)
            .count();
        assert!(made <= 1);
        for answer in [&claimed, &again] {
            if answer.status != 201 {
                answer.problem(404, "not_found");
            }
        }
        let page = server.get(&format!("/{name}")).answer().await.status;
        assert_eq!(page, if made == 1 { 200 } else { 404 });
    }
}

#[tokio::test]
async fn a_frontend_may_be_called_like_the_address_of_claims() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    let made = owner.frontend(&server, &project, "claim").await;
    assert_eq!(made["slug"], "claim");
    let path = format!("/{project}/frontends/claim");
    let found = owner.get(&server, &path).await.expect(200).json();
    assert_eq!(found["slug"], "claim");
    let body = json!({ "content": "# Two" });
    owner
        .send(&server, Method::PUT, &path, &body)
        .await
        .expect(200);
    for part in ["content", "revisions", "releases"] {
        owner
            .get(&server, &format!("{path}/{part}"))
            .await
            .expect(200);
    }
    owner.delete(&server, &path).await.expect(204);
    let patch = owner.send(&server, Method::PATCH, &path, &body).await;
    patch.problem(405, "method_not_allowed");
}
