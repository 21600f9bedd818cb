//! `svc dev`: a folder on a server of its own.

use rustix::process::Signal;
use serde_json::{Value, json};
use svc_tests::{ReadAnswer, wait_until};

use super::{ClientFixture, RunningCommand};

#[tokio::test]
async fn a_folder_is_served_and_applied_again_on_save() {
    let fixture = ClientFixture::new().await;
    // The folder's own server does not know the workspace.
    fixture.write(
        "svc.toml",
        "project = \"Book\"\nworkspace = \"acme\"\n[pages]\nbook = \"book.html\"\n",
    );
    fixture.write("book.html", "<!doctype html><title>One</title>");
    fixture.write(
        "migrations/0001.sql",
        "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT);",
    );
    fixture.write("actions/all.sql", "SELECT text FROM notes");
    let mut command = fixture.command_without_credential(&["dev", "--json"]);
    command.env("TMPDIR", fixture.home.path());
    let mut dev = RunningCommand::start(&command);
    let told: Value = serde_json::from_str(&dev.wait_for_lines(1).await[0]).unwrap();
    let server = told["server"]
        .as_str()
        .unwrap()
        .trim_end_matches('/')
        .to_owned();
    assert_eq!(told["pages"][0]["slug"], "book");
    let client = fixture.server.client();
    let raw = async || {
        client
            .get(format!("{server}/book/raw"))
            .answer()
            .await
            .text()
            .to_owned()
    };
    let op = async |action: &str| {
        let body = json!({ "action": action });
        client
            .post(format!("{server}/book/api/op"))
            .json(&body)
            .answer()
            .await
    };
    assert_eq!(raw().await, "<!doctype html><title>One</title>");
    op("all").await.expect(200);
    // A save is live, by itself.
    fixture.write("book.html", "<!doctype html><title>Two</title>");
    wait_until("the page", async || {
        raw().await.contains("Two").then_some(())
    })
    .await;
    fixture.write("actions/one.sql", "SELECT 1 AS one");
    wait_until("the action", async || {
        (op("one").await.status == 200).then_some(())
    })
    .await;
    // An error is shown, and the next save is published.
    fixture.write("actions/bad.sql", "SELECT * FROM nowhere");
    dev.wait_for_stderr("no such table").await;
    std::fs::remove_file(fixture.path_of("actions/bad.sql")).unwrap();
    // A migration that is still being written begins the database anew.
    fixture.write(
        "migrations/0001.sql",
        "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT, more TEXT);",
    );
    fixture.write("actions/more.sql", "SELECT more FROM notes");
    wait_until("the new database", async || {
        (op("more").await.status == 200).then_some(())
    })
    .await;
    assert!(raw().await.contains("Two"));
    dev.signal(Signal::TERM);
    assert!(dev.wait_for_exit().await.success(), "{}", dev.stderr());
    // Nothing is left of it, and the owner's server never knew.
    let left: Vec<_> = std::fs::read_dir(fixture.home.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(
        fixture.json(&["project", "list"]).await["projects"],
        json!([])
    );
}

#[tokio::test]
async fn a_folder_without_a_manifest_is_not_served() {
    let fixture = ClientFixture::new().await;
    let refused = fixture.run_for_failure(4, &["dev"]).await;
    assert!(
        refused.contains("svc.toml") && refused.contains("svc dev --begin"),
        "{refused}"
    );
    assert!(super::list_files(fixture.folder.path()).is_empty());
}

#[tokio::test]
async fn a_folder_begins_with_the_pages_that_it_has_or_with_a_first_one() {
    for (there, expected) in [
        (&[][..], &["home"][..]),
        (
            &["Guest Book.html", "notes.md", "data.csv", "main.rs"],
            &["data", "guest-book", "notes"],
        ),
    ] {
        let fixture = ClientFixture::new().await;
        for name in there {
            fixture.write(name, "text");
        }
        let mut dev = RunningCommand::start(
            &fixture.command_without_credential(&["dev", "--begin", "--json"]),
        );
        let told: Value = serde_json::from_str(&dev.wait_for_lines(1).await[0]).unwrap();
        let pages = told["pages"].as_array().unwrap();
        let slugs: Vec<_> = pages
            .iter()
            .map(|page| page["slug"].as_str().unwrap())
            .collect();
        assert_eq!(slugs, expected);
        dev.signal(Signal::TERM);
        assert!(dev.wait_for_exit().await.success(), "{}", dev.stderr());
        // It is there now, and stays as its author writes it.
        let manifest = fixture.read("svc.toml");
        let again = fixture.json(&["apply", "--plan"]).await;
        assert_eq!(
            again["plan"].as_array().unwrap().len(),
            expected.len() + 1 + usize::from(there.is_empty())
        );
        assert_eq!(fixture.read("svc.toml"), manifest);
    }
}
