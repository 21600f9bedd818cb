//! `svc backend restore` by times in words, and what `svc backend history` says of moments; commands that know their folder.

use axum::Router;
use axum::extract::Request;
use axum::response::IntoResponse as _;
use axum::routing::any;
use serde_json::{Value, json};
use svc_tests::wait_until;

use super::concurrent_changes::forward;
use super::failures::serve_router;
use super::terminal::Terminal;
use super::{ClientFixture, list_files, run_command};
use crate::owner::text;
use crate::svc;

/// A folder whose project has a database with two notes.
async fn start() -> ClientFixture {
    let fixture = ClientFixture::new().await;
    fixture.write(
        "svc.toml",
        "project = \"Book\"\n[pages]\nbook = \"book.md\"\n",
    );
    fixture.write("book.md", "# Book");
    fixture.write(
        "migrations/0001.sql",
        "CREATE TABLE notes (text TEXT NOT NULL);",
    );
    fixture.write("actions/me.sql", "SELECT :svc_user_id AS id, :n AS n");
    fixture.run_for_stdout(&["apply", "--yes"]).await;
    for note in ["One", "Two"] {
        let sql = format!("INSERT INTO notes VALUES ('{note}')");
        fixture.run_for_stdout(&["backend", "query", &sql]).await;
    }
    fixture
}

/// Waits until the history has so many moments; returns them, newest first.
async fn moments(fixture: &ClientFixture, count: usize) -> Vec<String> {
    wait_until("moments", async || {
        let history = fixture.json(&["backend", "history"]).await;
        let moments = history["moments"].as_array().unwrap();
        let moments: Vec<_> = moments.iter().map(|moment| text(&moment["at"])).collect();
        (moments.len() >= count).then_some(moments)
    })
    .await
}

#[tokio::test]
async fn a_time_in_words_is_the_newest_moment_until_then() {
    let fixture = start().await;
    let newest = moments(&fixture, 2).await[0].clone();
    // Of a time in the future the newest moment counts; the question names it, in the zone of the shell.
    let mut command = fixture.command(&["backend", "restore", "2999-01-01 12:00"]);
    command.env("TZ", "UTC-05:30");
    let asked = Terminal::start(&command);
    let (code, screen) = asked.answer_question("[y/N] ", "n\r").await;
    assert_eq!(code, 8, "{screen}");
    let question: String = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    let named = question.contains(&format!("Make every row what it was at {newest} ("))
        && question.contains("+05:30 here, the newest moment until `2999-01-01 12:00`)")
        && question.contains("(project `Book`, workspace `acme`, server http");
    assert!(named, "{question}");
    let restored = fixture
        .run(&["backend", "restore", "0 seconds ago", "--yes"])
        .await;
    assert!(
        restored.success && restored.stderr.contains(&newest),
        "{restored:?}"
    );
    assert!(
        restored
            .stdout
            .starts_with(&format!("restored to {newest}\n")),
        "{restored:?}"
    );
    // A zone that nobody knows would count as another one unseen.
    for (time, code) in [("yesterday 18:00", 1), (newest.as_str(), 0)] {
        let mut command = fixture.command(&["backend", "restore", time, "--yes"]);
        command.env("TZ", "Nowhere/Here");
        let output = run_command(command).await;
        assert_eq!(output.code, Some(code), "{output:?}");
        let is_told = output
            .stderr
            .contains("`Nowhere/Here`, which is no time zone");
        assert_eq!(is_told, code == 1, "{output:?}");
    }
    for (time, code, said) in [
        ("yesterday 18:00", 4, "the oldest that can be restored is"),
        (
            "2 weeks ago",
            4,
            "Nothing was committed until `2 weeks ago`",
        ),
        ("yesterday", 1, "\"yesterday 18:00\""),
        ("5 minuets ago", 1, "is no time"),
    ] {
        let refused = fixture
            .run_for_failure(code, &["backend", "restore", time, "--yes"])
            .await;
        assert!(refused.contains(said), "{time}: {refused}");
    }
}

#[tokio::test]
async fn the_history_says_what_was_done_to_who_may_know() {
    let fixture = ClientFixture::new().await;
    fixture.run_for_stdout(&["project", "create", "Book"]).await;
    fixture.write("notes.sql", "CREATE TABLE notes (text TEXT);");
    fixture
        .run_for_stdout(&["backend", "create", "notes.sql"])
        .await;
    let moment = moments(&fixture, 1).await[0].clone();
    // A key of an editor may not read the audit.
    let plain = fixture.run_for_stdout(&["backend", "history"]).await;
    assert_eq!(plain, format!("{moment}\n"));
    let make = ["key", "create", "acme", "--role", "admin", "--json"];
    let admin = svc().run(fixture.data.path(), &make).await.json();
    let as_admin = |arguments: &[&str]| {
        let mut command = fixture.command(arguments);
        command.env("SVC_CREDENTIAL", text(&admin["credential"]));
        command
    };
    let history = run_command(as_admin(&["backend", "history", "--json"]))
        .await
        .json();
    let told = &history["moments"][0];
    assert_eq!(told["action"], "backend.create", "{told}");
    let principal = text(&told["principal"]);
    let lines = run_command(as_admin(&["backend", "history"])).await.stdout;
    assert_eq!(lines, format!("{moment}  backend.create  {principal}\n"));
    // Entries about actions by their names are read, too.
    fixture.write("me.sql", "SELECT 1 AS one");
    fixture
        .run_for_stdout(&["action", "define", "me.sql"])
        .await;
    fixture.write("me.sql", "SELECT 2 AS two");
    for arguments in [
        &["action", "define", "me.sql"][..],
        &["action", "rollback", "me", "1"],
        &["action", "delete", "me", "--yes"],
    ] {
        fixture.run_for_stdout(arguments).await;
    }
    assert_eq!(
        run_command(as_admin(&["backend", "history"])).await.stdout,
        lines
    );
    // A whole line is taken for its moment.
    let restore = ["backend", "restore", lines.trim_end(), "--yes"];
    let restored = fixture.run_for_stdout(&restore).await;
    assert!(
        restored.starts_with(&format!("restored to {moment}\n")),
        "{restored}"
    );
}

