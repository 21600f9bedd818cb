//! New pages: nobody is kept from a slug by a trial, and of two releases at once the later one finds the page of the other.

use super::*;

/// A page that takes a while to render, so that releases of it overlap.
fn long_page(slug: &str) -> Value {
    json!({ "pages": [new_page(slug, &"# a\n\n* b\n".repeat(4_000))] })
}

#[tokio::test]
async fn a_trial_keeps_nobody_from_a_slug() {
    let at = ProjectFixture::new(GUESTS).await;
    for number in 0..5 {
        let body = long_page(&format!("tried-{number}"));
        let mut trial = body.clone();
        trial["dry_run"] = true.into();
        let (tried, made) = tokio::join!(release(&at, &trial), release(&at, &body));
        made.expect(200);
        // It may have been too late, and is told so.
        assert!([200, 409].contains(&tried.status), "{}", tried.text());
        if tried.status == 409 {
            assert_eq!(tried.json()["code"], "release_conflict");
        }
    }
}

#[tokio::test]
async fn the_later_of_two_releases_of_a_new_page_is_told_what_is_there() {
    let at = ProjectFixture::new(GUESTS).await;
    for number in 0..5 {
        let slug = format!("made-{number}");
        let body = long_page(&slug);
        let (one, other) = tokio::join!(release(&at, &body), release(&at, &body));
        let (made, refused) = match one.status {
            200 => (one, other),
            _ => (other, one),
        };
        let live = made.expect(200).json()["pages"][0]["revision_id"].clone();
        let problem = refused.problem(409, "release_conflict");
        let expected = json!([{ "kind": "page", "name": slug, "expected": null, "found": live }]);
        assert_eq!(problem["conflicts"], expected);
    }
}

#[tokio::test]
async fn a_page_is_released_where_the_one_before_it_has_failed() {
    let at = ProjectFixture::new(GUESTS).await;
    let body = long_page("hall");
    let mut broken = body.clone();
    broken["actions"] = json!([{ "name": "no", "sql": "SELECT nothing FROM nowhere" }]);
    let (refused, made) = tokio::join!(release(&at, &broken), release(&at, &body));
    made.expect(200);
    assert!([400, 409].contains(&refused.status), "{}", refused.text());
}

#[tokio::test]
async fn an_unchanged_page_calls_the_backend_that_its_release_makes() {
    let at = ProjectFixture::new(GUESTS).await;
    let live = released(&at, json!({ "pages": [new_page("hall", "# Hall")] })).await;
    let live = live["pages"][0]["revision_id"].clone();
    let backend = format!("/api/v1/projects/{}/backend", at.project);
    let ended = at
        .owner
        .send_request(&at.server, Method::DELETE, &backend, None);
    ended.await.expect(204);
    let made = released(
        &at,
        json!({
            "migrations": [{ "ddl": "CREATE TABLE later (a)" }],
            "actions": [{ "name": "count", "sql": "SELECT count(*) AS n FROM later" }],
            "pages": [page("hall", "# Hall", &live)],
        }),
    );
    assert_eq!(
        made.await["pages"][0]["revision_id"],
        live,
        "it is unchanged"
    );
    let answer = at.call("hall", &json!({ "action": "count" })).await;
    assert_eq!(answer.expect(200).json()["rows"], json!([{ "n": 0 }]));
}

#[tokio::test]
async fn what_is_no_part_is_named() {
    let at = ProjectFixture::new(GUESTS).await;
    let before = state(&at).await;
    for (body, part) in [
        (
            json!({ "pages": [new_page("a", "x"), { "slug": "b", "content": "x" }] }),
            "pages[1]",
        ),
        (
            json!({ "pages": [{ "slug": "b", "type": "app", "content": "x", "expected_active_revision_id": null }] }),
            "pages[0]",
        ),
        (json!({ "pages": [page("b", "x", &json!(5))] }), "pages[0]"),
        (
            json!({ "actions": [{ "name": "n", "sql": "SELECT 1", "defaults": [] }] }),
            "actions[0]",
        ),
        (
            json!({ "actions": [{ "name": "n", "sql": "SELECT 1", "expected_version": -1 }] }),
            "actions[0]",
        ),
        (
            json!({ "migrations": ["CREATE TABLE x (a)"] }),
            "migrations[0]",
        ),
        (
            json!({ "remove_pages": [{ "slug": "room" }] }),
            "remove_pages[0]",
        ),
        (
            json!({ "remove_actions": [{ "name": "n", "more": 1 }] }),
            "remove_actions[0]",
        ),
    ] {
        let problem = release(&at, &body).await.problem(400, "invalid_request");
        assert_eq!(problem["part"], part, "{body}: {problem}");
    }
    let problem = release(&at, &json!({ "pages": {} })).await;
    assert_eq!(problem.problem(400, "invalid_request").get("part"), None);
    assert_eq!(state(&at).await, before);
}
