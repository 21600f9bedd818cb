//! Named pipes, links and folders where files are expected: each is refused by its name, and nothing hangs.

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;
use std::sync::{Arc, Mutex};

use super::names::Trap;
use super::{Lie, Member, liar, run};

/// Kind of a thing that lies where a file should.
#[derive(Clone, Copy, Debug)]
enum Instead {
    Pipe,
    LinkInside,
    LinkOutside,
    LinkToDevice,
    LinkToNothing,
    Folder,
}

const ALL: [(Instead, &str); 6] = [
    (Instead::Pipe, "named pipe"),
    (Instead::LinkInside, "symbolic link"),
    (Instead::LinkOutside, "symbolic link"),
    (Instead::LinkToDevice, "symbolic link"),
    (Instead::LinkToNothing, "symbolic link"),
    (Instead::Folder, "a directory"),
];

/// Puts something at a name of the trap.
fn put(trap: &Trap, name: &str, what: Instead) {
    let path = trap.at(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    // What was there before it.
    let _ = std::fs::remove_file(&path);
    let link = |to: &str| std::os::unix::fs::symlink(to, &path).unwrap();
    match what {
        Instead::Pipe => mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap(),
        Instead::LinkInside => link(trap.at("work/copy/page.md").to_str().unwrap()),
        Instead::LinkOutside => link(trap.at("victim/settings.sql").to_str().unwrap()),
        Instead::LinkToDevice => link("/dev/zero"),
        Instead::LinkToNothing => link("nowhere"),
        Instead::Folder => std::fs::create_dir(&path).unwrap(),
    }
}

async fn truthful() -> std::net::SocketAddr {
    let truth: Lie = Arc::new(Mutex::new((Member::Slug, Value::from("page"))));
    liar(truth).await
}

#[tokio::test]
async fn what_is_no_file_in_a_folder_is_refused_by_name() {
    let server = truthful().await;
    for (what, said) in ALL {
        for (name, commands) in [
            ("actions/a.sql", &["apply", "dev"][..]),
            ("migrations/0001.sql", &["apply", "dev", "pull"]),
            ("shop.md", &["apply", "dev", "pull"]),
            ("svc.toml", &["apply", "dev", "pull"]),
        ] {
            let trap = Trap::new();
            let manifest = "project = 'Shop'\n[pages]\npage = 'shop.md'\n";
            std::fs::write(trap.at("work/copy/svc.toml"), manifest).unwrap();
            std::fs::write(trap.at("work/copy/shop.md"), "# Shop").unwrap();
            put(&trap, &format!("work/copy/{name}"), what);
            let before = trap.tree();
            for command in commands {
                let output = run(&trap, server, &[command, "copy"]).await;
                let case = format!("{what:?} {command} {name}: {output:?}");
                assert_eq!(output.code, Some(1), "{case}");
                let is_named = output.stderr.contains(said) && output.stderr.contains(name);
                assert!(is_named, "{case}");
                assert!(trap.tree() == before, "{case}");
            }
        }
    }
}

#[tokio::test]
async fn what_is_no_file_is_not_written_to() {
    let server = truthful().await;
    for (what, said) in ALL {
        for (name, arguments) in [
            (
                "page.md",
                &["pull", "copy", "--project", "Shop", "--yes"][..],
            ),
            (
                "actions/theirs.sql",
                &["pull", "copy", "--project", "Shop", "--yes"],
            ),
            ("out", &["backend", "export", "-o", "copy/out", "--force"]),
            (
                "out",
                &["frontend", "content", "page", "-o", "copy/out", "--force"],
            ),
        ] {
            let trap = Trap::new();
            put(&trap, &format!("work/copy/{name}"), what);
            let before = trap.tree();
            let output = run(&trap, server, arguments).await;
            let case = format!("{what:?} {arguments:?}: {output:?}");
            assert_eq!(output.code, Some(1), "{case}");
            let is_named = output.stderr.contains(said) && output.stderr.contains(name);
            assert!(is_named, "{case}");
            assert!(trap.tree() == before, "{case}");
        }
    }
}

/// Every command looks for the manifest of the folder that it is run in, which may be anybody's.
#[tokio::test]
async fn a_manifest_that_is_no_file_hangs_no_command() {
    let server = truthful().await;
    for (what, said) in ALL {
        let trap = Trap::new();
        put(&trap, "work/svc.toml", what);
        for arguments in [&["frontend", "list"][..], &["backend", "show"], &["apply"]] {
            let output = run(&trap, server, arguments).await;
            assert_eq!(output.code, Some(1), "{what:?} {arguments:?}: {output:?}");
            assert!(
                output.stderr.contains(said),
                "{what:?} {arguments:?}: {output:?}"
            );
        }
    }
}

/// Folders of a project may be links as long as they stay inside.
#[tokio::test]
async fn a_folder_that_leads_out_is_not_entered() {
    let server = truthful().await;
    let trap = Trap::new();
    let manifest = trap.at("work/copy/svc.toml");
    for folder in ["link", "..", "../../victim", "link/..", "/etc"] {
        let text = format!("project = 'Shop'\nactions = '{folder}'\n");
        std::fs::write(&manifest, text).unwrap();
        let before = trap.tree();
        for command in ["apply", "pull", "dev"] {
            let output = run(&trap, server, &[command, "copy"]).await;
            let case = format!("{command} {folder}: {output:?}");
            assert_eq!(output.code, Some(1), "{case}");
            assert!(output.stderr.contains("Outside of the folder"), "{case}");
            assert!(trap.tree() == before, "{case}");
        }
    }
}
