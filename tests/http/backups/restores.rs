//! Restores: what was there is kept, and who works meanwhile waits.

use serde_json::json;
use svc::content::ContentLock;
use svc::data_lock::DataLock;
use svc_tests::TestServer;

use super::{BackupFolder, assert_whole, page, populated_fixture};
use crate::owner::text;
use crate::svc;

#[tokio::test]
async fn a_restore_keeps_what_was_there_and_waits_for_nobody() {
    let (fixture, folder_of_backups) = (populated_fixture().await, BackupFolder::new());
    folder_of_backups.back_up(fixture.server.data()).await;
    let refused = folder_of_backups
        .run(fixture.server.data(), "restore")
        .await;
    assert!(
        !refused.success && refused.stderr.contains("in use by process"),
        "{refused:?}"
    );
    fixture
        .server
        .publish_slug(&json!({ "content": "later", "name": "later" }))
        .await;
    let data = fixture.server.stop().await;
    let hold = ContentLock::shared(data.path()).unwrap();
    let refused = folder_of_backups.run(data.path(), "restore").await;
    assert!(
        !refused.success && refused.stderr.contains("backup"),
        "{refused:?}"
    );
    drop(hold);
    let restored = folder_of_backups.run(data.path(), "restore").await.json();
    let before = data.path().join(text(&restored["before"]));
    assert!(before.join("control.db").is_file());
    assert_whole(data.path()).await;
    let process = svc().serve(data.path(), &[]).await;
    assert_eq!(process.get("/later").await.status, 404);
    assert_eq!(page(&process, "plain").await, "plain");
    process.kill().await;
    // What was there before is a data directory of its own.
    let process = svc().serve(&before, &[]).await;
    assert_eq!(page(&process, "later").await, "later");
    process.kill().await;
    let again = folder_of_backups.run(data.path(), "restore").await.json();
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
