//! Named pipes, links and folders where files are expected: each is refused by its name, and nothing hangs.

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::names::VictimFolder;
use super::{run, serve_forgery};

/// Kind of entry in place of a file.
#[derive(Clone, Copy, Debug)]
enum Replacement {
    Pipe,
    LinkInside,
    LinkOutside,
    LinkToDevice,
    LinkToNothing,
    Folder,
}

const ALL: [(Replacement, &str); 6] = [
    (Replacement::Pipe, "named pipe"),
    (Replacement::LinkInside, "symbolic link"),
    (Replacement::LinkOutside, "symbolic link"),
    (Replacement::LinkToDevice, "symbolic link"),
    (Replacement::LinkToNothing, "symbolic link"),
    (Replacement::Folder, "a directory"),
];

/// Replaces the file of this name.
fn replace_with(trap: &VictimFolder, name: &str, what: Replacement) {
    let path = trap.path_of(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    // Removes the earlier entry.
    let _ = std::fs::remove_file(&path);
    let link = |to: &str| std::os::unix::fs::symlink(to, &path).unwrap();
    match what {
        Replacement::Pipe => {
            mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        }
        Replacement::LinkInside => link(trap.path_of("work/copy/page.md").to_str().unwrap()),
        Replacement::LinkOutside => link(trap.path_of("victim/settings.sql").to_str().unwrap()),
        Replacement::LinkToDevice => link("/dev/zero"),
        Replacement::LinkToNothing => link("nowhere"),
        Replacement::Folder => std::fs::create_dir(&path).unwrap(),
    }
}

async fn serve_truth() -> std::net::SocketAddr {
    serve_forgery().await.1
}

#[tokio::test]
async fn what_is_no_file_in_a_folder_is_refused_by_name() {
    let server = serve_truth().await;
    for (what, said) in ALL {
        for (name, commands) in [
            ("actions/a.sql", &["apply", "dev"][..]),
            ("migrations/0001.sql", &["apply", "dev", "pull"]),
            ("shop.md", &["apply", "dev", "pull"]),
            ("svc.toml", &["apply", "dev", "pull"]),
        ] {
            let trap = VictimFolder::new();
            let manifest = "project = 'Shop'\n[pages]\npage = 'shop.md'\n";
            std::fs::write(trap.path_of("work/copy/svc.toml"), manifest).unwrap();
            std::fs::write(trap.path_of("work/copy/shop.md"), "# Shop").unwrap();
            replace_with(&trap, &format!("work/copy/{name}"), what);
            let before = trap.snapshot();
            for command in commands {
                let output = run(&trap, server, &[command, "copy"]).await;
                let case = format!("{what:?} {command} {name}: {output:?}");
                assert_eq!(output.code, Some(1), "{case}");
                let is_named = output.stderr.contains(said) && output.stderr.contains(name);
                assert!(is_named, "{case}");
                assert!(trap.snapshot() == before, "{case}");
            }
        }
    }
}

#[tokio::test]
async fn what_is_no_file_is_not_written_to() {
    let server = serve_truth().await;
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
            // The last of the manual's pages: none is written.
            ("svc.1", &["man", "copy"]),
        ] {
            let trap = VictimFolder::new();
            replace_with(&trap, &format!("work/copy/{name}"), what);
            let before = trap.snapshot();
            let output = run(&trap, server, arguments).await;
            let case = format!("{what:?} {arguments:?}: {output:?}");
            assert_eq!(output.code, Some(1), "{case}");
            let is_named = output.stderr.contains(said) && output.stderr.contains(name);
            assert!(is_named, "{case}");
            assert!(trap.snapshot() == before, "{case}");
        }
    }
}

/// Somebody else may have made the link that a pattern of the command line names, or swap a file that is watched for one.
#[tokio::test]
async fn what_is_no_file_is_not_sent() {
    let server = serve_truth().await;
    for (what, said) in ALL {
        let trap = VictimFolder::new();
        replace_with(&trap, "work/copy/sent.sql", what);
        for arguments in [
            &["publish", "copy/sent.sql"][..],
            &["publish", "copy/sent.sql", "--project", "Shop"],
            &["push", "copy/sent.sql", "--slug", "page"],
            &["watch", "copy/sent.sql", "--slug", "page"],
            &["frontend", "diff", "page", "copy/sent.sql"],
            &["action", "define", "copy/sent.sql"],
            &["backend", "create", "copy/sent.sql"],
            &["backend", "migrate", "copy/sent.sql"],
        ] {
            let output = run(&trap, server, arguments).await;
            let case = format!("{what:?} {arguments:?}: {output:?}");
            assert_eq!(output.code, Some(1), "{case}");
            // A folder is published as a site; this one has nothing in it, and the live page is none.
            let said = match (what, arguments[0]) {
                (Replacement::Folder, "publish" | "push") => "Nothing to publish",
                (Replacement::Folder, "watch" | "frontend") => "no site",
                _ => said,
            };
            assert!(output.stderr.contains(said), "{case}");
            let named = match said {
                "no site" => "`page`",
                _ => "copy/sent.sql",
            };
            assert!(output.stderr.contains(named), "{case}");
        }
    }
    let trap = VictimFolder::new();
    replace_with(&trap, "work/copy/sent.md", Replacement::LinkInside);
    let output = run(&trap, server, &["publish", "copy/sent.md"]).await;
    // The user may mean the file behind it.
    let target = trap.path_of("work/copy/page.md");
    assert!(
        output.stderr.contains(target.to_str().unwrap()),
        "{output:?}"
    );
    let output = run(&trap, server, &["publish", target.to_str().unwrap()]).await;
    assert!(output.success, "{output:?}");
    // The folder of the file may be a link of the user's.
    let output = run(&trap, server, &["publish", "copy/link/settings.md"]).await;
    assert!(output.success, "{output:?}");
}

