//! Backups that do not come about: a place that is none, and one that fails before it is complete.

use serde_json::json;
use svc_tests::disk;

use super::{BackupFolder, assert_whole, get_page, populated_fixture};
use crate::owner::text;
use crate::project_fixture::{GUESTS, ProjectFixture};
use crate::svc;

#[tokio::test]
async fn a_backup_counts_once_it_is_complete_whatever_fails_then() {
    let (fixture, folder_of_backups) = (populated_fixture().await, BackupFolder::new());
    folder_of_backups.back_up(fixture.server.data()).await;
    // A directory that no backup made is not removed as objects are.
    let stranger = folder_of_backups.path_of("backup/content/zz/stranger");
    std::fs::create_dir_all(&stranger).unwrap();
    fixture
        .server
        .publish_slug(&json!({ "content": "newer", "name": "newer" }))
        .await;
    let made = folder_of_backups.back_up(fixture.server.data()).await;
    assert_eq!(made["complete"], true);
    assert!(text(&made["notes"][0]).contains("still there"), "{made}");
    std::fs::remove_dir_all(&stranger).unwrap();
    assert_whole(&folder_of_backups.path_of("backup")).await;
    let process = svc()
        .serve(&folder_of_backups.restore("data").await, &[])
        .await;
    assert_eq!(get_page(&process, "newer").await, "newer");
    process.kill().await;
}

#[tokio::test]
async fn what_is_no_place_for_a_backup_is_refused() {
    let (fixture, folder_of_backups) = (ProjectFixture::new(GUESTS).await, BackupFolder::new());
    let data = fixture.server.data();
    let other = folder_of_backups.path_of("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("holiday.jpg"), "sun").unwrap();
    let newer = folder_of_backups.path_of("newer");
    std::fs::create_dir(&newer).unwrap();
    std::fs::write(
        newer.join("backup.json"),
        r#"{"format": 3, "by": "somebody later"}"#,
    )
    .unwrap();
    let missing = folder_of_backups.path_of("missing");
    for (command, dir, why) in [
        ("backup", data.join("backup"), "inside the data directory"),
        ("backup", data.to_owned(), "inside the data directory"),
        ("backup", data.parent().unwrap().to_owned(), "of its own"),
        ("backup", other.clone(), "not empty and is no backup"),
        ("backup", newer.clone(), "form 3"),
        // No user can create a directory there.
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
        .run(
            &missing,
            &["backup", folder_of_backups.path_of("b").to_str().unwrap()],
        )
        .await;
    assert!(
        !nothing.success && nothing.stderr.contains("no data directory"),
        "{nothing:?}"
    );
}