#[tokio::test]
async fn commands_know_the_folder_that_they_stand_in() {
    let fixture = start().await;
    fixture
        .run_for_stdout(&["project", "create", "Other"])
        .await;
    let shown = fixture.json(&["project", "show"]).await;
    assert_eq!(shown["name"], "Book");
    let shown = fixture.json(&["project", "show", "Other"]).await;
    assert_eq!(shown["name"], "Other");
    let changed = fixture
        .json(&["project", "update", "--description", "All notes"])
        .await;
    assert_eq!(
        [&changed["name"], &changed["description"]],
        ["Book", "All notes"]
    );
    let deleted = fixture
        .run(&["project", "delete", "--json", "--yes"])
        .await
        .json();
    assert_eq!(deleted["id"], changed["id"]);
    // Elsewhere the one that is left is meant, and of several none.
    let elsewhere = |arguments: &[&str]| {
        let mut command = fixture.command(arguments);
        command.current_dir(fixture.home.path());
        command
    };
    let shown = run_command(elsewhere(&["project", "show", "--json"]))
        .await
        .json();
    assert_eq!(shown["name"], "Other");
    fixture
        .run_for_stdout(&["project", "create", "Third"])
        .await;
    let refused = run_command(elsewhere(&["project", "show"])).await;
    assert!(
        refused.code == Some(1) && refused.stderr.contains("Which project?"),
        "{refused:?}"
    );
}

#[tokio::test]
async fn an_owner_calls_as_a_visitor() {
    let fixture = start().await;
    let call = async |more: &[&str]| -> Value {
        let words = [&["action", "call", "me", "n:=1"][..], more].concat();
        fixture.json(&words).await["rows"].clone()
    };
    assert_eq!(
        call(&["--as", "usr_ada"]).await,
        json!([{ "id": "usr_ada", "n": 1 }])
    );
    let refused = fixture
        .run_for_failure(3, &["action", "call", "me", "n:=1"])
        .await;
    assert!(refused.contains("sign"), "{refused}");
}

#[tokio::test]
async fn an_audit_that_fails_costs_no_moment() {
    let fixture = start().await;
    let newest = moments(&fixture, 2).await;
    let (client, server) = (
        svc_tests::http_client().no_proxy().build().unwrap(),
        fixture.url(),
    );
    let pass = move |request: Request| {
        let (client, server) = (client.clone(), server.clone());
        async move {
            match request.uri().path().ends_with("/audit") {
                true => axum::Json(json!({ "entries": [{ "target": "$(id)" }] })).into_response(),
                false => forward(&client, &server, request).await,
            }
        }
    };
    let between = serve_router(Router::new().fallback(any(pass))).await;
    let mut command = fixture.command(&["backend", "history"]);
    command.env("SVC_SERVER", format!("http://{between}"));
    let output = run_command(command).await;
    assert!(output.success, "{output:?}");
    for moment in newest {
        assert!(output.stdout.contains(&moment), "{moment}: {output:?}");
    }
    let is_told = output
        .stderr
        .contains("warning: what was done at these moments is not known");
    assert!(is_told, "{output:?}");
}

#[tokio::test]
async fn a_restore_is_no_migration_of_a_folder() {
    let fixture = start().await;
    let newest = moments(&fixture, 2).await[0].clone();
    fixture
        .run_for_stdout(&["backend", "restore", &newest, "--yes"])
        .await;
    let shown = fixture.json(&["backend", "show"]).await;
    let ledger = shown["migrations"].as_array().unwrap();
    assert_eq!(ledger.len(), 2, "the ledger has the restore: {shown}");
    // The folder goes on, and so does a copy, here and elsewhere.
    let more = "CREATE TABLE more (id INTEGER PRIMARY KEY);";
    fixture.write("migrations/0002_more.sql", more);
    fixture.run_for_stdout(&["apply", "--yes"]).await;
    assert_eq!(fixture.json(&["apply"]).await["plan"], json!([]));
    fixture
        .run_for_stdout(&["pull", "copy", "--project", "Book"])
        .await;
    let copied = list_files(&fixture.path_of("copy/migrations"));
    assert_eq!(copied, ["0001.sql", "0002_more.sql"]);
    assert_eq!(fixture.json(&["apply", "copy"]).await["plan"], json!([]));
    let manifest = fixture.read("copy/svc.toml");
    fixture.write("copy/svc.toml", &manifest.replace("\"Book\"", "\"Other\""));
    fixture.run_for_stdout(&["apply", "copy", "--yes"]).await;
}

#[tokio::test]
async fn a_database_without_a_page_is_asked() {
    let fixture = ClientFixture::new().await;
    fixture.write("svc.toml", "project = \"Rows only\"\n");
    fixture.write("migrations/0001.sql", "CREATE TABLE notes (text TEXT);");
    fixture.run_for_stdout(&["apply", "--yes"]).await;
    let insert = "INSERT INTO notes VALUES (:text)";
    fixture
        .run_for_stdout(&["backend", "query", insert, "text=One"])
        .await;
    let rows = fixture
        .json(&["backend", "query", "SELECT text FROM notes"])
        .await;
    assert_eq!(rows["rows"], json!([{ "text": "One" }]));
    // A page that is named has to be there.
    fixture
        .run_for_failure(4, &["backend", "query", "SELECT 1", "--page", "none"])
        .await;
}
