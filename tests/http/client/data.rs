//! `svc backend` and `svc action`.

use serde_json::json;
use svc_tests::wait_until;

use super::{ClientFixture, list_files, run_with_input};
use crate::owner::text;

const NOTES: &str = "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);\n";

/// Creates a project with the page `book`, a database and the action `sign`.
async fn start_with_folder() -> ClientFixture {
    let fixture = ClientFixture::new().await;
    fixture.run_for_stdout(&["project", "create", "Book"]).await;
    fixture.write("notes.sql", NOTES);
    fixture
        .run_for_stdout(&["backend", "create", "notes.sql"])
        .await;
    fixture.write("book.html", "<!doctype html><title>Book</title>");
    fixture
        .run_for_stdout(&["publish", "book.html", "--project", "Book"])
        .await;
    fixture.write(
        "sign.sql",
        "-- Signs the book\nINSERT INTO notes (text) VALUES (:text) RETURNING id",
    );
    fixture.write(
        "recent.sql",
        "SELECT id, text FROM notes ORDER BY id DESC LIMIT :most",
    );
    fixture
        .run_for_stdout(&["action", "define", "sign.sql", "recent.sql"])
        .await;
    fixture
}

#[tokio::test]
async fn a_database_is_made_asked_and_migrated() {
    let fixture = start_with_folder().await;
    fixture.write(
        "likes.sql",
        "ALTER TABLE notes ADD COLUMN likes INTEGER NOT NULL DEFAULT 0",
    );
    let tried = fixture
        .run_for_stdout(&["backend", "migrate", "likes.sql", "--dry-run"])
        .await;
    assert!(tried.contains("+ columns of notes (likes)"), "{tried}");
    for (status, note) in [("applied", "Likes"), ("already_applied", "Likes")] {
        let done = fixture
            .json(&["backend", "migrate", "likes.sql", "--note", note])
            .await;
        assert_eq!(done["status"], status);
    }
    let detail = fixture.run_for_stdout(&["backend", "show"]).await;
    assert!(
        detail.contains("id, text, likes") && detail.contains("Likes"),
        "{detail}"
    );
    fixture.write("drop.sql", "CREATE TABLE a (id INTEGER);\nDROP TABLE notes");
    let refused = fixture
        .run_for_failure(1, &["backend", "migrate", "drop.sql"])
        .await;
    assert!(
        refused.starts_with("error: drop.sql:2:") && !refused.contains("line 2"),
        "{refused}"
    );
    // Binds are texts, and JSON where it is said.
    let inserted = fixture
        .run(&[
            "backend",
            "query",
            "INSERT INTO notes (text, likes) VALUES (:text, :likes)",
            "text=5",
            "likes:=7",
        ])
        .await;
    assert_eq!(inserted.stderr, "1 row changed\n", "{inserted:?}");
    let rows = fixture
        .run_for_stdout(&[
            "backend",
            "query",
            "SELECT text, likes, NULL AS empty FROM notes",
        ])
        .await;
    assert_eq!(rows, "text  likes  empty\n5     7      NULL\n");
    let json = fixture
        .json(&[
            "backend",
            "query",
            "SELECT likes FROM notes WHERE text = :t",
            "t=5",
        ])
        .await;
    assert_eq!(json["rows"], json!([{"likes": 7}]));
    let piped = run_with_input(
        fixture.command(&["backend", "query", "-"]),
        "SELECT count(*) AS n FROM notes",
    )
    .await;
    assert_eq!(piped.stdout, "n\n1\n");
    assert_eq!(
        fixture.run_for_stdout(&["backend", "realtime", "on"]).await,
        "rooms are on\n"
    );
    assert!(
        fixture
            .run_for_stdout(&["backend", "show"])
            .await
            .contains("rooms       on")
    );
}

#[tokio::test]
async fn actions_are_defined_and_called() {
    let fixture = start_with_folder().await;
    let list = fixture.json(&["action", "list"]).await;
    assert_eq!(list["actions"][1]["note"], "Signs the book");
    assert!(
        fixture
            .run_for_stdout(&["action", "show", "sign"])
            .await
            .contains("VALUES (:text)")
    );
    fixture
        .run_for_failure(4, &["action", "show", "nothing"])
        .await;
    assert_eq!(
        fixture
            .run_for_stdout(&["action", "call", "sign", "text=Hi"])
            .await,
        "id\n1\n"
    );
    let rows = fixture
        .run_for_stdout(&["action", "call", "recent", "most:=5", "--page", "book"])
        .await;
    assert_eq!(rows, "id  text\n1   Hi\n");
    let twice = fixture
        .run_for_failure(5, &["action", "call", "sign", "text=Hi"])
        .await;
    assert!(twice.contains("UNIQUE constraint failed"), "{twice}");
    let missing = fixture
        .run_for_failure(1, &["action", "call", "sign"])
        .await;
    assert!(missing.contains("missing: text"), "{missing}");
    // All or none, with every reason.
    fixture.write("bad.sql", "SELECT * FROM nowhere");
    fixture.write("worse.sql", "DROP TABLE notes");
    let refused = fixture
        .run_for_failure(
            1,
            &["action", "define", "bad.sql", "worse.sql", "recent.sql"],
        )
        .await;
    assert!(
        refused.contains("\n  bad.sql:1:15: no such table: nowhere\n")
            && refused.contains("\n  worse.sql:1:")
            && refused.matches("no such table").count() == 1,
        "{refused}"
    );
    let tried = fixture
        .run_for_stdout(&["action", "define", "sign.sql", "--dry-run"])
        .await;
    assert!(tried.contains("already_applied"), "{tried}");
}

