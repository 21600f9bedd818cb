//! `svc apply` and `svc pull`.

use serde_json::json;
use svc_tests::run_command;

use super::Desk;

const MANIFEST: &str = "project = \"Guest book\"\ndescription = \"Who was here\"\nhome = \"book\"\nrealtime = true\nagents = true\n\n[pages]\nbook = \"book.html\"\nabout = { file = \"about.md\", title = \"About us\" }\n";
const NOTES: &str = "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL);\n";

/// A desk with a folder that has something of everything.
pub(super) async fn book() -> Desk {
    let desk = Desk::new().await;
    write(&desk);
    desk
}

fn write(desk: &Desk) {
    desk.write("svc.toml", MANIFEST);
    desk.write("book.html", "<!doctype html><title>Guest book</title>\n");
    desk.write("about.md", "# About\n");
    desk.write("migrations/0001_notes.sql", NOTES);
    desk.write(
        "migrations/0002_likes.sql",
        "ALTER TABLE notes ADD COLUMN likes INTEGER NOT NULL DEFAULT 0;\n",
    );
    desk.write(
        "actions/sign.sql",
        "INSERT INTO notes (text) VALUES (:text) RETURNING id\n",
    );
    desk.write(
        "actions/recent.sql",
        "-- The newest\nSELECT id, text, likes FROM notes ORDER BY id DESC LIMIT 20\n",
    );
}

/// Everything that a server has of the project, but for what counts and tells the time.
async fn state(desk: &Desk) -> String {
    let mut all = String::new();
    for arguments in [
        &["project", "list"][..],
        &["frontend", "list"],
        &["frontend", "releases", "book"],
        &["revision", "list", "about"],
        &["backend", "show"],
    ] {
        all += &desk.said(arguments).await;
    }
    all
}

#[tokio::test]
async fn the_server_becomes_as_the_folder_says_and_stays_so() {
    let desk = book().await;
    // The plan comes first, and nobody has said yes.
    let planned = desk.run(&["apply"]).await;
    assert_eq!(planned.code, Some(8), "{planned:?}");
    for line in [
        "+ project   Guest book",
        "+ database  from 0001_notes.sql",
        "+ migration 0002_likes.sql",
        "+ action    sign",
        "+ page      about",
        "~ rooms     on",
        "~ tools     on",
        "~ project   home",
    ] {
        assert!(planned.stderr.contains(line), "{line}: {planned:?}");
    }
    assert_eq!(desk.json(&["project", "list"]).await["projects"], json!([]));
    let plan = desk.json(&["apply", "--plan"]).await;
    assert_eq!(plan["applied"], false);
    assert_eq!(
        plan["plan"][0],
        json!({"change": "create", "kind": "project", "name": "Guest book"})
    );
    desk.said(&["apply", "--yes", "-m", "First"]).await;
    assert_eq!(
        desk.said(&["action", "call", "sign", "text=Hi"]).await,
        "id\n1\n"
    );
    assert_eq!(desk.raw("about").await, "# About\n");
    let project = desk.json(&["project", "show", "Guest book"]).await;
    assert_eq!(
        [&project["home"], &project["description"]],
        ["book", "Who was here"]
    );
    let page = desk.json(&["frontend", "show", "about"]).await;
    assert_eq!(page["title"], "About us");
    // The second time there is nothing to do, and nothing is done.
    let before = state(&desk).await;
    let again = desk.json(&["apply", "--yes"]).await;
    assert_eq!(again["plan"], json!([]));
    assert_eq!(state(&desk).await, before);
}

