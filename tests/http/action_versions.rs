//! The life of an action: its versions, the return to one, what a change expects, and the end.

use http::Method;
use serde_json::{Value, json};
use svc::content::Digest;
use svc_tests::{Answer, ReadAnswer, TestServer};

use crate::owner::{Owner, operator_key, text};
use crate::project_fixture::{GUESTS, ProjectFixture, named, names};

impl ProjectFixture {
    async fn versions(&self, below: &str) -> Answer {
        let path = format!("/{}/backend/actions/{below}", self.project);
        self.owner.get(&self.server, &path).await
    }

    async fn roll_back(&self, name: &str, body: &Value) -> Answer {
        let below = format!("/actions/{name}/rollback");
        self.send(Method::POST, &below, body).await
    }

    async fn end(&self, below: &str) -> Answer {
        let path = format!("/{}/backend/actions/{below}", self.project);
        self.owner.delete(&self.server, &path).await
    }

    /// Sends a batch that is all the actions that there shall be.
    async fn replace(&self, query: &str, actions: Value) -> Answer {
        let body = json!({ "actions": actions, "replace": true });
        self.send(Method::PUT, &format!("/actions{query}"), &body)
            .await
    }

    async fn action_names(&self) -> Vec<String> {
        names(&self.detail().await["actions"])
    }
}

/// An action that says a number.
fn say(n: u64) -> Value {
    json!({ "name": "say", "sql": format!("SELECT {n} AS n") })
}

/// Defines `say` with each of these numbers, a version each.
async fn start_with_versions(count: u64) -> ProjectFixture {
    let fixture = ProjectFixture::new(GUESTS).await;
    for n in 1..=count {
        fixture.put(&json!([say(n)])).await.expect(200);
    }
    fixture
}

#[tokio::test]
async fn versions_are_listed_newest_first_in_pages() {
    let fixture = ProjectFixture::new(GUESTS).await;
    let versions = [
        json!({ "name": "say", "sql": "SELECT :n AS n", "note": "One", "defaults": { "n": 5 } }),
        json!({ "name": "say", "sql": "SELECT :n AS n", "defaults": { "n": 6 } }),
        json!({ "name": "say", "sql": "SELECT 3 AS n" }),
    ];
    for action in &versions {
        fixture.put(&json!([action])).await.expect(200);
    }
    let list = fixture.versions("say/versions").await.expect(200).json();
    let mut expected: Vec<Value> = versions
        .iter()
        .zip(1..)
        .map(|(sent, version)| {
            json!({
                "version": version, "sql": sent["sql"], "note": sent["note"],
                "defaults": sent.get("defaults").unwrap_or(&json!({})),
                "checksum": Digest::of(text(&sent["sql"]).as_bytes()).to_string(),
                "created_at": "2026-11-20T12:00:00.000Z",
            })
        })
        .collect();
    expected.reverse();
    assert_eq!(list, json!({ "versions": expected, "next_cursor": null }));
    let page = fixture.versions("say/versions?limit=2").await.json();
    assert_eq!(page["versions"], json!(expected[..2]));
    let cursor = text(&page["next_cursor"]);
    let rest = format!("say/versions?limit=1&cursor={cursor}");
    let rest = fixture.versions(&rest).await.expect(200).json();
    assert_eq!(
        rest,
        json!({ "versions": expected[2..], "next_cursor": null })
    );
    for query in [
        "limit=0",
        "limit=201",
        "limit=x",
        "cursor=x",
        "cursor=-1",
        "page=2",
    ] {
        let refused = fixture.versions(&format!("say/versions?{query}")).await;
        refused.problem(400, "invalid_request");
    }
    for name in ["unknown", "No-Name", "%2e%2e"] {
        let missing = fixture.versions(&format!("{name}/versions")).await;
        missing.problem(404, "not_found");
    }
}

