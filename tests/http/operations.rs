//! Calls of actions: the shape of a result, what a wrong call is told, and through which pages and hosts they come.

use http::Method;
use serde_json::{Value, json};
use svc_tests::{ReadAnswer, TestServer, wait_until};

use crate::account::text;
use crate::house::{GUESTS, House};
use crate::svc;

#[tokio::test]
async fn a_result_has_one_shape() {
    let house = House::new(GUESTS).await;
    house
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
    assert_eq!(house.done("add", &add).await, plain(1));
    assert_eq!(
        house
            .done("add_two", &json!({ "a": "Grace", "b": "Alan" }))
            .await,
        json!({
            "columns": ["name", "id"],
            "rows": [{ "name": "Grace", "id": 2 }, { "name": "Alan", "id": 3 }],
            "rows_affected": 2, "truncated": false,
        })
    );
    assert_eq!(house.done("rename", &json!({ "after": 1 })).await, plain(2));
    assert_eq!(house.done("rename", &json!({ "after": 9 })).await, plain(0));
    let all = house
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
    let values = house.done("values", &json!({ "a": 1, "b": "x" })).await;
    let column = text(&values["columns"][0]);
    assert_eq!(values["rows"], json!([{ &*column: 1 }, { &*column: "x" }]));
    assert_eq!(values["rows_affected"], 0);
    assert_eq!(house.done("clear", &json!({})).await, plain(3));
    let none = house.done("all", &json!({})).await;
    assert_eq!(
        (&none["columns"], &none["rows"]),
        (&json!(["id", "name", "email"]), &json!([]))
    );
}

#[tokio::test]
async fn params_are_the_declared_ones_exactly() {
    let house = House::new(GUESTS).await;
    house
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
        let problem = house
            .op(action, &params)
            .await
            .problem(400, "params_mismatch");
        assert_eq!(
            (&problem["missing"], &problem["extra"]),
            (&missing, &extra),
            "{params}"
        );
    }
    let problem = house.call("room", &json!({ "action": "two" })).await;
    let problem = problem.problem(400, "params_mismatch");
    assert_eq!(problem["missing"], json!(["a", "b"]));
    for params in [json!(null), json!({})] {
        house.done("none", &params).await;
    }
    house
        .call("room", &json!({ "action": "none" }))
        .await
        .expect(200);
    for params in [
        json!({ "svc_user_id": "usr_x" }),
        json!({ "svc_user_email": null }),
        json!({ "svc_anything": 1 }),
        json!({ "svc_": 1 }),
    ] {
        for action in ["none", "two"] {
            let answer = house.op(action, &params).await;
            answer.problem(400, "reserved_param");
        }
    }
}

#[tokio::test]
async fn a_call_that_is_none_is_named() {
    let house = House::new(GUESTS).await;
    house.define(&[("one", "SELECT 1 AS one")]).await;
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
        let problem = house
            .call("room", &body)
            .await
            .problem(400, "invalid_request");
        assert!(text(&problem["detail"]).contains(says), "{body}: {problem}");
    }
    let broken = house.server.post("/room/api/op").body("{").answer().await;
    broken.problem(400, "invalid_json");
    for name in ["other", "ones"] {
        house.op(name, &json!({})).await.problem(404, "not_found");
    }
    let wrong = house.server.get("/room/api/op").answer().await;
    wrong.problem(405, "method_not_allowed");
}

#[tokio::test]
async fn a_broken_constraint_is_named_and_not_the_row() {
    let house = House::new(
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
    house
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
        let problem = house
            .op(action, &params)
            .await
            .problem(409, "constraint_violation");
        assert!(text(&problem["detail"]).contains(says), "{says}: {problem}");
        assert!(!problem.to_string().contains("secret-words"), "{problem}");
    }
    let left = house
        .rows("SELECT email, age, home, later FROM guests")
        .await;
    let only = json!([{ "email": "secret-words", "age": 30, "home": 1, "later": 1 }]);
    assert_eq!(left, only);
}

#[tokio::test]
async fn an_action_about_its_visitor_needs_one() {
    let house = House::new(GUESTS).await;
    house
        .define(&[
            ("id", "SELECT :svc_user_id AS id"),
            ("mail", "SELECT :svc_user_email AS mail"),
            ("join", "INSERT INTO guests (name) VALUES (:svc_user_id)"),
        ])
        .await;
    for action in ["id", "mail", "join"] {
        let answer = house.op(action, &json!({})).await;
        answer.problem(401, "identity_required");
        let owner = house
            .owner
            .request(&house.server, Method::POST, "/room/api/op");
        let owner = owner.json(&json!({ "action": action })).answer().await;
        owner.problem(401, "identity_required");
    }
    assert_eq!(house.count("guests").await, 0);
}

#[tokio::test]
async fn a_call_works_on_the_projects_origin_and_nowhere_else() {
    let house = House::new(GUESTS).await;
    house.define(&[("one", "SELECT 1 AS one")]).await;
    let shop = house.owner.project(&house.server, "Shop").await;
    house.owner.frontend(&house.server, &shop, "till").await;
    let port = house.server.address().port();
    let body = json!({ "action": "one" }).to_string();
    let call = async |host: &str, path: &str| {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        house.server.raw(request).await
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
    let house = House::new(GUESTS).await;
    house.define(&[("one", "SELECT 1 AS one")]).await;
    for action in ["one", "other"] {
        let request = house
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
    let request = house
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
    let house = House::new(GUESTS).await;
    house.define(&[("one", "SELECT 1 AS one")]).await;
    house.publish("hall").await;
    let disable = ["deployment", "disable", "room"];
    let disabled = house.server.command(&svc(), &disable).await;
    assert!(disabled.success, "{disabled:?}");
    let taken_down = async || {
        let answer = house.op("one", &json!({})).await;
        (answer.status == 403).then_some(answer)
    };
    let answer = wait_until("the page to be taken down", taken_down).await;
    answer.problem(403, "disabled");
    let answer = house.query("SELECT 1 AS one", &json!({})).await;
    answer.problem(403, "disabled");
    let request = house
        .owner
        .request(&house.server, Method::GET, "/room/api/schema");
    request.answer().await.problem(403, "disabled");
    house
        .call("hall", &json!({ "action": "one" }))
        .await
        .expect(200);
    house.migrate("CREATE TABLE more (a)").await.expect(200);
    house
        .server
        .command(&svc(), &["deployment", "enable", "room"])
        .await;
    let back = async || (house.op("one", &json!({})).await.status == 200).then_some(());
    wait_until("the page to be back", back).await;
}

#[tokio::test]
async fn without_a_live_backend_nobody_is_answered() {
    let server = TestServer::start().await;
    server
        .publish_slug(&json!({ "content": "x", "name": "share" }))
        .await;
    let house = House::empty(server).await;
    house.publish("room").await;
    for slug in ["share", "room", "nothing"] {
        for body in [json!({ "action": "one" }), json!({}), Value::Null] {
            house.call(slug, &body).await.problem(404, "not_found");
        }
    }
}
