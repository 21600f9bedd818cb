//! Refusals: the problem of the single operation, with the part, and nothing is changed.

use super::*;
use crate::members::MembersFixture;

#[tokio::test]
async fn a_refused_part_is_named_and_nothing_is_changed() {
    let at = ProjectFixture::new(GUESTS).await;
    at.define(&[("all", "SELECT name FROM guests")]).await;
    let room = active(&at, "room").await;
    let other = Owner::new(&at.server, "zeta").await;
    let project = other.project(&at.server, "Other").await;
    other.frontend(&at.server, &project, "theirs").await;
    let share = json!({ "content": "x", "name": "shared" });
    at.server
        .json("/api/v1/deploy", &share)
        .answer()
        .await
        .expect(201);
    let fine = || {
        json!({
            "migrations": [{ "ddl": "CREATE TABLE more (a)" }],
            "actions": [{ "name": "more", "sql": "SELECT a FROM more" }],
            "pages": [new_page("hall", "# Hall"), page("room", "# Two", &room)],
        })
    };
    let with = |member: &str, part: Value| {
        let mut body = fine();
        match body.get_mut(member).and_then(Value::as_array_mut) {
            Some(list) => list.push(part),
            None => body[member] = json!([part]),
        }
        body
    };
    let titled = |title: usize| {
        let mut page = new_page("salon", "# Salon");
        page["title"] = "t".repeat(title).into();
        page
    };
    let typed = |mut page: Value, name: &str| {
        page["type"] = name.into();
        page
    };
    let action = |name: &str, sql: &str| json!({ "name": name, "sql": sql });
    let before = state(&at).await;
    for (body, status, code, part) in [
        (
            with("pages", new_page("theirs", "# x")),
            409,
            "slug_conflict",
            "pages[2]",
        ),
        (
            with("pages", new_page("shared", "# x")),
            409,
            "slug_conflict",
            "pages[2]",
        ),
        (
            with("pages", new_page("api", "# x")),
            409,
            "slug_conflict",
            "pages[2]",
        ),
        (
            with("pages", new_page("No!", "# x")),
            400,
            "invalid_request",
            "pages[2]",
        ),
        (
            with(
                "pages",
                new_page("01a1fc20-6ee3-7da4-ae81-ade539ecfe63", "# x"),
            ),
            400,
            "invalid_request",
            "pages[2]",
        ),
        (
            with("pages", new_page("salon", " \n")),
            400,
            "invalid_request",
            "pages[2]",
        ),
        (
            with("pages", page("salon", "# x", &Value::Null)),
            400,
            "invalid_request",
            "pages[2]",
        ),
        (
            with("pages", titled(201)),
            400,
            "invalid_request",
            "pages[2]",
        ),
        (
            with("pages", typed(new_page("salon", "{"), "json")),
            400,
            "render_failed",
            "pages[2]",
        ),
        (
            with("pages", new_page("hall", "# again")),
            400,
            "invalid_request",
            "pages[2]",
        ),
        (
            with(
                "remove_pages",
                json!({ "slug": "hall", "expected_active_revision_id": null }),
            ),
            400,
            "invalid_request",
            "remove_pages[0]",
        ),
        (
            with(
                "remove_pages",
                json!({ "slug": "No!", "expected_active_revision_id": null }),
            ),
            400,
            "invalid_request",
            "remove_pages[0]",
        ),
        (
            with("actions", action("Bad", "SELECT 1")),
            400,
            "invalid_request",
            "actions[1]",
        ),
        (
            with("actions", action("bad", "DROP TABLE guests")),
            400,
            "statement_refused",
            "actions[1]",
        ),
        (
            with("actions", action("bad", "SELECT nothing FROM guests")),
            400,
            "statement_refused",
            "actions[1]",
        ),
        (
            with("actions", action("more", "SELECT 1 AS one")),
            400,
            "invalid_request",
            "actions[1]",
        ),
        (
            with("remove_actions", json!({ "name": "more" })),
            400,
            "invalid_request",
            "remove_actions[0]",
        ),
        (
            with("migrations", json!({ "ddl": "DROP TABLE guests" })),
            400,
            "ddl_refused",
            "migrations[1]",
        ),
        (
            with("migrations", json!({ "ddl": "CREATE TABLE guests (a)" })),
            400,
            "ddl_refused",
            "migrations[1]",
        ),
        (
            with("migrations", json!({ "ddl": "CREATE TABLE more (a)  " })),
            400,
            "ddl_refused",
            "migrations[1]",
        ),
        (
            with(
                "migrations",
                json!({ "ddl": "INSERT INTO more VALUES (nothing)" }),
            ),
            400,
            "ddl_refused",
            "migrations[1]",
        ),
        (
            with(
                "migrations",
                json!({ "ddl": "INSERT INTO guests (name) VALUES (NULL)" }),
            ),
            409,
            "constraint_violation",
            "migrations[1]",
        ),
        (
            with(
                "migrations",
                json!({ "ddl": "CREATE TABLE x (a)", "note": "n".repeat(1_001) }),
            ),
            400,
            "invalid_request",
            "migrations[1]",
        ),
    ] {
        for dry_run in [false, true] {
            let mut body = body.clone();
            body["dry_run"] = dry_run.into();
            let answer = release(&at, &body).await;
            let problem = answer.problem(status, code);
            assert_eq!(problem["part"], part, "{body}: {problem}");
            assert_eq!(state(&at).await, before, "{body}");
        }
    }
    let mut mistyped = fine();
    mistyped["pages"][1]["type"] = "html".into();
    let problem = release(&at, &mistyped).await.problem(400, "type_mismatch");
    assert_eq!(problem["part"], "pages[1]");
    assert_eq!(state(&at).await, before);
    assert_eq!(shown(&at.server, "hall").await, None);
    // What was refused holds no slug.
    released(&at, fine()).await;
}

