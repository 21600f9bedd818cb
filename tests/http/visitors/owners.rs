//! Visitors as their owners see them, and the end of things.

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Answer, ReadAnswer, wait_until};

use super::guest_book::GuestBook;
use super::stub_issuer::StubIssuer;
use crate::owner::{Owner, text};

fn count_rows(guest_book: &GuestBook, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {table}");
    let control = &guest_book.fixture.server.server().app().control;
    control
        .read_blocking(|c| c.query_row(&sql, [], |row| row.get(0)))
        .unwrap()
}

async fn list_visitors(guest_book: &GuestBook, query: &str) -> Value {
    let path = format!("/{}/visitors{query}", guest_book.fixture.project);
    guest_book
        .fixture
        .owner
        .get(&guest_book.fixture.server, &path)
        .await
        .expect(200)
        .json()
}

#[tokio::test]
async fn visitors_are_listed_newest_first_and_forgotten() {
    let guest_book = GuestBook::with_dev_provider().await;
    let mut browsers = Vec::new();
    for name in ["ada", "bob", "eve"] {
        let mut browser = guest_book.browser();
        let form = format!("name={name}&email={name}%40example.com");
        guest_book.sign_in(&mut browser, &form, "").await;
        browsers.push(browser);
    }
    let first = list_visitors(&guest_book, "?limit=2").await;
    let names: Vec<_> = first["visitors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| text(&one["name"]))
        .collect();
    assert_eq!(names, ["eve", "bob"]);
    let cursor = text(&first["next_cursor"]);
    let second = list_visitors(&guest_book, &format!("?limit=2&cursor={cursor}")).await;
    assert_eq!(second["next_cursor"], Value::Null);
    let ada = &second["visitors"][0];
    assert_eq!(ada["email"], "ada@example.com");
    assert_eq!(ada["provider"], "dev");
    assert_eq!(ada["created_at"], "2026-11-20T12:00:00.000Z");
    assert_eq!(ada["created_at"], ada["last_seen_at"]);
    assert_eq!(ada["id"], guest_book.user(&mut browsers[0]).await["id"]);
    for wrong in [
        "?limit=0",
        "?limit=201",
        "?limit=-1",
        "?cursor=x",
        "?page=2",
    ] {
        let path = format!("/{}/visitors{wrong}", guest_book.fixture.project);
        let answer = guest_book
            .fixture
            .owner
            .get(&guest_book.fixture.server, &path)
            .await;
        answer.problem(400, "invalid_request");
    }

    let sign = json!({"action": "sign", "params": {"words": "Hi"}});
    guest_book.call(&mut browsers[0], &sign).await.expect(200);
    let id = text(&ada["id"]);
    let path = format!("/{}/visitors/{id}", guest_book.fixture.project);
    let (owner, server) = (&guest_book.fixture.owner, &guest_book.fixture.server);
    let stranger = Owner::new(server, "other").await;
    stranger
        .delete(server, &path)
        .await
        .problem(403, "forbidden");
    server
        .request(Method::DELETE, &format!("/api/v1/projects{path}"))
        .answer()
        .await
        .problem(401, "unauthorized");
    for _ in 0..2 {
        assert_eq!(owner.delete(server, &path).await.status, 204);
    }
    assert_eq!(guest_book.user(&mut browsers[0]).await, Value::Null);
    guest_book
        .call(&mut browsers[0], &sign)
        .await
        .problem(401, "identity_required");
    assert_eq!(
        (
            count_rows(&guest_book, "visitors"),
            count_rows(&guest_book, "visitor_sessions")
        ),
        (2, 2)
    );
    // Rows in the project's own tables stay; a visitor who signs in again is a new visitor.
    let all = guest_book
        .call(&mut browsers[1], &json!({"action": "all"}))
        .await
        .json();
    assert_eq!(all["rows"].as_array().unwrap().len(), 1);
    guest_book
        .sign_in(&mut browsers[0], "name=ada&email=ada%40example.com", "")
        .await;
    assert_ne!(guest_book.user(&mut browsers[0]).await["id"], id);
}

#[tokio::test]
async fn a_visitor_is_another_in_every_project_and_one_in_all_its_pages() {
    let stub = StubIssuer::start().await;
    let guest_book = GuestBook::with_issuers(&[("acme", &stub)]).await;
    guest_book.fixture.publish("sibling").await;
    let (owner, server) = (&guest_book.fixture.owner, &guest_book.fixture.server);
    let other = owner.project(server, "Other").await;
    owner.frontend(server, &other, "elsewhere").await;
    let detail = owner.get(server, &format!("/{other}")).await.json();
    let mut ids = Vec::new();
    for (origin, slug) in [
        (guest_book.origin.clone(), "room"),
        (guest_book.origin.clone(), "sibling"),
        (text(&detail["url"]), "elsewhere"),
    ] {
        let mut browser = guest_book.browser();
        let (_, page) = browser.open(&format!("{origin}/{slug}/auth/login")).await;
        assert_eq!(page.status, 400, "the stub has no page");
        let asked = {
            let answer = browser.get(&format!("{origin}/{slug}/auth/login")).await;
            let location = answer.header("location").unwrap().to_owned();
            url::Url::parse(&location)
                .unwrap()
                .query_pairs()
                .into_owned()
                .collect::<std::collections::HashMap<_, _>>()
        };
        let query = format!("code={}&state={}", asked["nonce"], asked["state"]);
        let complete = guest_book
            .return_from_issuer(&mut browser, "acme", &query)
            .await;
        browser.get(&complete).await.expect(302);
        let status = browser.get(&format!("{origin}/{slug}/auth/status")).await;
        ids.push(text(&status.json()["user"]["id"]));
    }
    assert_eq!(ids[0], ids[1]);
    assert_ne!(ids[0], ids[2]);
}

#[tokio::test]
async fn sessions_end_with_their_frontend_and_visitors_with_their_project() {
    let guest_book = GuestBook::with_dev_provider().await;
    let mut ada = guest_book.browser();
    guest_book
        .sign_in(&mut ada, "name=Ada&email=a%40example.com", "")
        .await;
    let (owner, server) = (&guest_book.fixture.owner, &guest_book.fixture.server);
    let path = format!("/{}/frontends/room", guest_book.fixture.project);
    owner.delete(server, &path).await.expect(204);
    server.server().app().visitors.sweep().await.unwrap();
    assert_eq!(
        (
            count_rows(&guest_book, "visitors"),
            count_rows(&guest_book, "visitor_sessions")
        ),
        (1, 0)
    );
    // A page of the same name is another page.
    guest_book.fixture.publish("room").await;
    assert_eq!(guest_book.user(&mut ada).await, Value::Null);
    guest_book
        .sign_in(&mut ada, "name=Ada&email=a%40example.com", "")
        .await;
    owner
        .delete(server, &format!("/{}", guest_book.fixture.project))
        .await
        .expect(204);
    let gone = async || {
        let left =
            count_rows(&guest_book, "visitors") + count_rows(&guest_book, "visitor_sessions");
        (left == 0).then_some(())
    };
    wait_until("the project's visitors to be erased", gone).await;
}

#[tokio::test]
async fn an_owner_calls_as_a_visitor_of_their_choice() {
    let guest_book = GuestBook::with_settings(|_| {}).await;
    let (fixture, server) = (&guest_book.fixture, &guest_book.fixture.server);
    let by = json!({"user_id": "usr_test", "email": "test@example.com"});
    let sign = json!({"action": "sign", "params": {"words": "Hi"}, "as": by});
    let call = async |credential: Option<&str>, body: &Value| {
        let request = server.json("/room/api/op", body);
        match credential {
            Some(credential) => request.bearer_auth(credential).answer().await,
            None => request.answer().await,
        }
    };
    call(None, &sign).await.problem(401, "unauthorized");
    call(Some("nonsense"), &sign)
        .await
        .problem(401, "unauthorized");
    let stranger = Owner::new(server, "other").await;
    call(Some(&stranger.credential), &sign)
        .await
        .problem(403, "forbidden");
    let own = Some(fixture.owner.credential.as_str());
    call(own, &sign).await.expect(200);
    let batch = json!({"ops": [{"action": "mine"}], "as": {"user_id": "usr_test"}});
    let results = call(own, &batch).await.expect(200).json();
    assert_eq!(
        results["results"][0]["rows"],
        json!([{"words": "Hi", "user_id": "usr_test", "email": "test@example.com"}])
    );
    for (wrong, named) in [
        (json!({"user_id": ""}), "as.user_id"),
        (json!({"user_id": "x".repeat(101)}), "as.user_id"),
        (
            json!({"user_id": "usr_a", "email": "x".repeat(321)}),
            "as.email",
        ),
        (json!({"email": "a@example.com"}), "user_id"),
        (
            json!({"user_id": "usr_a", "name": "x".repeat(801)}),
            "as.name",
        ),
        (json!({"user_id": "usr_a", "name": 1}), "name"),
        (json!({"user_id": "usr_a", "nickname": "x"}), "nickname"),
        (json!("usr_a"), "as"),
    ] {
        let answer = call(own, &json!({"action": "mine", "as": wrong})).await;
        let problem = answer.problem(400, "invalid_request");
        assert!(text(&problem["detail"]).contains(named), "{problem}");
    }
    // The name is the provider's, or NULL.
    fixture
        .define(&[("called", "SELECT :svc_user_name AS name")])
        .await;
    for (by, name) in [
        (json!({"user_id": "usr_test", "name": "Ada"}), json!("Ada")),
        (json!({"user_id": "usr_test", "name": null}), json!(null)),
        (json!({"user_id": "usr_test"}), json!(null)),
    ] {
        let one = call(own, &json!({"action": "called", "as": by})).await;
        let batch = json!({"ops": [{"action": "called"}], "as": by});
        let batch = call(own, &batch).await.expect(200).json();
        for answer in [&one.expect(200).json(), &batch["results"][0]] {
            assert_eq!(answer["rows"], json!([{ "name": name }]));
        }
        let given = json!({"action": "called", "params": {"svc_user_name": "Eve"}, "as": by});
        call(own, &given).await.problem(400, "reserved_param");
    }
    // Without `as` an owner is nobody here, and a credential alone says nothing.
    call(own, &json!({"action": "mine"}))
        .await
        .problem(401, "identity_required");
    let null = json!({"action": "mine", "as": null});
    call(own, &null).await.problem(401, "identity_required");
}

#[tokio::test]
async fn the_tool_calls_as_a_visitor_of_its_callers_choice() {
    let guest_book = GuestBook::with_settings(|settings| settings.dev = true).await;
    let (fixture, server) = (&guest_book.fixture, &guest_book.fixture.server);
    let call = async |credential: Option<&str>, mut given: Value| {
        given["action"] = "batch".into();
        let params = json!({ "name": "manage_backend", "arguments": given });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let request = server.json("/mcp", &body);
        let request = request.header("mcp-protocol-version", "2025-11-25");
        match credential {
            Some(credential) => request.bearer_auth(credential).answer().await,
            None => request.answer().await,
        }
    };
    let result = |answer: Answer| answer.expect(200).json()["result"].take();
    let own = Some(fixture.owner.credential.as_str());
    let ops = json!([
        { "action": "sign", "params": { "words": "Hi" } },
        { "action": "mine" },
    ]);
    let project = &fixture.project;
    let by = json!({ "user_id": "usr_test", "email": "test@example.com" });
    let as_one = json!({ "project_id": project, "ops": ops, "as": by });
    let done = result(call(own, as_one.clone()).await);
    assert_eq!(done["isError"], false, "{done}");
    assert_eq!(
        done["structuredContent"]["results"][1]["rows"],
        json!([{ "words": "Hi", "user_id": "usr_test", "email": "test@example.com" }])
    );
    fixture
        .define(&[("called", "SELECT :svc_user_name AS name")])
        .await;
    let by = json!({ "user_id": "usr_test", "name": "Ada" });
    let called = json!({ "project_id": project, "ops": [{ "action": "called" }], "as": by });
    let called = result(call(own, called).await);
    let rows = &called["structuredContent"]["results"][0]["rows"];
    assert_eq!(*rows, json!([{ "name": "Ada" }]), "{called}");
    // Without `as` the caller is anonymous; `as` has no effect on the next call.
    let alone = json!({ "project_id": project, "ops": ops });
    let refused = result(call(own, alone).await);
    assert_eq!(refused["structuredContent"]["code"], "identity_required");
    // A visitor of one project is a name like any other in another one, and finds nothing there.
    let mut ada = guest_book.browser();
    guest_book
        .sign_in(&mut ada, "name=Ada&email=ada%40example.com", "")
        .await;
    guest_book
        .call(
            &mut ada,
            &json!({ "action": "sign", "params": { "words": "Secret" } }),
        )
        .await
        .expect(200);
    let ada = text(&guest_book.user(&mut ada).await["id"]);
    let stranger = Owner::new(server, "other").await;
    let theirs = stranger.project(server, "Theirs").await;
    let backend = json!({ "ddl": super::guest_book::DDL });
    let path = format!("/{theirs}/backend");
    let made = stranger.post(server, &path, &backend).await;
    made.expect(201);
    let actions = json!({ "actions": [{ "name": "mine", "sql": "SELECT words FROM entries WHERE user_id = :svc_user_id" }] });
    let path = format!("/{theirs}/backend/actions");
    let put = stranger.send(server, Method::PUT, &path, &actions).await;
    put.expect(200);
    let foreign = Some(stranger.credential.as_str());
    let mine = json!([{ "action": "mine" }]);
    let given = json!({ "project_id": theirs, "ops": mine, "as": { "user_id": ada } });
    let found = result(call(foreign, given).await);
    let rows = &found["structuredContent"]["results"][0]["rows"];
    assert_eq!(*rows, json!([]), "{found}");
    // A caller who does not own the project is anonymous.
    for (credential, code) in [(foreign, "forbidden"), (None, "unauthorized")] {
        let refused = result(call(credential, as_one.clone()).await);
        assert_eq!(refused["isError"], true);
        assert_eq!(refused["structuredContent"]["code"], code);
    }
    let invalid = call(Some("nonsense"), as_one.clone()).await;
    invalid.problem(401, "unauthorized");
    for (wrong, named) in [
        (json!({ "user_id": "" }), "as.user_id"),
        (json!({ "user_id": "x".repeat(101) }), "as.user_id"),
        (
            json!({ "user_id": "usr_a", "email": "x".repeat(321) }),
            "as.email",
        ),
        (json!({ "email": "a@example.com" }), "user_id"),
        (
            json!({ "user_id": "usr_a", "name": "x".repeat(801) }),
            "as.name",
        ),
        (json!({ "user_id": "usr_a", "nickname": "x" }), "nickname"),
        (json!("usr_a"), "as"),
    ] {
        let given = json!({ "project_id": project, "ops": mine, "as": wrong });
        let refused = result(call(own, given).await);
        let problem = &refused["structuredContent"];
        assert_eq!(problem["code"], "invalid_request", "{wrong}");
        assert!(text(&problem["detail"]).contains(named), "{problem}");
    }
    assert_eq!(fixture.count("entries").await, 2);
}

#[tokio::test]
async fn a_credential_that_is_sent_twice_is_none() {
    let guest_book = GuestBook::with_settings(|_| {}).await;
    let (fixture, server) = (&guest_book.fixture, &guest_book.fixture.server);
    let body = json!({ "action": "mine", "as": { "user_id": "usr_test" } });
    let own = format!("Bearer {}", fixture.owner.credential);
    let request = server.json("/room/api/op", &body);
    let request = request.header("authorization", &own);
    let twice = request.header("authorization", "Bearer nonsense");
    let refused = twice.answer().await;
    refused.problem(400, "invalid_request");
}
