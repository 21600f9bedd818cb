//! Secrets stay secret: modes of what is stored, what is left of what was deleted, and commands that make nothing unasked.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use svc_tests::{Output, ReadAnswer, TestServer, disk, run_command, wait_until};
use tempfile::TempDir;

use crate::svc;

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// Lists a directory and everything below it, without links.
fn paths_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = vec![directory.to_owned()];
    let mut next = 0;
    while let Some(path) = found.get(next).cloned() {
        next += 1;
        if path.is_dir() {
            let entries = std::fs::read_dir(path).unwrap();
            found.extend(entries.map(|entry| entry.unwrap().path()));
        }
    }
    found
}

/// Opens a directory with everything below it to everybody, as `mkdir` and an older version did.
fn make_world_readable(directory: &Path) {
    for path in paths_below(directory) {
        set_mode(&path, if path.is_dir() { 0o755 } else { 0o644 });
    }
}

#[track_caller]
fn assert_private(directory: &Path, after: &str) {
    let open: Vec<_> = paths_below(directory)
        .into_iter()
        .filter(|path| std::fs::metadata(path).is_ok_and(|found| found.mode() & 0o077 != 0))
        .collect();
    assert!(open.is_empty(), "after {after}: {open:?}");
}

#[tokio::test]
async fn every_command_closes_a_directory_that_is_open() {
    let root = TempDir::new().unwrap();
    let data = root.path().join("data");
    std::fs::create_dir(&data).unwrap();
    set_mode(&data, 0o755);
    let made = svc().run(&data, &["namespace", "create", "acme"]).await;
    assert!(made.success, "{made:?}");
    assert_private(&data, "namespace create");

    make_world_readable(&data);
    let server = svc().serve(&data, &[]).await;
    let secret = json!({ "content": "x", "name": "safe", "password": "p" });
    server.json("/api/v1/deploy", &secret).await.expect(201);
    let once = json!({ "content": "x", "one_time": true });
    server.json("/api/v1/deploy", &once).await.expect(201);
    assert_private(&data, "serve");

    let backup = root.path().join("backup");
    std::fs::create_dir(&backup).unwrap();
    let to = backup.to_str().unwrap();
    for command in [
        &["namespace", "list"][..],
        &["key", "list", "acme"],
        &["deployment", "list"],
        &["project", "list"],
        &["report", "list"],
        &["status"],
        &["guest", "status"],
        &["check"],
        &["backup", to],
    ] {
        make_world_readable(&data);
        make_world_readable(&backup);
        let output = svc().run(&data, command).await;
        assert_eq!(output.success, command[0] != "check", "{output:?}");
        assert_private(&data, command[0]);
        if command[0] != "check" {
            let warned = output
                .stderr
                .contains("was open to other users (mode 0755)");
            assert!(warned, "{output:?}");
        }
    }
    assert_private(&backup, "backup");
    server.kill().await;

    let restored = root.path().join("restored");
    std::fs::create_dir(&restored).unwrap();
    set_mode(&restored, 0o755);
    let output = svc().run(&restored, &["restore", to]).await;
    assert!(output.success, "{output:?}");
    assert_private(&restored, "restore");
}

#[tokio::test]
async fn a_check_reports_what_others_can_read() {
    let server = TestServer::start().await;
    server.publish_slug(&json!({ "content": "x" })).await;
    let check = async || server.command(&svc(), &["check", "--json"]).await;
    assert!(check().await.success);
    make_world_readable(server.data());
    let output = check().await;
    assert!(!output.success);
    let found: Value = serde_json::from_str(&output.stdout).unwrap();
    let error = found["errors"][0].as_str().unwrap();
    for part in ["open to other users", "0755", "control.db"] {
        assert!(error.contains(part), "{error}");
    }
    assert!(check().await.success, "it is closed now");
}

#[tokio::test]
async fn in_a_directory_of_other_things_only_ours_are_closed() {
    let root = TempDir::new().unwrap();
    let photos = root.path().join("photos");
    let photo = photos.join("holiday.jpg");
    std::fs::create_dir(&photos).unwrap();
    std::fs::write(&photo, "x").unwrap();
    make_world_readable(&photos);
    for command in [&["namespace", "list"][..], &["status"], &["check"]] {
        let output = svc().run(&photos, command).await;
        assert!(!output.success, "{command:?}");
        assert!(output.stderr.contains("photos"), "{output:?}");
        assert_eq!(disk::names(&photos), ["holiday.jpg"], "{command:?}");
    }
    let server = svc().serve(&photos, &[]).await;
    let secret = json!({ "content": "x", "name": "safe", "password": "p" });
    server.json("/api/v1/deploy", &secret).await.expect(201);
    for entry in std::fs::read_dir(&photos).unwrap() {
        let path = entry.unwrap().path();
        if path != photo {
            assert_private(&path, "serve");
        }
    }
    let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!((mode(&photos), mode(&photo)), (0o755, 0o644));
    server.kill().await;
    set_mode(&photos, 0o777);
    let refused = svc().run(&photos, &["namespace", "list"]).await;
    assert!(refused.stderr.contains("of its own"), "{refused:?}");
}

