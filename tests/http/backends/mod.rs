//! The life of a backend: what it is made of, what is refused, how many there are, and how it ends.

mod ends;

use http::Method;
use serde_json::{Value, json};
use svc_tests::{ReadAnswer, TestServer, disk, wait_until};

use crate::owner::{Owner, text};
use crate::project_fixture::{GUESTS, ProjectFixture, named, names, padded};

const HOTEL: &str = "-- A hotel.
CREATE TABLE guests (
  id INTEGER PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  nights INTEGER NOT NULL DEFAULT 1,
  remark TEXT
);
CREATE UNIQUE INDEX guests_by_name ON guests (name, nights);
CREATE VIEW long_stays AS SELECT name FROM guests WHERE nights > 7;
INSERT INTO guests (name, nights) VALUES ('Ada', 9), ('Grace', 2);
";

/// A detail without its sizes, which the engine may change when it tidies up.
fn without_sizes(mut detail: Value) -> Value {
    detail["database"]["bytes"].take();
    detail["inventory"]["bytes_on_disk"].take();
    detail
}

#[tokio::test]
async fn a_backend_is_what_it_was_made_of() {
    let fixture = ProjectFixture::without_backend(TestServer::start().await).await;
    let made = fixture.create(HOTEL).await.expect(201).json();
    for size in [
        &made["database"]["bytes"],
        &made["inventory"]["bytes_on_disk"],
    ] {
        assert!(size.as_u64() > Some(0), "{made}");
    }
    assert!(
        made["database"]["bytes"].as_u64() <= Some(5_242_880),
        "{made}"
    );
    assert!(!made["spec"]["version"].is_null(), "{made}");
    assert!(!text(&made["migrations"][0]["checksum"]).is_empty());
    assert!(!text(&made["database"]["id"]).is_empty());
    assert_eq!(text(&made["id"]).len(), 36);
    let expected = json!({
        "id": made["id"],
        "database": {
            "id": made["database"]["id"], "name": "default", "engine": made["database"]["engine"],
            "max_bytes": 5_242_880, "bytes": made["database"]["bytes"],
        },
        "spec": { "version": made["spec"]["version"] },
        "schema": made["schema"],
        "migrations": [{
            "version": 1, "checksum": made["migrations"][0]["checksum"], "sql": HOTEL, "note": null,
            "applied_at": "2026-11-20T12:00:00.000Z",
        }],
        "actions": [],
        "inventory": {
            "tables": made["inventory"]["tables"],
            "bytes_on_disk": made["inventory"]["bytes_on_disk"],
        },
        "realtime": { "enabled": false, "rooms": 0, "sockets": 0 },
        "agents": false,
        "warnings": [],
    });
    assert_eq!(made, expected);
    let engine = text(&made["database"]["engine"]);
    assert_eq!(engine.to_lowercase(), "sqlite");
    let guests = named(&made["inventory"]["tables"], "guests");
    assert_eq!(*guests, json!({ "name": "guests", "rows": 2 }));
    assert_eq!(without_sizes(fixture.detail().await), without_sizes(made));
}

#[tokio::test]
async fn the_schema_is_read_from_the_file() {
    let fixture = ProjectFixture::without_backend(TestServer::start().await).await;
    let schema = fixture.create(HOTEL).await.expect(201).json()["schema"].take();
    let mut keys: Vec<_> = schema.as_object().unwrap().keys().collect();
    keys.sort();
    assert_eq!(keys, ["indexes", "tables", "views"]);
    assert_eq!(
        names(&schema["tables"]),
        ["guests", "svc_files", "svc_payments"]
    );
    let guests = named(&schema["tables"], "guests");
    let nights = &guests["columns"][2];
    assert!(!nights["default"].is_null(), "{guests}");
    assert_eq!(
        *guests,
        json!({ "name": "guests", "columns": [
            { "name": "id", "type": "INTEGER", "not_null": true, "default": null, "primary_key": true },
            { "name": "name", "type": "TEXT", "not_null": true, "default": null, "primary_key": false },
            { "name": "nights", "type": "INTEGER", "not_null": true, "default": nights["default"],
              "primary_key": false },
            { "name": "remark", "type": "TEXT", "not_null": false, "default": null, "primary_key": false },
        ] })
    );
    assert_eq!(
        *named(&schema["indexes"], "guests_by_name"),
        json!({
            "name": "guests_by_name", "table": "guests", "columns": ["name", "nights"], "unique": true,
        })
    );
    assert_eq!(schema["views"], json!([{ "name": "long_stays" }]));
    let payments = named(&schema["tables"], "svc_payments");
    let columns = [
        "amount",
        "created_at",
        "currency",
        "email",
        "price_id",
        "price_label",
        "session_id",
        "status",
        "user_id",
    ];
    assert_eq!(names(&payments["columns"]), columns);
}

