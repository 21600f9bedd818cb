//! The README's life of a project and of its backend, line by line, as they stand there.

use std::process::{Command, Stdio};

use svc::workspaces::Plan;
use svc_tests::{TestServer, finish};

const README: &str = include_str!("../../README.md");

#[tokio::test]
async fn every_line_of_the_life_of_a_project_works() {
    let shown = ["<h1", "now open", "\"kind\":\"rollback\"", "\"members\":[{"];
    runs("## A project, from beginning to end", &shown).await;
}

#[tokio::test]
async fn every_line_of_the_life_of_a_backend_works() {
    let shown = [
        "\"returns_rows\":true",
        "\"rows_affected\":1",
        "\"text\":\"I was here\"",
        "\"rows\":[{\"n\":1}]",
        "\"status\":\"applied\"",
        "\"note\":\"People like notes\"",
    ];
    runs("### A backend for it", &shown).await;
}

/// Runs the first script of a section, whose output shows all of `shown`.
async fn runs(section: &str, shown: &[&str]) {
    let server = TestServer::start().await;
    let workspaces = &server.server().app().workspaces;
    let namespace = workspaces.create("dev", Plan::Free).await.unwrap();
    let section = README.split(section).nth(1).unwrap();
    let script = section
        .split("```sh\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    assert!(script.lines().count() > 10, "the script is not there");
    let script = script.replace(
        "localhost:8080",
        &format!("localhost:{}", server.address().port()),
    );
    let mut bash = Command::new("bash");
    bash.args(["-euo", "pipefail", "-c", &script])
        .env("CREDENTIAL", namespace.credential)
        .stdin(Stdio::null());
    let output = finish(bash).await;
    assert!(output.success, "{}\n{}", output.stdout, output.stderr);
    for shown in shown {
        assert!(
            output.stdout.contains(*shown),
            "{shown} in:\n{}",
            output.stdout
        );
    }
}
