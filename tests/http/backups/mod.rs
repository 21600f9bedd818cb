//! Backups: made while the server runs, of one moment, put back whole.

mod concurrent_writes;
mod refusals;
mod restores;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use svc_tests::{Output, Process, ReadAnswer, TestServer, disk};
use tempfile::TempDir;

use crate::owner::text;
use crate::project_fixture::{GUESTS, ProjectFixture};
use crate::svc;

/// A directory for backups, and what is done with them.
struct BackupFolder {
    directory: TempDir,
}

impl BackupFolder {
    fn new() -> Self {
        Self {
            directory: TempDir::new().unwrap(),
        }
    }

    fn path_of(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    async fn run(&self, data: &Path, command: &str) -> Output {
        let dir = self.path_of("backup");
        svc()
            .run(data, &[command, dir.to_str().unwrap(), "--json"])
            .await
    }

    async fn back_up(&self, data: &Path) -> Value {
        self.run(data, "backup").await.json()
    }

    /// Restores into a new directory and finds it whole.
    async fn restore(&self, name: &str) -> PathBuf {
        let data = self.path_of(name);
        let restored = self.run(&data, "restore").await.json();
        assert_eq!(restored["restored"], true);
        assert_whole(&data).await;
        data
    }

    /// Fails to restore; returns the directory.
    async fn restore_refused(&self, name: &str) -> PathBuf {
        let data = self.path_of(name);
        let refused = self.run(&data, "restore").await;
        assert!(!refused.success, "{refused:?}");
        data
    }
}

/// Asserts that `svc check` finds neither errors nor leftovers.
async fn assert_whole(directory: &Path) -> Value {
    let found = svc().run(directory, &["check", "--json"]).await.json();
    assert_eq!(
        (&found["errors"], &found["leftovers"]),
        (&json!([]), &json!([]))
    );
    found
}

async fn get_page(process: &Process, slug: &str) -> String {
    process
        .get(&format!("/{slug}/raw"))
        .await
        .expect(200)
        .text()
        .to_owned()
}

async fn guest_status(process: &Process) -> Value {
    let call = json!({ "action": "guests", "params": {} });
    process.json("/room/api/op", &call).await.expect(200).json()["rows"].take()
}

/// A fixture with a guest in its book, two revisions of its page, shares of every kind, and an installed guest.
async fn populated_fixture() -> ProjectFixture {
    let fixture =
        ProjectFixture::on_server(TestServer::builder().system_clock().start().await, GUESTS).await;
    fixture
        .define(&[
            ("add", "INSERT INTO guests (name) VALUES (:name)"),
            ("guests", "SELECT name FROM guests ORDER BY id"),
        ])
        .await;
    fixture.call_ok("add", &json!({ "name": "Ada" })).await;
    for body in [
        json!({ "content": "plain", "name": "plain" }),
        json!({ "content": "locked", "name": "locked", "password": "p" }),
        json!({ "content": "read-me-once", "name": "once", "one_time": true }),
        json!({ "content": "taken down", "name": "down" }),
    ] {
        fixture.server.publish_slug(&body).await;
    }
    let disable = ["deployment", "disable", "down"];
    assert!(fixture.server.command(&svc(), &disable).await.success);
    let folder = fixture.server.data().join("guests/render");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("000001-own.wasm"), "no component").unwrap();
    std::fs::write(folder.join(".half"), "being installed").unwrap();
    fixture
}

#[tokio::test]
async fn everything_comes_back_as_it_was_but_for_what_is_read_once() {
    let (fixture, folder_of_backups) = (populated_fixture().await, BackupFolder::new());
    fixture.server.get("/room").answer().await.expect(200);
    let views = fixture.server.visits("room").await;
    assert!(views > 0);
    let price = json!({ "key": "pro", "product_name": "Club", "label": "Monthly", "amount": 500, "currency": "eur" });
    let catalog = format!("/{}/payments/catalog", fixture.project);
    let sent = fixture.owner.post(&fixture.server, &catalog, &price).await;
    let sold = sent.expect(201).json();
    let made = folder_of_backups.back_up(fixture.server.data()).await;
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
    let backup = folder_of_backups.path_of("backup");
    assert_eq!(disk::holding(&backup, "read-me-once"), Vec::<String>::new());
    let served = svc().run(&backup, &["serve"]).await;
    assert!(
        !served.success && served.stderr.contains("is a backup"),
        "{served:?}"
    );
    assert_whole(&backup).await;
    // Later changes are not in the backup.
    fixture.call_ok("add", &json!({ "name": "Grace" })).await;
    fixture.server.post("/once").answer().await.expect(200);

    let data = folder_of_backups.restore("data").await;
    let guest = data.join("guests/render/000001-own.wasm");
    assert_eq!(std::fs::read_to_string(guest).unwrap(), "no component");
    assert!(!data.join("guests/render/.half").exists());
    let shown = ["deployment", "show", "room", "--json"];
    let shown = svc().run(&data, &shown).await.json();
    assert_eq!(shown["visits"], views);
    let process = svc().serve(&data, &[]).await;
    assert_eq!(get_page(&process, "plain").await, "plain");
    assert_eq!(get_page(&process, "room").await, "# One");
    assert_eq!(process.get("/locked").await.status, 401);
    assert_eq!(process.get("/down").await.status, 403);
    process.get("/once").await.problem(404, "not_found");
    assert_eq!(guest_status(&process).await, json!([{ "name": "Ada" }]));
    let offers = process.get("/room/payments/catalog").await.expect(200);
    let offer = &offers.json()["prices"][0];
    assert_eq!((&offer["id"], &offer["key"]), (&sold["id"], &json!("pro")));
    // The owner's credential and the page's history are there, and everything goes on.
    let url = process.url(&format!("/api/v1/projects/{}/backend", fixture.project));
    let owner = process
        .client()
        .get(url)
        .bearer_auth(&fixture.owner.credential);
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
        guest_status(&process).await,
        json!([{ "name": "Ada" }, { "name": "Joan" }])
    );
    process.kill().await;
}

