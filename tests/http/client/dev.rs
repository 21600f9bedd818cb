//! `svc dev`: a folder on a server of its own.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use reqwest::Response;
use rustix::process::Signal;
use serde_json::{Value, json};
use svc_tests::{Answer, ReadAnswer, wait_until};

use super::{ClientFixture, RunningCommand};
use crate::owner::text;

/// A folder that is served, with what the command has said of its server.
struct Served {
    command: RunningCommand,
    said: Value,
    client: reqwest::Client,
}

/// Events that an open page hears.
struct Heard {
    response: Response,
    rest: String,
}

impl Served {
    async fn start(fixture: &ClientFixture, options: &[&str]) -> Self {
        let arguments = [&["dev", "--json"], options].concat();
        let command = RunningCommand::start(&fixture.command_without_credential(&arguments));
        let said = serde_json::from_str(&command.wait_for_lines(1).await[0]).unwrap();
        let client = fixture.server.client().clone();
        Self {
            command,
            said,
            client,
        }
    }

    fn server(&self) -> String {
        text(&self.said["server"])
    }

    /// The answer at a path of the project's origin, which the first page has.
    async fn get_at_origin(&self, path: &str) -> Answer {
        self.at_origin(path).answer().await
    }

    fn at_origin(&self, path: &str) -> reqwest::RequestBuilder {
        let page = text(&self.said["pages"][0]["url"]);
        let host = page.split('/').nth(2).unwrap().to_owned();
        let (_, port) = host.rsplit_once(':').unwrap();
        let url = format!("http://127.0.0.1:{port}{path}");
        self.client.get(url).header("host", host)
    }

    async fn call(&self, slug: &str, body: &Value) -> Answer {
        let url = format!("{}/{slug}/api/op", self.server());
        self.client.post(url).json(body).answer().await
    }

    async fn listen(&self, slug: &str) -> Heard {
        let request = self.at_origin(&format!("/_svc/dev/reload?slug={slug}"));
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        Heard {
            response,
            rest: String::new(),
        }
    }

    async fn stop(mut self) -> String {
        self.command.signal(Signal::TERM);
        let ended = self.command.wait_for_exit().await;
        assert!(ended.success(), "{}", self.command.stderr());
        self.command.stderr()
    }
}

impl Heard {
    /// The version that the page hears of next; `None` at the end of the stream.
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some((event, rest)) = self.rest.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.rest = rest;
                if let Some(data) = event.strip_prefix("data: ") {
                    let data: Value = serde_json::from_str(data).unwrap();
                    assert!(data["at"].is_i64(), "{data}");
                    return Some(text(&data["version"]));
                }
                continue;
            }
            let chunk = self.response.chunk().await.unwrap()?;
            self.rest.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