/// A manifest says what is published and in which project: one of another user, as in `/tmp`, is not followed unasked.
#[tokio::test]
async fn another_users_manifest_is_refused() {
    // Only root can give a file away.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let server = serve_truth().await;
    let trap = VictimFolder::new();
    for folder in ["work", "work/copy"] {
        let manifest = trap.path_of(&format!("{folder}/svc.toml"));
        std::fs::write(&manifest, "project = 'Shop'\n").unwrap();
        std::os::unix::fs::chown(&manifest, Some(65_534), None).unwrap();
    }
    let before = trap.snapshot();
    for (arguments, remedy) in [
        (&["apply", "copy", "--yes"][..], "--any-owner"),
        (&["pull", "copy", "--yes"], "--any-owner"),
        (&["frontend", "list"], "--project"),
        (&["backend", "export"], "--project"),
    ] {
        let output = run(&trap, server, arguments).await;
        let case = format!("{arguments:?}: {output:?}");
        assert_eq!(output.code, Some(1), "{case}");
        let is_told = output.stderr.contains("svc.toml belongs to the user 65534")
            && output.stderr.contains(remedy);
        assert!(is_told, "{case}");
        assert!(trap.snapshot() == before, "{case}");
    }
    for arguments in [
        &["frontend", "list", "--project", "Shop"][..],
        &["apply", "copy", "--plan", "--any-owner"],
    ] {
        let output = run(&trap, server, arguments).await;
        assert!(output.success, "{arguments:?}: {output:?}");
    }
}

/// Every command looks for the manifest of the folder that it is run in, which may be anybody's.
#[tokio::test]
async fn a_manifest_that_is_no_file_hangs_no_command() {
    let server = serve_truth().await;
    for (what, said) in ALL {
        let trap = VictimFolder::new();
        replace_with(&trap, "work/svc.toml", what);
        for arguments in [&["frontend", "list"][..], &["backend", "show"], &["apply"]] {
            let output = run(&trap, server, arguments).await;
            assert_eq!(output.code, Some(1), "{what:?} {arguments:?}: {output:?}");
            assert!(
                output.stderr.contains(said),
                "{what:?} {arguments:?}: {output:?}"
            );
            // What stands in the way need not be read.
            let is_told = arguments == ["apply"] || output.stderr.contains("`--project`");
            assert!(is_told, "{what:?} {arguments:?}: {output:?}");
        }
    }
}

/// A link may lead out of the folder, and one that stays inside may lead to hidden files.
#[tokio::test]
async fn a_folder_that_leads_elsewhere_is_not_entered() {
    let server = serve_truth().await;
    let trap = VictimFolder::new();
    let manifest = trap.path_of("work/copy/svc.toml");
    std::os::unix::fs::symlink("actions", trap.path_of("work/copy/inside")).unwrap();
    for (folder, said) in [
        ("link", "link is a symbolic link"),
        ("inside", "inside is a symbolic link"),
        ("..", "Outside of the folder"),
        ("../../victim", "Outside of the folder"),
        ("link/..", "Outside of the folder"),
        ("/etc", "Outside of the folder"),
        (".git", ".git is hidden"),
    ] {
        for name in ["actions", "migrations"] {
            let text = format!("project = 'Shop'\n{name} = '{folder}'\n");
            std::fs::write(&manifest, text).unwrap();
            let before = trap.snapshot();
            for command in ["apply", "pull", "dev"] {
                let output = run(&trap, server, &[command, "copy"]).await;
                let case = format!("{command} {name} {folder}: {output:?}");
                assert_eq!(output.code, Some(1), "{case}");
                assert!(output.stderr.contains(said), "{case}");
                assert!(trap.snapshot() == before, "{case}");
            }
        }
    }
}

/// Behind a link of the repository, git's own files would be published, and written for git to believe.
#[tokio::test]
async fn a_link_leads_to_no_hidden_file() {
    let server = serve_truth().await;
    let trap = VictimFolder::new();
    std::fs::create_dir(trap.path_of("work/copy/.git")).unwrap();
    std::fs::write(trap.path_of("work/copy/.git/config"), "token").unwrap();
    std::os::unix::fs::symlink(".git", trap.path_of("work/copy/pub")).unwrap();
    for file in ["pub/config", "pub/commondir"] {
        let text = format!("project = 'Shop'\n[pages]\npage = '{file}'\n");
        std::fs::write(trap.path_of("work/copy/svc.toml"), text).unwrap();
        let before = trap.snapshot();
        for arguments in [
            &["apply", "copy", "--yes"][..],
            &["pull", "copy", "--yes"],
            &["dev", "copy"],
        ] {
            let output = run(&trap, server, arguments).await;
            let case = format!("{arguments:?} {file}: {output:?}");
            assert_eq!(output.code, Some(1), "{case}");
            assert!(output.stderr.contains("pub is a symbolic link"), "{case}");
            assert!(trap.snapshot() == before, "{case}");
        }
    }
}