#[tokio::test]
async fn the_detail_follows_the_data() {
    let fixture = ProjectFixture::new(GUESTS).await;
    let add = "INSERT INTO guests (name) VALUES (:name)";
    fixture.define(&[("add", add)]).await;
    let before = fixture.detail().await;
    assert_eq!(names(&before["actions"]), ["add"]);
    let long = json!({ "name": "x".repeat(50_000) });
    for _ in 0..5 {
        fixture.call_ok("add", &long).await;
    }
    let after = fixture.detail().await;
    assert_eq!(named(&after["inventory"]["tables"], "guests")["rows"], 5);
    let size = |detail: &Value| detail["database"]["bytes"].as_u64().unwrap();
    assert!(size(&after) >= size(&before) + 200_000, "{after}");
    let unlisted = |list: &Value| {
        let names = names(list).into_iter();
        names
            .filter(|name| {
                name.starts_with("svc_") && !["svc_files", "svc_payments"].contains(&name.as_str())
            })
            .count()
    };
    assert_eq!(unlisted(&after["schema"]["tables"]), 0);
    assert_eq!(unlisted(&after["inventory"]["tables"]), 0);
}

#[tokio::test]
async fn what_is_wrong_is_named_and_makes_nothing() {
    let fixture = ProjectFixture::without_backend(TestServer::start().await).await;
    for (body, says) in [
        (json!({}), "`ddl`"),
        (json!({ "ddl": null }), "ddl"),
        (json!({ "ddl": 7 }), "ddl"),
        (json!({ "ddl": [GUESTS] }), "ddl"),
        (json!({ "ddl": GUESTS, "realtime": "yes" }), "realtime"),
        (json!({ "ddl": GUESTS, "realtime": 1 }), "realtime"),
        (json!({ "ddl": GUESTS, "note": "first" }), "`note`"),
        (json!({ "ddl": GUESTS, "name": "default" }), "`name`"),
        (json!({ "ddl": padded(GUESTS, 262_145) }), "`ddl`"),
    ] {
        let answer = fixture.send(Method::POST, "", &body).await;
        let problem = answer.problem(400, "invalid_request");
        let detail = text(&problem["detail"]);
        assert!(detail.contains(says), "{says}: {detail}");
    }
    fixture.get().await.problem(404, "not_found");
    let longest = padded(GUESTS, 262_144);
    fixture.create(&longest).await.expect(201);
    assert_eq!(fixture.detail().await["migrations"][0]["sql"], longest);
}

#[tokio::test]
async fn without_a_backend_there_is_nothing_to_change() {
    let fixture = ProjectFixture::without_backend(TestServer::start().await).await;
    fixture.get().await.problem(404, "not_found");
    fixture.migrate(GUESTS).await.problem(404, "not_found");
    let actions = json!([{ "name": "one", "sql": "SELECT 1 AS one" }]);
    fixture.put(&actions).await.problem(404, "not_found");
    fixture.delete().await.expect(204);
}

#[tokio::test]
async fn a_project_has_one_backend() {
    let fixture = ProjectFixture::without_backend(TestServer::start().await).await;
    let mut racing = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let path = format!("/api/v1/projects/{}/backend", fixture.project);
        let request = fixture.owner.request(&fixture.server, Method::POST, &path);
        racing.spawn(request.json(&json!({ "ddl": GUESTS })).answer());
    }
    let mut made = Vec::new();
    for answer in racing.join_all().await {
        if answer.status == 201 {
            made.push(answer.json());
        } else {
            answer.problem(409, "backend_exists");
        }
    }
    assert_eq!(made.len(), 1);
    let again = fixture.create("CREATE TABLE other (a)").await;
    again.problem(409, "backend_exists");
    assert_eq!(
        without_sizes(fixture.detail().await),
        without_sizes(made.remove(0))
    );
}

#[tokio::test]
async fn realtime_is_asked_for_and_switched() {
    let fixture = ProjectFixture::without_backend(TestServer::start().await).await;
    let body = json!({ "ddl": GUESTS, "realtime": true });
    let made = fixture
        .send(Method::POST, "", &body)
        .await
        .expect(201)
        .json();
    let on = json!({ "enabled": true, "rooms": 0, "sockets": 0 });
    assert_eq!(made["realtime"], on);
    for enabled in [false, false, true] {
        let switch = json!({ "realtime": enabled });
        let changed = fixture.send(Method::PATCH, "", &switch).await.expect(200);
        assert_eq!(changed.json()["realtime"]["enabled"], enabled);
        let mut detail = without_sizes(fixture.detail().await);
        assert_eq!(
            without_sizes(changed.json()),
            detail,
            "it answers the detail"
        );
        assert_eq!(detail["realtime"].take()["enabled"], enabled);
    }
    fixture.delete().await.expect(204);
    let off = json!({ "ddl": GUESTS, "realtime": null });
    let made = fixture
        .send(Method::POST, "", &off)
        .await
        .expect(201)
        .json();
    assert_eq!(made["realtime"]["enabled"], false);
}