#[tokio::test]
async fn fifty_versions_are_a_page_and_two_hundred_the_largest() {
    let fixture = start_with_versions(52).await;
    let list = fixture.versions("say/versions").await.json();
    let count = |list: &Value| list["versions"].as_array().unwrap().len();
    assert_eq!(count(&list), 50);
    let rest = format!("say/versions?cursor={}", text(&list["next_cursor"]));
    assert_eq!(count(&fixture.versions(&rest).await.json()), 2);
    let all = fixture.versions("say/versions?limit=200").await.json();
    assert_eq!((count(&all), &all["next_cursor"]), (52, &Value::Null));
}

#[tokio::test]
async fn an_earlier_version_comes_back_as_the_newest() {
    let fixture = ProjectFixture::new(GUESTS).await;
    let first =
        json!({ "name": "say", "sql": "SELECT :n AS n", "note": "One", "defaults": { "n": 5 } });
    fixture.put(&json!([first])).await.expect(200);
    fixture.put(&json!([say(2)])).await.expect(200);
    fixture.server.advance(1);
    let back = fixture.roll_back("say", &json!({ "version": 1 })).await;
    let back = back.expect(200).json();
    assert_eq!(back["version"], 3);
    assert_eq!(back["sql"], first["sql"]);
    assert_eq!(back["note"], "One");
    assert_eq!(back["defaults"], first["defaults"]);
    assert_eq!(back["created_at"], "2026-11-20T12:00:01.000Z");
    assert_eq!(fixture.detail().await["actions"], json!([back]));
    assert_eq!(
        fixture.call_ok("say", &json!({})).await["rows"],
        json!([{ "n": 5 }])
    );
    // What is there already is not made again.
    for version in [1, 3] {
        let again = fixture
            .roll_back("say", &json!({ "version": version }))
            .await;
        assert_eq!(again.expect(200).json(), back);
    }
    let expecting = json!({ "version": 2, "expected_version": 3 });
    let forth = fixture
        .roll_back("say", &expecting)
        .await
        .expect(200)
        .json();
    assert_eq!(
        (&forth["version"], &forth["defaults"]),
        (&json!(4), &json!({}))
    );
}

