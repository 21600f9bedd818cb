//! Going back in time: which moments there are, what a restore does and leaves, and that it can be undone.

mod bounds;

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Answer, ReadAnswer, TestServer, disk, wait_until};

use crate::owner::{Owner, text};
use crate::project_fixture::{GUESTS, ProjectFixture, named, names};
use crate::svc;

const ADD: &str = "INSERT INTO guests (name) VALUES (:name)";

/// A time on the first minute of every test's day.
fn time_at(seconds: f64) -> String {
    format!("2026-11-20T12:00:{seconds:06.3}Z")
}

impl ProjectFixture {
    async fn restore(&self, at: &str) -> Answer {
        self.send(Method::POST, "/restore", &json!({ "at": at }))
            .await
    }

    /// Has what is too old forgotten, as the server does now and then.
    async fn expire_history(&self) {
        let backends = &self.server.server().app().backends;
        backends.forget_old().await.unwrap();
    }

    async fn restore_ok(&self, at: &str) -> Value {
        self.restore(at).await.expect(200).json()
    }

    async fn history(&self, query: &str) -> Answer {
        let path = format!("/{}/backend/history{query}", self.project);
        self.owner.get(&self.server, &path).await
    }

    async fn moments(&self) -> Vec<String> {
        let history = self.history("").await.expect(200).json();
        let moments = history["moments"].as_array().unwrap();
        moments.iter().map(|moment| text(&moment["at"])).collect()
    }

    /// A second later, another guest.
    async fn add_guest(&self, name: &str) {
        self.server.advance(1);
        self.call_ok("add", &json!({ "name": name })).await;
    }

    /// The guests in the order in which they came.
    async fn guest_names(&self) -> Vec<String> {
        let rows = self.rows("SELECT name FROM guests ORDER BY id").await;
        let rows = rows.as_array().unwrap();
        rows.iter().map(|row| text(&row["name"])).collect()
    }
}

/// A fixture with three guests, who came a second apart.
async fn with_guests(server: TestServer) -> ProjectFixture {
    let fixture = ProjectFixture::on_server(server, GUESTS).await;
    fixture.define(&[("add", ADD)]).await;
    for name in ["Ada", "Grace", "Edith"] {
        fixture.add_guest(name).await;
    }
    fixture
}

#[tokio::test]
async fn every_commit_is_listed_and_any_time_can_be_restored() {
    let fixture = with_guests(TestServer::start().await).await;
    let history = fixture.history("").await.expect(200).json();
    let bytes = history["bytes"].as_u64().unwrap();
    assert!(bytes > 0);
    let moments: Vec<_> = [3.0, 2.0, 1.0, 0.0]
        .map(|second| json!({ "at": time_at(second) }))
        .into();
    assert_eq!(
        history,
        json!({
            "oldest": time_at(0.0), "newest": time_at(3.0), "bytes": bytes, "moments": moments, "next_before": null,
        })
    );
    let page = fixture.history("?limit=2").await.expect(200).json();
    assert_eq!(page["moments"], json!(moments[..2]));
    assert_eq!(page["next_before"], time_at(2.0));
    let rest = fixture
        .history(&format!("?before={}&limit=2", time_at(2.0)))
        .await;
    let rest = rest.expect(200).json();
    assert_eq!(rest["moments"], json!(moments[2..]));
    assert_eq!(rest["next_before"], Value::Null);
    assert_eq!(
        (&rest["oldest"], &rest["newest"]),
        (&history["oldest"], &history["newest"])
    );

    // Between two commits it is the first of them that counts; any form of a time will do.
    fixture.server.advance(10);
    let restored = fixture.restore_ok("2026-11-20T13:00:01.9999+01:00").await;
    assert_eq!(
        restored,
        json!({ "restored_to": time_at(1.0), "previous": time_at(3.0) })
    );
    assert_eq!(fixture.guest_names().await, ["Ada"]);
    fixture.call_ok("add", &json!({ "name": "Mary" })).await;
    assert_eq!(
        fixture.guest_names().await,
        ["Ada", "Mary"],
        "it is written to as ever"
    );
    let undone = fixture.restore_ok(&text(&restored["previous"])).await;
    assert_eq!(undone["restored_to"], time_at(3.0));
    assert_eq!(fixture.guest_names().await, ["Ada", "Grace", "Edith"]);
    let redone = fixture.restore_ok(&text(&undone["previous"])).await;
    assert_eq!(redone["restored_to"], undone["previous"]);
    assert_eq!(fixture.guest_names().await, ["Ada", "Mary"]);
}

/// Nothing but a millisecond tells a restore from the commit before it.
#[tokio::test]
async fn a_restore_can_be_undone_while_the_clock_stands_still() {
    let fixture = with_guests(TestServer::start().await).await;
    let mut undo = Vec::new();
    for second in [2.0, 1.0, 0.0] {
        let before = fixture.guest_names().await;
        let restored = fixture.restore_ok(&time_at(second)).await;
        undo.push((text(&restored["previous"]), before));
    }
    assert!(fixture.guest_names().await.is_empty());
    for (previous, before) in undo.into_iter().rev() {
        fixture.restore_ok(&previous).await;
        assert_eq!(fixture.guest_names().await, before);
    }
    let newest = fixture.moments().await[0].clone();
    let restored = fixture.restore_ok(&newest).await;
    assert_eq!(restored["restored_to"], newest, "the present, too");
}

