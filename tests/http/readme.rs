//! The commands that the server itself shows, on its landing page and in `/llms.txt`; those of README and `docs/` are in `guides/`.

use std::process::{Command, Stdio};

use svc::workspaces::Plan;
use svc_tests::{ReadAnswer, TestServer, run_command};

/// The documents that show what the landing page does.
const DOCUMENTS: [&str; 3] = [
    include_str!("../../README.md"),
    include_str!("../../docs/apps.md"),
    include_str!("../../docs/agents.md"),
];
const GUIDE: &str = include_str!("../../host/assets/llms.txt");

/// Snippets that the landing page shows, and a document too.
const CONNECT: [&str; 8] = [
    include_str!("../../host/assets/connect/share.sh"),
    include_str!("../../host/assets/connect/owner.sh"),
    include_str!("../../host/assets/connect/claude-code.sh"),
    include_str!("../../host/assets/connect/mcp.json"),
    include_str!("../../host/assets/connect/cursor.json"),
    include_str!("../../host/assets/connect/owner-claude-code.sh"),
    include_str!("../../host/assets/connect/owner-mcp.json"),
    include_str!("../../host/assets/connect/owner-cursor.json"),
];

#[tokio::test]
async fn every_command_of_the_guide_for_agents_works() {
    let server = TestServer::start().await;
    let guide = server.get("/llms.txt").answer().await.expect(200);
    let config = &server.server().app().config;
    let (limits, console) = (&config.limits, config.console_url.as_deref());
    let functions = svc_database::FUNCTIONS.join(", ");
    let expected = limits.fill_in(GUIDE).replace("SQL_FUNCTIONS", &functions);
    let expected = expected.replace("CONSOLE_ORIGIN", console.unwrap());
    assert_eq!(guide.text(), with_address_of(&server, &expected));
    assert!(guide.text().contains(" median, ") && !guide.text().contains("SQL_FUNCTIONS"));
    let scripts = scripts(guide.text());
    assert!(scripts.len() > 8, "the guide has commands");
    let shown = [
        "/hello-agent\"",
        "\"html\":\"<!DOCTYPE html>",
        "\"unlocked\":true",
        "For you<",
        "Read me once",
        "This is *my* page.",
        "\"projects\":[]",
        "\"rows_affected\":1",
        "\"text\":\"I was here\"",
        "\"kind\":\"rollback\"",
        "\"rows\":[{\"n\":1}]",
        "\"members\":[{",
        "manage_backend",
        "structuredContent",
    ];
    run(&server, &scripts.concat(), &shown).await;
}

#[tokio::test]
async fn the_landing_page_shows_what_documents_do() {
    let server = TestServer::start().await;
    let page = server.get("/").answer().await.expect(200);
    let page = page.html().replace("&quot;", "\"").replace("&amp;", "&");
    for text in CONNECT {
        let is_shown = DOCUMENTS.iter().any(|document| document.contains(text));
        assert!(is_shown, "a document has:\n{text}");
        let text = with_address_of(&server, text).replace('<', "&lt;");
        assert!(page.contains(&text), "the landing page has:\n{text}");
    }
    assert!(!page.contains("localhost:8080"), "another server's address");
}

/// The scripts of a document.
fn scripts(document: &str) -> Vec<&str> {
    let fenced = document.split("```sh\n").skip(1);
    fenced
        .map(|rest| rest.split("```").next().unwrap())
        .collect()
}

/// A text with this server's address in place of the sample's.
fn with_address_of(server: &TestServer, text: &str) -> String {
    let address = format!("localhost:{}", server.address().port());
    text.replace("localhost:8080", &address)
}

/// Runs a script, as an owner, in a directory of its own.
async fn run(server: &TestServer, script: &str, shown: &[&str]) {
    let workspaces = &server.server().app().workspaces;
    let namespace = workspaces.create("dev", Plan::Free).await.unwrap();
    let directory = tempfile::TempDir::new().unwrap();
    let mut bash = Command::new("bash");
    bash.args(["-euo", "pipefail", "-c", script])
        .current_dir(directory.path())
        .env("SVC_CREDENTIAL", namespace.credential)
        .stdin(Stdio::null());
    let output = run_command(bash).await;
    assert!(output.success, "{}\n{}", output.stdout, output.stderr);
    for shown in shown {
        assert!(
            output.stdout.contains(*shown),
            "{shown} in:\n{}",
            output.stdout
        );
    }
}

/// A page without these is in quirks mode, in another language than it says, unreadable in half of the world, or shrunk on a phone.
#[test]
fn sample_pages_are_whole_documents() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let guides = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let guides = guides.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let mut texts: Vec<String> = guides
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    texts.extend([DOCUMENTS[0].to_owned(), GUIDE.to_owned()]);
    let mut pages = 0;
    for page in texts
        .iter()
        .flat_map(|text| text.split("<!doctype html>").skip(1))
    {
        let head = page.split("</title>").next().unwrap();
        let head = head.replace(['"', '\'', '\\'], "");
        for part in [
            "<html lang=en>",
            "<meta charset=utf-8>",
            "<meta name=viewport content=width=device-width>",
            "<title>",
        ] {
            assert!(head.contains(part), "{part} in {head}");
        }
        pages += 1;
    }
    assert!(pages > 6, "{pages}");
}