#[tokio::test]
async fn what_has_not_changed_is_not_copied_again_and_what_is_gone_goes() {
    let (fixture, folder_of_backups) = (populated_fixture().await, BackupFolder::new());
    let first = folder_of_backups.back_up(fixture.server.data()).await;
    let objects = first["content"]["files"].as_u64().unwrap();
    let again = folder_of_backups.back_up(fixture.server.data()).await;
    assert_eq!(again["content"]["files"], objects);
    assert_eq!(
        (
            &again["content"]["copied_files"],
            &again["guests"]["copied_files"]
        ),
        (&json!(0), &json!(0))
    );
    fixture
        .server
        .publish_slug(&json!({ "content": "one more" }))
        .await;
    let path = format!("/{}/frontends/room", fixture.project);
    fixture
        .owner
        .delete(&fixture.server, &path)
        .await
        .expect(204);
    let more = folder_of_backups.back_up(fixture.server.data()).await;
    assert_eq!(more["content"]["copied_files"], 2, "a source and its page");
    let backup = folder_of_backups.path_of("backup");
    let found = assert_whole(&backup).await;
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
    let (fixture, folder_of_backups) = (populated_fixture().await, BackupFolder::new());
    folder_of_backups.back_up(fixture.server.data()).await;
    let backup = folder_of_backups.path_of("backup");
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
    let data = folder_of_backups.restore_refused("data").await;
    assert!(!data.join("control.db").exists() && !data.join("restoring").exists());
    let mended = folder_of_backups.back_up(fixture.server.data()).await;
    assert_eq!(
        (&mended["complete"], &mended["content"]["copied_files"]),
        (&json!(true), &json!(1))
    );
    assert_whole(&backup).await;
    // The backup stays whole when its source is damaged.
    let own = fixture.server.data().join("content");
    let name = disk::holding(&own, "taken down").remove(0);
    std::fs::write(own.join(name), "taken  own").unwrap();
    assert_eq!(
        folder_of_backups.back_up(fixture.server.data()).await["complete"],
        true
    );
    // Without that, no backup is made of it, and the last one stays.
    damage("taken down");
    let refused = folder_of_backups.run(fixture.server.data(), "backup").await;
    let said: Value = serde_json::from_str(&refused.stdout).unwrap();
    assert!(!refused.success && said["complete"] == false);
    assert!(!said["errors"].as_array().unwrap().is_empty());
    let state = std::fs::read_to_string(backup.join("backup.json")).unwrap();
    assert!(state.contains("state-3"), "{state}");
}

#[tokio::test]
async fn what_a_tenant_declares_keeps_nobody_from_a_backup() {
    let (fixture, folder_of_backups) = (populated_fixture().await, BackupFolder::new());
    for ddl in [
        "CREATE TABLE p (a UNIQUE); CREATE TABLE c (b REFERENCES p (a))",
        "CREATE TABLE odd (a CHECK (random() % 2))",
        "CREATE TABLE n (a)",
    ] {
        fixture.migrate(ddl).await.expect(200);
    }
    fixture
        .define(&[
            ("add_p", "INSERT INTO p VALUES (1)"),
            (
                "add_odd",
                "INSERT OR IGNORE INTO odd SELECT value FROM json_each(:values)",
            ),
            ("add_n", "INSERT INTO n VALUES (-9223372036854775808)"),
        ])
        .await;
    fixture.call_ok("add_p", &json!({})).await;
    fixture.call_ok("add_n", &json!({})).await;
    let values = serde_json::to_string(&vec![1; 200]).unwrap();
    fixture
        .call_ok("add_odd", &json!({ "values": values }))
        .await;
    // A column that cannot be evaluated for the row that is there.
    let overflow = "ALTER TABLE n ADD COLUMN b INTEGER AS (abs(a))";
    fixture.migrate(overflow).await.expect(200);
    let made = folder_of_backups.back_up(fixture.server.data()).await;
    assert_eq!(made["complete"], true);
    let note = text(&made["notes"][0]);
    assert!(note.contains("integer overflow"), "{note}");
    let found = assert_whole(&folder_of_backups.restore("data").await).await;
    assert_eq!(found["notes"], made["notes"]);
}
