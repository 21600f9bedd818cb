//! Actions: what a definition is, what is refused, and how versions follow each other.

use serde_json::{Value, json};
use svc::content::Digest;

use crate::owner::text;
use crate::project_fixture::{GUESTS, ProjectFixture, named, names, padded};

/// A batch of one action `it`.
fn single_action(sql: &str) -> Value {
    json!([{ "name": "it", "sql": sql }])
}

#[tokio::test]
async fn an_action_is_what_its_sql_says() {
    let fixture = ProjectFixture::new(GUESTS).await;
    let (find, add) = (
        "SELECT name, :limit AS most FROM guests WHERE email = :email AND :limit > 0 LIMIT :limit",
        "INSERT INTO guests (name, email) VALUES (:name, :svc_user_email) RETURNING id",
    );
    let batch = json!([
        { "name": "find", "sql": find, "note": "By address" },
        { "name": "add_me", "sql": add },
        { "name": "clear", "sql": "DELETE FROM guests", "note": null },
    ]);
    let answer = fixture.put(&batch).await.expect(200).json();
    let sum = |sql: &str| Digest::of(sql.as_bytes()).to_string();
    let at = "2026-11-20T12:00:00.000Z";
    let expected = [
        json!({
            "name": "find", "version": 1, "sql": find, "defaults": {}, "params": ["limit", "email"], "kind": "read",
            "returns_rows": true, "requires_identity": false, "note": "By address",
            "checksum": sum(find), "created_at": at,
        }),
        json!({
            "name": "add_me", "version": 1, "sql": add, "defaults": {}, "params": ["name"], "kind": "write",
            "returns_rows": true, "requires_identity": true, "note": null,
            "checksum": sum(add), "created_at": at,
        }),
        json!({
            "name": "clear", "version": 1, "sql": "DELETE FROM guests", "defaults": {}, "params": [], "kind": "write",
            "returns_rows": false, "requires_identity": false, "note": null,
            "checksum": sum("DELETE FROM guests"), "created_at": at,
        }),
    ];
    let detail = fixture.detail().await;
    for action in &expected {
        let name = text(&action["name"]);
        assert_eq!(named(&answer["actions"], &name), action);
        assert_eq!(named(&detail["actions"], &name), action);
    }
    assert_eq!(names(&answer["actions"]), ["add_me", "clear", "find"]);
}

/// Each SQL with its params, its kind, whether it returns rows, and whether it needs an identity.
#[tokio::test]
async fn definitions_are_read_off_the_sql() {
    let fixture = ProjectFixture::new(&format!(
        "{GUESTS} CREATE VIEW named AS SELECT name FROM guests"
    ))
    .await;
    for (sql, params, kind, rows, identity) in [
        ("SELECT 1 AS one", json!([]), "read", true, false),
        ("select name from guests;", json!([]), "read", true, false),
        (
            "/* all */ SELECT name FROM named -- of them\n;",
            json!([]),
            "read",
            true,
            false,
        ),
        (
            "SELECT name FROM main.guests",
            json!([]),
            "read",
            true,
            false,
        ),
        ("SELECT * FROM svc_payments", json!([]), "read", true, false),
        ("VALUES (:a)", json!(["a"]), "read", true, false),
        (
            "SELECT ':no' AS \":nor\", :yes AS [:this] -- :not\n",
            json!(["yes"]),
            "read",
            true,
            false,
        ),
        (
            "WITH c (x) AS (SELECT :b) SELECT x, :a AS y, :b AS z FROM c",
            json!(["b", "a"]),
            "read",
            true,
            false,
        ),
        (
            "SELECT svc_a.name FROM guests AS svc_a",
            json!([]),
            "read",
            true,
            false,
        ),
        (
            "SELECT count(*) AS n, max(lower(name)) AS last FROM guests",
            json!([]),
            "read",
            true,
            false,
        ),
        ("SELECT :svc_user_id AS who", json!([]), "read", true, true),
        (
            "SELECT :x AS x, :svc_user_email AS mail",
            json!(["x"]),
            "read",
            true,
            true,
        ),
        (
            "INSERT INTO guests (name) VALUES (coalesce(:svc_user_name, :name))",
            json!(["name"]),
            "write",
            false,
            true,
        ),
        (
            "INSERT INTO guests (name) VALUES (:name)",
            json!(["name"]),
            "write",
            false,
            false,
        ),
        (
            "REPLACE INTO guests (id, name) VALUES (:id, :name)",
            json!(["id", "name"]),
            "write",
            false,
            false,
        ),
        (
            "WITH c AS (SELECT :n AS n) INSERT INTO guests (name) SELECT n FROM c",
            json!(["n"]),
            "write",
            false,
            false,
        ),
        (
            "INSERT INTO guests (name, email) VALUES (:n, :e) ON CONFLICT (email) DO UPDATE SET name = :n RETURNING *",
            json!(["n", "e"]),
            "write",
            true,
            false,
        ),
        (
            "UPDATE guests SET name = :name WHERE id = :id RETURNING name",
            json!(["name", "id"]),
            "write",
            true,
            false,
        ),
        (
            "DELETE FROM guests WHERE email = :svc_user_email",
            json!([]),
            "write",
            false,
            true,
        ),
    ] {
        let answer = fixture.put(&single_action(sql)).await.expect(200).json();
        let action = named(&answer["actions"], "it");
        assert_eq!(action["params"], params, "{sql}");
        assert_eq!(action["kind"], kind, "{sql}");
        assert_eq!(action["returns_rows"], rows, "{sql}");
        assert_eq!(action["requires_identity"], identity, "{sql}");
        assert_eq!(action["sql"], sql);
    }
}

