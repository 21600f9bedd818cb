//! Releases of a project: schema, actions, pages and home become what they shall be together.

mod bounds;
mod conflicts;
pub(crate) mod crashes;
mod first_pages;
mod races;
mod refusals;
mod sites;
mod trials;

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Answer, ReadAnswer, TestServer};

use crate::owner::{Owner, text};
use crate::project_fixture::{GUESTS, ProjectFixture, named, names};

/// Sends a release of the fixture's project.
async fn release(at: &ProjectFixture, body: &Value) -> Answer {
    let path = format!("/{}/release", at.project);
    at.owner.post(&at.server, &path, body).await
}

/// A release that succeeds; returns its answer.
async fn released(at: &ProjectFixture, body: Value) -> Value {
    release(at, &body).await.expect(200).json()
}

/// A page of Markdown for a release.
fn page(slug: &str, content: &str, expected: &Value) -> Value {
    json!({ "slug": slug, "content": content, "expected_active_revision_id": expected })
}

/// A new page of Markdown for a release.
fn new_page(slug: &str, content: &str) -> Value {
    let mut page = page(slug, content, &Value::Null);
    page["type"] = "markdown".into();
    page
}

/// The live revision of a page; its history begins by this.
async fn active(at: &ProjectFixture, slug: &str) -> Value {
    let path = format!("/{}/frontends/{slug}/revisions", at.project);
    let list = at.owner.get(&at.server, &path).await.expect(200).json();
    list["active_revision_id"].clone()
}

/// The revisions of a page, newest first.
async fn revisions(at: &ProjectFixture, slug: &str) -> Vec<Value> {
    let path = format!("/{}/frontends/{slug}/revisions", at.project);
    let list = at.owner.get(&at.server, &path).await.expect(200).json();
    list["revisions"].as_array().unwrap().clone()
}

/// The text that a page shows; `None` without a page.
async fn shown(server: &TestServer, slug: &str) -> Option<String> {
    let answer = server.get(&format!("/{slug}/raw")).answer().await;
    (answer.status == 200).then(|| answer.text().to_owned())
}

/// The actions of the backend, with their versions.
async fn versions(at: &ProjectFixture) -> Vec<(String, u64)> {
    let detail = at.detail().await;
    let actions = detail["actions"].as_array().unwrap().iter();
    let version = |action: &Value| (text(&action["name"]), action["version"].as_u64().unwrap());
    actions.map(version).collect()
}

/// The names of the tables that the tenant has made, sorted.
#[track_caller]
fn tables(list: &Value) -> Vec<String> {
    let mut tables = names(list);
    tables.retain(|name| !["svc_files", "svc_payments"].contains(&name.as_str()));
    tables
}

/// Everything that a release may change, to be compared before and after a refusal.
async fn state(at: &ProjectFixture) -> Value {
    let project = format!("/{}", at.project);
    let frontends = at
        .owner
        .get(&at.server, &format!("{project}/frontends"))
        .await;
    let home = at.owner.get(&at.server, &project).await.expect(200).json();
    let backend = at.get().await;
    let backend: Value = serde_json::from_slice(&backend.body).unwrap();
    json!({
        "frontends": frontends.expect(200).json(), "home": home["home"], "project": home["updated_at"],
        "schema": backend["schema"], "migrations": backend["migrations"], "actions": backend["actions"],
    })
}