#[tokio::test]
async fn an_action_has_defaults_and_versions_and_ends() {
    let fixture = start_with_folder().await;
    fixture.write(
        "recent.sql",
        "-- The newest\n-- default most = 5\nSELECT id, text FROM notes ORDER BY id DESC LIMIT :most",
    );
    let defined = fixture
        .run_for_stdout(&["action", "define", "recent.sql"])
        .await;
    assert!(defined.contains(r#"{"most":5}"#), "{defined}");
    let shown = fixture.run_for_stdout(&["action", "show", "recent"]).await;
    assert!(shown.contains(r#"{"most":5}"#), "{shown}");
    fixture.run_for_stdout(&["action", "call", "recent"]).await;
    fixture.write("wrong.sql", "-- default n = five\nSELECT :n AS n");
    let wrong = fixture
        .run_for_failure(1, &["action", "define", "wrong.sql"])
        .await;
    assert!(
        wrong.contains("wrong.sql:1:1: Not valid: The default of `n`"),
        "{wrong}"
    );
    fixture.write("wrong.sql", "-- default m = 5\nSELECT :n AS n");
    let wrong = fixture
        .run_for_failure(1, &["action", "define", "wrong.sql"])
        .await;
    assert!(wrong.starts_with("error: wrong.sql: "), "{wrong}");

    let listed = fixture
        .run_for_stdout(&["action", "versions", "recent"])
        .await;
    assert_eq!(listed.lines().count(), 3, "{listed}");
    let page = fixture
        .json(&["action", "versions", "recent", "--limit", "1"])
        .await;
    assert_eq!(page["versions"][0]["version"], 2);
    let cursor = text(&page["next_cursor"]);
    let rest = fixture
        .json(&["action", "versions", "recent", "--cursor", &cursor])
        .await;
    assert_eq!(rest["versions"][0]["version"], 1);
    let roll_back = ["action", "rollback", "recent", "1", "--expected-version"];
    let with = |expected| [&roll_back[..], &[expected]].concat();
    let stale = fixture.run_for_failure(5, &with("1")).await;
    assert!(stale.contains("`recent` has version 2"), "{stale}");
    let done = fixture.run_for_stdout(&with("2")).await;
    assert_eq!(done, "recent is as in version 1, and has version 3 now\n");
    fixture
        .run_for_failure(4, &["action", "rollback", "recent", "9"])
        .await;

    let delete = ["action", "delete", "recent", "--expected-version", "2"];
    fixture.run_for_failure(8, &delete).await;
    fixture
        .run_for_failure(5, &[&delete[..], &["--yes"]].concat())
        .await;
    let delete = ["action", "delete", "recent", "--yes"];
    assert_eq!(
        fixture.run_for_stdout(&delete).await,
        "deleted the action recent\n"
    );
    assert_eq!(fixture.json(&delete).await["deleted"], true);
    fixture
        .run_for_failure(4, &["action", "versions", "recent"])
        .await;
}

#[tokio::test]
async fn a_database_is_copied_and_turned_back() {
    let fixture = start_with_folder().await;
    fixture
        .run_for_stdout(&["action", "call", "sign", "text=One"])
        .await;
    let at = wait_until("a moment", async || {
        let history = fixture.json(&["backend", "history", "--limit", "1"]).await;
        history["newest"]
            .is_string()
            .then(|| text(&history["newest"]))
    })
    .await;
    fixture
        .run_for_stdout(&["action", "call", "sign", "text=Two"])
        .await;
    fixture
        .run_for_failure(8, &["backend", "restore", &at])
        .await;
    let restored = fixture.json(&["backend", "restore", &at, "--yes"]).await;
    let count = async || {
        fixture
            .run_for_stdout(&["backend", "query", "SELECT count(*) AS n FROM notes"])
            .await
    };
    assert_eq!(count().await, "n\n1\n");
    fixture
        .run_for_stdout(&["backend", "restore", &text(&restored["previous"]), "--yes"])
        .await;
    assert_eq!(count().await, "n\n2\n");
    // A copy opens as what it is, and none is written over.
    assert_eq!(
        fixture.run_for_stdout(&["backend", "export"]).await,
        "book-acme.db\n"
    );
    let copy = rusqlite::Connection::open(fixture.path_of("book-acme.db")).unwrap();
    let rows: u32 = copy
        .query_row("SELECT count(*) FROM notes", [], |row| row.get(0))
        .unwrap();
    assert_eq!(rows, 2);
    let refused = fixture.run_for_failure(1, &["backend", "export"]).await;
    assert!(refused.contains("--force"), "{refused}");
    fixture
        .run_for_stdout(&["backend", "export", "--force"])
        .await;
    fixture
        .run_for_stdout(&["backend", "export", "-o", "other.db"])
        .await;
    assert_eq!(
        fixture.json(&["backend", "delete", "--yes"]).await["deleted"],
        true
    );
    fixture.run_for_failure(4, &["backend", "show"]).await;
    assert!(
        !list_files(fixture.folder.path())
            .iter()
            .any(|name| name.contains("tmp")),
        "nothing is left over"
    );
}
