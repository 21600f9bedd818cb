//! `svc dev`: a folder on a server of its own.

use rustix::process::Signal;
use serde_json::{Value, json};
use svc_tests::{ReadAnswer, wait_until};

use super::{Desk, Running};

#[tokio::test]
async fn a_folder_is_served_and_applied_again_on_save() {
    let desk = Desk::new().await;
    desk.write(
        "svc.toml",
        "project = \"Book\"\n[pages]\nbook = \"book.html\"\n",
    );
    desk.write("book.html", "<!doctype html><title>One</title>");
    desk.write(
        "migrations/0001.sql",
        "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT);",
    );
    desk.write("actions/all.sql", "SELECT text FROM notes");
    let mut command = desk.bare(&["dev", "--json"]);
    command.env("TMPDIR", desk.home.path());
    let mut dev = Running::start(&command);
    let told: Value = serde_json::from_str(&dev.lines(1).await[0]).unwrap();
    let server = told["server"]
        .as_str()
        .unwrap()
        .trim_end_matches('/')
        .to_owned();
    assert_eq!(told["pages"][0]["slug"], "book");
    let client = desk.server.client();
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
    desk.write("book.html", "<!doctype html><title>Two</title>");
    wait_until("the page", async || {
        raw().await.contains("Two").then_some(())
    })
    .await;
    desk.write("actions/one.sql", "SELECT 1 AS one");
    wait_until("the action", async || {
        (op("one").await.status == 200).then_some(())
    })
    .await;
    // What is wrong is told, and the next save mends it.
    desk.write("actions/bad.sql", "SELECT * FROM nowhere");
    dev.hears("no such table").await;
    std::fs::remove_file(desk.at("actions/bad.sql")).unwrap();
    // A migration that is still being written begins the database anew.
    desk.write(
        "migrations/0001.sql",
        "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT, more TEXT);",
    );
    desk.write("actions/more.sql", "SELECT more FROM notes");
    wait_until("the new database", async || {
        (op("more").await.status == 200).then_some(())
    })
    .await;
    assert!(raw().await.contains("Two"));
    dev.signal(Signal::TERM);
    assert!(dev.wait_for_exit().await.success(), "{}", dev.stderr());
    // Nothing is left of it, and the owner's server never knew.
    let left: Vec<_> = std::fs::read_dir(desk.home.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(desk.json(&["project", "list"]).await["projects"], json!([]));
}

#[tokio::test]
async fn a_folder_without_a_manifest_is_not_served() {
    let desk = Desk::new().await;
    let refused = desk.fails(4, &["dev"]).await;
    assert!(
        refused.contains("svc.toml") && refused.contains("svc dev --begin"),
        "{refused}"
    );
    assert!(super::files(desk.folder.path()).is_empty());
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
        let desk = Desk::new().await;
        for name in there {
            desk.write(name, "text");
        }
        let mut dev = Running::start(&desk.bare(&["dev", "--begin", "--json"]));
        let told: Value = serde_json::from_str(&dev.lines(1).await[0]).unwrap();
        let pages = told["pages"].as_array().unwrap();
        let slugs: Vec<_> = pages
            .iter()
            .map(|page| page["slug"].as_str().unwrap())
            .collect();
        assert_eq!(slugs, expected);
        dev.signal(Signal::TERM);
        assert!(dev.wait_for_exit().await.success(), "{}", dev.stderr());
        // It is there now, and stays as its author writes it.
        let manifest = desk.read("svc.toml");
        let again = desk.json(&["apply", "--plan"]).await;
        assert_eq!(
            again["plan"].as_array().unwrap().len(),
            expected.len() + 1 + usize::from(there.is_empty())
        );
        assert_eq!(desk.read("svc.toml"), manifest);
    }
}