#[tokio::test]
async fn changes_are_made_and_nothing_is_taken_away() {
    let desk = book().await;
    desk.said(&["apply", "--yes"]).await;
    desk.write(
        "book.html",
        "<!doctype html><title>Guest book</title>\n<h1>Welcome</h1>\n",
    );
    desk.write(
        "actions/sign.sql",
        "INSERT INTO notes (text) VALUES (trim(:text)) RETURNING id\n",
    );
    desk.write(
        "migrations/0003_at.sql",
        "ALTER TABLE notes ADD COLUMN at TEXT;\n",
    );
    std::fs::remove_file(desk.at("actions/recent.sql")).unwrap();
    desk.write(
        "svc.toml",
        &MANIFEST.replace(
            "about = { file = \"about.md\", title = \"About us\" }\n",
            "",
        ),
    );
    let done = desk.run(&["apply", "--yes", "-m", "Welcome"]).await;
    assert!(done.success, "{done:?}");
    for line in [
        "~ page      book (+1 −0 lines)",
        "~ action    sign",
        "+ migration 0003_at.sql",
        "stay: `recent`",
    ] {
        assert!(done.stderr.contains(line), "{line}: {done:?}");
    }
    assert_eq!(desk.raw("about").await, "# About\n");
    desk.said(&["action", "call", "recent"]).await;
    let releases = desk.said(&["frontend", "releases", "book"]).await;
    assert!(releases.contains("Welcome"), "{releases}");
    // What the platform refuses is refused before anything has changed.
    let before = state(&desk).await;
    desk.write("book.html", "<!doctype html><title>Changed</title>\n");
    desk.write("actions/bad.sql", "SELECT * FROM nowhere");
    let refused = desk.fails(1, &["apply", "--yes"]).await;
    assert!(
        refused.starts_with("error: actions/bad.sql:1:15: ")
            && refused.matches("no such table").count() == 1,
        "{refused}"
    );
    std::fs::remove_file(desk.at("actions/bad.sql")).unwrap();
    desk.write("migrations/0004_drop.sql", "DROP TABLE notes;");
    let refused = desk.fails(1, &["apply", "--yes"]).await;
    assert!(
        refused.starts_with("error: migrations/0004_drop.sql:1:"),
        "{refused}"
    );
    std::fs::remove_file(desk.at("migrations/0004_drop.sql")).unwrap();
    assert_eq!(state(&desk).await, before);
    // An action of a table that is still to come cannot be tried before: it is said that something was done.
    desk.write(
        "migrations/0004_more.sql",
        "CREATE TABLE more (id INTEGER PRIMARY KEY);\n",
    );
    desk.write("actions/bad.sql", "SELECT * FROM nowhere");
    let refused = desk.fails(1, &["apply", "--yes"]).await;
    assert!(refused.contains("What was done stays"), "{refused}");
    std::fs::remove_file(desk.at("actions/bad.sql")).unwrap();
    desk.said(&["apply", "--yes"]).await;
    assert!(desk.said(&["apply"]).await.starts_with("nothing to do"));
    let before = state(&desk).await;
    // A migration is never changed after the fact.
    desk.write(
        "migrations/0001_notes.sql",
        "CREATE TABLE other (id INTEGER PRIMARY KEY);\n",
    );
    let refused = desk.fails(5, &["apply", "--yes"]).await;
    assert!(refused.contains("0001_notes.sql"), "{refused}");
    assert_eq!(state(&desk).await, before);
}

