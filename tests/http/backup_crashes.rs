//! Death at every fault point of a backup and of a restore: what follows is the old state or the new, and the next
//! attempt leads to the new.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use svc_tests::{Output, Process};
use tempfile::TempDir;

use crate::crashes::{fault_group, fault_points};
use crate::svc;

/// Deeds of an operator, as fault points are named: `backup.begun`.
pub(crate) const FAULT_GROUPS: [&str; 2] = ["backup", "restore"];

/// The points after which the new state is the one that counts.
const DECIDED: [&str; 7] = [
    "backup.published",
    "backup.tidying",
    "restore.decided",
    "restore.moved",
    "restore.cleared",
    "restore.placed",
    "restore.finished",
];

fn fault_points_of(group: &str) -> Vec<String> {
    let points = fault_points()
        .into_iter()
        .filter(|point| fault_group(point) == group);
    let points: Vec<_> = points.collect();
    assert!(points.len() >= 8, "{points:?}");
    points
}

async fn publish(process: &Process, name: &str) {
    let body = json!({ "content": name, "name": name });
    process.json("/api/v1/deploy", &body).await.expect(201);
}

/// A data directory whose page `name` was published, and nobody serves.
async fn installation(data: &Path, name: &str) {
    let process = svc().serve(data, &[]).await;
    publish(&process, name).await;
    process.kill().await;
}

async fn run(data: &Path, command: &str, backup: &Path) -> Output {
    svc()
        .run(data, &[command, backup.to_str().unwrap(), "--json"])
        .await
}

async fn run_to_fault(point: &str, data: &Path, command: &str, backup: &Path) {
    let died = svc()
        .run_to_fault(point, data, &[command, backup.to_str().unwrap()])
        .await;
    assert!(!died.success && died.stdout.is_empty(), "{point}: {died:?}");
    assert!(!died.stderr.contains("error"), "{point}: {died:?}");
}

/// The server of a data directory dies at a point while it makes a backup, of one more page: its command says that it ended.
async fn back_up_to_fault(point: &str, data: &Path, page: &str, backup: &Path) {
    let server = svc().serve_to_fault(Some(point), data, &[]).await;
    publish(&server, page).await;
    let told = run(data, "backup", backup).await;
    assert!(!told.success, "{point}: {told:?}");
    let said = "the server ended before it answered";
    assert!(told.stderr.contains(said), "{point}: {told:?}");
    assert!(told.stdout.contains(said), "{point}: {told:?}");
    let (status, _) = server.wait_for_exit().await;
    assert!(!status.success(), "{point}");
}

/// That a directory is whole; answers the slugs of its deployments.
async fn assert_whole(point: &str, directory: &Path) -> Value {
    let found = svc().run(directory, &["check", "--json"]).await.json();
    assert_eq!(found["errors"], json!([]), "{point}");
    found["deployments"].clone()
}

/// How many pages a backup restores to.
async fn count_restored_pages(point: &str, backup: &Path, data: PathBuf) -> Value {
    let restored = run(&data, "restore", backup).await.json();
    assert_eq!(restored["restored"], true, "{point}");
    assert_whole(point, &data).await
}

#[tokio::test]
async fn whatever_the_point_of_a_backups_death_there_is_one() {
    let root = TempDir::new().unwrap();
    let (data, backup) = (root.path().join("data"), root.path().join("backup"));
    let server = svc().serve(&data, &[]).await;
    publish(&server, "page").await;
    run(&data, "backup", &backup).await.json();
    server.kill().await;
    let mut pages = 1;
    for (number, point) in fault_points_of("backup").into_iter().enumerate() {
        back_up_to_fault(&point, &data, &format!("page-{number}"), &backup).await;
        let there = pages + u64::from(DECIDED.contains(&&*point));
        assert_eq!(assert_whole(&point, &backup).await, there, "{point}");
        let again = root.path().join(format!("data-{number}"));
        assert_eq!(
            count_restored_pages(&point, &backup, again).await,
            there,
            "{point}"
        );
        let next = run(&data, "backup", &backup).await.json();
        assert_eq!(
            (&next["complete"], &next["errors"]),
            (&json!(true), &json!([])),
            "{point}"
        );
        pages += 1;
        assert_eq!(assert_whole(&point, &backup).await, pages, "{point}");
        let found = svc().run(&backup, &["check", "--json"]).await.json();
        assert_eq!(found["leftovers"], json!([]), "{point}");
    }
    // The first backup of a directory may die, too, that of a command where no server runs: there is none then, and the next
    // makes it, beside a server.
    for point in fault_points_of("backup") {
        let backup = root.path().join(format!("first-{point}"));
        run_to_fault(&point, &data, "backup", &backup).await;
        assert_eq!(
            run(&root.path().join("none"), "restore", &backup)
                .await
                .success,
            DECIDED.contains(&&*point),
            "{point}"
        );
        std::fs::remove_dir_all(root.path().join("none")).ok();
        run(&data, "backup", &backup).await.json();
        assert_eq!(assert_whole(&point, &backup).await, pages, "{point}");
    }
    let server = svc().serve(&data, &[]).await;
    for page in 0..pages - 1 {
        server.get(&format!("/page-{page}")).await.expect(200);
    }
    server.kill().await;
}

#[tokio::test]
async fn whatever_the_point_of_a_restores_death_it_is_the_old_state_or_the_new() {
    let root = TempDir::new().unwrap();
    let (source, backup) = (root.path().join("source"), root.path().join("backup"));
    installation(&source, "new").await;
    run(&source, "backup", &backup).await.json();
    let mut points = fault_points_of("restore");
    // On the way of both.
    points.push("backup.object".into());
    for (number, point) in points.into_iter().enumerate() {
        let data = root.path().join(format!("data-{number}"));
        installation(&data, "old").await;
        run_to_fault(&point, &data, "restore", &backup).await;
        let new = DECIDED.contains(&&*point);
        // By turns a command comes first, or a server.
        if number % 2 == 0 {
            assert_whole(&point, &data).await;
        }
        let server = svc().serve(&data, &[]).await;
        let is_new = [("new", new), ("old", !new)];
        for (page, there) in is_new {
            let status = server.get(&format!("/{page}")).await.status;
            assert_eq!(status == 200, there, "{point}: {page}");
        }
        publish(&server, "after").await;
        server.kill().await;
        assert_whole(&point, &data).await;
        for left in ["restoring", "restore.json"] {
            assert!(!data.join(left).exists(), "{point}: {left}");
        }
        let next = run(&data, "restore", &backup).await.json();
        assert_eq!(next["restored"], true, "{point}");
        let server = svc().serve(&data, &[]).await;
        server.get("/new").await.expect(200);
        assert_eq!(server.get("/after").await.status, 404, "{point}");
        server.kill().await;
        assert_whole(&point, &data).await;
    }
}
