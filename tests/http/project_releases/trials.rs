//! Dry runs: what a release would do, and nothing of it is kept.

use super::*;

#[tokio::test]
async fn a_dry_run_tells_what_would_change() {
    let at = ProjectFixture::new(GUESTS).await;
    at.publish("hall").await;
    at.publish("old").await;
    at.migrate("CREATE TABLE seats (seat)").await.expect(200);
    at.define(&[
        ("same", "SELECT name FROM guests"),
        ("other", "SELECT id FROM guests"),
        ("gone", "SELECT 1 AS one"),
        // Ambiguous once seats have a name, too.
        ("joined", "SELECT name FROM guests JOIN seats ON seat = 1"),
    ])
    .await;
    let (room, hall) = (active(&at, "room").await, active(&at, "hall").await);
    let old = active(&at, "old").await;
    let body = json!({
        "migrations": [
            { "ddl": GUESTS },
            { "ddl": "ALTER TABLE seats ADD COLUMN name TEXT" },
            { "ddl": "CREATE TABLE more (a)" },
        ],
        "actions": [
            { "name": "same", "sql": "SELECT name FROM guests" },
            { "name": "other", "sql": "SELECT a FROM more" },
            { "name": "fresh", "sql": "SELECT name FROM seats" },
        ],
        "remove_actions": [{ "name": "gone" }, { "name": "never" }],
        "pages": [page("room", "# Two\n\nmore\n", &room), page("hall", "# One", &hall), new_page("den", "a\n\nb\n")],
        "remove_pages": [
            { "slug": "old", "expected_active_revision_id": old },
            { "slug": "never", "expected_active_revision_id": null },
        ],
        "home": "den",
        "dry_run": true,
    });
    let before = state(&at).await;
    let tried = release(&at, &body).await.expect(200).json();
    assert_eq!(state(&at).await, before);
    assert_eq!(shown(&at.server, "den").await, None);
    let changes = json!([
        { "name": "same", "change": "none" }, { "name": "other", "change": "changed" },
        { "name": "fresh", "change": "new" }, { "name": "gone", "change": "removed" },
        { "name": "never", "change": "none" },
    ]);
    assert_eq!(tried["actions"], changes);
    let page = |slug: &str, change: &str, added: u64, removed: u64| json!({ "slug": slug, "change": change, "added_lines": added, "removed_lines": removed });
    assert_eq!(
        tried["pages"],
        json!([
            page("room", "changed", 3, 1),
            page("hall", "none", 0, 0),
            page("den", "new", 3, 0),
            page("old", "removed", 0, 1),
            page("never", "none", 0, 0),
        ])
    );
    let migrations = tried["migrations"].as_array().unwrap();
    let statuses: Vec<_> = migrations.iter().map(|m| text(&m["status"])).collect();
    assert_eq!(statuses, ["already_applied", "applied", "applied"]);
    assert_eq!(
        migrations[0]["schema"]["before"],
        migrations[0]["schema"]["after"]
    );
    assert_eq!(
        migrations[1]["schema"]["after"],
        migrations[2]["schema"]["before"]
    );
    assert_eq!(
        tables(&migrations[1]["schema"]["after"]["tables"]),
        ["guests", "seats"]
    );
    assert_eq!(
        tables(&migrations[2]["schema"]["after"]["tables"]),
        ["guests", "more", "seats"]
    );
    assert_eq!(tables(&migrations[2]["changes"]["tables"]), ["more"]);
    assert_eq!(migrations[1]["changes"]["tables"][0]["new"], false);
    assert_eq!(names(&tried["broken_actions"]), ["joined"]);
    let broken = migrations.iter().map(|one| names(&one["broken_actions"]));
    assert_eq!(broken.collect::<Vec<_>>(), [vec![], vec![], vec!["joined"]]);
    // An action that the release replaces or ends is not broken by it.
    for member in ["actions", "remove_actions"] {
        let mut mended = body.clone();
        let part = match member {
            "actions" => json!({ "name": "joined", "sql": "SELECT 1 AS one" }),
            _ => json!({ "name": "joined" }),
        };
        mended[member].as_array_mut().unwrap().push(part);
        let tried = release(&at, &mended).await.expect(200).json();
        assert_eq!(tried["broken_actions"], json!([]), "{member}");
    }
    // Then it is made.
    let mut made = body;
    made["dry_run"] = false.into();
    released(&at, made).await;
    assert_eq!(state(&at).await["home"], "den");
}

#[tokio::test]
async fn a_dry_run_makes_no_backend() {
    let at = ProjectFixture::without_backend(TestServer::start().await).await;
    let body = json!({
        "migrations": [{ "ddl": GUESTS }, { "ddl": "CREATE TABLE more (a)" }, { "ddl": GUESTS }],
        "actions": [{ "name": "all", "sql": "SELECT a FROM more" }],
        "dry_run": true,
    });
    let tried = release(&at, &body).await.expect(200).json();
    let statuses: Vec<_> = tried["migrations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| text(&m["status"]))
        .collect();
    assert_eq!(statuses, ["applied", "applied", "already_applied"]);
    assert_eq!(
        tables(&tried["migrations"][0]["schema"]["after"]["tables"]),
        ["guests"]
    );
    assert_eq!(
        tried["migrations"][0]["schema"]["before"]["tables"],
        json!([])
    );
    assert_eq!(
        tried["actions"],
        json!([{ "name": "all", "change": "new" }])
    );
    assert_eq!(tried["broken_actions"], json!([]));
    at.get().await.problem(404, "not_found");
    let pages = json!({ "pages": [new_page("room", "# One")], "dry_run": true });
    let tried = release(&at, &pages).await.expect(200).json();
    assert_eq!(tried["migrations"], json!([]));
    assert_eq!(tried["pages"][0]["change"], "new");
    assert_eq!(shown(&at.server, "room").await, None);
}