#[tokio::test]
async fn everything_changes_together() {
    let at = ProjectFixture::new(GUESTS).await;
    at.publish("old").await;
    at.define(&[
        ("all", "SELECT name FROM guests"),
        ("gone", "SELECT 1 AS one"),
    ])
    .await;
    let (room, old) = (active(&at, "room").await, active(&at, "old").await);
    let answer = released(
        &at,
        json!({
            "migrations": [
                { "ddl": "ALTER TABLE guests ADD COLUMN seat TEXT", "note": "seats" },
                { "ddl": "CREATE TABLE seats (name TEXT PRIMARY KEY)" },
            ],
            "actions": [
                { "name": "all", "sql": "SELECT name, seat FROM guests", "expected_version": 1 },
                { "name": "sit", "sql": "INSERT INTO seats (name) VALUES (:name)", "expected_version": 0 },
            ],
            "remove_actions": [{ "name": "gone", "expected_version": 1 }, { "name": "never" }],
            "pages": [page("room", "# Two", &room), new_page("hall", "# Hall")],
            "remove_pages": [
                { "slug": "old", "expected_active_revision_id": old },
                { "slug": "never", "expected_active_revision_id": null },
            ],
            "home": "hall",
            "message": "seats",
        }),
    )
    .await;
    assert_eq!(
        answer["migrations"],
        json!([{ "version": 2, "status": "applied" }, { "version": 3, "status": "applied" }])
    );
    assert_eq!(
        answer["actions"],
        json!([{ "name": "all", "version": 2 }, { "name": "sit", "version": 1 }])
    );
    assert_eq!(
        answer["removed"],
        json!({ "actions": ["gone"], "pages": ["old"] })
    );
    let pages = answer["pages"].as_array().unwrap();
    for (page, slug) in pages.iter().zip(["room", "hall"]) {
        assert_eq!(page["slug"], slug);
        assert_eq!(page["revision_id"], active(&at, slug).await, "{slug}");
        let path = format!("/{}/frontends/{slug}", at.project);
        let frontend = at.owner.get(&at.server, &path).await.expect(200).json();
        assert_eq!(frontend["id"], page["deployment_id"]);
        assert_eq!(frontend["url"], page["url"]);
        assert_eq!(frontend["state"], "active");
        let newest = &revisions(&at, slug).await[0];
        assert_eq!(newest["kind"], "publish", "{slug}");
        assert_eq!(newest["message"], "seats", "{slug}");
        assert_eq!(newest["state"], "active", "{slug}");
    }
    assert_eq!(revisions(&at, "hall").await.len(), 1);
    assert_eq!(revisions(&at, "room").await.len(), 2);
    assert_eq!(shown(&at.server, "room").await.as_deref(), Some("# Two"));
    assert_eq!(shown(&at.server, "hall").await.as_deref(), Some("# Hall"));
    assert_eq!(shown(&at.server, "old").await, None);
    at.server.get("/room").answer().await.expect(200);
    assert_eq!(
        versions(&at).await,
        [("all".to_owned(), 2), ("sit".to_owned(), 1)]
    );
    let detail = at.detail().await;
    assert_eq!(tables(&detail["schema"]["tables"]), ["guests", "seats"]);
    let ledger = detail["migrations"].as_array().unwrap();
    assert_eq!(ledger[1]["note"], "seats");
    assert_eq!(state(&at).await["home"], "hall");
    at.call_ok("sit", &json!({ "name": "a" })).await;
    let gone = at.call_action("gone", &json!({})).await;
    gone.problem(404, "not_found");
    // The new page calls the backend, too.
    at.call("hall", &json!({ "action": "all" }))
        .await
        .expect(200);
}

#[tokio::test]
async fn the_first_migration_makes_a_backend() {
    let at = ProjectFixture::without_backend(TestServer::start().await).await;
    at.publish("early").await;
    let answer = released(
        &at,
        json!({
            "migrations": [
                { "ddl": GUESTS, "note": "first" },
                { "ddl": "CREATE VIEW v AS SELECT name FROM guests" },
                { "ddl": GUESTS },
            ],
            "actions": [{ "name": "all", "sql": "SELECT name FROM v" }],
            "pages": [new_page("room", "# One")],
        }),
    )
    .await;
    assert_eq!(
        answer["migrations"],
        json!([
            { "version": 1, "status": "applied" },
            { "version": 2, "status": "applied" },
            { "version": 1, "status": "already_applied" },
        ])
    );
    let detail = at.detail().await;
    assert_eq!(detail["realtime"]["enabled"], false);
    assert_eq!(detail["migrations"][0]["note"], "first");
    assert_eq!(detail["warnings"], json!([]));
    for slug in ["room", "early"] {
        let rows = at.call(slug, &json!({ "action": "all" })).await.expect(200);
        assert_eq!(rows.json()["rows"], json!([]), "{slug}");
    }
    // A page that was published with a backend that is gone calls the next one once it is released again.
    at.delete().await.expect(204);
    let room = active(&at, "room").await;
    let again = json!({
        "migrations": [{ "ddl": GUESTS }],
        "actions": [{ "name": "all", "sql": "SELECT name FROM guests" }],
    });
    released(&at, again).await;
    let unbound = at.call("room", &json!({ "action": "all" })).await;
    unbound.problem(404, "not_found");
    released(&at, json!({ "pages": [page("room", "# One", &room)] })).await;
    at.call("room", &json!({ "action": "all" }))
        .await
        .expect(200);
}

