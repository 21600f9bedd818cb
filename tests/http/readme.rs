//! The README's life of a project, line by line, as it stands there.

use std::process::{Command, Stdio};

use svc::workspaces::Plan;
use svc_tests::{TestServer, finish};

const README: &str = include_str!("../../README.md");

#[tokio::test]
async fn every_line_of_the_life_of_a_project_works() {
    let server = TestServer::start().await;
    let workspaces = &server.server().app().workspaces;
    let namespace = workspaces.create("dev", Plan::Free).await.unwrap();
    let section = README
        .split("## A project, from beginning to end")
        .nth(1)
        .unwrap();
    let script = section
        .split("```sh\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    assert!(
        script.lines().count() > 10,
        "the life of a project is not there"
    );
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
    for shown in ["<h1", "now open", "\"kind\":\"rollback\"", "\"members\":[{"] {
        assert!(
            output.stdout.contains(shown),
            "{shown} in:\n{}",
            output.stdout
        );
    }
}