/// The commands that work on an installation that is there.
const COMMANDS: [&[&str]; 15] = [
    &["status"],
    &["namespace", "list"],
    &["namespace", "plan", "acme", "pro"],
    &["namespace", "delete", "acme"],
    &["key", "create", "acme"],
    &["key", "list", "acme"],
    &["key", "revoke", "acme", "zzzzzzzz"],
    &["deployment", "list"],
    &["deployment", "show", "x"],
    &["deployment", "disable", "x"],
    &["project", "list"],
    &["report", "list"],
    &["guest", "status"],
    &["check"],
    &["backup", "b"],
];

#[tokio::test]
async fn a_command_makes_nothing_where_nothing_is() {
    let root = TempDir::new().unwrap();
    let empty = root.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let missing = root.path().join("typo");
    for command in COMMANDS {
        for data in [&missing, &empty] {
            if *data == empty && command[0] == "guest" {
                // Guests may be installed before the first start.
                continue;
            }
            let mut run = svc().command();
            run.args(command).env("SVC_DATA", data);
            run.current_dir(root.path());
            let output = run_command(run).await;
            assert!(!output.success, "{command:?}");
            let name = data.file_name().unwrap().to_str().unwrap();
            assert!(output.stderr.contains(name), "{command:?}: {output:?}");
            assert_eq!(
                disk::names(root.path()),
                Vec::<String>::new(),
                "{command:?}"
            );
            assert!(!missing.exists(), "{command:?}");
        }
    }
    // A directory that nobody has named is not made, and none for a name that cannot be.
    let mut unnamed = svc().command();
    unnamed.args(["namespace", "create", "acme"]);
    unnamed.current_dir(root.path());
    let output = run_command(unnamed).await;
    assert!(
        !output.success && output.stderr.contains("--data"),
        "{output:?}"
    );
    let output = svc()
        .run(&missing, &["namespace", "create", "No Name"])
        .await;
    assert!(!output.success);
    assert!(!missing.exists() && !root.path().join("data").exists());
    // A named data directory is created, and the command says so.
    let output = svc().run(&missing, &["namespace", "create", "acme"]).await;
    assert!(
        output.success && output.stderr.contains("made the data directory"),
        "{output:?}"
    );
}

#[tokio::test]
async fn a_start_that_fails_leaves_nothing_behind() {
    let root = TempDir::new().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    let cache = root.path().join("cache");
    std::fs::create_dir(&cache).unwrap();
    set_mode(&cache, 0o755);
    let cache = cache.to_str().unwrap().to_owned();
    let config = root.path().join("svc.toml");
    std::fs::write(&config, "[limits]\ndeploy_burst = 0\n").unwrap();
    let config = config.to_str().unwrap().to_owned();
    for (arguments, says) in [
        (vec!["--base-url", "https://example.com/path"], "base_url"),
        (vec!["--listen", &taken], "listening on"),
        (
            vec!["--listen", "127.0.0.1:0", "--ops-listen", &taken],
            "listening on",
        ),
        (vec!["--listen", "127.0.0.1:0", "--cache", &cache], "0700"),
        (
            vec!["--listen", "127.0.0.1:0", "--config", &config],
            "deploy_burst",
        ),
    ] {
        let data = root.path().join("a/b");
        for there in [false, true] {
            if there {
                std::fs::create_dir_all(&data).unwrap();
            }
            let output = svc()
                .run(&data, &[&["serve"][..], &arguments].concat())
                .await;
            assert!(!output.success, "{arguments:?}");
            assert!(output.stderr.contains(says), "{arguments:?}: {output:?}");
            if there {
                assert_eq!(
                    std::fs::read_dir(&data).unwrap().count(),
                    0,
                    "{arguments:?}"
                );
                std::fs::remove_dir_all(root.path().join("a")).unwrap();
            } else {
                assert!(!root.path().join("a").exists(), "{arguments:?}");
            }
        }
    }
}