#[tokio::test]
async fn a_batch_of_actions_tells_every_refused_entry() {
    let at = ProjectFixture::new(GUESTS).await;
    let body = json!({ "actions": [
        { "name": "fine", "sql": "SELECT 1 AS one" },
        { "name": "first", "sql": "SELECT a FROM nowhere" },
        { "name": "second", "sql": "DROP TABLE guests" },
    ]});
    let problem = release(&at, &body).await.problem(400, "statement_refused");
    assert_eq!(problem["part"], "actions[1]");
    assert_eq!(names(&problem["errors"]), ["first", "second"]);
    let single = at
        .put(&body["actions"])
        .await
        .problem(400, "statement_refused");
    for member in ["detail", "errors", "reason", "position", "statement"] {
        assert_eq!(problem[member], single[member], "{member}");
    }
}

#[tokio::test]
async fn without_a_backend_there_are_no_actions() {
    let at = ProjectFixture::without_backend(TestServer::start().await).await;
    let action = json!({ "name": "one", "sql": "SELECT 1 AS one" });
    for (body, part) in [
        (json!({ "actions": [action] }), "actions[0]"),
        (
            json!({ "remove_actions": [{ "name": "one" }] }),
            "remove_actions[0]",
        ),
    ] {
        let problem = release(&at, &body).await.problem(404, "not_found");
        assert_eq!(problem["part"], part);
    }
    for ddl in [
        "CREATE INDEX i ON guests (name)",
        "SELECT 1",
        "CREATE VIEW v AS SELECT 1 AS one",
    ] {
        let body = json!({ "migrations": [{ "ddl": ddl }], "actions": [action] });
        let problem = release(&at, &body).await.problem(400, "ddl_refused");
        assert_eq!(problem["part"], "migrations[0]", "{ddl}");
    }
    let body = json!({ "migrations": [{ "ddl": GUESTS }, { "ddl": "CREATE TABLE guests (b)" }] });
    let problem = release(&at, &body).await.problem(400, "ddl_refused");
    assert_eq!(problem["part"], "migrations[1]");
    at.get().await.problem(404, "not_found");
}