#[tokio::test]
async fn a_changed_body_is_the_next_version_and_nothing_else_is() {
    let fixture = ProjectFixture::new(GUESTS).await;
    let version = async |sql: &str, note: Option<&str>| {
        fixture.server.advance(1);
        let batch = json!([{ "name": "it", "sql": sql, "note": note }]);
        let answer = fixture.put(&batch).await.expect(200).json();
        let it = named(&answer["actions"], "it").clone();
        assert_eq!(
            fixture.detail().await["actions"],
            json!([it]),
            "the current one"
        );
        it
    };
    let first = version("SELECT 1 AS n", Some("One")).await;
    assert_eq!(
        (&first["version"], &first["note"]),
        (&json!(1), &json!("One"))
    );
    assert_eq!(version("SELECT 1 AS n", Some("One")).await, first);
    assert_eq!(
        version("SELECT 1 AS n", Some("Uno")).await,
        first,
        "a note is its version's"
    );
    assert_eq!(version("SELECT 1 AS n", None).await, first);
    let second = version("SELECT 2 AS n", None).await;
    assert_eq!(
        (&second["version"], &second["note"]),
        (&json!(2), &Value::Null)
    );
    assert_eq!(second["created_at"], "2026-11-20T12:00:05.000Z");
    assert_eq!(
        fixture.call_ok("it", &json!({})).await["rows"],
        json!([{ "n": 2 }])
    );
    let third = version("SELECT 1 AS n", Some("Back")).await;
    assert_eq!(
        (&third["version"], &third["note"]),
        (&json!(3), &json!("Back"))
    );
    assert_eq!(third["checksum"], first["checksum"]);
    assert_eq!(
        fixture.call_ok("it", &json!({})).await["rows"],
        json!([{ "n": 1 }])
    );
}

#[tokio::test]
async fn an_action_that_is_left_out_stays_and_stays_callable() {
    let mut fixture = ProjectFixture::new(GUESTS).await;
    fixture
        .define(&[("one", "SELECT 1 AS n"), ("two", "SELECT 2 AS n")])
        .await;
    fixture.define(&[("three", "SELECT 3 AS n")]).await;
    fixture.server = fixture.server.restart().await;
    let actions = fixture.detail().await["actions"].clone();
    assert_eq!(names(&actions), ["one", "three", "two"]);
    for (name, n) in [("one", 1), ("two", 2), ("three", 3)] {
        let rows = &fixture.call_ok(name, &json!({})).await["rows"];
        assert_eq!(*rows, json!([{ "n": n }]));
    }
}