pub(super) fn write_guest_book(fixture: &ClientFixture) {
    fixture.write(
        "svc.toml",
        "project = \"Book\"\n[pages]\nbook = \"book.html\"\nnews = \"news.md\"\n",
    );
    fixture.write("book.html", "<!doctype html><title>One</title>");
    fixture.write("news.md", "# News");
    fixture.write(
        "migrations/0001.sql",
        "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT);",
    );
    fixture.write("actions/all.sql", "SELECT text FROM notes");
    fixture.write("actions/add.sql", "INSERT INTO notes (text) VALUES (:text)");
}

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
    // Its data is in the folder, for the user alone, and the owner's server never knew.
    let left: Vec<_> = std::fs::read_dir(fixture.home.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(mode(&fixture.path_of(".svc/dev")), 0o700);
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

#[tokio::test]
async fn data_address_and_credential_outlive_a_start() {
    let fixture = ClientFixture::new().await;
    write_guest_book(&fixture);
    let first = Served::start(&fixture, &[]).await;
    let add = json!({ "action": "add", "params": { "text": "kept" } });
    first.call("book", &add).await.expect(200);
    // Another shell asks with what was said.
    let mut asked = fixture.command_without_credential(&[
        "backend",
        "query",
        "SELECT text FROM notes",
        "--json",
    ]);
    asked.env("SVC_SERVER", first.server());
    asked.env("SVC_CREDENTIAL", text(&first.said["credential"]));
    let rows = svc_tests::run_command(asked).await.json();
    assert_eq!(rows["rows"], json!([{ "text": "kept" }]));
    // A second one for the folder is refused, and says who has it.
    let second = fixture.command_without_credential(&["dev"]);
    let second = svc_tests::run_command(second).await;
    assert!(
        second.code == Some(1) && second.stderr.contains("is in use by process"),
        "{second:?}"
    );
    let said = first.said.clone();
    first.stop().await;
    let again = Served::start(&fixture, &[]).await;
    assert_eq!(again.said, said);
    let all = again.call("book", &json!({ "action": "all" })).await;
    assert_eq!(all.expect(200).json()["rows"], json!([{ "text": "kept" }]));
    again.stop().await;
    // A project that svc.toml names anew is the one that it was.
    let manifest = fixture.read("svc.toml");
    fixture.write("svc.toml", &manifest.replace("Book", "Library"));
    let renamed = Served::start(&fixture, &[]).await;
    assert_eq!(renamed.said, said);
    let all = renamed.call("book", &json!({ "action": "all" })).await;
    assert_eq!(all.expect(200).json()["rows"], json!([{ "text": "kept" }]));
    renamed.stop().await;
    assert_eq!(mode(&fixture.path_of(".svc")), 0o700);
    assert_eq!(mode(&fixture.path_of(".svc/dev.json")), 0o600);
    // Only `--fresh` begins anew, at the same address.
    let fresh = Served::start(&fixture, &["--fresh"]).await;
    assert_eq!(fresh.said["server"], said["server"]);
    assert_ne!(fresh.said["credential"], said["credential"]);
    let all = fresh.call("book", &json!({ "action": "all" })).await;
    assert_eq!(all.expect(200).json()["rows"], json!([]));
    fresh.stop().await;
}

#[tokio::test]
async fn people_are_told_how_another_shell_finds_the_server() {
    let fixture = ClientFixture::new().await;
    write_guest_book(&fixture);
    let dev = RunningCommand::start(&fixture.command_without_credential(&["dev"]));
    let lines = dev.wait_for_lines(3).await;
    assert!(
        lines[0].starts_with("book ") && lines[0].ends_with("/book"),
        "{lines:?}"
    );
    let export = lines[2].strip_prefix("export SVC_SERVER=http://localhost:");
    let export = export.unwrap_or_else(|| panic!("{lines:?}"));
    let (_, credential) = export.split_once(" SVC_CREDENTIAL=").unwrap();
    assert!(credential.starts_with("svc_"), "{lines:?}");
}

#[tokio::test]
async fn an_open_page_hears_once_of_each_change_that_it_shows() {
    let fixture = ClientFixture::new().await;
    write_guest_book(&fixture);
    let served = Served::start(&fixture, &[]).await;
    let (mut book, mut news) = (served.listen("book").await, served.listen("news").await);
    let (book_1, news_1) = (book.next().await.unwrap(), news.next().await.unwrap());
    // The page that a save changes is told; then both are, of what both call.
    fixture.write("book.html", "<!doctype html><title>Two</title>");
    let book_2 = wait_for_other(&mut book, &book_1).await;
    fixture.write("actions/one.sql", "SELECT 1 AS one");
    let (book_3, news_3) = (
        wait_for_other(&mut book, &book_2).await,
        wait_for_other(&mut news, &news_1).await,
    );
    assert!(book_3 != book_1);
    // What is there when the page is told is what it was told of.
    served
        .call("book", &json!({ "action": "one" }))
        .await
        .expect(200);
    let page = served.get_at_origin("/book").await.expect(200);
    assert!(page.text().contains("<title>Two</title>"));
    // The stream ends with the command, and after a start the versions are what they were.
    served.stop().await;
    assert_eq!(book.next().await, None);
    let served = Served::start(&fixture, &[]).await;
    let (mut book, mut news) = (served.listen("book").await, served.listen("news").await);
    assert_eq!(book.next().await, Some(book_3));
    assert_eq!(news.next().await, Some(news_3));
    served.stop().await;
}

/// Waits for a version that is not the one that the page has; the same one again would be a reload too many, or none.
async fn wait_for_other(heard: &mut Heard, known: &str) -> String {
    let next = heard.next().await.expect("the stream goes on");
    assert_ne!(next, known, "told twice of one change");
    next
}

/// Path of the script that a page has, and its text.
async fn script_of(page: &str, get: impl AsyncFn(&str) -> Answer) -> String {
    let (_, script) = page.split_once("src=\"/_svc/runtime/").expect("a runtime");
    let (name, _) = script.split_once('"').unwrap();
    let script = get(&format!("/_svc/runtime/{name}")).await.expect(200);
    script.text().to_owned()
}

#[tokio::test]
async fn only_the_server_of_a_folder_reloads_pages() {
    let fixture = ClientFixture::with_server_options(&["--dev"]).await;
    write_guest_book(&fixture);
    let served = Served::start(&fixture, &[]).await;
    let page = served.get_at_origin("/book").await.expect(200);
    let script = script_of(page.text(), async |path| served.get_at_origin(path).await).await;
    assert!(script.contains("/_svc/dev/reload"), "the page listens");
    served.stop().await;
    let applied = fixture.json(&["apply", "--yes"]).await;
    assert_eq!(applied["applied"], true, "{applied}");
    let url = text(&fixture.json(&["frontend", "show", "book"]).await["url"]);
    let host = url.split('/').nth(2).unwrap().to_owned();
    let get = async |path: &str| {
        let asked = fixture.server.client().get(fixture.server.url(path));
        asked.header("host", &host).answer().await
    };
    let page = get("/book").await.expect(200);
    let script = script_of(page.text(), get).await;
    assert!(script.contains("svc") && !script.contains("/_svc/dev"));
    get("/_svc/dev/reload?slug=book")
        .await
        .problem(404, "not_found");
}

#[tokio::test]
async fn an_error_is_told_once_with_its_place_and_so_is_its_end() {
    let fixture = ClientFixture::new().await;
    write_guest_book(&fixture);
    fixture.write("data.json", "{}");
    let manifest = fixture.read("svc.toml");
    let dev = RunningCommand::start(&fixture.command_without_credential(&["dev"]));
    dev.wait_for_lines(3).await;
    let told = |line: &str| dev.stderr().lines().filter(|told| *told == line).count();
    let with_data = format!("{manifest}data = \"data.json\"\n");
    for (file, wrong, line, right) in [
        (
            "actions/bad.sql",
            "SELECT 1,\n  absent FROM notes",
            "actions/bad.sql:2:3: no such column: absent",
            "SELECT 1 AS one",
        ),
        (
            "migrations/0002.sql",
            "CREATE TABLE more (id INTEGER PRIMARY KEY);\nDROP TABLE notes;",
            "migrations/0002.sql:2:1: ",
            "CREATE TABLE more (id INTEGER PRIMARY KEY);",
        ),
        (
            "svc.toml",
            "project = \"Book\"\nhom = 1\n",
            "svc.toml:2:1: ",
            &with_data,
        ),
        ("data.json", "{\n \"a\": nope}", "data.json:2:8: ", "{}"),
    ] {
        fixture.write(file, wrong);
        let begins = |told: &str| told.starts_with(line);
        wait_until(line, async || {
            dev.stderr().lines().any(begins).then_some(())
        })
        .await;
        // Another save of it is none for the user; that it was looked at is known by the next error.
        fixture.write(file, wrong);
        fixture.write("actions/sentinel.sql", "SELECT 1 AS sentinel");
        fixture.write(file, right);
        let mended = format!("mended: {file}");
        dev.wait_for_stderr(&mended).await;
        let count = dev.stderr().lines().filter(|told| begins(told)).count();
        assert_eq!((count, told(&mended)), (1, 1), "{}", dev.stderr());
    }
}
