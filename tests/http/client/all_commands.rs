//! Every command of the client, with what goes wrong for all of them: no server, a wrong credential, an older server, Ctrl-C
//! before an answer, a file that is far too large. A command that is not in the table fails a test.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::routing::{any, get};
use clap::Subcommand as _;
use rustix::process::Signal;
use serde_json::{Value, json};
use svc_tests::{run_command, wait_until};
use tokio::net::TcpListener;

use super::failures::serve_router;
use super::{ClientFixture, RunningCommand, list_files};

/// A command with arguments that are right, and which of them is a file that is sent.
struct CommandCase {
    words: &'static [&'static str],
    sends: Option<&'static str>,
    owned: bool,
}

macro_rules! command_cases {
    ($($kind:ident $($word:literal)+ $(, $file:literal)?;)+) => {
        &[$(CommandCase {
            words: &[$($word),+],
            sends: command_cases!(@sends $($file)?),
            owned: command_cases!(@$kind),
        }),+]
    };
    (@owner) => { true };
    (@anybody) => { false };
    (@sends) => { None };
    (@sends $file:literal) => { Some($file) };
}

/// Every command that asks a server.
const SERVER_COMMANDS: &[CommandCase] = command_cases! {
    owner "login" "URL";
    anybody "publish" "a.md", "a.md";
    anybody "unpublish" "01a1fc28-c57b-71f4-90db-2871ff5bd43a" "--token-file" "token";
    owner "push" "a.md", "a.md";
    owner "watch" "a.md", "a.md";
    owner "apply" "--yes", "a.md";
    owner "pull" "--yes";
    owner "project" "list";
    owner "project" "show" "Shop";
    owner "project" "create" "Shop";
    owner "project" "update" "Shop" "--name" "Store";
    owner "project" "delete" "Shop" "--yes";
    owner "domain" "list";
    owner "domain" "add" "www.shop.com";
    owner "domain" "verify" "www.shop.com";
    owner "domain" "remove" "www.shop.com";
    owner "frontend" "list";
    owner "frontend" "show" "a";
    owner "frontend" "content" "a";
    owner "frontend" "diff" "a" "a.md", "a.md";
    owner "frontend" "releases" "a";
    owner "frontend" "claim" "01a1fc28-c57b-71f4-90db-2871ff5bd43a" "--token-file" "token";
    owner "frontend" "delete" "a" "--yes";
    owner "revision" "list" "a";
    owner "revision" "show" "a" "r";
    owner "revision" "diff" "a" "r";
    owner "revision" "promote" "a" "r";
    owner "revision" "rollback" "a" "r";
    owner "revision" "delete" "a" "r" "--yes";
    owner "backend" "show";
    owner "backend" "create" "a.sql", "a.sql";
    owner "backend" "migrate" "a.sql", "a.sql";
    owner "backend" "query" "SELECT 1";
    owner "backend" "load" "t" "a.csv";
    owner "backend" "realtime" "on";
    owner "backend" "agents" "on";
    owner "backend" "history";
    owner "backend" "restore" "2026-11-20T12:00:00.000Z" "--yes";
    owner "backend" "export";
    owner "backend" "delete" "--yes";
    owner "action" "list";
    owner "action" "show" "a";
    owner "action" "define" "a.sql", "a.sql";
    owner "action" "versions" "a";
    owner "action" "rollback" "a" "1";
    owner "action" "delete" "a" "--yes";
    owner "action" "call" "a";
    owner "types";
    owner "price" "list";
    owner "price" "add" "pro" "--product" "Club" "--label" "Monthly" "--amount" "500" "--currency" "eur";
    owner "price" "withdraw" "pro";
    owner "stats";
    owner "tail";
    owner "file" "list";
    owner "file" "get" "file_2ymk7y9c3n5p8q0r1s4t6v7w8x";
    owner "file" "delete" "file_2ymk7y9c3n5p8q0r1s4t6v7w8x" "--yes";
};

/// Commands that ask no server: their own files, or a server of their own.
const LOCAL_COMMANDS: [&str; 4] = ["init", "logout", "profile list", "profile use"];

/// A credential that no server knows.
const CREDENTIAL: &str = "svc_wrongwro_0";

