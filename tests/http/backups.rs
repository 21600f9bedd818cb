//! Backups: made while the server runs, of one moment, put back whole.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::Method;
use serde_json::{Value, json};
use svc::content::Hold;
use svc::data_lock::DataLock;
use svc_tests::{Ask, Output, Process, TestServer, disk};
use tempfile::TempDir;

use crate::account::text;
use crate::house::{GUESTS, House, names as names_of};
use crate::svc;

/// A directory for backups, and what is done with them.
struct Vault {
    directory: TempDir,
}

impl Vault {
    fn new() -> Self {
        Self {
            directory: TempDir::new().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    async fn run(&self, data: &Path, command: &str) -> Output {
        let dir = self.path("backup");
        svc()
            .run(data, &[command, dir.to_str().unwrap(), "--json"])
            .await
    }

    async fn back_up(&self, data: &Path) -> Value {
        self.run(data, "backup").await.json()
    }

    /// Restores into a new directory and finds it whole.
    async fn restore(&self, name: &str) -> PathBuf {
        let data = self.path(name);
        let restored = self.run(&data, "restore").await.json();
        assert_eq!(restored["restored"], true);
        whole(&data).await;
        data
    }
}

/// That everything in a directory is there and nothing else.
async fn whole(directory: &Path) -> Value {
    let found = svc().run(directory, &["check", "--json"]).await.json();
    assert_eq!(
        (&found["errors"], &found["leftovers"]),
        (&json!([]), &json!([]))
    );
    found
}

async fn page(process: &Process, slug: &str) -> String {
    process
        .get(&format!("/{slug}/raw"))
        .await
        .expect(200)
        .text()
        .to_owned()
}

async fn guests(process: &Process) -> Value {
    let call = json!({ "action": "guests", "params": {} });
    process.json("/room/api/op", &call).await.expect(200).json()["rows"].take()
}

/// A house with a guest in its book, two revisions of its page, shares of every kind, and an installed guest.
async fn furnished() -> House {
    let house = House::on(TestServer::builder().system_clock().start().await, GUESTS).await;
    house
        .define(&[
            ("add", "INSERT INTO guests (name) VALUES (:name)"),
            ("guests", "SELECT name FROM guests ORDER BY id"),
        ])
        .await;
    house.done("add", &json!({ "name": "Ada" })).await;
    for body in [
        json!({ "content": "plain", "name": "plain" }),
        json!({ "content": "locked", "name": "locked", "password": "p" }),
        json!({ "content": "read-me-once", "name": "once", "one_time": true }),
        json!({ "content": "taken down", "name": "down" }),
    ] {
        house.server.slug(&body).await;
    }
    let disable = ["deployment", "disable", "down"];
    assert!(house.server.command(&svc(), &disable).await.success);
    let folder = house.server.data().join("guests/render");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("000001-own.wasm"), "no component").unwrap();
    std::fs::write(folder.join(".half"), "being installed").unwrap();
    house
}

#[tokio::test]
async fn everything_comes_back_as_it_was_but_for_what_is_read_once() {
    let (house, vault) = (furnished().await, Vault::new());
    house.server.get("/room").answer().await.expect(200);
    let views = house.server.visits("room").await;
    assert!(views > 0);
    let made = vault.back_up(house.server.data()).await;
    assert_eq!(
        (&made["complete"], &made["one_time_left_out"]),
        (&json!(true), &json!(1))
    );
    assert_eq!(
        (&made["databases"]["files"], &made["guests"]["files"]),
        (&json!(3), &json!(1))
    );
    assert_eq!(made["content"]["copied_files"], made["content"]["files"]);
    assert!(made["content"]["bytes"].as_u64().unwrap() > 0 && made["moment"].is_string());
    let backup = vault.path("backup");
    assert_eq!(disk::holding(&backup, "read-me-once"), Vec::<String>::new());
    let served = svc().run(&backup, &["serve"]).await;
    assert!(
        !served.success && served.stderr.contains("is a backup"),
        "{served:?}"
    );
    whole(&backup).await;
    // What comes later is not in it.
    house.done("add", &json!({ "name": "Grace" })).await;
    house.server.post("/once").answer().await.expect(200);

    let data = vault.restore("data").await;
    let guest = data.join("guests/render/000001-own.wasm");
    assert_eq!(std::fs::read_to_string(guest).unwrap(), "no component");
    assert!(!data.join("guests/render/.half").exists());
    let shown = ["deployment", "show", "room", "--json"];
    let shown = svc().run(&data, &shown).await.json();
    assert_eq!(shown["visits"], views);
    let process = svc().serve(&data, &[]).await;
    assert_eq!(page(&process, "plain").await, "plain");
    assert_eq!(page(&process, "room").await, "# One");
    assert_eq!(process.get("/locked").await.status, 401);
    assert_eq!(process.get("/down").await.status, 403);
    process.get("/once").await.problem(404, "not_found");
    assert_eq!(guests(&process).await, json!([{ "name": "Ada" }]));
    // The owner's credential and the page's history are there, and everything goes on.
    let url = process.url(&format!("/api/v1/projects/{}/backend", house.project));
    let owner = process
        .client()
        .get(url)
        .bearer_auth(&house.owner.credential);
    let detail = owner.answer().await.expect(200).json();
    assert_eq!(detail["migrations"][0]["sql"], GUESTS);
    let add = json!({ "action": "add", "params": { "name": "Joan" } });
    process.json("/room/api/op", &add).await.expect(200);
    process
        .json("/api/v1/deploy", &json!({ "content": "new" }))
        .await
        .expect(201);
    process.kill().await;
    let process = svc().serve(&data, &[]).await;
    assert_eq!(
        guests(&process).await,
        json!([{ "name": "Ada" }, { "name": "Joan" }])
    );
    process.kill().await;
}

#[tokio::test]
async fn what_has_not_changed_is_not_copied_again_and_what_is_gone_goes() {
    let (house, vault) = (furnished().await, Vault::new());
    let first = vault.back_up(house.server.data()).await;
    let objects = first["content"]["files"].as_u64().unwrap();
    let again = vault.back_up(house.server.data()).await;
    assert_eq!(again["content"]["files"], objects);
    assert_eq!(
        (
            &again["content"]["copied_files"],
            &again["guests"]["copied_files"]
        ),
        (&json!(0), &json!(0))
    );
    house.server.slug(&json!({ "content": "one more" })).await;
    let path = format!("/{}/frontends/room", house.project);
    house.owner.delete(&house.server, &path).await.expect(204);
    let more = vault.back_up(house.server.data()).await;
    assert_eq!(more["content"]["copied_files"], 2, "a source and its page");
    let backup = vault.path("backup");
    let found = whole(&backup).await;
    assert_eq!(more["content"]["files"], found["objects"]);
    // One state at a time, and everything is for the operator alone.
    let states = std::fs::read_dir(&backup)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let states: Vec<_> = states
        .filter(|name| name.to_str().unwrap().starts_with("state-"))
        .collect();
    assert_eq!(states, ["state-3"]);
    let mut open = vec![backup];
    while let Some(path) = open.pop() {
        let mode = path.metadata().unwrap().permissions().mode() & 0o777;
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, expected, "{path:?}");
        if path.is_dir() {
            open.extend(
                std::fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
    }
}

#[tokio::test]
async fn damage_is_found_and_mended_by_the_next_backup() {
    let (house, vault) = (furnished().await, Vault::new());
    vault.back_up(house.server.data()).await;
    let backup = vault.path("backup");
    let damage = |needle: &str| {
        let name = disk::holding(&backup.join("content"), needle).remove(0);
        let path = backup.join("content").join(name);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(path, vec![b'x'; bytes.len()]).unwrap();
    };
    damage("plain");
    let checked = svc().run(&backup, &["check"]).await;
    assert!(
        !checked.success && checked.stdout.contains("damaged"),
        "{checked:?}"
    );
    // A restore of it changes nothing.
    let data = vault.restore_refused("data").await;
    assert!(!data.join("control.db").exists() && !data.join("restoring").exists());
    let mended = vault.back_up(house.server.data()).await;
    assert_eq!(
        (&mended["complete"], &mended["content"]["copied_files"]),
        (&json!(true), &json!(1))
    );
    whole(&backup).await;
    // What is damaged where it comes from is still whole in the backup.
    let own = house.server.data().join("content");
    let name = disk::holding(&own, "taken down").remove(0);
    std::fs::write(own.join(name), "taken  own").unwrap();
    assert_eq!(vault.back_up(house.server.data()).await["complete"], true);
    // Without that, no backup is made of it, and the last one stays.
    damage("taken down");
    let refused = vault.run(house.server.data(), "backup").await;
    let said: Value = serde_json::from_str(&refused.stdout).unwrap();
    assert!(!refused.success && said["complete"] == false);
    assert!(!said["errors"].as_array().unwrap().is_empty());
    let state = std::fs::read_to_string(backup.join("backup.json")).unwrap();
    assert!(state.contains("state-3"), "{state}");
}

#[tokio::test]
async fn what_a_tenant_declares_keeps_nobody_from_a_backup() {
    let (house, vault) = (furnished().await, Vault::new());
    for ddl in [
        "CREATE TABLE p (a UNIQUE); CREATE TABLE c (b REFERENCES p (a))",
        "CREATE TABLE odd (a CHECK (random() % 2))",
        "CREATE TABLE n (a)",
    ] {
        house.migrate(ddl).await.expect(200);
    }
    house
        .define(&[
            ("add_p", "INSERT INTO p VALUES (1)"),
            (
                "add_odd",
                "INSERT OR IGNORE INTO odd SELECT value FROM json_each(:values)",
            ),
            ("add_n", "INSERT INTO n VALUES (-9223372036854775808)"),
        ])
        .await;
    house.done("add_p", &json!({})).await;
    house.done("add_n", &json!({})).await;
    let values = serde_json::to_string(&vec![1; 200]).unwrap();
    house.done("add_odd", &json!({ "values": values })).await;
    // A column that cannot be evaluated for the row that is there.
    let overflow = "ALTER TABLE n ADD COLUMN b INTEGER AS (abs(a))";
    house.migrate(overflow).await.expect(200);
    let made = vault.back_up(house.server.data()).await;
    assert_eq!(made["complete"], true);
    let note = text(&made["notes"][0]);
    assert!(note.contains("integer overflow"), "{note}");
    let found = whole(&vault.restore("data").await).await;
    assert_eq!(found["notes"], made["notes"]);
}

#[tokio::test]
async fn a_backup_counts_once_it_is_complete_whatever_fails_then() {
    let (house, vault) = (furnished().await, Vault::new());
    vault.back_up(house.server.data()).await;
    // What was not made by a backup cannot be tidied away as objects are.
    let stranger = vault.path("backup/content/zz/stranger");
    std::fs::create_dir_all(&stranger).unwrap();
    house
        .server
        .slug(&json!({ "content": "newer", "name": "newer" }))
        .await;
    let made = vault.back_up(house.server.data()).await;
    assert_eq!(made["complete"], true);
    assert!(text(&made["notes"][0]).contains("still there"), "{made}");
    std::fs::remove_dir_all(&stranger).unwrap();
    whole(&vault.path("backup")).await;
    let process = svc().serve(&vault.restore("data").await, &[]).await;
    assert_eq!(page(&process, "newer").await, "newer");
    process.kill().await;
}

impl Vault {
    /// Fails to restore; returns the directory.
    async fn restore_refused(&self, name: &str) -> PathBuf {
        let data = self.path(name);
        let refused = self.run(&data, "restore").await;
        assert!(!refused.success, "{refused:?}");
        data
    }
}

#[tokio::test]
async fn a_restore_keeps_what_was_there_and_waits_for_nobody() {
    let (house, vault) = (furnished().await, Vault::new());
    vault.back_up(house.server.data()).await;
    let refused = vault.run(house.server.data(), "restore").await;
    assert!(
        !refused.success && refused.stderr.contains("in use by process"),
        "{refused:?}"
    );
    house
        .server
        .slug(&json!({ "content": "later", "name": "later" }))
        .await;
    let data = house.server.stop().await;
    let hold = Hold::keep(data.path()).unwrap();
    let refused = vault.run(data.path(), "restore").await;
    assert!(
        !refused.success && refused.stderr.contains("backup"),
        "{refused:?}"
    );
    drop(hold);
    let restored = vault.run(data.path(), "restore").await.json();
    let before = data.path().join(text(&restored["before"]));
    assert!(before.join("control.db").is_file());
    whole(data.path()).await;
    let process = svc().serve(data.path(), &[]).await;
    assert_eq!(process.get("/later").await.status, 404);
    assert_eq!(page(&process, "plain").await, "plain");
    process.kill().await;
    // What was there before is a data directory of its own.
    let process = svc().serve(&before, &[]).await;
    assert_eq!(page(&process, "later").await, "later");
    process.kill().await;
    let again = vault.run(data.path(), "restore").await.json();
    assert_ne!(again["before"], restored["before"]);
}

#[tokio::test]
async fn operators_wait_for_a_restore() {
    let data = TestServer::start().await.stop().await;
    let lock = DataLock::take(data.path()).unwrap();
    lock.announce_restore().unwrap();
    let commands: [&[&str]; 4] = [
        &["namespace", "create", "acme"],
        &["namespace", "list"],
        &["deployment", "disable", "page"],
        &["check"],
    ];
    for command in commands {
        let refused = svc().run(data.path(), command).await;
        assert!(
            !refused.success && refused.stderr.contains("a restore, process"),
            "{refused:?}"
        );
    }
    drop(lock);
    for command in &commands[..2] {
        let done = svc().run(data.path(), command).await;
        assert!(done.success, "{done:?}");
    }
}

#[tokio::test]
async fn what_is_no_place_for_a_backup_is_refused() {
    let (house, vault) = (House::new(GUESTS).await, Vault::new());
    let data = house.server.data();
    let other = vault.path("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("holiday.jpg"), "sun").unwrap();
    let newer = vault.path("newer");
    std::fs::create_dir(&newer).unwrap();
    std::fs::write(
        newer.join("backup.json"),
        r#"{"format": 3, "by": "somebody later"}"#,
    )
    .unwrap();
    let missing = vault.path("missing");
    for (command, dir, why) in [
        ("backup", data.join("backup"), "inside the data directory"),
        ("backup", data.to_owned(), "inside the data directory"),
        ("backup", data.parent().unwrap().to_owned(), "of its own"),
        ("backup", other.clone(), "not empty and is no backup"),
        ("backup", newer.clone(), "form 3"),
        // Nobody makes a directory there.
        ("backup", "/sys/svc".into(), "may not write there"),
        ("restore", newer.clone(), "form 3"),
        ("restore", other.clone(), "no backup"),
        ("restore", missing.clone(), "no backup"),
    ] {
        let refused = svc().run(data, &[command, dir.to_str().unwrap()]).await;
        assert!(
            !refused.success && refused.stderr.contains(why),
            "{command} {dir:?}: {refused:?}"
        );
    }
    assert!(!missing.exists());
    assert_eq!(disk::names(&other), ["holiday.jpg"]);
    let nothing = svc()
        .run(&missing, &["backup", vault.path("b").to_str().unwrap()])
        .await;
    assert!(
        !nothing.success && nothing.stderr.contains("no data directory"),
        "{nothing:?}"
    );
}

#[tokio::test]
async fn what_a_backup_copies_is_not_collected() {
    let server = TestServer::start().await;
    let slug = server.slug(&json!({ "content": "x" })).await;
    let app = server.server().app();
    server.advance(8 * 24 * 3600);
    app.deployments.sweep().await.unwrap();
    server
        .get(&format!("/{slug}"))
        .answer()
        .await
        .problem(404, "not_found");
    server.advance(120);
    let hold = Hold::keep(server.data()).unwrap().unwrap();
    assert_eq!(app.deployments.collect().await.unwrap(), 0);
    assert_eq!(
        disk::files(&server.data().join("content")).len(),
        3,
        "two objects, and the store's mark"
    );
    drop(hold);
    // The server's own collection may have come first.
    app.deployments.collect().await.unwrap();
    assert_eq!(disk::files(&server.data().join("content")).len(), 1);
}

/// Answers that writers got.
#[derive(Default)]
struct Answered {
    shares: Vec<String>,
    names: Vec<String>,
}

#[tokio::test]
async fn what_was_answered_before_a_backup_began_is_in_it_while_eight_write() {
    let server = TestServer::builder().system_clock().start().await;
    let house = House::on(server, GUESTS).await;
    let actions = [
        ("add", "INSERT INTO guests (name) VALUES (:name)"),
        ("drop", "DELETE FROM guests WHERE name = :name"),
        ("guests", "SELECT name FROM guests ORDER BY id"),
    ];
    house.define(&actions).await;
    let (house, stop) = (Arc::new(house), Arc::new(AtomicBool::new(false)));
    let answered: Arc<std::sync::Mutex<Answered>> = Arc::default();
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let (house, stop, answered) =
                (Arc::clone(&house), Arc::clone(&stop), Arc::clone(&answered));
            tokio::spawn(async move { write(writer, &house, &stop, &answered).await })
        })
        .collect();
    let vault = Vault::new();
    for round in 1..=3 {
        let enough = async || (answered.lock().unwrap().names.len() > 20 * round).then_some(());
        svc_tests::until("writers to be at work", enough).await;
        let (shares, names) = {
            let answered = answered.lock().unwrap();
            (answered.shares.clone(), answered.names.clone())
        };
        let made = vault.back_up(house.server.data()).await;
        assert_eq!(made["complete"], true);
        let data = vault.path(&format!("data-{round}"));
        assert_eq!(vault.run(&data, "restore").await.json()["restored"], true);
        // A migration may be in its file and not yet in the ledger, as after a power cut.
        let found = svc().run(&data, &["check", "--json"]).await.json();
        assert_eq!(found["errors"], json!([]));
        let process = svc().serve(&data, &[]).await;
        for slug in shares {
            assert_eq!(page(&process, &slug).await, slug, "round {round}");
        }
        let url = process.url("/room/api/query");
        let sql = json!({ "sql": "SELECT json_group_array(name) AS names FROM guests" });
        let query = process
            .client()
            .post(url)
            .bearer_auth(&house.owner.credential)
            .json(&sql);
        let found = query.answer().await.expect(200).json();
        let found: Vec<String> = serde_json::from_str(&text(&found["rows"][0]["names"])).unwrap();
        for name in names {
            assert!(found.contains(&name), "round {round}: {name}");
        }
        let url = process.url(&format!("/api/v1/projects/{}/backend", house.project));
        let detail = process
            .client()
            .get(url)
            .bearer_auth(&house.owner.credential);
        let actions = names_of(&detail.answer().await.expect(200).json()["actions"]);
        for mark in found.iter().filter(|name| name.starts_with("mark_")) {
            assert!(
                actions.contains(mark),
                "round {round}: {mark} without its cause"
            );
        }
        process.kill().await;
    }
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    house.server.get("/room").answer().await.expect(200);
}

/// Publishes shares, makes and ends frontends, and adds and removes rows, until told to stop.
async fn write(
    writer: u32,
    house: &House,
    stop: &AtomicBool,
    answered: &std::sync::Mutex<Answered>,
) {
    let frontends = format!("/{}/frontends", house.project);
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let name = format!("w{writer}-{number}");
        house.done("add", &json!({ "name": name })).await;
        answered.lock().unwrap().names.push(name.clone());
        let passing = json!({ "name": format!("passing-{name}") });
        house.done("add", &passing).await;
        house.done("drop", &passing).await;
        if number % 3 == 0 {
            let share = json!({ "content": name, "name": name });
            let slug = house.server.slug(&share).await;
            answered.lock().unwrap().shares.push(slug);
        }
        if writer == 0 {
            // The action is there before the row that it writes.
            let (action, mark) = (format!("mark_{number}"), format!("mark_{number}"));
            let sql = format!("INSERT INTO guests (name) VALUES ('{mark}')");
            house
                .put(&json!([{ "name": action, "sql": sql }]))
                .await
                .expect(200);
            house.done(&action, &json!({})).await;
            let table = format!("CREATE TABLE more_{number} (a)");
            house.migrate(&table).await.expect(200);
        }
        if number % 5 == 0 {
            let slug = format!("f{name}");
            house.publish(&slug).await;
            let path = format!("{frontends}/{slug}");
            let body = json!({ "content": format!("# {name}") });
            house
                .owner
                .send(&house.server, Method::PUT, &path, &body)
                .await
                .expect(200);
            house.owner.delete(&house.server, &path).await.expect(204);
        }
    }
}
