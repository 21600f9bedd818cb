//! Bounds of a release: its parts, its body, and the caps, which are looked at before a migration runs.

use super::*;
use crate::project_fixture::padded;

/// A migration that may not run if the rest of its release cannot be.
const MORE: &str = "CREATE TABLE more (a)";

async fn on_server(change: impl FnOnce(&mut svc::config::Limits)) -> ProjectFixture {
    let server = TestServer::builder().limits(change).start().await;
    ProjectFixture::on_server(server, GUESTS).await
}

#[tokio::test]
async fn a_release_has_a_hundred_parts_at_most() {
    let at = ProjectFixture::new(GUESTS).await;
    let actions = |number: usize| -> Vec<Value> {
        (0..number)
            .map(|n| json!({ "name": format!("a{n}"), "sql": format!("SELECT {n} AS n") }))
            .collect()
    };
    let pages = |number: usize| -> Vec<Value> {
        (0..number)
            .map(|n| new_page(&format!("page-{n}"), &format!("# Page {n}")))
            .collect()
    };
    let mut body = json!({
        "migrations": [{ "ddl": MORE }], "actions": actions(40), "pages": pages(58),
        "remove_actions": [{ "name": "never" }, { "name": "nobody" }],
    });
    let before = state(&at).await;
    let problem = release(&at, &body).await.problem(400, "invalid_request");
    assert!(text(&problem["detail"]).contains("101 parts"), "{problem}");
    assert_eq!(state(&at).await, before);
    body["remove_actions"].as_array_mut().unwrap().pop();
    body["home"] = "page-57".into();
    let answer = released(&at, body).await;
    assert_eq!(answer["actions"].as_array().unwrap().len(), 40);
    assert_eq!(answer["pages"].as_array().unwrap().len(), 58);
    assert_eq!(
        shown(&at.server, "page-57").await.as_deref(),
        Some("# Page 57")
    );
}

#[tokio::test]
async fn a_body_is_larger_than_others_and_a_page_is_not() {
    let at = on_server(|limits| {
        limits.body_bytes = 10_000;
        limits.site_body_bytes = 30_000;
    })
    .await;
    let long = "x".repeat(9_900);
    let pages: Vec<_> = ["a", "b"]
        .iter()
        .map(|slug| new_page(slug, &long))
        .collect();
    released(&at, json!({ "pages": pages })).await;
    let problem = json!({ "pages": [new_page("c", &"x".repeat(10_001))] });
    let problem = release(&at, &problem)
        .await
        .problem(413, "payload_too_large");
    assert_eq!(problem["part"], "pages[0]");
    assert!(text(&problem["detail"]).contains("10000"), "{problem}");
    let large = json!({ "pages": [new_page("c", &"x".repeat(30_000))] });
    let problem = release(&at, &large).await.problem(413, "payload_too_large");
    assert_eq!(problem.get("part"), None);
    assert!(text(&problem["detail"]).contains("30000"), "{problem}");
    // Whether there is a project is said before its body is looked at, but for its length.
    let path = "/01a1fc20-6ee3-7da4-ae81-ade539ecfe63/release";
    let answer = at.owner.post(&at.server, path, &large).await;
    answer.problem(413, "payload_too_large");
    let answer = at.owner.post(&at.server, path, &json!({ "no": 1 })).await;
    answer.problem(404, "not_found");
}

#[tokio::test]
async fn bodies_of_releases_count_while_they_are_in_memory() {
    let at = on_server(|limits| limits.page_work_bytes = 400_000).await;
    let actions = json!([{ "name": "one", "sql": padded("SELECT 1 AS one", 20_000) }]);
    let held = at.server.server().app().revisions.reserve(390_000).await;
    let answer = release(&at, &json!({ "actions": actions })).await;
    answer.problem(503, "capacity_reached");
    drop(held);
    released(&at, json!({ "actions": actions })).await;
}

#[tokio::test]
async fn the_cap_of_pages_is_looked_at_before_a_migration_runs() {
    let at = on_server(|limits| {
        limits.active_deployments = 3;
        limits.cap_owner_percent = 100;
    })
    .await;
    at.publish("hall").await;
    let hall = active(&at, "hall").await;
    let two = [new_page("a", "# a"), new_page("b", "# b")];
    let before = state(&at).await;
    for dry_run in [false, true] {
        let body = json!({ "migrations": [{ "ddl": MORE }], "pages": two, "dry_run": dry_run });
        let problem = release(&at, &body).await.problem(503, "capacity_reached");
        assert_eq!(problem["cap"], "active_deployments");
        assert_eq!(state(&at).await, before);
    }
    // What ends in the same release makes room.
    let body = json!({
        "migrations": [{ "ddl": MORE }], "pages": two,
        "remove_pages": [{ "slug": "hall", "expected_active_revision_id": hall }],
    });
    released(&at, body).await;
    let problem = release(&at, &json!({ "pages": [new_page("c", "# c")] })).await;
    problem.problem(503, "capacity_reached");
    // What is there is published still.
    let a = active(&at, "a").await;
    released(&at, json!({ "pages": [page("a", "# A", &a)] })).await;
}

#[tokio::test]
async fn the_size_of_definitions_is_looked_at_before_a_migration_runs() {
    let at = on_server(|limits| limits.definition_bytes = 6_000).await;
    at.define(&[("old", &padded("SELECT 1 AS one", 2_000))])
        .await;
    let before = state(&at).await;
    let action = |bytes: usize| json!({ "name": "new", "sql": padded("SELECT 2 AS two", bytes) });
    let script = |bytes: usize| json!({ "ddl": padded(MORE, bytes) });
    for body in [
        json!({ "migrations": [script(2_000)], "actions": [action(2_500)] }),
        json!({ "migrations": [script(2_000), { "ddl": padded("CREATE TABLE x (a)", 3_000) }] }),
        // Migrations are recorded before the action ends.
        json!({ "migrations": [script(5_000)], "remove_actions": [{ "name": "old" }] }),
        json!({ "migrations": [{ "ddl": "CREATE TABLE x (a)", "note": "n".repeat(1_000) }, script(1_500)], "actions": [action(1_500)] }),
    ] {
        for dry_run in [false, true] {
            let mut body = body.clone();
            body["dry_run"] = dry_run.into();
            let problem = release(&at, &body).await.problem(400, "invalid_request");
            assert!(text(&problem["detail"]).contains("6000 bytes"), "{problem}");
            assert_eq!(state(&at).await, before);
        }
    }
    // What ends makes room for actions.
    let body = json!({
        "migrations": [script(1_000)], "actions": [action(3_500)], "remove_actions": [{ "name": "old" }],
    });
    released(&at, body).await;
}

#[tokio::test]
async fn the_size_of_the_database_is_looked_at_before_a_migration_runs() {
    let at = on_server(|limits| limits.database_bytes = 131_072).await;
    let fill = "CREATE TABLE filled (a); WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 200)
        INSERT INTO filled SELECT zeroblob(1000) FROM c";
    let before = state(&at).await;
    for dry_run in [false, true] {
        let body = json!({ "migrations": [{ "ddl": MORE }, { "ddl": fill }], "dry_run": dry_run });
        let problem = release(&at, &body).await.problem(413, "database_full");
        assert_eq!(problem["part"], "migrations[1]");
        assert_eq!(state(&at).await, before);
    }
}