#[tokio::test]
async fn a_seed_that_breaks_a_constraint_leaves_nothing() {
    let fixture = ProjectFixture::without_backend(TestServer::start().await).await;
    for (ddl, says) in [
        (
            "CREATE TABLE t (a TEXT UNIQUE); INSERT INTO t VALUES ('kept-words'); INSERT INTO t VALUES ('kept-words');",
            "UNIQUE constraint failed: t.a",
        ),
        (
            "CREATE TABLE t (a NOT NULL); INSERT INTO t VALUES (NULL)",
            "NOT NULL constraint failed: t.a",
        ),
        (
            "CREATE TABLE t (a PRIMARY KEY, b REFERENCES t (a)); INSERT INTO t VALUES (1, 2)",
            "FOREIGN KEY constraint failed",
        ),
        (
            "CREATE TABLE t (a PRIMARY KEY, b REFERENCES t (a) DEFERRABLE INITIALLY DEFERRED); INSERT INTO t VALUES (1, 2)",
            "FOREIGN KEY constraint failed",
        ),
    ] {
        let problem = fixture
            .create(ddl)
            .await
            .problem(409, "constraint_violation");
        assert!(text(&problem["detail"]).contains(says), "{problem}");
        assert!(!problem.to_string().contains("kept-words"), "{problem}");
        fixture.get().await.problem(404, "not_found");
        let project = fixture
            .owner
            .get(&fixture.server, &format!("/{}", fixture.project))
            .await;
        assert_eq!(project.expect(200).json()["backend"], Value::Null);
    }
    fixture.create(GUESTS).await.expect(201);
}

#[tokio::test]
async fn a_repeated_request_makes_one_backend() {
    let fixture = ProjectFixture::without_backend(TestServer::start().await).await;
    let path = format!("/api/v1/projects/{}/backend", fixture.project);
    let send_request = |ddl: &str| {
        let request = fixture.owner.request(&fixture.server, Method::POST, &path);
        let request = request.header("idempotency-key", "k");
        request.json(&json!({ "ddl": ddl })).answer()
    };
    send_request("CREATE TABLE t (a); DROP TABLE t")
        .await
        .problem(400, "ddl_refused");
    let first = send_request(GUESTS).await.expect(201);
    assert_eq!(first.header("idempotency-replayed"), None);
    let again = send_request(GUESTS).await.expect(201);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.body, first.body);
    let other = send_request("CREATE TABLE other (a)").await;
    other.problem(409, "idempotency_conflict");
    assert_eq!(
        without_sizes(fixture.detail().await),
        without_sizes(first.json())
    );
}

#[tokio::test]
async fn a_server_has_room_for_so_many_backends() {
    let limits = TestServer::builder().limits(|limits| limits.backends = 2);
    let server = limits.start().await;
    let owner = Owner::new(&server, "acme").await;
    let mut projects = Vec::new();
    for name in ["One", "Two", "Three"] {
        projects.push(owner.project(&server, name).await);
    }
    let create = async |project: &str| {
        let path = format!("/{project}/backend");
        owner.post(&server, &path, &json!({ "ddl": GUESTS })).await
    };
    create(&projects[0]).await.expect(201);
    create(&projects[1]).await.expect(201);
    let full = create(&projects[2]).await;
    let problem = full.problem(503, "capacity_reached");
    assert_eq!(full.header("retry-after"), Some("60"));
    assert!(text(&problem["detail"]).contains("backend"), "{problem}");
    let path = format!("/{}/backend", projects[0]);
    owner.delete(&server, &path).await.expect(204);
    create(&projects[2]).await.expect(201);
    create(&projects[0]).await.problem(503, "capacity_reached");
    owner
        .delete(&server, &format!("/{}", projects[1]))
        .await
        .expect(204);
    let room = async || (create(&projects[0]).await.status == 201).then_some(());
    wait_until("the ended project's room", room).await;
}

#[tokio::test]
async fn a_disk_that_is_nearly_full_takes_no_backend() {
    let limits = TestServer::builder().limits(|limits| limits.free_disk_bytes = u64::MAX);
    let fixture = ProjectFixture::without_backend(limits.start().await).await;
    let answer = fixture.create(GUESTS).await;
    let problem = answer.problem(503, "capacity_reached");
    assert!(text(&problem["detail"]).contains("disk"), "{problem}");
    assert_eq!(answer.header("retry-after"), Some("60"));
    fixture.get().await.problem(404, "not_found");
}

#[tokio::test]
async fn a_disk_that_is_nearly_full_takes_no_definition_either() {
    let ProjectFixture {
        server,
        owner,
        project,
    } = ProjectFixture::new(GUESTS).await;
    let full = |settings: &mut svc::config::Settings| settings.limits.free_disk_bytes = u64::MAX;
    let server = server.restart_with(full).await;
    let backend = format!("/{project}/backend");
    let before = owner.get(&server, &backend).await.expect(200).json();
    let ddl = json!({ "ddl": "CREATE TABLE more (x)" });
    let actions = json!({ "actions": [{ "name": "one", "sql": "SELECT 1 AS one" }] });
    for (method, path, body) in [
        (Method::PATCH, backend.clone(), &ddl),
        (Method::PUT, format!("{backend}/actions"), &actions),
    ] {
        let answer = owner.send(&server, method, &path, body).await;
        answer.problem(503, "capacity_reached");
        assert_eq!(answer.header("retry-after"), Some("60"));
    }
    let after = owner.get(&server, &backend).await.expect(200).json();
    assert_eq!(after, before);
}
