//! Content in other stores than the directory below the data.

use std::process::{Command, Stdio};

use serde_json::json;
use svc_tests::{CONTENT_URL_VARIABLE, Output, ReadAnswer, TestServer};
use tempfile::TempDir;
use url::Url;

use crate::svc;

/// Parts of the suite that store, replace, serve and collect content.
const STORAGE: [&str; 9] = [
    "expiry::",
    "frontends::",
    "one_time::",
    "passwords::",
    "quick_share::",
    "releases::",
    "rendering::",
    "serving::",
    "sharing::",
];
/// Variable of the environment that names another store for them than one in memory, as a URL.
const STORE: &str = "SVC_TESTS_STORE_URL";
/// Tests of them that look into the directory.
const DIRECTORY: [&str; 1] = ["content_goes_after_a_grace_and_only_if_nobody_needs_it"];
/// Tests of them that start again on what a store in memory has lost.
const LASTING: [&str; 3] = [
    "a_token_deletes_its_share_and_no_other",
    "an_unlocked_page_stays_so_across_a_restart",
    "views_survive_a_restart_and_retire_with_their_frontend",
];

#[test]
fn the_storage_part_of_the_suite_passes_on_another_store() {
    let store = std::env::var(STORE);
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(STORAGE).env_remove(STORE);
    again.env(
        CONTENT_URL_VARIABLE,
        store.as_deref().unwrap_or("memory:///"),
    );
    let lost = if store.is_ok() { &[][..] } else { &LASTING };
    for test in DIRECTORY.iter().chain(lost) {
        again.args(["--skip", test]);
    }
    let ran = again.stdin(Stdio::null()).output().unwrap();
    let told = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{told}");
    let passed = told.split("test result: ok. ").nth(1);
    let passed = passed.and_then(|rest| rest.split(' ').next()?.parse().ok());
    assert!(passed > Some(60), "{told}");
}

/// Publishes a page on a server whose content is behind `url`; returns the server and the slug.
async fn publish_on_store(url: &Url) -> (TestServer, String) {
    let builder = TestServer::builder();
    let builder = builder.settings(|s| s.content_url = Some(url.clone()));
    let server = builder.start().await;
    let body = json!({ "type": "html", "content": "<p>elsewhere" });
    let slug = server.publish_slug(&body).await;
    server.get(&format!("/{slug}")).answer().await.expect(200);
    (server, slug)
}

#[track_caller]
fn assert_start_refused(output: &Output, why: &str) {
    assert!(!output.success, "{output:?}");
    assert!(output.stderr.contains(why), "{output:?}");
}

#[tokio::test]
async fn content_in_another_directory_is_served_checked_and_backed_up() {
    let elsewhere = TempDir::new().unwrap();
    let store = elsewhere.path().join("store");
    let url = Url::from_file_path(&store).unwrap();
    let (server, slug) = publish_on_store(&url).await;
    assert!(!server.data().join("content").exists());
    let backup = elsewhere.path().join("backup");
    let backup = backup.to_str().unwrap();
    let check = ["check", "--json"];
    let found = server.command(&svc(), &check).await.json();
    assert_eq!(
        (&found["errors"], &found["leftovers"]),
        (&json!([]), &json!([]))
    );
    assert!(found["objects"].as_u64() >= Some(2), "{found}");
    let made = server.command(&svc(), &["backup", backup, "--json"]).await;
    assert_eq!(made.json()["complete"], true);
    let listed = server
        .command(&svc(), &["deployment", "list", "--json"])
        .await;
    assert!(listed.json()["deployments"][0]["page_bytes"].as_u64() > Some(0));
    let server = server
        .restart_after_change(async |data| {
            assert_eq!(svc().run(data, &check).await.json(), found);
            // Nothing is there, and pages that are missing must not look as if they were broken.
            let serve = ["serve", "--listen", "127.0.0.1:0"];
            assert_start_refused(&svc().run(data, &serve).await, "objects that pages need");
            assert_eq!(svc().run(data, &check).await.json(), found);
        })
        .await;
    server.get(&format!("/{slug}")).answer().await.expect(200);
    let data = TempDir::new().unwrap();
    let restore = ["restore", backup, "--json"];
    let restored = svc().run(data.path(), &restore).await.json();
    assert_eq!(restored["restored"], true);
    assert_eq!(
        svc().run(data.path(), &check).await.json()["errors"],
        json!([])
    );
}

