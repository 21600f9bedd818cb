//! Sites as they are kept: `svc check` looks at every object and at what names it, and backups have them all.

use serde_json::{Value, json};
use svc_tests::bucket::Bucket;
use svc_tests::{Process, ReadAnswer, TestServer, disk};
use tempfile::TempDir;

use super::{SiteFixture, put, sha256};
use crate::owner::Owner;
use crate::svc;

/// Bytes of a file of several objects, which differ.
fn large() -> Vec<u8> {
    let numbers = (0..300_000_u32).flat_map(u32::to_le_bytes);
    numbers.collect()
}

/// Publishes a site with a large file and a draft, and sends a file that waits.
async fn populate(fixture: &SiteFixture) {
    let large = fixture.put(&large()).await;
    let files = json!({ "index.html": { "text": "One" }, "large": { "sha256": large } });
    let site = json!({ "type": "site", "files": files, "requested_slug": "site" });
    fixture.create(&site).await.expect(201);
    let set = json!({ "set": { "new": { "text": "draft bytes" } } });
    fixture.draft(&json!({ "changes": set })).await;
    fixture.put(b"waits").await;
}

async fn check(server: &TestServer) -> (Value, bool) {
    let output = server.command(&svc(), &["check", "--json"]).await;
    (
        serde_json::from_str(&output.stdout).unwrap(),
        output.success,
    )
}

#[tokio::test]
async fn every_object_of_a_site_is_looked_at() {
    let fixture = SiteFixture::empty(TestServer::start().await).await;
    let server = &fixture.server;
    let content = server.data().join("content");
    let before = disk::names(&content);
    populate(&fixture).await;
    let (found, sound) = check(server).await;
    assert!(sound, "{found}");
    assert_eq!(found["leftovers"], json!([]));
    let control = &server.server().app().control;
    let runtimes = control.read(|c| {
        let mut digests = c.prepare("SELECT lower(hex(digest)) FROM runtimes")?;
        let digests = digests.query_map([], |row| row.get::<_, String>(0))?;
        digests.collect::<Result<Vec<_>, _>>()
    });
    let runtimes = runtimes.await.unwrap();
    let mut seen = 0;
    for object in disk::names(&content) {
        let digest = object.replace('/', "");
        if before.contains(&object) || runtimes.contains(&digest) {
            continue;
        }
        seen += 1;
        let path = content.join(&object);
        let whole = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let (found, sound) = check(server).await;
        assert!(!sound, "{digest}");
        let missing = format!("object {digest} is missing");
        assert!(found["errors"].to_string().contains(&missing), "{found}");
        std::fs::write(&path, [&whole[..], b"x"].concat()).unwrap();
        let (found, sound) = check(server).await;
        assert!(!sound, "{digest}");
        let damaged = format!("object {digest} is damaged");
        assert!(found["errors"].to_string().contains(&damaged), "{found}");
        std::fs::write(&path, whole).unwrap();
    }
    // Two forms of two manifests, two objects and their list, and three small files.
    assert_eq!(seen, 10);
    let (found, sound) = check(server).await;
    assert!(sound, "{found}");
}

#[tokio::test]
async fn rows_of_a_site_are_compared_with_what_is_stored() {
    let fixture = SiteFixture::empty(TestServer::start().await).await;
    populate(&fixture).await;
    let change = async |sql: &'static str| {
        let control = &fixture.server.server().app().control;
        let changed = control.write(move |tx| {
            tx.execute_batch(sql)?;
            Ok::<_, svc::control::Error>(())
        });
        changed.await.unwrap();
    };
    let one = sha256(b"One");
    for (damage, mending, said) in [
        (
            "CREATE TABLE aside AS SELECT * FROM blobs WHERE bytes = 3; DELETE FROM blobs WHERE bytes = 3",
            "INSERT INTO blobs SELECT * FROM aside; DROP TABLE aside",
            format!("nobody has the file `index.html`, {one}"),
        ),
        (
            "UPDATE blobs SET bytes = 4 WHERE bytes = 3",
            "UPDATE blobs SET bytes = 3 WHERE bytes = 4",
            "the file `index.html` is stored in another way".to_owned(),
        ),
        (
            "UPDATE file_objects SET number = number + 10",
            "UPDATE file_objects SET number = number - 10",
            String::new(),
        ),
        (
            "UPDATE file_objects SET number = 1 - number + 10; UPDATE file_objects SET number = number - 10",
            "UPDATE file_objects SET number = 1 - number + 10; UPDATE file_objects SET number = number - 10",
            "its objects are not those of its rows".to_owned(),
        ),
        (
            "UPDATE file_owners SET bytes = bytes + 1",
            "UPDATE file_owners SET bytes = bytes - 1",
            "are not counted right".to_owned(),
        ),
    ] {
        change(damage).await;
        let (found, sound) = check(&fixture.server).await;
        assert_eq!(sound, said.is_empty(), "{damage}: {found}");
        assert!(
            found["errors"].to_string().contains(&said),
            "{damage}: {found}"
        );
        change(mending).await;
        let (found, sound) = check(&fixture.server).await;
        assert!(sound, "{mending}: {found}");
    }
}

