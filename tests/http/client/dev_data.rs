//! `svc dev` and the rows of its database: they stay until somebody gives them up.

use std::time::Duration;

use serde_json::{Value, json};
use svc_tests::{ReadAnswer, run_command, wait_until};

use super::dev::write_guest_book;
use super::terminal::Terminal;
use super::{ClientFixture, RunningCommand};

const CHANGED: &str = "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT, more TEXT);";

/// A guest book that `svc dev` serves as people see it.
struct Book {
    dev: RunningCommand,
    server: String,
    credential: String,
    client: reqwest::Client,
}

impl Book {
    async fn start(fixture: &ClientFixture, options: &[&str]) -> Self {
        let words = [&["dev"], options].concat();
        let dev = RunningCommand::start(&fixture.command_without_credential(&words));
        let lines = dev.wait_for_lines(3).await;
        let (_, export) = lines[2].split_once("SVC_SERVER=").unwrap();
        let (server, credential) = export.split_once(" SVC_CREDENTIAL=").unwrap();
        Self {
            server: server.to_owned(),
            credential: credential.to_owned(),
            dev,
            client: fixture.server.client().clone(),
        }
    }

    async fn call(&self, body: Value) -> svc_tests::Answer {
        let url = format!("{}/book/api/op", self.server);
        self.client.post(url).json(&body).answer().await
    }

    async fn add(&self, text: &str) {
        let add = json!({ "action": "add", "params": { "text": text } });
        self.call(add).await.expect(200);
    }

    async fn texts(&self) -> Value {
        let all = self.call(json!({ "action": "all" })).await.expect(200);
        let rows = all.json()["rows"].as_array().unwrap().clone();
        rows.iter().map(|row| row["text"].clone()).collect()
    }