#[tokio::test]
async fn a_killed_apply_goes_on() {
    let points = [
        "project",
        "backend",
        "migration",
        "actions",
        "rooms",
        "tools",
        "page",
    ];
    let desk = book().await;
    for point in points {
        let mut dying = desk.command(&["apply", "--yes"]);
        dying.env("SVC_FAULT", format!("apply.{point}"));
        let output = run_command(dying).await;
        assert_eq!(output.code, None, "{point}: {output:?}");
    }
    let done = desk.run(&["apply", "--yes"]).await;
    assert!(done.success, "{done:?}");
    assert!(
        !done.stderr.contains("+ project") && !done.stderr.contains("0001_notes.sql"),
        "{done:?}"
    );
    assert_eq!(desk.json(&["apply"]).await["plan"], json!([]));
    let list = desk.json(&["frontend", "list"]).await;
    assert_eq!(list["frontends"].as_array().unwrap().len(), 2, "{list}");
    assert_eq!(
        desk.json(&["project", "list"]).await["projects"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let detail = desk.json(&["backend", "show"]).await;
    assert_eq!(detail["migrations"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_slug_that_is_taken_gets_a_suffix_and_keeps_it() {
    let desk = book().await;
    desk.write("other.md", "# Somebody else's");
    desk.said(&["publish", "other.md", "--name", "book"]).await;
    let done = desk.run(&["apply", "--yes"]).await;
    assert!(done.stderr.contains("the page is `book-2`"), "{done:?}");
    assert_eq!(desk.json(&["apply"]).await["plan"], json!([]));
    assert_eq!(
        desk.json(&["project", "show", "Guest book"]).await["home"],
        "book-2"
    );
    desk.write("book.html", "<!doctype html><title>New</title>\n");
    desk.said(&["apply", "--yes"]).await;
    assert_eq!(
        desk.raw("book-2").await,
        "<!doctype html><title>New</title>\n"
    );
}

#[tokio::test]
async fn a_folder_becomes_as_the_server_is() {
    let desk = book().await;
    desk.said(&["apply", "--yes"]).await;
    let pulled = desk
        .json(&["pull", "copy", "--project", "Guest book"])
        .await;
    assert_eq!(pulled["new"].as_array().unwrap().len(), 7, "{pulled}");
    assert_eq!(desk.read("copy/migrations/0001.sql"), NOTES);
    assert_eq!(desk.read("copy/about.md"), "# About\n");
    for (command, folder) in [
        ("pull", "copy"),
        ("apply", "copy"),
        ("pull", "."),
        ("apply", "."),
    ] {
        let said = desk.said(&[command, folder]).await;
        assert!(
            said.starts_with("nothing to do"),
            "{command} {folder}: {said}"
        );
    }
    // What somebody else has changed comes, once it is allowed to replace what is there.
    desk.write("copy/about.md", "# About all of us\n");
    desk.write(
        "copy/migrations/0003.sql",
        "CREATE TABLE more (id INTEGER PRIMARY KEY);\n",
    );
    desk.write("copy/news.md", "# News\n");
    let manifest = desk.read("copy/svc.toml");
    desk.write("copy/svc.toml", &format!("{manifest}news = \"news.md\"\n"));
    desk.said(&["apply", "copy", "--yes"]).await;
    let refused = desk.run(&["pull"]).await;
    assert_eq!(refused.code, Some(8), "{refused:?}");
    assert_eq!(desk.read("about.md"), "# About\n");
    desk.said(&["pull", "--yes"]).await;
    assert_eq!(desk.read("about.md"), "# About all of us\n");
    assert_eq!(desk.read("news.md"), "# News\n");
    assert!(
        desk.read("svc.toml").starts_with(MANIFEST),
        "what its author wrote stays"
    );
    assert!(desk.said(&["apply"]).await.starts_with("nothing to do"));
    // Two have migrated at once.
    desk.write(
        "migrations/0004.sql",
        "CREATE TABLE mine (id INTEGER PRIMARY KEY);\n",
    );
    desk.write(
        "copy/migrations/0004.sql",
        "CREATE TABLE theirs (id INTEGER PRIMARY KEY);\n",
    );
    desk.said(&["apply", "copy", "--yes"]).await;
    desk.fails(5, &["apply", "--yes"]).await;
    desk.fails(5, &["pull", "--yes"]).await;
    std::fs::rename(
        desk.at("migrations/0004.sql"),
        desk.at("migrations/0005_mine.sql"),
    )
    .unwrap();
    desk.said(&["pull", "--yes"]).await;
    desk.said(&["apply", "--yes"]).await;
    assert!(desk.said(&["backend", "show"]).await.contains("theirs"));
}

#[tokio::test]
async fn nothing_is_written_outside_of_the_folder() {
    let desk = book().await;
    desk.said(&["apply", "--yes"]).await;
    let outside = desk.home.path();
    std::fs::create_dir(desk.at("other")).unwrap();
    std::os::unix::fs::symlink(outside, desk.at("other/link")).unwrap();
    let absolute = format!("about = \"{}/about.md\"", outside.display());
    for page in [
        "about = \"../../about.md\"",
        "about = \"link/about.md\"",
        &absolute,
    ] {
        desk.write(
            "other/svc.toml",
            &format!("project = \"Guest book\"\n[pages]\nbook = \"book.html\"\n{page}\n"),
        );
        let refused = desk.fails(1, &["pull", "other", "--yes"]).await;
        assert!(
            refused.contains("Outside of the folder"),
            "{page}: {refused}"
        );
        assert_eq!(super::files(&desk.at("other")), ["svc.toml"], "{page}");
    }
    desk.write(
        "other/svc.toml",
        "project = \"Guest book\"\nactions = \"../elsewhere\"\n",
    );
    let refused = desk.fails(1, &["pull", "other", "--yes"]).await;
    assert!(refused.contains("Outside of the folder"), "{refused}");
    assert!(super::files(outside).is_empty());
}