/// The password hashes of shares, by their slugs.
fn password_hashes(data: &Path) -> Vec<(String, String)> {
    let control = rusqlite::Connection::open(data.join("control.db")).unwrap();
    let mut hashes = control
        .prepare("SELECT slug, password_hash FROM deployments WHERE password_hash IS NOT NULL")
        .unwrap();
    let rows = hashes.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    rows.unwrap().map(Result::unwrap).collect()
}

async fn back_up(server: &TestServer, to: &Path) -> Output {
    let output = server
        .command(&svc(), &["backup", to.to_str().unwrap()])
        .await;
    assert!(output.success, "{output:?}");
    output
}

#[tokio::test]
async fn nothing_is_left_of_shares_that_are_read_once() {
    let server = TestServer::builder().system_clock().start().await;
    let kept = json!({ "content": "x", "name": "kept-share", "password": "p" });
    server.publish_slug(&kept).await;
    for n in 0..12 {
        let once = json!({
            "content": "x", "name": format!("once-number-{n:02}"), "password": "p", "one_time": true,
        });
        let request = server.json("/api/v1/deploy", &once);
        let request = request.header("idempotency-key", format!("key-{n}"));
        request.answer().await.expect(201);
    }
    let all = password_hashes(server.data());
    assert_eq!(all.len(), 13);
    let (burnt, left) = (&"once-number-00"[..13], "once-number-1");
    for n in 0..10 {
        let slug = format!("once-number-{n:02}");
        let cookie = server.unlock(&slug, "p").await;
        let read = server.post(&format!("/{slug}")).header("cookie", cookie);
        read.answer().await.expect(200);
    }
    // The live installation, its log too.
    let gone = |slug: &str| slug.starts_with(burnt);
    let look = || {
        let found = all.iter().filter(|(slug, _)| gone(slug));
        let found: Vec<_> = found
            .flat_map(|(_, hash)| disk::holding(server.data(), hash))
            .collect();
        found.is_empty().then_some(())
    };
    wait_until("the hashes of burnt shares to be gone", async || look()).await;
    // A backup has neither those that were burnt nor those that were not.
    let root = TempDir::new().unwrap();
    let backup = root.path().join("backup");
    back_up(&server, &backup).await;
    for (slug, hash) in &all {
        let held = [disk::holding(&backup, hash), disk::holding(&backup, slug)];
        let expected = slug == "kept-share";
        assert_eq!(held.iter().all(|held| !held.is_empty()), expected, "{slug}");
        assert_eq!(held.iter().any(|held| !held.is_empty()), expected, "{slug}");
    }
    assert!(disk::holding(&backup, "once-number").is_empty());
    assert!(
        !disk::holding(server.data(), left).is_empty(),
        "there still"
    );
}

/// Leftovers of an earlier version, in an installation's database, go when it is opened. The schema before anything was
/// overwritten.
const FOURTH_SCHEMA: [&str; 4] = [
    include_str!("../../host/migrations/0001_house.sql"),
    include_str!("../../host/migrations/0002_projects.sql"),
    include_str!("../../host/migrations/0003_backends.sql"),
    include_str!("../../host/migrations/0004_guests.sql"),
];

#[tokio::test]
async fn residue_of_an_earlier_version_goes_with_the_first_start() {
    let root = TempDir::new().unwrap();
    let data = root.path().join("data");
    let made = svc().run(&data, &["namespace", "create", "acme"]).await;
    assert!(made.success, "{made:?}");
    {
        let file = data.join("control.db");
        std::fs::remove_file(&file).unwrap();
        let control = rusqlite::Connection::open(&file).unwrap();
        // Data as a version with the fourth schema left it.
        for script in FOURTH_SCHEMA {
            control.execute_batch(script).unwrap();
        }
        control
            .execute_batch(
                "PRAGMA secure_delete = OFF;
                 PRAGMA user_version = 4;
                 PRAGMA journal_mode = WAL;
                 INSERT INTO secrets VALUES ('old', CAST('residue-of-old-times' AS BLOB));
                 DELETE FROM secrets WHERE name = 'old';
                 PRAGMA wal_checkpoint(TRUNCATE);",
            )
            .unwrap();
    }
    assert!(!disk::holding(&data, "residue-of-old-times").is_empty());
    let server = svc().serve(&data, &[]).await;
    let gone = async || {
        disk::holding(&data, "residue-of-old-times")
            .is_empty()
            .then_some(())
    };
    wait_until("the residue to be gone", gone).await;
    server.kill().await;
}
