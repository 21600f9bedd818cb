//! Conflicts: what has changed since the caller looked is told, all of it, and nothing is changed.

use super::*;

/// A revision of no page.
const NOBODY: &str = "01a1fc20-6ee3-7da4-ae81-ade539ecfe63";

fn conflict(kind: &str, name: &str, expected: &Value, found: &Value) -> Value {
    json!({ "kind": kind, "name": name, "expected": expected, "found": found })
}

#[tokio::test]
async fn all_conflicts_are_told_at_once() {
    let at = ProjectFixture::new(GUESTS).await;
    at.publish("hall").await;
    at.publish("den").await;
    at.define(&[("one", "SELECT 1 AS n"), ("two", "SELECT 2 AS n")])
        .await;
    at.define(&[("two", "SELECT 3 AS n")]).await;
    let (room, hall) = (active(&at, "room").await, active(&at, "hall").await);
    let den = active(&at, "den").await;
    let action = |name: &str, expected: Value| json!({ "name": name, "sql": "SELECT 9 AS n", "expected_version": expected });
    let removal = |slug: &str, expected: &Value| json!({ "slug": slug, "expected_active_revision_id": expected });
    let body = json!({
        "migrations": [{ "ddl": "CREATE TABLE more (a)" }],
        "actions": [action("one", json!(1)), action("two", json!(1)), action("three", json!(4)), action("four", json!(0))],
        "remove_actions": [{ "name": "never", "expected_version": 7 }],
        "pages": [
            page("room", "# Two", &json!(NOBODY)), page("hall", "# Two", &hall), page("nowhere", "# Two", &json!(NOBODY)),
            page("fresh", "# Two", &json!("none")),
        ],
        "remove_pages": [removal("den", &Value::Null), removal("gone", &room)],
    });
    let expected = json!([
        conflict("page", "room", &json!(NOBODY), &room),
        conflict("page", "nowhere", &json!(NOBODY), &Value::Null),
        conflict("page", "fresh", &json!("none"), &Value::Null),
        conflict("page", "den", &Value::Null, &den),
        conflict("page", "gone", &room, &Value::Null),
        conflict("action", "two", &json!(1), &json!(2)),
        conflict("action", "three", &json!(4), &json!(0)),
    ]);
    let before = state(&at).await;
    for dry_run in [false, true] {
        let mut body = body.clone();
        body["dry_run"] = dry_run.into();
        let problem = release(&at, &body).await.problem(409, "release_conflict");
        assert_eq!(problem["conflicts"], expected);
        for name in ["room", "den", "two"] {
            assert!(text(&problem["detail"]).contains(name), "{problem}");
        }
        assert_eq!(state(&at).await, before);
    }
}

#[tokio::test]
async fn a_page_without_a_history_is_none_that_is_not_there() {
    let at = ProjectFixture::without_backend(TestServer::start().await).await;
    for (slug, expected) in [("room", Value::Null), ("hall", json!(NOBODY))] {
        at.publish(slug).await;
        for (dry_run, member) in [(true, "pages"), (false, "pages"), (false, "remove_pages")] {
            let part = match member {
                "pages" => page(slug, "# Mine", &expected),
                _ => json!({ "slug": slug, "expected_active_revision_id": expected }),
            };
            let mut body = json!({ "dry_run": dry_run });
            body[member] = json!([part]);
            let problem = release(&at, &body).await.problem(409, "release_conflict");
            // What was found can be expected next.
            let found = problem["conflicts"][0]["found"].clone();
            assert_eq!(found, active(&at, slug).await, "{member}");
        }
        assert_eq!(shown(&at.server, slug).await.as_deref(), Some("# One"));
        let kinds: Vec<_> = revisions(&at, slug)
            .await
            .iter()
            .map(|r| text(&r["kind"]))
            .collect();
        assert_eq!(kinds, ["baseline"]);
        let live = active(&at, slug).await;
        released(&at, json!({ "pages": [page(slug, "# Two", &live)] })).await;
    }
}

#[tokio::test]
async fn an_expectation_is_of_what_is_live_now() {
    let at = ProjectFixture::new(GUESTS).await;
    let first = active(&at, "room").await;
    let answer = released(&at, json!({ "pages": [page("room", "# Two", &first)] })).await;
    let second = answer["pages"][0]["revision_id"].clone();
    let problem = release(&at, &json!({ "pages": [page("room", "# Three", &first)] })).await;
    let problem = problem.problem(409, "release_conflict");
    assert_eq!(
        problem["conflicts"],
        json!([conflict("page", "room", &first, &second)])
    );
    // An id is found however its letters are written.
    let upper = json!(text(&second).to_uppercase());
    released(&at, json!({ "pages": [page("room", "# Three", &upper)] })).await;
    assert_eq!(shown(&at.server, "room").await.as_deref(), Some("# Three"));
    let long = json!("x".repeat(10_000));
    let problem = release(&at, &json!({ "pages": [page("room", "# Four", &long)] })).await;
    let problem = problem.problem(409, "release_conflict");
    assert!(text(&problem["conflicts"][0]["expected"]).len() <= 64);
}
