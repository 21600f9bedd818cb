//! Ends of files: by actions, owners and backends; what the history brings back, and what it does not.

use http::Method;
use serde_json::json;

use super::UploadFixture;

/// Seconds for which the history brings rows back.
const HISTORY_SECONDS: u64 = 8 * 24 * 3600;

#[tokio::test]
async fn a_file_ends_with_its_row_and_takes_what_refers_to_it() {
    let fixture = UploadFixture::new().await;
    let empty = fixture.settle().await;
    let (one, two) = (
        fixture.text_file("one").await,
        fixture.text_file("two").await,
    );
    assert_eq!(fixture.used_bytes().await, 6);
    fixture
        .project
        .call_ok("remove", &json!({ "file": one }))
        .await;
    assert_eq!(fixture.project.count("photos").await, 1);
    fixture
        .download("see", &one)
        .await
        .problem(404, "not_found");
    fixture.settle().await;
    // Bytes of files that have ended are outside of what is used.
    assert_eq!(fixture.used_bytes().await, 3);
    fixture.project.server.advance(HISTORY_SECONDS);
    assert_eq!(fixture.settle().await, empty + 1);
    assert_eq!(
        fixture.download("see", &two).await.expect(200).text(),
        "two"
    );
    fixture.project.delete().await.expect(204);
    fixture.project.server.advance(HISTORY_SECONDS);
    fixture
        .project
        .server
        .server()
        .app()
        .visitor_files
        .follow_all()
        .await
        .unwrap();
    assert_eq!(fixture.settle().await, empty);
    let check = fixture.check().await;
    assert_eq!(
        (&check["errors"], &check["leftovers"]),
        (&json!([]), &json!([]))
    );
}

#[tokio::test]
async fn the_history_brings_rows_and_bytes_back() {
    let fixture = UploadFixture::new().await;
    let file = fixture.text_file("back").await;
    let history = format!("/{}/backend/history", fixture.project.project);
    let (owner, server) = (&fixture.project.owner, &fixture.project.server);
    server.advance(10);
    let moments = owner.get(server, &history).await.expect(200).json();
    let at = moments["newest"].clone();
    fixture
        .project
        .call_ok("remove", &json!({ "file": file }))
        .await;
    fixture.settle().await;
    fixture
        .download("see", &file)
        .await
        .problem(404, "not_found");
    let restore = json!({ "at": at });
    fixture
        .project
        .send(Method::POST, "/restore", &restore)
        .await
        .expect(200);
    fixture.settle().await;
    assert_eq!(
        fixture.download("see", &file).await.expect(200).text(),
        "back"
    );
    assert_eq!(fixture.used_bytes().await, 4);
    assert_eq!(fixture.check().await["errors"], json!([]));
}

#[tokio::test]
async fn a_row_that_comes_back_without_bytes_is_named() {
    let fixture = UploadFixture::new().await;
    let file = fixture.text_file("gone").await;
    let rows = fixture.project.server.server().app();
    // As when the room for ended files was needed before.
    let forget = rows.control.write(|tx| {
        tx.execute("DELETE FROM visitor_files", [])?;
        Ok::<_, svc::control::Error>(())
    });
    forget.await.unwrap();
    fixture
        .download("see", &file)
        .await
        .problem(404, "not_found");
    let check = fixture.check().await.to_string();
    assert!(check.contains(&file), "{check}");
}

#[tokio::test]
async fn exports_and_dry_runs_have_rows_and_no_bytes() {
    let fixture = UploadFixture::new().await;
    fixture.text_file("exported").await;
    let path = format!("/{}/backend/export", fixture.project.project);
    let (owner, server) = (&fixture.project.owner, &fixture.project.server);
    let export = owner.get(server, &path).await.expect(200);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &export.body).unwrap();
    let rows = rusqlite::Connection::open(file.path()).unwrap();
    let count: i64 = rows
        .query_row(
            "SELECT count(*) FROM svc_files JOIN photos ON file = svc_files.id",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(count, 1);
    assert!(!export.body.windows(8).any(|part| part == b"exported"));
}