#[tokio::test]
async fn bodies_that_are_no_releases_are_refused() {
    let at = ProjectFixture::new(GUESTS).await;
    let before = state(&at).await;
    let revision = "01a1fc20-6ee3-7da4-ae81-ade539ecfe63";
    for body in [
        json!({}),
        json!({ "message": "nothing" }),
        json!({ "dry_run": true }),
        json!({ "migrations": [], "actions": [], "remove_actions": [], "pages": [], "remove_pages": [] }),
        json!({ "migrations": null, "home": null }),
        json!({ "pages": [{ "slug": "hall", "type": "markdown", "content": "# x" }] }),
        json!({ "remove_pages": [{ "slug": "hall" }] }),
        json!({ "pages": [{ "slug": "hall", "type": "site", "files": {}, "expected_active_revision_id": null }] }),
        json!({ "pages": [{ "slug": "hall", "content": "x", "changes": {}, "expected_active_revision_id": null }] }),
        json!({ "pages": [{ "slug": "hall", "type": "markdown", "content": "x", "expected_active_revision_id": 7 }] }),
        json!({ "pages": { "slug": "hall" } }),
        json!({ "pages": [null] }),
        json!({ "pages": ["hall"] }),
        json!({ "actions": [{ "name": "a" }] }),
        json!({ "actions": [{ "name": "a", "sql": "SELECT 1", "expected_version": -1 }] }),
        json!({ "remove_actions": ["a"] }),
        json!({ "migrations": ["CREATE TABLE x (a)"] }),
        json!({ "migrations": [{ "ddl": "CREATE TABLE x (a)", "sql": "" }] }),
        json!({ "home": 7 }),
        json!({ "pages": [new_page("hall", "# x")], "message": "m".repeat(1_001) }),
        json!({ "pages": [new_page("hall", "# x")], "dry_run": "yes" }),
        json!({ "pages": [new_page("hall", "# x")], "base": revision }),
    ] {
        release(&at, &body).await.problem(400, "invalid_request");
    }
    for (raw, code) in [
        ("{", "invalid_json"),
        ("[]", "invalid_request"),
        (r#"{"pages": [], "pages": []}"#, "invalid_request"),
        (r#"{"home": "room", "home": "room"}"#, "invalid_request"),
    ] {
        let path = format!("/api/v1/projects/{}/release", at.project);
        let request = at.owner.request(&at.server, Method::POST, &path);
        request.body(raw).answer().await.problem(400, code);
    }
    assert_eq!(state(&at).await, before);
}

#[tokio::test]
async fn only_an_editor_of_the_project_releases() {
    let fixture = MembersFixture::new().await;
    let alice = fixture.user("alice").await;
    let workspace = alice.workspace(&fixture, "acme").await;
    let project = alice.owner.project(&fixture.server, "House").await;
    let viewer = fixture.user("victor").await;
    alice
        .add_member(&fixture, &workspace, &viewer, "viewer")
        .await;
    let stranger = fixture.user("mallory").await;
    stranger.workspace(&fixture, "zeta").await;
    let path = format!("/{project}/release");
    for dry_run in [false, true] {
        let body = json!({ "pages": [new_page("hall", "# Hall")], "dry_run": dry_run });
        for who in [&viewer, &stranger] {
            let answer = who.owner.post(&fixture.server, &path, &body).await;
            answer.problem(403, "forbidden");
        }
        let anonymous = fixture
            .server
            .json(&format!("/api/v1/projects{path}"), &body);
        anonymous.answer().await.problem(401, "unauthorized");
        let nowhere = "/01a1fc20-6ee3-7da4-ae81-ade539ecfe63/release";
        let answer = alice.owner.post(&fixture.server, nowhere, &body).await;
        answer.problem(404, "not_found");
    }
    assert_eq!(shown(&fixture.server, "hall").await, None);
    // A page of another project is none of this one.
    let theirs = stranger.owner.project(&fixture.server, "Theirs").await;
    stranger
        .owner
        .frontend(&fixture.server, &theirs, "den")
        .await;
    let list = format!("/{theirs}/frontends/den/revisions");
    let list = stranger.owner.get(&fixture.server, &list).await.expect(200);
    let live = list.json()["active_revision_id"].clone();
    for body in [
        json!({ "pages": [page("den", "# Mine", &live)] }),
        json!({ "remove_pages": [{ "slug": "den", "expected_active_revision_id": live }] }),
    ] {
        let answer = alice.owner.post(&fixture.server, &path, &body).await;
        let problem = answer.problem(409, "release_conflict");
        assert_eq!(problem["conflicts"][0]["found"], Value::Null);
    }
    assert_eq!(
        shown(&fixture.server, "den").await.as_deref(),
        Some("# One")
    );
}
