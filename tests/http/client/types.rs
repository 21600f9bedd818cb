//! `svc types`: what is declared of actions. `tests/browser/types.test.mjs` has a compiler read it.

use rustix::process::Signal;
use serde_json::json;

use super::{ClientFixture, RunningCommand};
use svc_tests::wait_until;

const TABLES: &str = "
CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL, likes INT, rating REAL, photo BLOB);
CREATE TABLE authors (handle TEXT PRIMARY KEY, name TEXT, extra);
CREATE VIEW recent_notes AS SELECT id, text FROM notes;
";

/// Creates a project with these actions.
async fn start(actions: &[(&str, &str)]) -> ClientFixture {
    let fixture = ClientFixture::new().await;
    fixture.run_for_stdout(&["project", "create", "Book"]).await;
    fixture.write("notes.sql", TABLES);
    fixture
        .run_for_stdout(&["backend", "create", "notes.sql"])
        .await;
    for (name, sql) in actions {
        fixture.write(&format!("{name}.sql"), sql);
        fixture
            .run_for_stdout(&["action", "define", &format!("{name}.sql")])
            .await;
    }
    fixture
}

#[tokio::test]
async fn columns_have_the_types_that_their_tables_declare() {
    let actions = [
        (
            "all_of_them",
            "SELECT * FROM notes WHERE id > :after",
            "{ after: SvcParam }",
            "{ id: number; text: string; likes: number | null; rating: number | null; photo: { base64: string } | null }",
        ),
        (
            "add",
            "-- Adds a note */\nINSERT INTO notes (text) VALUES (:text) RETURNING id, text AS said",
            "{ text: SvcParam }",
            "{ id: number; said: string }",
        ),
        (
            "clear",
            "DELETE FROM notes WHERE text = :svc_user_id",
            "Record<string, never>",
            "Record<string, never>",
        ),
        (
            "counted",
            "SELECT count(*) AS \"how many\", text FROM notes",
            "Record<string, never>",
            "{ \"how many\": string | number | { base64: string } | null; text: string | null }",
        ),
        (
            "joined",
            "SELECT n.id, a.handle FROM notes AS n LEFT JOIN authors AS a ON a.name = n.text",
            "Record<string, never>",
            "{ id: number | null; handle: string | null }",
        ),
        (
            "either",
            "SELECT id FROM notes UNION ALL SELECT 'x'",
            "Record<string, never>",
            "{ id: string | number | { base64: string } | null }",
        ),
        (
            "viewed",
            "SELECT id, text FROM recent_notes",
            "Record<string, never>",
            "{ id: number | null; text: string | null }",
        ),
        (
            "inner_one",
            "SELECT (SELECT text FROM notes WHERE id = :id) AS text",
            "{ id: SvcParam }",
            "{ text: string | null }",
        ),
        (
            "authors",
            "SELECT handle, name, extra, rowid AS number FROM authors",
            "Record<string, never>",
            "{ handle: string; name: string | null; extra: string | number | { base64: string } | null; number: number }",
        ),
        (
            "listed",
            "SELECT value, key FROM json_each(:list)",
            "{ list: SvcParam }",
            "{ value: string | number | { base64: string } | null; key: string | number | { base64: string } | null }",
        ),
    ];
    let files: Vec<_> = actions
        .iter()
        .map(|(name, sql, ..)| (*name, *sql))
        .collect();
    let fixture = start(&files).await;
    let declared = fixture.run_for_stdout(&["types"]).await;
    assert!(
        declared.starts_with("// Made by `svc types`: declarations of the actions of `Book`."),
        "{declared}"
    );
    for (name, _, params, row) in actions {
        let line = format!("  {name}: {{ params: {params}; row: {row} }};\n");
        assert!(declared.contains(&line), "{line}{declared}");
    }
    assert!(declared.contains("/** Adds a note *\\/ */"), "{declared}");
    let whole = fixture.run_for_stdout(&["types", "--runtime"]).await;
    assert!(
        whole.contains("declare namespace svc {") && whole.contains("interface SvcActions {\n"),
        "{whole}"
    );
}

#[tokio::test]
async fn a_file_is_written_and_kept_up() {
    let fixture = start(&[("one", "SELECT id FROM notes")]).await;
    // `-` is standard output, and no file.
    let declared = fixture.run_for_stdout(&["types", "-o", "-"]).await;
    assert_eq!(declared, fixture.run_for_stdout(&["types"]).await);
    assert!(!fixture.path_of("-").exists());
    let refused = fixture
        .run_for_failure(1, &["types", "-o", "-", "--watch"])
        .await;
    assert!(refused.contains("--output"), "{refused}");
    fixture.write("svc.d.ts", "// Mine");
    let refused = fixture
        .run_for_failure(1, &["types", "-o", "svc.d.ts"])
        .await;
    assert!(refused.contains("--force"), "{refused}");
    assert_eq!(fixture.read("svc.d.ts"), "// Mine");
    let done = fixture.json(&["types", "-o", "svc.d.ts", "--force"]).await;
    assert_eq!(done, json!({ "file": "svc.d.ts", "actions": 1 }));
    let mut watching =
        RunningCommand::start(&fixture.command(&["types", "-o", "svc.d.ts", "--watch"]));
    watching.wait_for_lines(1).await;
    let wait_for = async |said: &str| {
        wait_until(said, async || {
            fixture.read("svc.d.ts").contains(said).then_some(())
        })
        .await;
    };
    fixture.write("two.sql", "SELECT * FROM authors");
    fixture
        .run_for_stdout(&["action", "define", "two.sql"])
        .await;
    wait_for("  two: ").await;
    fixture.write("more.sql", "ALTER TABLE authors ADD COLUMN born INTEGER");
    fixture
        .run_for_stdout(&["backend", "migrate", "more.sql"])
        .await;
    wait_for("born: number | null").await;
    assert_eq!(watching.wait_for_lines(3).await.len(), 3);
    watching.signal(Signal::INT);
    assert_eq!(watching.wait_for_exit().await.code(), Some(130));
}
