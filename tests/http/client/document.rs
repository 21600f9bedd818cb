//! The commands that `docs/client.md` shows, one after the other, as they stand there; and what is made of the commands themselves.

use std::process::{Command, Stdio};

use rustix::process::Signal;
use svc_tests::finish;

use super::{Desk, Running};
use crate::svc;

const DOCUMENT: &str = include_str!("../../../docs/client.md");

/// Commands that go on until they are told to stop.
const LASTING: [&str; 2] = ["svc watch", "svc dev"];

/// The scripts of a document, in order.
fn scripts(document: &str) -> Vec<&str> {
    let fenced = document.split("```sh\n").skip(1);
    fenced
        .map(|rest| rest.split("```").next().unwrap())
        .collect()
}

/// A shell in the desk's folder, in which `svc` is the program.
fn shell(desk: &Desk, script: &str) -> Command {
    let bin = desk.home.path().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let program = svc().command().get_program().to_owned();
    // It may be there from the script before.
    let _ = std::os::unix::fs::symlink(program, bin.join("svc"));
    let address = format!("localhost:{}", desk.server.address().port());
    let mut bash = desk.bare(&[]);
    let environment: Vec<_> = bash
        .get_envs()
        .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
        .collect();
    bash = Command::new("bash");
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display());
    bash.args([
        "-euo",
        "pipefail",
        "-c",
        &script.replace("localhost:8080", &address),
    ])
    .current_dir(desk.folder.path())
    .env_clear()
    .envs(environment)
    .env("PATH", path)
    .env("SVC_SERVER", format!("http://{address}"))
    .env("CREDENTIAL", &desk.credential)
    .stdin(Stdio::null());
    bash
}

#[tokio::test]
async fn every_command_of_the_document_works() {
    let desk = Desk::new().await;
    let scripts = scripts(DOCUMENT);
    assert!(scripts.len() > 5, "the document has commands");
    let mut lasting = 0;
    for script in scripts {
        if LASTING.iter().any(|command| script.starts_with(command)) {
            lasting += 1;
            let running = Running::start(shell(&desk, &format!("exec {script}")));
            running.lines(1).await;
            running.signal(Signal::INT);
            continue;
        }
        let output = finish(shell(&desk, script)).await;
        assert!(
            output.success,
            "{script}\n{}\n{}",
            output.stdout, output.stderr
        );
    }
    assert_eq!(lasting, LASTING.len());
}

#[tokio::test]
async fn every_command_is_in_the_document() {
    let help = finish(command(&["help"])).await.stdout;
    let commands = help.split("Commands:").nth(1).unwrap();
    let commands = commands.split("Options:").next().unwrap();
    let names: Vec<_> = commands
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let operators = [
        "serve",
        "config",
        "status",
        "namespace",
        "key",
        "deployment",
        "guest",
        "report",
        "check",
        "backup",
        "restore",
        "help",
    ];
    let ours: Vec<_> = names
        .iter()
        .filter(|name| !operators.contains(name))
        .collect();
    assert!(ours.len() > 15, "{ours:?}");
    for name in ours {
        assert!(DOCUMENT.contains(&format!("svc {name}")), "{name}");
        // Each takes `--json`, or is a group whose commands do.
        let help = finish(command(&[name, "--help"])).await.stdout;
        let group = help.contains("Commands:");
        assert!(
            group || help.contains("--json") || ["completions", "man"].contains(name),
            "{name}"
        );
    }
}

#[tokio::test]
async fn shells_complete_and_the_manual_is_written() {
    for shell in ["bash", "zsh", "fish"] {
        let output = finish(command(&["completions", shell])).await;
        assert!(
            output.success && output.stdout.contains("unpublish"),
            "{shell}: {output:?}"
        );
    }
    let script = finish(command(&["completions", "bash"])).await.stdout;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), script).unwrap();
    let complete =
        "source $0; COMP_WORDS=(svc publ) COMP_CWORD=1; _svc svc publ svc; echo ${COMPREPLY[*]}";
    let mut bash = Command::new("bash");
    bash.args(["-c", complete]).arg(file.path());
    let completed = finish(bash).await;
    assert_eq!(completed.stdout, "publish\n", "{completed:?}");
    let directory = tempfile::TempDir::new().unwrap();
    let written = finish(command(&["man", directory.path().to_str().unwrap()])).await;
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
