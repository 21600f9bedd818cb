//! Calls of actions: the shape of a result, what a wrong call is told, and through which pages and hosts they come.

use http::Method;
use serde_json::{Value, json};
use svc_tests::{ReadAnswer, TestServer, wait_until};

use crate::owner::text;
use crate::project_fixture::{GUESTS, ProjectFixture};
use crate::svc;

#[tokio::test]
async fn a_result_has_one_shape() {
    let fixture = ProjectFixture::new(GUESTS).await;
    fixture
        .define(&[
            (
                "add",
                "INSERT INTO guests (name, email) VALUES (:name, :email)",
            ),
            (
                "add_two",
                "INSERT INTO guests (name) VALUES (:a), (:b) RETURNING name, id",
            ),
            (
                "rename",
                "UPDATE guests SET name = upper(name) WHERE id > :after",
            ),
            ("all", "SELECT id, name, email FROM guests ORDER BY id"),
            ("values", "VALUES (:a), (:b)"),
            ("clear", "DELETE FROM guests"),
        ])
        .await;
    let add = json!({ "name": "Ada", "email": "ada@example.com" });
    let plain = |affected: u64| json!({ "columns": [], "rows": [], "rows_affected": affected, "truncated": false });
    assert_eq!(fixture.call_ok("add", &add).await, plain(1));
    assert_eq!(
        fixture
            .call_ok("add_two", &json!({ "a": "Grace", "b": "Alan" }))
            .await,
        json!({
            "columns": ["name", "id"],
            "rows": [{ "name": "Grace", "id": 2 }, { "name": "Alan", "id": 3 }],
            "rows_affected": 2, "truncated": false,
        })
    );
    assert_eq!(
        fixture.call_ok("rename", &json!({ "after": 1 })).await,
        plain(2)
    );
    assert_eq!(
        fixture.call_ok("rename", &json!({ "after": 9 })).await,
        plain(0)
    );
    let all = fixture
        .call("room", &json!({ "action": "all" }))
        .await
        .expect(200);
    assert_eq!(all.header("content-type"), Some("application/json"));
    assert_eq!(
        all.json(),
        json!({
            "columns": ["id", "name", "email"],
            "rows": [
                { "id": 1, "name": "Ada", "email": "ada@example.com" },
                { "id": 2, "name": "GRACE", "email": null },
                { "id": 3, "name": "ALAN", "email": null },
            ],
            "rows_affected": 0, "truncated": false,
        })
    );
    let values = fixture
        .call_ok("values", &json!({ "a": 1, "b": "x" }))
        .await;
    let column = text(&values["columns"][0]);
    assert_eq!(values["rows"], json!([{ &*column: 1 }, { &*column: "x" }]));
    assert_eq!(values["rows_affected"], 0);
    assert_eq!(fixture.call_ok("clear", &json!({})).await, plain(3));
    let none = fixture.call_ok("all", &json!({})).await;
    assert_eq!(
        (&none["columns"], &none["rows"]),
        (&json!(["id", "name", "email"]), &json!([]))
    );
}

#[tokio::test]
async fn params_are_the_declared_ones_exactly() {
    let fixture = ProjectFixture::new(GUESTS).await;
    fixture
        .define(&[
            ("two", "SELECT :a AS a, :b AS b"),
            ("none", "SELECT 1 AS one"),
            ("me", "SELECT :svc_user_id AS id, :a AS a"),
        ])
        .await;
    for (action, params, missing, extra) in [
        ("two", json!({}), json!(["a", "b"]), json!([])),
        ("two", json!({ "a": 1 }), json!(["b"]), json!([])),
        (
            "two",
            json!({ "a": 1, "b": 2, "c": 3 }),
            json!([]),
            json!(["c"]),
        ),
        ("two", json!({ "a": 1, "B": 2 }), json!(["b"]), json!(["B"])),
        (
            "two",
            json!({ ":a": 1, "b": 2 }),
            json!(["a"]),
            json!([":a"]),
        ),
        ("none", json!({ "a": null }), json!([]), json!(["a"])),
    ] {
        let problem = fixture
            .call_action(action, &params)
            .await
            .problem(400, "params_mismatch");
        assert_eq!(
            (&problem["missing"], &problem["extra"]),
            (&missing, &extra),
            "{params}"
        );
    }
    let problem = fixture.call("room", &json!({ "action": "two" })).await;
    let problem = problem.problem(400, "params_mismatch");
    assert_eq!(problem["missing"], json!(["a", "b"]));
    for params in [json!(null), json!({})] {
        fixture.call_ok("none", &params).await;
    }
    fixture
        .call("room", &json!({ "action": "none" }))
        .await
        .expect(200);
    for params in [
        json!({ "svc_user_id": "usr_x" }),
        json!({ "svc_user_email": null }),
        json!({ "svc_user_name": "Ada" }),
        json!({ "svc_anything": 1 }),
        json!({ "svc_": 1 }),
    ] {
        for action in ["none", "two"] {
            let answer = fixture.call_action(action, &params).await;
            answer.problem(400, "reserved_param");
        }
    }
}

