//! The guide of several machines: its commands as they stand there, in their order and in one shell, with the ports that they name.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use svc_tests::run_command;
use tempfile::TempDir;

use crate::svc;

const GUIDE: &str = include_str!("../../docs/cluster.md");
/// Fence of a block that is run here.
const FENCE: &str = "```sh cluster\n";
/// Line that stands before the output of each block.
const MARK: &str = "=== block";
/// Seconds after which commands that wait for something are given up.
const DEADLINE: &str = "300";

/// Beginning of the script: when a command has failed, it shows the logs of the nodes, and ends all that is left.
const PRELUDE: &str = "
trap '{ tail -n 20 try/*.log; kill -9 $(jobs -p); packaging/try-postgres stop try/postgres; } >&2 2>/dev/null || true' EXIT
command -v caddy >/dev/null || { echo 'caddy is not installed' >&2; exit 1; }
set -x
";

/// The commands, with a mark before each block.
fn script() -> String {
    let blocks = GUIDE.split(FENCE).skip(1);
    let blocks = blocks.map(|block| block.split_once("\n```").unwrap().0);
    blocks
        .map(|block| format!("echo '{MARK}'\n{block}\n"))
        .collect()
}

/// Texts that the guide says are shown.
fn expected_texts() -> impl Iterator<Item = &'static str> {
    let notes = GUIDE.split("<!-- shows: ").skip(1);
    notes.map(|note| note.split_once(" -->").unwrap().0)
}

/// Runs the commands in a directory of their own; returns what they printed.
async fn run_guide() -> String {
    let here = TempDir::with_prefix("svc-guide-").unwrap();
    // As root PostgreSQL is another user, who has to reach its directory.
    let open = std::fs::Permissions::from_mode(0o711);
    std::fs::set_permissions(here.path(), open).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    symlink(root.join("packaging"), here.path().join("packaging")).unwrap();
    let programs = here.path().join("bin");
    std::fs::create_dir(&programs).unwrap();
    symlink(svc().command().get_program(), programs.join("svc")).unwrap();
    let others = std::env::var("PATH").unwrap();
    let script = format!("{PRELUDE}{}", script());
    let mut command = Command::new("timeout");
    command
        .args([DEADLINE, "bash", "-euo", "pipefail", "-c", &script])
        .current_dir(here.path())
        .env("PATH", format!("{}:{others}", programs.display()))
        .env("HOME", here.path())
        .stdin(Stdio::null());
    let environment = svc().command();
    let environment = environment.get_envs();
    command.envs(environment.filter_map(|(name, value)| Some((name, value?))));
    let ran = run_command(command).await;
    assert!(ran.success, "{}\n{}", ran.stdout, ran.stderr);
    assert!(!here.path().join("try").exists(), "something is left");
    ran.stdout
}

/// Number of times that a text stands in the output of a block.
fn count(printed: &str, text: &str) -> usize {
    printed.matches(text).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_follows_the_guide_has_three_nodes_of_which_one_may_die() {
    let printed = run_guide().await;
    for text in expected_texts() {
        assert!(printed.contains(text), "`{text}` in:\n{printed}");
    }
    let blocks: Vec<_> = printed.split(MARK).skip(1).collect();
    let [_, started, _, page, book, killed, back, _] = blocks[..] else {
        panic!("the guide has other blocks:\n{printed}")
    };
    for node in ["n1", "n2", "n3"] {
        assert!(started.lines().any(|line| line.starts_with(node)));
        // Each has signed, and each shows what all have signed.
        let signed = format!(r#""text":"at {node}""#);
        assert_eq!(count(book, &signed), 3, "{book}");
    }
    assert_eq!(count(page, "<title>Hello"), 3, "{page}");

    assert_eq!(count(killed, "<title>Hello"), 1, "{killed}");
    assert_eq!(count(killed, "<title>Later"), 2, "{killed}");
    assert_eq!(count(killed, r#""text":"after n1""#), 2, "{killed}");
    assert_eq!(count(killed, "svc_cluster_control 1\n"), 1, "{killed}");
    assert_eq!(count(killed, "svc_takeovers_total 1\n"), 1, "{killed}");
    let dead = |line: &str| line.starts_with("n1") && line.contains(" dead ");
    assert!(killed.lines().any(dead), "{killed}");
    assert_eq!(count(back, "<title>Later"), 1, "{back}");
}