/// A folder with what the commands name.
async fn start_fixture() -> ClientFixture {
    let fixture = ClientFixture::without_owner_rate_limit().await;
    fixture.write("svc.toml", "project = \"Shop\"\n[pages]\na = \"a.md\"\n");
    fixture.write("a.md", "# A");
    fixture.write("a.sql", "SELECT 1 AS one");
    fixture.write("a.csv", "a\n1\n");
    fixture.write("token", "svcd_0");
    fixture
}

/// Returns a command with a credential, for a server at an address.
fn command(fixture: &ClientFixture, tried: &CommandCase, address: SocketAddr) -> Command {
    let url = format!("http://{address}");
    let words = tried.words.iter().copied();
    let words: Vec<_> = words
        .map(|word| match word {
            "URL" => url.as_str(),
            word => word,
        })
        .collect();
    let mut command = fixture.command(&words);
    command.env("SVC_SERVER", &url);
    command.env("SVC_CREDENTIAL", CREDENTIAL);
    command
}

/// Runs a command with a credential on its standard input.
async fn run(
    fixture: &ClientFixture,
    tried: &CommandCase,
    address: SocketAddr,
) -> svc_tests::Output {
    super::run_with_input(command(fixture, tried, address), CREDENTIAL).await
}

#[test]
fn every_command_is_tried() {
    let clients = svc::client::ClientCommand::augment_subcommands(clap::Command::new("svc"));
    let changes =
        svc::client::ProjectChangeCommand::augment_subcommands(clap::Command::new("project"));
    let domains =
        svc::client::DomainChangeCommand::augment_subcommands(clap::Command::new("domain"));
    let shared = ["project list", "project show", "domain list"];
    let mut known: BTreeSet<String> = shared.map(str::to_owned).into();
    for group in [&changes, &domains] {
        let names = group.get_subcommands().map(clap::Command::get_name);
        known.extend(names.map(|name| format!("{} {name}", group.get_name())));
    }
    for group in clients.get_subcommands() {
        let name = group.get_name();
        match group.has_subcommands() {
            false => drop(known.insert(name.to_owned())),
            true => known.extend(
                group
                    .get_subcommands()
                    .map(|one| format!("{name} {}", one.get_name())),
            ),
        }
    }
    let tried: BTreeSet<String> = SERVER_COMMANDS
        .iter()
        .map(|tried| {
            let whole = tried.words.join(" ");
            let mut names = known
                .iter()
                .filter(|name| whole == **name || whole.starts_with(&format!("{name} ")));
            names.next().expect(&whole).clone()
        })
        .chain(LOCAL_COMMANDS.map(str::to_owned))
        .collect();
    assert_eq!(tried, known);
}