#[tokio::test]
async fn what_is_unchanged_stays_as_it_is() {
    let at = ProjectFixture::new(GUESTS).await;
    at.define(&[("all", "SELECT name FROM guests")]).await;
    let room = active(&at, "room").await;
    let before = state(&at).await;
    let same = json!({
        "migrations": [{ "ddl": GUESTS }],
        "actions": [{ "name": "all", "sql": "SELECT name FROM guests" }],
        "pages": [page("room", "# One", &room)],
    });
    let answer = released(&at, same.clone()).await;
    assert_eq!(
        answer["migrations"],
        json!([{ "version": 1, "status": "already_applied" }])
    );
    assert_eq!(answer["actions"], json!([{ "name": "all", "version": 1 }]));
    assert_eq!(answer["pages"][0]["revision_id"], room);
    assert_eq!(state(&at).await, before);
    assert_eq!(revisions(&at, "room").await.len(), 1);
    // Another title is another revision.
    let mut titled = same;
    titled["pages"][0]["title"] = "Salon".into();
    let answer = released(&at, titled).await;
    assert_ne!(answer["pages"][0]["revision_id"], room);
    assert_eq!(
        state(&at).await["frontends"]["frontends"][0]["title"],
        "Salon"
    );
    // Without a title it stays.
    let now = answer["pages"][0]["revision_id"].clone();
    released(&at, json!({ "pages": [page("room", "# Two", &now)] })).await;
    assert_eq!(
        state(&at).await["frontends"]["frontends"][0]["title"],
        "Salon"
    );
}

#[tokio::test]
async fn a_repeated_release_answers_what_the_first_did() {
    let at = ProjectFixture::new(GUESTS).await;
    let body = json!({ "pages": [new_page("hall", "# Hall")], "home": "hall" });
    let path = format!("/api/v1/projects/{}/release", at.project);
    let send = async |body: &Value| {
        let request = at.owner.request(&at.server, Method::POST, &path);
        request
            .header("idempotency-key", "k")
            .json(body)
            .answer()
            .await
    };
    // What is only tried is not kept.
    let mut tried = body.clone();
    tried["dry_run"] = true.into();
    send(&tried).await.expect(200);
    let first = send(&body).await.expect(200);
    assert_eq!(first.header("idempotency-replayed"), None);
    let again = send(&body).await.expect(200);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.body, first.body);
    assert_eq!(revisions(&at, "hall").await.len(), 1);
    let other = json!({ "pages": [new_page("other", "# Other")] });
    send(&other).await.problem(409, "idempotency_conflict");
    // What was refused is not kept.
    let path = format!("/api/v1/projects/{}/release", at.project);
    for _ in 0..2 {
        let request = at.owner.request(&at.server, Method::POST, &path);
        let request = request.header("idempotency-key", "refused").json(&body);
        request.answer().await.problem(409, "release_conflict");
    }
}

#[tokio::test]
async fn home_is_a_page_of_the_project_after_the_release() {
    let at = ProjectFixture::new(GUESTS).await;
    let room = active(&at, "room").await;
    released(&at, json!({ "home": "room" })).await;
    assert_eq!(state(&at).await["home"], "room");
    let ending = json!({ "slug": "room", "expected_active_revision_id": room });
    for (body, home) in [
        (json!({ "home": "nowhere" }), "nowhere"),
        (json!({ "home": "room", "remove_pages": [ending] }), "room"),
    ] {
        let before = state(&at).await;
        let problem = release(&at, &body).await.problem(400, "invalid_request");
        assert_eq!(problem["part"], "home", "{body}");
        assert!(text(&problem["detail"]).contains(home), "{problem}");
        assert_eq!(state(&at).await, before, "{body}");
    }
    let moved =
        json!({ "home": "hall", "pages": [new_page("hall", "# Hall")], "remove_pages": [ending] });
    released(&at, moved).await;
    assert_eq!(state(&at).await["home"], "hall");
    released(&at, json!({ "home": "" })).await;
    assert_eq!(state(&at).await["home"], Value::Null);
}

#[tokio::test]
async fn a_freed_slug_is_free_and_a_page_may_come_again() {
    let at = ProjectFixture::new(GUESTS).await;
    let room = active(&at, "room").await;
    let ending =
        json!({ "remove_pages": [{ "slug": "room", "expected_active_revision_id": room }] });
    released(&at, ending).await;
    assert_eq!(shown(&at.server, "room").await, None);
    let other = Owner::new(&at.server, "zeta").await;
    let project = other.project(&at.server, "Other").await;
    let made = other.frontend(&at.server, &project, "room").await;
    assert_eq!(made["slug"], "room");
    let again = release(&at, &json!({ "pages": [new_page("room", "# Again")] })).await;
    let problem = again.problem(409, "slug_conflict");
    assert_eq!(problem["part"], "pages[0]");
    let path = format!("/{project}/frontends/room");
    other.delete(&at.server, &path).await.expect(204);
    released(&at, json!({ "pages": [new_page("room", "# Again")] })).await;
    assert_eq!(shown(&at.server, "room").await.as_deref(), Some("# Again"));
    let detail = at.detail().await;
    assert_eq!(tables(&detail["schema"]["tables"]), ["guests"]);
    assert_eq!(
        named(&detail["schema"]["tables"], "guests")["name"],
        "guests"
    );
}