#[tokio::test]
async fn a_call_that_is_none_is_named() {
    let fixture = ProjectFixture::new(GUESTS).await;
    fixture.define(&[("one", "SELECT 1 AS one")]).await;
    for (body, says) in [
        (json!({}), "action"),
        (json!({ "action": null }), "action"),
        (json!({ "action": 7 }), "action"),
        (json!({ "action": "" }), "action"),
        (json!({ "params": {} }), "action"),
        (json!({ "action": "one", "params": [] }), "params"),
        (json!({ "action": "one", "params": "a" }), "params"),
        (json!({ "action": "one", "name": "one" }), "name"),
        (json!({ "action": "one", "sql": "SELECT 1" }), "sql"),
    ] {
        let problem = fixture
            .call("room", &body)
            .await
            .problem(400, "invalid_request");
        assert!(text(&problem["detail"]).contains(says), "{body}: {problem}");
    }
    let broken = fixture.server.post("/room/api/op").body("{").answer().await;
    broken.problem(400, "invalid_json");
    for name in ["other", "ones"] {
        fixture
            .call_action(name, &json!({}))
            .await
            .problem(404, "not_found");
    }
    let wrong = fixture.server.get("/room/api/op").answer().await;
    wrong.problem(405, "method_not_allowed");
}

#[tokio::test]
async fn a_broken_constraint_is_named_and_not_the_row() {
    let fixture = ProjectFixture::new(
        "CREATE TABLE homes (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
         CREATE TABLE guests (
           email TEXT UNIQUE, age INTEGER CONSTRAINT grown CHECK (age > 17),
           home REFERENCES homes (id), later REFERENCES homes (id) DEFERRABLE INITIALLY DEFERRED
         );
         INSERT INTO homes VALUES (1, 'secret-words');
         INSERT INTO guests VALUES ('secret-words', 30, 1, 1);",
    )
    .await;
    let add = "INSERT INTO guests VALUES (:email, :age, :home, :later)";
    let rename = "UPDATE homes SET name = :name";
    fixture
        .define(&[
            ("add", add),
            ("rename", rename),
            ("raze", "DELETE FROM homes"),
        ])
        .await;
    for (action, params, says) in [
        (
            "add",
            json!({ "email": "secret-words", "age": 20, "home": 1, "later": 1 }),
            "UNIQUE constraint failed: guests.email",
        ),
        (
            "add",
            json!({ "email": "b", "age": 7, "home": 1, "later": 1 }),
            "CHECK constraint failed: grown",
        ),
        (
            "add",
            json!({ "email": "b", "age": 20, "home": 2, "later": 1 }),
            "FOREIGN KEY constraint failed",
        ),
        (
            "add",
            json!({ "email": "b", "age": 20, "home": 1, "later": 2 }),
            "FOREIGN KEY constraint failed",
        ),
        (
            "rename",
            json!({ "name": null }),
            "NOT NULL constraint failed: homes.name",
        ),
        ("raze", json!({}), "FOREIGN KEY constraint failed"),
    ] {
        let problem = fixture
            .call_action(action, &params)
            .await
            .problem(409, "constraint_violation");
        assert!(text(&problem["detail"]).contains(says), "{says}: {problem}");
        assert!(!problem.to_string().contains("secret-words"), "{problem}");
    }
    let left = fixture
        .rows("SELECT email, age, home, later FROM guests")
        .await;
    let only = json!([{ "email": "secret-words", "age": 30, "home": 1, "later": 1 }]);
    assert_eq!(left, only);
}