/// Reads what a restored installation must have.
async fn assert_restored(process: &Process, owner: &Owner, project: &str) {
    assert_eq!(process.get("/site/").await.expect(200).text(), "One");
    let read = process.get("/site/large").await.expect(200);
    assert!(read.body == large());
    process.get("/site/bad").await.problem(403, "disabled");
    let post = async |below: &str, body: Value| {
        let url = process.url(&format!("/api/v1/projects/{project}/{below}"));
        let request = process.client().post(url).bearer_auth(&owner.credential);
        request.json(&body).answer().await
    };
    let waits = json!({ "a": { "sha256": sha256(b"waits") }, "b": { "sha256": sha256(b"later") } });
    let body = json!({ "type": "site", "files": waits, "requested_slug": "next" });
    post("frontends", body).await.expect(201);
    for (path, text) in [("/next/a", "waits"), ("/next/b", "later")] {
        assert_eq!(process.get(path).await.expect(200).text(), text);
    }
}

/// Makes two backups, of which the second adds to the first, and restores what they have.
async fn back_up_and_restore(server: TestServer) {
    let fixture = SiteFixture::empty(server).await;
    populate(&fixture).await;
    let bad = json!({ "files": { "index.html": { "text": "One" }, "large": { "sha256": sha256(&large()) }, "bad": { "text": "bad" } } });
    let republished = fixture.send(http::Method::PUT, "", Some(&bad)).await;
    republished.expect(200);
    let block = ["content", "block", &sha256(b"bad")];
    assert!(fixture.server.command(&svc(), &block).await.success);
    let folder = TempDir::new().unwrap();
    let to = folder.path().join("backup");
    let back_up = ["backup", to.to_str().unwrap(), "--json"];
    let made = fixture.server.command(&svc(), &back_up).await.json();
    assert_eq!(made["complete"], true, "{made}");
    put(&fixture.owner, &fixture.server, &fixture.project, b"later").await;
    let made = fixture.server.command(&svc(), &back_up).await.json();
    assert_eq!(made["complete"], true, "{made}");
    assert_eq!(
        made["content"]["copied_files"], 1,
        "only what is new: {made}"
    );
    let checked = svc().run(&to, &["check", "--json"]).await.json();
    assert_eq!(checked["errors"], json!([]));
    let data = TempDir::new().unwrap();
    let restore = ["restore", to.to_str().unwrap(), "--json"];
    let restored = svc().run(data.path(), &restore).await.json();
    assert_eq!(restored["restored"], true);
    let checked = svc().run(data.path(), &["check", "--json"]).await.json();
    assert_eq!(checked["errors"], json!([]));
    let process = svc().serve(data.path(), &[]).await;
    assert_restored(&process, &fixture.owner, &fixture.project).await;
    process.kill().await;
}

#[tokio::test]
async fn backups_have_sites_and_what_waits() {
    // The copy is served by a process, whose time is today's.
    back_up_and_restore(TestServer::builder().system_clock().start().await).await;
}

#[tokio::test]
async fn backups_have_sites_of_a_bucket() {
    let bucket = Bucket::start().await;
    let builder = TestServer::builder().system_clock();
    let builder = builder.settings(|settings| bucket.settings("mine", settings));
    back_up_and_restore(builder.start().await).await;
}

/// A backup of a site lacks nothing that is damaged without saying so.
#[tokio::test]
async fn a_backup_names_a_file_that_is_missing() {
    let fixture = SiteFixture::empty(TestServer::builder().system_clock().start().await).await;
    populate(&fixture).await;
    let digest = sha256(b"waits");
    let content = fixture.server.data().join("content");
    let held = disk::holding(&content, "waits");
    let object = held.iter().find(|path| path.ends_with(&digest[2..]));
    std::fs::remove_file(content.join(object.unwrap())).unwrap();
    let folder = TempDir::new().unwrap();
    let to = folder.path().join("backup");
    let back_up = ["backup", to.to_str().unwrap(), "--json"];
    let made = fixture.server.command(&svc(), &back_up).await;
    let said = made.stdout + &made.stderr;
    assert!(!made.success && said.contains(&digest), "{said}");
}