#[tokio::test]
async fn what_cannot_be_restored_is_refused_and_nothing_changes() {
    let fixture = with_guests(TestServer::start().await).await;
    let moments = fixture.moments().await;
    for (body, says) in [
        (json!({}), "at"),
        (json!({ "at": null }), "at"),
        (json!({ "at": 7 }), "at"),
        (json!({ "at": "" }), "at"),
        (json!({ "at": "yesterday" }), "RFC 3339"),
        (json!({ "at": "2026-11-20" }), "RFC 3339"),
        (json!({ "at": time_at(4.0) }), "future"),
        (json!({ "at": time_at(1.0), "to": "x" }), "to"),
    ] {
        let answer = fixture.send(Method::POST, "/restore", &body).await;
        let problem = answer.problem(400, "invalid_request");
        assert!(text(&problem["detail"]).contains(says), "{body}: {problem}");
    }
    for long_ago in ["2026-11-20T11:59:59.999Z", "1970-01-01T00:00:00Z"] {
        let problem = fixture.restore(long_ago).await.problem(404, "not_found");
        assert!(
            text(&problem["detail"]).contains(&time_at(0.0)),
            "{problem}"
        );
    }
    for query in [
        "?limit=0",
        "?limit=1001",
        "?limit=x",
        "?before=x",
        "?after=1",
    ] {
        let answer = fixture.history(query).await;
        answer.problem(400, "invalid_request");
    }
    fixture.history("?limit=1000").await.expect(200);
    assert_eq!(fixture.moments().await, moments);
    assert_eq!(fixture.guest_names().await.len(), 3);
    assert_eq!(
        fixture.detail().await["migrations"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn only_its_owner_goes_back_and_only_where_there_is_a_backend() {
    let fixture = ProjectFixture::without_backend(TestServer::start().await).await;
    fixture.history("").await.problem(404, "not_found");
    fixture
        .restore(&time_at(0.0))
        .await
        .problem(404, "not_found");
    fixture.create(GUESTS).await.expect(201);
    let other = Owner::new(&fixture.server, "zeta").await;
    let path = format!("/{}/backend", fixture.project);
    let restore = json!({ "at": time_at(0.0) });
    let history = format!("{path}/history");
    other
        .get(&fixture.server, &history)
        .await
        .problem(403, "forbidden");
    let path_of_restore = format!("{path}/restore");
    let answer = other
        .post(&fixture.server, &path_of_restore, &restore)
        .await;
    answer.problem(403, "forbidden");
    let below = format!("/api/v1/projects{path}");
    let anonymous = fixture.server.get(&format!("{below}/history")).answer();
    anonymous.await.problem(401, "unauthorized");
    let anonymous = fixture.server.json(&format!("{below}/restore"), &restore);
    anonymous.answer().await.problem(401, "unauthorized");
    fixture.restore_ok(&time_at(0.0)).await;
}

#[tokio::test]
async fn later_migrations_are_applied_again_without_their_rows() {
    let fixture = with_guests(TestServer::start().await).await;
    fixture.server.advance(1);
    let more =
        "CREATE TABLE more (a); INSERT INTO more VALUES (1), (2); CREATE INDEX by_a ON more (a)";
    fixture.migrate(more).await.expect(200);
    let nights = "ALTER TABLE guests ADD COLUMN nights INTEGER NOT NULL DEFAULT 1; INSERT INTO more VALUES (3)";
    fixture.migrate(nights).await.expect(200);
    fixture
        .define(&[
            ("more", "SELECT a FROM more"),
            ("nights", "SELECT nights FROM guests"),
        ])
        .await;
    let before = fixture.detail().await;

    let restored = fixture.restore_ok(&time_at(2.0)).await;
    assert_eq!(fixture.guest_names().await, ["Ada", "Grace"]);
    assert_eq!(fixture.count("more").await, 0, "seeds are not sown again");
    let after = fixture.detail().await;
    for part in ["id", "schema", "actions", "warnings"] {
        assert_eq!(after[part], before[part], "{part}");
    }
    let ledger = after["migrations"].as_array().unwrap();
    assert_eq!(ledger[..3], before["migrations"].as_array().unwrap()[..]);
    let entry = &ledger[3];
    assert_eq!(ledger.len(), 4);
    assert_eq!(entry["version"], 4);
    assert_eq!(entry["applied_at"], time_at(4.0));
    let sql = text(&entry["sql"]);
    assert!(
        sql.starts_with("-- ") && sql.contains(&time_at(2.0)),
        "{sql}"
    );
    // Actions that came later find the schema that they were defined for.
    assert_eq!(fixture.call_ok("more", &json!({})).await["rows"], json!([]));
    assert_eq!(
        fixture.call_ok("nights", &json!({})).await["rows"],
        json!([{ "nights": 1 }, { "nights": 1 }])
    );
    let again = fixture.migrate(more).await.expect(200).json();
    assert_eq!(
        (&again["status"], &again["version"]),
        (&json!("already_applied"), &json!(2))
    );
    let next = fixture
        .migrate("CREATE TABLE next (a)")
        .await
        .expect(200)
        .json();
    assert_eq!(next["version"], 5);
    assert_eq!(svc_check(&fixture).await, (json!([]), json!([])));

    fixture.restore_ok(&text(&restored["previous"])).await;
    assert_eq!(fixture.guest_names().await.len(), 3);
    assert_eq!(fixture.count("more").await, 3, "what was there is there");
    let tables = names(&fixture.detail().await["schema"]["tables"]);
    assert_eq!(
        tables,
        ["guests", "more", "next", "svc_files", "svc_payments"]
    );
    assert_eq!(fixture.detail().await["warnings"], json!([]));
    assert_eq!(svc_check(&fixture).await, (json!([]), json!([])));
}

/// Runs `svc check`, and returns its errors and its leftovers.
async fn svc_check(fixture: &ProjectFixture) -> (Value, Value) {
    let found = fixture.server.command(&svc(), &["check", "--json"]).await;
    let mut found = found.json();
    (found["errors"].take(), found["leftovers"].take())
}

#[tokio::test]
async fn a_migration_that_does_not_fit_the_rows_of_then_is_named() {
    let fixture = ProjectFixture::new("CREATE TABLE t (a, b)").await;
    fixture.server.advance(1);
    fixture
        .query("INSERT INTO t VALUES (1, 'x'), (1, 'y')", &json!({}))
        .await
        .expect(200);
    fixture.server.advance(1);
    fixture
        .query("DELETE FROM t WHERE b = 'y'", &json!({}))
        .await
        .expect(200);
    fixture.migrate("CREATE TABLE other (a)").await.expect(200);
    fixture
        .migrate("CREATE UNIQUE INDEX one_a ON t (a)")
        .await
        .expect(200);
    let before = fixture.detail().await;
    let problem = fixture.restore(&time_at(1.0)).await;
    let problem = problem.problem(409, "constraint_violation");
    assert_eq!(problem["migration"], 3);
    let detail = text(&problem["detail"]);
    assert!(
        detail.contains("migration 3") && detail.contains("UNIQUE"),
        "{detail}"
    );
    assert_eq!(
        fixture.rows("SELECT * FROM t").await,
        json!([{ "a": 1, "b": "x" }])
    );
    let after = fixture.detail().await;
    for part in ["schema", "migrations", "warnings"] {
        assert_eq!(after[part], before[part], "{part}");
    }
    fixture.restore_ok(&time_at(2.0)).await;
}

#[tokio::test]
async fn what_the_platform_derives_stays_as_it_is() {
    let mut fixture = with_guests(TestServer::start().await).await;
    let id = text(&fixture.detail().await["id"]);
    let paid = async |data: &std::path::Path| {
        let file = data.join("backends").join(&id).join("default.db");
        let file = rusqlite::Connection::open(file).unwrap();
        let sql = "INSERT INTO svc_payments VALUES ('s1', 'price_1', 'Tea', 300, 'eur', NULL, NULL, 'paid', 'now')";
        file.execute_batch(sql).unwrap();
    };
    fixture.server = fixture.server.restart_after_change(paid).await;
    fixture.restore_ok(&time_at(1.0)).await;
    assert_eq!(fixture.guest_names().await, ["Ada"]);
    let payments = fixture
        .rows("SELECT session_id, status FROM svc_payments")
        .await;
    assert_eq!(payments, json!([{ "session_id": "s1", "status": "paid" }]));
}

#[tokio::test]
async fn history_outlives_restarts_and_ends_with_the_backend() {
    let mut fixture = with_guests(TestServer::start().await).await;
    let before = fixture.moments().await;
    fixture.server = fixture.server.restart().await;
    assert_eq!(fixture.moments().await, before);
    fixture.add_guest("Mary").await;
    fixture.server = fixture.server.restart().await;
    assert_eq!(fixture.moments().await[1..], before);
    let id = text(&fixture.detail().await["id"]);
    let files = disk::names(&fixture.server.data().join("backends").join(&id));
    let chains = files.iter().filter(|name| name.ends_with(".history"));
    assert_eq!(chains.count(), 1, "restarts cost no copies: {files:?}");
    fixture.restore_ok(&time_at(2.0)).await;
    assert_eq!(fixture.guest_names().await, ["Ada", "Grace"]);

    fixture.delete().await.expect(204);
    assert!(disk::names(&fixture.server.data().join("backends")).is_empty());
    fixture.history("").await.problem(404, "not_found");
    fixture.server.advance(1);
    fixture.create(GUESTS).await.expect(201);
    assert_eq!(fixture.moments().await, [time_at(5.0)]);
}