    /// Waits until an action that a save has brought is there.
    async fn wait_for_action(&self, name: &str) {
        wait_until(name, async || {
            let answer = self.call(json!({ "action": name })).await;
            if answer.status != 200 {
                // The folder's server has the limits of any: what waits for it does not spend them.
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            (answer.status == 200).then_some(())
        })
        .await;
    }

    fn count_lines(&self, begin: &str) -> usize {
        let told = self.dev.stderr();
        told.lines().filter(|line| line.starts_with(begin)).count()
    }
}

#[tokio::test]
async fn rows_stay_where_nobody_gives_them_up() {
    let fixture = ClientFixture::new().await;
    write_guest_book(&fixture);
    let book = Book::start(&fixture, &[]).await;
    let original = fixture.read("migrations/0001.sql");
    book.add("kept").await;
    fixture.write("migrations/0001.sql", CHANGED);
    let refused = "migrations/0001.sql:1:1: This is none of the migrations that were applied, and the database stays as it is, with 1 row of `notes`.";
    book.dev.wait_for_stderr(refused).await;
    book.dev.wait_for_stderr("`svc dev --fresh`").await;
    assert_eq!(book.texts().await, json!(["kept"]));
    // A migration that is not valid deletes nothing either, not even on its way to be mended.
    fixture.write("migrations/0001.sql", "CREATE TABLE notes nothing;");
    wait_until("the syntax error", async || {
        (book.count_lines("migrations/0001.sql:1:") > 1).then_some(())
    })
    .await;
    assert_eq!(book.texts().await, json!(["kept"]));
    fixture.write("migrations/0001.sql", &original);
    book.dev
        .wait_for_stderr("mended: migrations/0001.sql")
        .await;
    fixture.write("actions/one.sql", "SELECT 1 AS one");
    book.wait_for_action("one").await;
    assert_eq!(book.texts().await, json!(["kept"]));
    assert_eq!(book.count_lines(refused), 1, "{}", book.dev.stderr());
    assert!(!book.dev.stderr().contains("begins anew"));
}

#[tokio::test]
async fn a_database_without_rows_begins_anew_once_the_migrations_are_accepted() {
    let fixture = ClientFixture::new().await;
    write_guest_book(&fixture);
    let book = Book::start(&fixture, &[]).await;
    // An action that the new tables do not fit is refused before anything is deleted.
    fixture.write(
        "migrations/0001.sql",
        "CREATE TABLE others (id INTEGER PRIMARY KEY);",
    );
    wait_until("the refusal", async || {
        (book.count_lines("actions/") > 0).then_some(())
    })
    .await;
    assert_eq!(book.texts().await, json!([]));
    fixture.write("migrations/0001.sql", CHANGED);
    book.dev
        .wait_for_stderr("the database begins anew. It has no rows yet.")
        .await;
    fixture.write("actions/more.sql", "SELECT more FROM notes");
    book.wait_for_action("more").await;
    // Nothing is left of the trial.
    let mut listed = fixture.command_without_credential(&["project", "list", "--json"]);
    listed.env("SVC_SERVER", &book.server);
    listed.env("SVC_CREDENTIAL", &book.credential);
    let listed = run_command(listed).await.json();
    let names: Vec<_> = listed["projects"].as_array().unwrap().iter().collect();
    assert_eq!(names.len(), 1, "{listed}");
    assert_eq!(names[0]["name"], "Book");
}

#[tokio::test]
async fn whoever_begins_afresh_gives_rows_up() {
    let fixture = ClientFixture::new().await;
    write_guest_book(&fixture);
    let book = Book::start(&fixture, &["--fresh"]).await;
    book.add("lost").await;
    fixture.write("migrations/0001.sql", CHANGED);
    book.dev
        .wait_for_stderr("the database begins anew. Lost with it: 1 row of `notes`")
        .await;
    fixture.write("actions/more.sql", "SELECT more FROM notes");
    book.wait_for_action("more").await;
    assert_eq!(book.texts().await, json!([]));
}

#[tokio::test]
async fn a_person_is_asked_for_the_rows() {
    let fixture = ClientFixture::new().await;
    write_guest_book(&fixture);
    let book = Book::start(&fixture, &[]).await;
    book.add("kept").await;
    drop(book);
    fixture.write("migrations/0001.sql", CHANGED);
    let mut asked = Terminal::start(&fixture.command_without_credential(&["dev"]));
    asked.wait_for_text("Begin the database anew? [y/N] ").await;
    assert!(asked.screen().contains("1 row of `notes`"));
    asked.type_keys("n\r");
    asked
        .wait_for_text("0001.sql:1:1: The server has applied")
        .await;
    asked.type_keys("\u{3}");
    asked.wait_for_exit().await;
    fixture.write(
        "migrations/0001.sql",
        "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT);",
    );
    let book = Book::start(&fixture, &[]).await;
    assert_eq!(book.texts().await, json!(["kept"]));
}

#[tokio::test]
async fn a_restore_begins_nothing_anew() {
    let fixture = ClientFixture::new().await;
    write_guest_book(&fixture);
    let book = Book::start(&fixture, &[]).await;
    book.add("kept").await;
    wait_until("a restore", async || {
        let words = ["backend", "restore", "0 seconds ago", "--yes"];
        let mut restore = fixture.command_without_credential(&words);
        restore.env("SVC_SERVER", &book.server);
        restore.env("SVC_CREDENTIAL", &book.credential);
        let restored = run_command(restore).await;
        restored.success.then_some(())
    })
    .await;
    let texts = book.texts().await;
    fixture.write(
        "migrations/0002.sql",
        "CREATE TABLE extra (id INTEGER PRIMARY KEY);",
    );
    fixture.write("actions/extra.sql", "SELECT id FROM extra");
    book.wait_for_action("extra").await;
    assert_eq!(book.texts().await, texts);
    assert!(
        !book.dev.stderr().contains("begins anew"),
        "{}",
        book.dev.stderr()
    );
}

#[tokio::test]
async fn each_error_of_a_list_is_told_and_mended_by_itself() {
    let fixture = ClientFixture::new().await;
    write_guest_book(&fixture);
    let book = Book::start(&fixture, &[]).await;
    let wrong = "SELECT absent FROM notes";
    fixture.write("actions/e1.sql", wrong);
    fixture.write("actions/e2.sql", wrong);
    let line = |name: &str| format!("actions/{name}.sql:1:8: no such column: absent");
    for name in ["e1", "e2"] {
        book.dev.wait_for_stderr(&line(name)).await;
    }
    fixture.write("actions/e1.sql", "SELECT 1 AS one");
    book.dev.wait_for_stderr("mended: actions/e1.sql").await;
    // Another error hides the one that is left, which is told no second time.
    let manifest = fixture.read("svc.toml");
    fixture.write("svc.toml", &format!("{manifest}gone = \"gone.md\"\n"));
    book.dev.wait_for_stderr("svc.toml:5:8: ").await;
    fixture.write("svc.toml", &manifest);
    fixture.write("actions/e3.sql", "SELECT never FROM notes");
    let third = "actions/e3.sql:1:8: no such column: never";
    book.dev.wait_for_stderr(third).await;
    for name in ["e2", "e3"] {
        fixture.write(&format!("actions/{name}.sql"), "SELECT 2 AS two");
        let mended = format!("mended: actions/{name}.sql");
        book.dev.wait_for_stderr(&mended).await;
    }
    book.dev.wait_for_stderr("mended: svc.toml").await;
    for name in ["e1", "e2"] {
        let mended = format!("mended: actions/{name}.sql");
        let counts = [line(name), mended].map(|line| book.count_lines(&line));
        assert_eq!(counts, [1, 1], "{}", book.dev.stderr());
    }
}

#[tokio::test]
async fn every_error_of_a_folder_has_a_place() {
    let fixture = ClientFixture::new().await;
    write_guest_book(&fixture);
    let book = Book::start(&fixture, &[]).await;
    let manifest = fixture.read("svc.toml");
    let all = fixture.read("actions/all.sql");
    let not_utf8 = fixture.path_of("actions/all.sql");
    for (file, wrong, right, line) in [
        (
            "actions/x.sql",
            "\n-- default n = oops\nSELECT :n AS n",
            "SELECT 1 AS one",
            "actions/x.sql:2:1: The default of `n`",
        ),
        (
            "svc.toml",
            "project = \"Book\"\nhome = \"none\"\n",
            &manifest,
            "svc.toml:2:8: `home`",
        ),
        (
            "svc.toml",
            "project = \"Book\"\n[pages]\nbook = \"none.html\"\n",
            &manifest,
            "svc.toml:3:8: none.html is not there.",
        ),
    ] {
        fixture.write(file, wrong);
        book.dev.wait_for_stderr(line).await;
        let mended = format!("mended: {file}");
        let before = book.count_lines(&mended);
        fixture.write(file, right);
        wait_until(line, async || {
            (book.count_lines(&mended) > before).then_some(())
        })
        .await;
    }
    std::fs::write(&not_utf8, b"SELECT text\nFROM \xff").unwrap();
    book.dev
        .wait_for_stderr("actions/all.sql:2:6: This is no text in UTF-8.")
        .await;
    fixture.write("actions/all.sql", &all);
    book.dev.wait_for_stderr("mended: actions/all.sql").await;
}