#[tokio::test]
async fn a_bad_batch_is_refused_by_name() {
    let fixture = ProjectFixture::new(GUESTS).await;
    let one = json!({ "name": "one", "sql": "SELECT 1 AS n" });
    let with = |field: &str, value: Value| {
        let mut action = one.clone();
        action[field] = value;
        json!({ "actions": [action] })
    };
    let many: Vec<_> = (0..201)
        .map(|n| json!({ "name": format!("a{n}"), "sql": "SELECT 1 AS n" }))
        .collect();
    for (body, says) in [
        (json!({}), "actions"),
        (json!({ "actions": null }), "actions"),
        (json!({ "actions": {} }), "actions"),
        (json!({ "actions": [] }), "actions"),
        (json!({ "actions": many }), "actions"),
        (json!({ "actions": [7] }), "actions"),
        (json!({ "actions": [one], "replace": "yes" }), "`replace`"),
        (json!({ "actions": [], "replace": true }), "actions"),
        (json!({ "actions": [one], "remove": true }), "`remove`"),
        (with("defaults", json!([])), "defaults"),
        (with("expected_version", json!(-1)), "expected_version"),
        (with("expected_version", json!("1")), "expected_version"),
        (json!({ "actions": [one, one] }), "one"),
        (json!({ "actions": [{ "name": "one" }] }), "sql"),
        (json!({ "actions": [{ "sql": "SELECT 1 AS n" }] }), "name"),
        (with("sql", json!(7)), "sql"),
        (with("note", json!(7)), "note"),
        (with("kind", json!("read")), "kind"),
        (with("note", json!("n".repeat(1001))), "note"),
        (with("sql", json!(padded("SELECT 1 AS n", 65_537))), "sql"),
    ] {
        let answer = fixture.send(http::Method::PUT, "/actions", &body).await;
        let problem = answer.problem(400, "invalid_request");
        assert!(problem.to_string().contains(says), "{says}: {problem}");
    }
    assert_eq!(fixture.detail().await["actions"], json!([]));
    fixture.put(&json!(many[..200])).await.expect(200);
    let longest = json!([{ "name": "one", "sql": padded("SELECT 1 AS n", 65_536), "note": "ü".repeat(1000) }]);
    fixture.put(&longest).await.expect(200);
}

#[tokio::test]
async fn names_have_a_form() {
    let fixture = ProjectFixture::new(GUESTS).await;
    let longest = "a".repeat(64);
    for name in ["a", "a_1", "abc_def", "z9", &longest] {
        fixture.define(&[(name, "SELECT 1 AS n")]).await;
        fixture.call_ok(name, &json!({})).await;
    }
    let too_long = "a".repeat(65);
    for name in [
        "", "A", "aB", "1a", "_a", "a-b", "a b", "ä", "a.b", "a\n", &too_long,
    ] {
        let batch = json!([{ "name": name, "sql": "SELECT 1 AS n" }]);
        let problem = fixture.put(&batch).await.problem(400, "invalid_request");
        assert_eq!(problem["errors"][0]["name"], name, "{problem}");
    }
}

#[tokio::test]
async fn a_batch_is_taken_whole_or_not_at_all_and_names_every_failing_entry() {
    let fixture = ProjectFixture::new(GUESTS).await;
    fixture.define(&[("kept", "SELECT 1 AS n")]).await;
    let before = fixture.detail().await["actions"].clone();
    let batch = json!([
        { "name": "kept", "sql": "SELECT 2 AS n" },
        { "name": "lost", "sql": "SELECT * FROM nowhere" },
        { "name": "fine", "sql": "SELECT name FROM guests" },
        { "name": "Bad", "sql": "SELECT 1 AS n" },
        { "name": "gone", "sql": "DROP TABLE guests" },
    ]);
    let problem = fixture.put(&batch).await.problem(400, "statement_refused");
    let errors = problem["errors"].as_array().unwrap();
    let told: Vec<_> = errors
        .iter()
        .map(|error| (text(&error["name"]), text(&error["code"])))
        .collect();
    let expected = [
        ("lost", "statement_refused"),
        ("Bad", "invalid_request"),
        ("gone", "statement_refused"),
    ];
    assert_eq!(
        told,
        expected.map(|(name, code)| (name.to_owned(), code.to_owned()))
    );
    assert!(
        errors
            .iter()
            .all(|error| !text(&error["detail"]).is_empty()),
        "{problem}"
    );
    assert_eq!(fixture.detail().await["actions"], before);
    fixture
        .call_action("fine", &json!({}))
        .await
        .problem(404, "not_found");
    // The order decides which code the batch has.
    let batch = json!([batch[3], batch[1]]);
    let problem = fixture.put(&batch).await.problem(400, "invalid_request");
    assert_eq!(problem["errors"].as_array().unwrap().len(), 2, "{problem}");
}