#[tokio::test]
async fn without_a_server_each_says_which_it_wanted() {
    let fixture = start_fixture().await;
    let nobody: SocketAddr = "127.0.0.1:1".parse().unwrap();
    for tried in SERVER_COMMANDS {
        let output = run(&fixture, tried, nobody).await;
        assert_eq!(output.code, Some(6), "{:?}: {output:?}", tried.words);
        let said = "http://127.0.0.1:1/ cannot be reached";
        assert!(output.stderr.contains(said), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
    }
}

#[tokio::test]
async fn a_wrong_credential_is_told_and_not_shown() {
    let fixture = start_fixture().await;
    for tried in SERVER_COMMANDS.iter().filter(|tried| tried.owned) {
        let output = run(&fixture, tried, fixture.server.address()).await;
        assert_eq!(output.code, Some(3), "{:?}: {output:?}", tried.words);
        assert!(!output.stderr.contains(CREDENTIAL), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
    }
    assert_eq!(list_files(fixture.home.path()), [""; 0]);
}

#[tokio::test]
async fn an_older_server_is_told_from_one_that_has_nothing() {
    let fixture = start_fixture().await;
    let nothing = || async {
        let problem = json!({ "title": "Not found", "detail": "Nothing.", "code": "not_found" });
        let headers = [(header::CONTENT_TYPE, "application/problem+json")];
        (StatusCode::NOT_FOUND, headers, problem.to_string())
    };
    let description = || async { axum::Json(json!({ "openapi": "3.1.0", "paths": {} })) };
    let old = Router::new()
        .route("/api/v1/openapi.json", get(description))
        .fallback(any(nothing));
    let old = serve_router(old).await;
    for tried in SERVER_COMMANDS {
        let output = run(&fixture, tried, old).await;
        assert_eq!(output.code, Some(1), "{:?}: {output:?}", tried.words);
        assert!(
            output.stderr.contains("too old"),
            "{:?}: {output:?}",
            tried.words
        );
    }
}

#[tokio::test]
async fn ctrl_c_ends_each_while_it_waits_for_an_answer() {
    let fixture = start_fixture().await;
    let before = list_files(fixture.folder.path());
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    // A command that reads a credential from the input has none here.
    for tried in SERVER_COMMANDS
        .iter()
        .filter(|tried| tried.words[0] != "login")
    {
        let mut running = RunningCommand::start(&command(&fixture, tried, address));
        let (_connection, _) = silent.accept().await.unwrap();
        running.signal(Signal::INT);
        let ended = running.wait_for_exit().await;
        let number = ended.code().or(ended.signal().map(|signal| 128 + signal));
        assert_eq!(number, Some(130), "{:?}: {}", tried.words, running.stderr());
        assert!(running.stdout().is_empty(), "{:?}", tried.words);
    }
    assert_eq!(list_files(fixture.folder.path()), before);
}

#[tokio::test]
async fn a_file_that_is_far_too_large_is_not_sent() {
    let fixture = start_fixture().await;
    fixture.run_for_stdout(&["project", "create", "Shop"]).await;
    fixture
        .run_for_stdout(&["publish", "a.md", "--project", "Shop"])
        .await;
    let small = ["a.md", "a.sql"].map(|name| (name, fixture.read(name)));
    for tried in SERVER_COMMANDS {
        let Some(file) = tried.sends else {
            continue;
        };
        // Sparse: ten gigabytes that nobody has.
        let huge = std::fs::File::create(fixture.path_of(file)).unwrap();
        huge.set_len(10 << 30).unwrap();
        let output = run_command(fixture.command(tried.words)).await;
        assert_eq!(output.code, Some(1), "{:?}: {output:?}", tried.words);
        let said = output.stderr.contains(file) && output.stderr.contains("Nothing was");
        assert!(said, "{:?}: {output:?}", tried.words);
        for (name, text) in &small {
            fixture.write(name, text);
        }
    }
    assert_eq!(fixture.fetch_source("a").await, "# A");
    // Of a secret in a file the first line is read, and of that not more than a secret has.
    let huge = std::fs::File::create(fixture.path_of("token")).unwrap();
    huge.set_len(10 << 30).unwrap();
    let claim = ["unpublish", "01a1fc28-c57b-71f4-90db-2871ff5bd43a"];
    let output = fixture
        .run(&[&claim[..], &["--token-file", "token"]].concat())
        .await;
    assert_eq!(output.code, Some(3), "{output:?}");
}

/// A command that is ended in the middle of its work has done all of a step or nothing of it, and goes on when it is run again.
#[tokio::test]
async fn ctrl_c_in_the_middle_of_an_apply_loses_nothing() {
    let fixture = start_fixture().await;
    let pages: String = (0..20).map(|n| format!("p{n} = \"a.md\"\n")).collect();
    fixture.write("svc.toml", &format!("project = \"Shop\"\n[pages]\n{pages}"));
    let mut running = RunningCommand::start(&fixture.command(&["apply", "--yes"]));
    let list = async || -> Vec<Value> {
        let listed = fixture.run(&["frontend", "list", "--json"]).await;
        // There is no project at first.
        assert!(matches!(listed.code, Some(0 | 4)), "{listed:?}");
        let listed: Option<Value> = serde_json::from_str(&listed.stdout).ok();
        listed.map_or_else(Vec::new, |list| {
            list["frontends"].as_array().unwrap().clone()
        })
    };
    wait_until("the first pages", async || {
        let count = list().await.len();
        (count > 0).then_some(())
    })
    .await;
    running.signal(Signal::INT);
    let ended = running.wait_for_exit().await;
    let number = ended.code().or(ended.signal().map(|signal| 128 + signal));
    // It may have been quicker than we were.
    assert!(matches!(number, Some(0 | 130)), "{number:?}");
    // A server finishes what it has begun, with or without who asked.
    wait_until("whole pages", async || {
        let pages = list().await;
        let whole = pages.iter().all(|page| page["state"] == "active");
        whole.then_some(())
    })
    .await;
    fixture.run_for_stdout(&["apply", "--yes"]).await;
    assert_eq!(list().await.len(), 20);
    let again = fixture.run(&["apply"]).await;
    assert!(again.success, "nothing is left to do: {again:?}");
}
