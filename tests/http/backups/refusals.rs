//! Backups that do not come about: a place that is none, and one that fails before it is complete.

use serde_json::json;
use svc_tests::disk;

use super::{Vault, furnished, page, whole};
use crate::owner::text;
use crate::project_fixture::{GUESTS, ProjectFixture};
use crate::svc;

#[tokio::test]
async fn a_backup_counts_once_it_is_complete_whatever_fails_then() {
    let (fixture, vault) = (furnished().await, Vault::new());
    vault.back_up(fixture.server.data()).await;
    // What was not made by a backup cannot be tidied away as objects are.
    let stranger = vault.path("backup/content/zz/stranger");
    std::fs::create_dir_all(&stranger).unwrap();
    fixture
        .server
        .publish_slug(&json!({ "content": "newer", "name": "newer" }))
        .await;
    let made = vault.back_up(fixture.server.data()).await;
    assert_eq!(made["complete"], true);
    assert!(text(&made["notes"][0]).contains("still there"), "{made}");
    std::fs::remove_dir_all(&stranger).unwrap();
    whole(&vault.path("backup")).await;
    let process = svc().serve(&vault.restore("data").await, &[]).await;
    assert_eq!(page(&process, "newer").await, "newer");
    process.kill().await;
}

#[tokio::test]
async fn what_is_no_place_for_a_backup_is_refused() {
    let (fixture, vault) = (ProjectFixture::new(GUESTS).await, Vault::new());
    let data = fixture.server.data();
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