#[tokio::test]
async fn a_rollback_is_refused_precisely() {
    let fixture = start_with_versions(2).await;
    for (name, body, status, code) in [
        ("say", json!({ "version": 9 }), 404, "not_found"),
        ("say", json!({ "version": 0 }), 404, "not_found"),
        ("say", json!({ "version": u64::MAX }), 404, "not_found"),
        ("unknown", json!({ "version": 1 }), 404, "not_found"),
        ("say", json!({}), 400, "invalid_request"),
        ("say", json!({ "version": "1" }), 400, "invalid_request"),
        ("say", json!({ "version": 1.5 }), 400, "invalid_request"),
        ("say", json!({ "version": -1 }), 400, "invalid_request"),
        (
            "say",
            json!({ "version": 1, "expected_version": "2" }),
            400,
            "invalid_request",
        ),
        (
            "say",
            json!({ "version": 1, "note": "x" }),
            400,
            "invalid_request",
        ),
    ] {
        let refused = fixture.roll_back(name, &body).await;
        refused.problem(status, code);
    }
    let stale = json!({ "version": 1, "expected_version": 1 });
    let conflict = fixture.roll_back("say", &stale).await;
    let conflict = conflict.problem(409, "action_conflict");
    assert_eq!(conflict["name"], "say");
    assert_eq!(
        (&conflict["expected"], &conflict["found"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(fixture.detail().await["actions"][0]["version"], 2);
}

#[tokio::test]
async fn an_earlier_version_must_still_work() {
    let fixture = ProjectFixture::new("CREATE TABLE t (a); CREATE TABLE u (b)").await;
    fixture
        .define(&[("both", "SELECT t.*, u.* FROM t, u")])
        .await;
    fixture
        .define(&[("both", "SELECT t.a, u.b FROM t, u")])
        .await;
    fixture
        .migrate("ALTER TABLE u ADD COLUMN a")
        .await
        .expect(200);
    let refused = fixture.roll_back("both", &json!({ "version": 1 })).await;
    let problem = refused.problem(400, "statement_refused");
    assert!(text(&problem["detail"]).contains("named a"), "{problem}");
    assert!(problem["errors"].is_null(), "it is no batch: {problem}");
    assert_eq!(fixture.detail().await["actions"][0]["version"], 2);
}

#[tokio::test]
async fn nothing_of_a_batch_is_kept_that_expects_another_version() {
    let fixture = start_with_versions(2).await;
    let with = |mut action: Value, expected: u64| {
        action["expected_version"] = expected.into();
        action
    };
    let other = json!({ "name": "other", "sql": "SELECT 1 AS n" });
    for (batch, name, expected, found) in [
        (json!([other, with(say(3), 1)]), "say", 1, 2),
        (json!([other, with(say(3), 0)]), "say", 0, 2),
        (json!([other, with(say(3), 3)]), "say", 3, 2),
        // Compared although nothing would change.
        (json!([with(say(2), 1)]), "say", 1, 2),
        (json!([with(other.clone(), 1), say(3)]), "other", 1, 0),
    ] {
        for query in ["", "?dry_run=true"] {
            let body = json!({ "actions": batch });
            let below = format!("/actions{query}");
            let refused = fixture.send(Method::PUT, &below, &body).await;
            let problem = refused.problem(409, "action_conflict");
            assert_eq!(problem["name"], name, "{batch}");
            assert_eq!(problem["expected"], expected, "{batch}");
            assert_eq!(problem["found"], found, "{batch}");
            let detail = fixture.detail().await;
            assert_eq!(names(&detail["actions"]), ["say"], "{batch}");
            assert_eq!(detail["actions"][0]["version"], 2, "{batch}");
        }
    }
    let two = json!([with(say(3), 1), with(other.clone(), 7)]);
    let problem = fixture.put(&two).await.problem(409, "action_conflict");
    assert_eq!(names(&problem["conflicts"]), ["other", "say"], "{problem}");
    let right = json!([with(say(3), 2), with(other, 0)]);
    let defined = fixture.put(&right).await.expect(200).json();
    assert_eq!(named(&defined["actions"], "say")["version"], 3);
    // What is wrong with an entry is told before.
    let wrong = json!([with(
        json!({ "name": "say", "sql": "DROP TABLE guests" }),
        9
    )]);
    fixture.put(&wrong).await.problem(400, "statement_refused");
}

#[tokio::test]
async fn an_action_that_ended_was_never_defined() {
    let mut fixture = start_with_versions(3).await;
    fixture.define(&[("stays", "SELECT 1 AS n")]).await;
    let unknown = fixture.call_action("unknown", &json!({})).await;
    let unknown = unknown.problem(404, "not_found").to_string();
    fixture.call_ok("say", &json!({})).await;
    fixture.end("say").await.expect(204);
    let gone = fixture.call_action("say", &json!({})).await;
    let gone = gone.problem(404, "not_found").to_string();
    let unknown = unknown.replace("unknown", "say");
    let without_id = |problem: &str| problem.split("request_id").next().unwrap().to_owned();
    assert_eq!(without_id(&gone), without_id(&unknown));
    let ops = json!({ "ops": [{ "action": "stays" }, { "action": "say" }] });
    fixture.call("room", &ops).await.problem(404, "not_found");
    fixture
        .versions("say/versions")
        .await
        .problem(404, "not_found");
    fixture
        .roll_back("say", &json!({ "version": 1 }))
        .await
        .problem(404, "not_found");
    assert_eq!(fixture.action_names().await, ["stays"]);
    fixture.server = fixture.server.restart().await;
    assert_eq!(fixture.action_names().await, ["stays"]);

    // A name that comes again goes on counting, and does not have its old versions.
    let again = json!({ "name": "say", "sql": "SELECT 1 AS n", "expected_version": 0 });
    let again = fixture.put(&json!([again])).await.expect(200).json();
    assert_eq!(named(&again["actions"], "say")["version"], 4);
    let list = fixture.versions("say/versions").await.json();
    assert_eq!(list["versions"].as_array().unwrap().len(), 1);
    fixture.put(&json!([say(5)])).await.expect(200);
    fixture.end("say").await.expect(204);
    let again = fixture.put(&json!([say(6)])).await.expect(200).json();
    assert_eq!(named(&again["actions"], "say")["version"], 6);
    assert_eq!(
        fixture.call_ok("say", &json!({})).await["rows"],
        json!([{ "n": 6 }])
    );
}

#[tokio::test]
async fn an_end_may_expect_a_version_and_an_unknown_name_has_none() {
    let fixture = start_with_versions(2).await;
    for expected in [0, 1, 3] {
        let refused = fixture
            .end(&format!("say?expected_version={expected}"))
            .await;
        let problem = refused.problem(409, "action_conflict");
        assert_eq!(problem["found"], 2, "{problem}");
    }
    for query in ["expected_version=x", "expected_version=-1", "version=2"] {
        let refused = fixture.end(&format!("say?{query}")).await;
        refused.problem(400, "invalid_request");
    }
    assert_eq!(fixture.action_names().await, ["say"]);
    fixture.end("say?expected_version=2").await.expect(204);
    for below in [
        "say",
        "say?expected_version=2",
        "unknown?expected_version=7",
        "No-Name",
    ] {
        fixture.end(below).await.expect(204);
    }
    assert_eq!(fixture.action_names().await, [""; 0]);
    fixture.delete().await.expect(204);
    fixture.end("say").await.problem(404, "not_found");
}

#[tokio::test]
async fn a_replacing_batch_ends_what_it_leaves_out() {
    let fixture = start_with_versions(1).await;
    fixture
        .define(&[
            ("old", "SELECT name FROM guests"),
            ("older", "SELECT 2 AS n"),
        ])
        .await;
    let keep = json!([say(1), { "name": "new", "sql": "SELECT 3 AS n" }]);
    let tried = fixture.replace("?dry_run=true", keep.clone()).await;
    let tried = tried.expect(200).json();
    assert_eq!(tried["removed"], json!(["old", "older"]));
    assert_eq!(tried["status"], "applied");
    assert_eq!(fixture.action_names().await, ["old", "older", "say"]);
    let done = fixture.replace("", keep.clone()).await.expect(200).json();
    assert_eq!(names(&done["actions"]), ["new", "say"]);
    assert_eq!(named(&done["actions"], "say")["version"], 1);
    fixture
        .call_action("old", &json!({}))
        .await
        .problem(404, "not_found");
    let again = fixture.replace("?dry_run=true", keep.clone()).await;
    let again = again.expect(200).json();
    assert_eq!(
        (&again["removed"], &again["status"]),
        (&json!([]), &json!("already_applied"))
    );
    // A batch that is refused ends nothing.
    let bad = json!([{ "name": "bad", "sql": "DROP TABLE guests" }]);
    fixture
        .replace("", bad)
        .await
        .problem(400, "statement_refused");
    let stale = json!([{ "name": "new", "sql": "SELECT 3 AS n", "expected_version": 2 }]);
    fixture
        .replace("", stale)
        .await
        .problem(409, "action_conflict");
    assert_eq!(fixture.action_names().await, ["new", "say"]);
    // Without it they stay.
    let body = json!({ "actions": [say(1)], "replace": false });
    let stay = fixture.send(Method::PUT, "/actions", &body).await;
    assert_eq!(names(&stay.expect(200).json()["actions"]), ["new", "say"]);
    let body = json!({ "actions": [say(1)], "replace": null });
    let tried = fixture
        .send(Method::PUT, "/actions?dry_run=true", &body)
        .await;
    assert_eq!(tried.expect(200).json()["removed"], json!([]));
}

#[tokio::test]
async fn a_removed_action_is_not_broken() {
    let fixture = ProjectFixture::new("CREATE TABLE t (a); CREATE TABLE u (b)").await;
    fixture
        .define(&[
            ("both", "SELECT t.*, u.* FROM t, u"),
            ("one", "SELECT a FROM t"),
        ])
        .await;
    fixture
        .migrate("ALTER TABLE u ADD COLUMN a")
        .await
        .expect(200);
    let one = json!([{ "name": "one", "sql": "SELECT a FROM t" }]);
    let body = json!({ "actions": one });
    let tried = fixture
        .send(Method::PUT, "/actions?dry_run=true", &body)
        .await;
    assert_eq!(names(&tried.expect(200).json()["broken_actions"]), ["both"]);
    let tried = fixture
        .replace("?dry_run=true", one)
        .await
        .expect(200)
        .json();
    assert_eq!(tried["broken_actions"], json!([]));
    assert_eq!(tried["removed"], json!(["both"]));
}

#[tokio::test]
async fn viewers_read_versions_and_editors_change_them() {
    let fixture = start_with_versions(2).await;
    let viewer = operator_key(&fixture.server, "acme", "viewer").await;
    let at = format!("/api/v1/projects/{}/backend/actions/say", fixture.project);
    let asked = async |method: Method, below: &str, caller: Option<&Owner>| {
        let request = fixture
            .server
            .request(method.clone(), &format!("{at}{below}"));
        let request = match method {
            Method::POST => request.json(&json!({ "version": 1 })),
            _ => request,
        };
        match caller {
            Some(caller) => request.bearer_auth(&caller.credential).answer().await,
            None => request.answer().await,
        }
    };
    let foreign = Owner::new(&fixture.server, "other").await;
    for (method, below, viewers) in [
        (Method::GET, "/versions", 200),
        (Method::POST, "/rollback", 403),
        (Method::DELETE, "", 403),
    ] {
        let answer = asked(method.clone(), below, None).await;
        answer.problem(401, "unauthorized");
        let answer = asked(method.clone(), below, Some(&foreign)).await;
        answer.problem(403, "forbidden");
        let answer = asked(method, below, Some(&viewer)).await;
        assert_eq!(answer.status, viewers, "{}", answer.text());
    }
    assert_eq!(fixture.detail().await["actions"][0]["version"], 2);
}

#[tokio::test]
async fn ended_names_and_defaults_count_for_the_size_of_the_definitions() {
    let builder = TestServer::builder().limits(|limits| limits.definition_bytes = 4_000);
    let fixture = ProjectFixture::on_server(builder.start().await, GUESTS).await;
    let default =
        json!([{ "name": "say", "sql": "SELECT :t AS t", "defaults": { "t": "x".repeat(4_000) } }]);
    fixture.put(&default).await.problem(400, "invalid_request");
    // An owner who defines and ends names for ever comes to an end.
    let mut ended = 0;
    loop {
        let name = format!("{:a<60}", format!("n{ended}_"));
        let batch = json!([{ "name": name, "sql": "SELECT 1 AS n" }]);
        let answer = fixture.put(&batch).await;
        if answer.status == 400 {
            let problem = answer.problem(400, "invalid_request");
            assert!(text(&problem["detail"]).contains("4000 bytes"), "{problem}");
            break;
        }
        answer.expect(200);
        fixture.end(&name).await.expect(204);
        ended += 1;
        assert!(ended < 60, "nothing counts them");
    }
    assert!(ended > 10, "{ended}");
    // A batch that replaces has the room of what it ends.
    let builder = TestServer::builder().limits(|limits| limits.definition_bytes = 4_000);
    let fixture = ProjectFixture::on_server(builder.start().await, GUESTS).await;
    let long = |name: &str| json!([{ "name": name, "sql": format!("SELECT 1 AS n -- {}", "x".repeat(2_500)) }]);
    fixture.put(&long("first")).await.expect(200);
    fixture
        .put(&long("second"))
        .await
        .problem(400, "invalid_request");
    for query in ["?dry_run=true", ""] {
        fixture.replace(query, long("second")).await.expect(200);
    }
}