/// A restore puts content below the data: a start that looks elsewhere says so.
#[tokio::test]
async fn a_restore_is_not_hidden_by_the_store_of_before() {
    let elsewhere = TempDir::new().unwrap();
    let store = elsewhere.path().join("store");
    let (server, slug) = publish_on_store(&Url::from_file_path(&store).unwrap()).await;
    let backup = elsewhere.path().join("backup");
    let backup = backup.to_str().unwrap();
    let made = server.command(&svc(), &["backup", backup, "--json"]).await;
    assert_eq!(made.json()["complete"], true);
    let server = server
        .restart_after_change(async |data| {
            let restored = svc().run(data, &["restore", backup, "--json"]).await;
            assert_eq!(restored.json()["restored"], true);
            std::fs::remove_dir_all(&store).unwrap();
            let url = format!("file://{}", store.display());
            let serve = ["serve", "--listen", "127.0.0.1:0", "--content-url", &url];
            assert_start_refused(&svc().run(data, &serve).await, "objects that pages need");
            // As the message says.
            std::fs::remove_dir_all(&store).unwrap();
            std::fs::rename(data.join("content"), &store).unwrap();
        })
        .await;
    server.get(&format!("/{slug}")).answer().await.expect(200);
}

#[tokio::test]
async fn what_is_in_memory_is_no_ones_to_copy_or_to_find_again() {
    let url: Url = "memory:///".parse().unwrap();
    let (server, _) = publish_on_store(&url).await;
    let found = server.command(&svc(), &["check", "--json"]).await.json();
    assert_eq!(found["errors"], json!([]));
    let folder = TempDir::new().unwrap();
    let backup = folder.path().join("backup");
    let made = server
        .command(&svc(), &["backup", backup.to_str().unwrap()])
        .await;
    assert_start_refused(&made, "needs content in a directory");
    let data = server.stop().await;
    let check = svc().run(data.path(), &["check"]).await;
    assert_start_refused(&check, "needs content in a directory");
    let serve = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--content-url",
        "memory:///",
    ];
    let why = "ended with that process";
    assert_start_refused(&svc().run(data.path(), &serve).await, why);
    assert_start_refused(&svc().run(data.path(), &serve[..3]).await, why);
}

/// Two that shared a directory would each delete what only the other knows.
#[tokio::test]
async fn a_directory_is_one_installations() {
    let elsewhere = TempDir::new().unwrap();
    let store = elsewhere.path().join("store");
    let url = Url::from_file_path(&store).unwrap();
    let (server, slug) = publish_on_store(&url).await;
    let backup = elsewhere.path().join("backup");
    let backup = backup.to_str().unwrap();
    let made = server.command(&svc(), &["backup", backup, "--json"]).await;
    assert_eq!(made.json()["complete"], true);
    let other = TempDir::new().unwrap();
    let restored = svc().run(other.path(), &["restore", backup]).await;
    assert!(restored.success, "{restored:?}");
    let serve = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--content-url",
        url.as_str(),
    ];
    let start = async || svc().run(other.path(), &serve).await;
    assert_start_refused(&start().await, "in use by another server");
    let server = server
        .restart_after_change(async |data| {
            assert_start_refused(&start().await, "belongs to another installation");
            // A disk that is not mounted is not taken for a store that is new.
            let away = elsewhere.path().join("away");
            std::fs::rename(&store, &away).unwrap();
            std::fs::create_dir(&store).unwrap();
            assert_start_refused(&svc().run(data, &serve).await, "is it mounted?");
            std::fs::remove_dir(&store).unwrap();
            std::fs::rename(&away, &store).unwrap();
        })
        .await;
    server.get(&format!("/{slug}")).answer().await.expect(200);
}