#[tokio::test]
async fn an_action_about_its_visitor_needs_one() {
    let fixture = ProjectFixture::new(GUESTS).await;
    fixture
        .define(&[
            ("id", "SELECT :svc_user_id AS id"),
            ("mail", "SELECT :svc_user_email AS mail"),
            ("name", "SELECT :svc_user_name AS name"),
            ("join", "INSERT INTO guests (name) VALUES (:svc_user_id)"),
        ])
        .await;
    for action in ["id", "mail", "name", "join"] {
        let answer = fixture.call_action(action, &json!({})).await;
        answer.problem(401, "identity_required");
        let owner = fixture
            .owner
            .request(&fixture.server, Method::POST, "/room/api/op");
        let owner = owner.json(&json!({ "action": action })).answer().await;
        owner.problem(401, "identity_required");
    }
    assert_eq!(fixture.count("guests").await, 0);
}

#[tokio::test]
async fn a_call_works_on_the_projects_origin_and_nowhere_else() {
    let fixture = ProjectFixture::new(GUESTS).await;
    fixture.define(&[("one", "SELECT 1 AS one")]).await;
    let shop = fixture.owner.project(&fixture.server, "Shop").await;
    fixture.owner.frontend(&fixture.server, &shop, "till").await;
    let port = fixture.server.address().port();
    let body = json!({ "action": "one" }).to_string();
    let call = async |host: &str, path: &str| {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        fixture.server.raw(request).await
    };
    let home = format!("house-acme.localhost:{port}");
    for host in [
        &home,
        &format!("localhost:{port}"),
        &format!("127.0.0.1:{port}"),
    ] {
        let answer = call(host, "/room/api/op").await.expect(200);
        assert_eq!(answer.json()["rows"], json!([{ "one": 1 }]), "{host}");
    }
    let elsewhere = format!("shop-acme.localhost:{port}");
    call(&elsewhere, "/room/api/op")
        .await
        .problem(404, "not_found");
    for path in ["/till/api/op", "/nothing/api/op", "/api/op", "/room/api"] {
        call(&home, path).await.problem(404, "not_found");
    }
}

#[tokio::test]
async fn pages_of_any_origin_may_call() {
    let fixture = ProjectFixture::new(GUESTS).await;
    fixture.define(&[("one", "SELECT 1 AS one")]).await;
    for action in ["one", "other"] {
        let request = fixture
            .server
            .json("/room/api/op", &json!({ "action": action }));
        let answer = request.header("origin", "https://a.example").answer().await;
        assert_eq!(
            answer.header("access-control-allow-origin"),
            Some("*"),
            "{action}"
        );
        assert_eq!(answer.header("access-control-allow-credentials"), None);
    }
    // As a form or a beacon sends it: a media type does not keep JSON from being read.
    let request = fixture
        .server
        .post("/room/api/op")
        .header("content-type", "text/plain");
    request
        .body(json!({ "action": "one" }).to_string())
        .answer()
        .await
        .expect(200);
}

#[tokio::test]
async fn a_disabled_page_answers_nobody_and_its_owner_goes_on() {
    let fixture = ProjectFixture::new(GUESTS).await;
    fixture.define(&[("one", "SELECT 1 AS one")]).await;
    fixture.publish("hall").await;
    let disable = ["deployment", "disable", "room"];
    let disabled = fixture.server.command(&svc(), &disable).await;
    assert!(disabled.success, "{disabled:?}");
    let taken_down = async || {
        let answer = fixture.call_action("one", &json!({})).await;
        (answer.status == 403).then_some(answer)
    };
    let answer = wait_until("the page to be taken down", taken_down).await;
    answer.problem(403, "disabled");
    let answer = fixture.query("SELECT 1 AS one", &json!({})).await;
    answer.problem(403, "disabled");
    let request = fixture
        .owner
        .request(&fixture.server, Method::GET, "/room/api/schema");
    request.answer().await.problem(403, "disabled");
    fixture
        .call("hall", &json!({ "action": "one" }))
        .await
        .expect(200);
    fixture.migrate("CREATE TABLE more (a)").await.expect(200);
    fixture
        .server
        .command(&svc(), &["deployment", "enable", "room"])
        .await;
    let back = async || (fixture.call_action("one", &json!({})).await.status == 200).then_some(());
    wait_until("the page to be back", back).await;
}

#[tokio::test]
async fn without_a_live_backend_nobody_is_answered() {
    let server = TestServer::start().await;
    server
        .publish_slug(&json!({ "content": "x", "name": "share" }))
        .await;
    let fixture = ProjectFixture::without_backend(server).await;
    fixture.publish("room").await;
    for slug in ["share", "room", "nothing"] {
        for body in [json!({ "action": "one" }), json!({}), Value::Null] {
            fixture.call(slug, &body).await.problem(404, "not_found");
        }
    }
}
