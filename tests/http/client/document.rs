//! Documents that are made of the commands themselves: help, completions, the manual. `guides/` runs what
//! `docs/client.md` shows.

use std::process::Command;

use clap::Subcommand as _;
use svc_tests::run_command;

use crate::svc;

const DOCUMENT: &str = include_str!("../../../docs/client.md");

#[tokio::test]
async fn every_command_is_in_the_document_and_answers_in_json() {
    let clients = svc::client::ClientCommand::augment_subcommands(clap::Command::new("svc"));
    let ours = clients.get_subcommands().map(clap::Command::get_name);
    let ours: Vec<_> = ours.chain(["project", "completions", "man"]).collect();
    assert!(ours.len() > 15, "{ours:?}");
    for name in ours {
        assert!(DOCUMENT.contains(&format!("svc {name}")), "{name}");
        // Each takes `--json`, or is a group whose commands do.
        let help = run_command(command(&[name, "--help"])).await.stdout;
        let group = help.contains("Commands:");
        assert!(
            group || help.contains("--json") || ["completions", "man"].contains(&name),
            "{name}"
        );
    }
}

#[tokio::test]
async fn shells_complete_and_the_manual_is_written() {
    for shell in ["bash", "zsh", "fish"] {
        let output = run_command(command(&["completions", shell])).await;
        assert!(
            output.success && output.stdout.contains("unpublish"),
            "{shell}: {output:?}"
        );
    }
    let script = run_command(command(&["completions", "bash"])).await.stdout;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), script).unwrap();
    let complete =
        "source $0; COMP_WORDS=(svc publ) COMP_CWORD=1; _svc svc publ svc; echo ${COMPREPLY[*]}";
    let mut bash = Command::new("bash");
    bash.args(["-c", complete]).arg(file.path());
    let completed = run_command(bash).await;
    assert_eq!(completed.stdout, "publish\n", "{completed:?}");
    let directory = tempfile::TempDir::new().unwrap();
    let written = run_command(command(&["man", directory.path().to_str().unwrap()])).await;
    assert!(written.success, "{written:?}");
    for (page, text) in [
        ("svc.1", "svc\\-publish(1)"),
        ("svc-publish.1", "one\\-time"),
        ("svc-backend-query.1", "SELECT"),
    ] {
        let page = std::fs::read_to_string(directory.path().join(page)).unwrap();
        assert!(page.contains(text), "{text}: {page}");
    }
}

fn command(arguments: &[&str]) -> Command {
    let mut command = svc().command();
    command.args(arguments);
    command
}
