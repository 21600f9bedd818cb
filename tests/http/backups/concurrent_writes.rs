//! Backups of a server that goes on: what it collects, and what it answers meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::Method;
use serde_json::json;
use svc::content::ContentLock;
use svc_tests::{ReadAnswer, TestServer, disk};

use super::{BackupFolder, get_page};
use crate::owner::text;
use crate::project_fixture::{GUESTS, ProjectFixture, names as names_of};
use crate::svc;

#[tokio::test]
async fn what_a_backup_copies_is_not_collected() {
    let server = TestServer::start().await;
    let slug = server.publish_slug(&json!({ "content": "x" })).await;
    let app = server.server().app();
    server.advance(8 * 24 * 3600);
    app.expiry.sweep().await.unwrap();
    server
        .get(&format!("/{slug}"))
        .answer()
        .await
        .problem(404, "not_found");
    server.advance(120);
    let hold = ContentLock::shared(server.data()).unwrap().unwrap();
    assert_eq!(app.collector.collect().await.unwrap(), 0);
    assert_eq!(
        disk::files(&server.data().join("content")).len(),
        3,
        "two objects, and the store's mark"
    );
    drop(hold);
    // The server's own collection may have come first.
    app.collector.collect().await.unwrap();
    assert_eq!(disk::files(&server.data().join("content")).len(), 1);
}

/// Answers that writers got.
#[derive(Default)]
struct WriterAnswers {
    shares: Vec<String>,
    names: Vec<String>,
}

#[tokio::test]
async fn what_was_answered_before_a_backup_began_is_in_it_while_eight_write() {
    let server = TestServer::builder().system_clock().start().await;
    let fixture = ProjectFixture::on_server(server, GUESTS).await;
    let actions = [
        ("add", "INSERT INTO guests (name) VALUES (:name)"),
        ("drop", "DELETE FROM guests WHERE name = :name"),
        ("guests", "SELECT name FROM guests ORDER BY id"),
    ];
    fixture.define(&actions).await;
    let (fixture, stop) = (Arc::new(fixture), Arc::new(AtomicBool::new(false)));
    let answered: Arc<std::sync::Mutex<WriterAnswers>> = Arc::default();
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let (fixture, stop, answered) = (
                Arc::clone(&fixture),
                Arc::clone(&stop),
                Arc::clone(&answered),
            );
            tokio::spawn(async move { write(writer, &fixture, &stop, &answered).await })
        })
        .collect();
    let folder_of_backups = BackupFolder::new();
    for round in 1..=3 {
        let enough = async || (answered.lock().unwrap().names.len() > 20 * round).then_some(());
        svc_tests::wait_until("writers to be at work", enough).await;
        let (shares, names) = {
            let answered = answered.lock().unwrap();
            (answered.shares.clone(), answered.names.clone())
        };
        let made = folder_of_backups.back_up(fixture.server.data()).await;
        assert_eq!(made["complete"], true);
        let data = folder_of_backups.path_of(&format!("data-{round}"));
        assert_eq!(
            folder_of_backups.run(&data, "restore").await.json()["restored"],
            true
        );
        // A migration may be in its file and not yet in the ledger, as after a power cut.
        let found = svc().run(&data, &["check", "--json"]).await.json();
        assert_eq!(found["errors"], json!([]));
        let process = svc().serve(&data, &[]).await;
        for slug in shares {
            assert_eq!(get_page(&process, &slug).await, slug, "round {round}");
        }
        let url = process.url("/room/api/query");
        let sql = json!({ "sql": "SELECT json_group_array(name) AS names FROM guests" });
        let query = process
            .client()
            .post(url)
            .bearer_auth(&fixture.owner.credential)
            .json(&sql);
        let found = query.answer().await.expect(200).json();
        let found: Vec<String> = serde_json::from_str(&text(&found["rows"][0]["names"])).unwrap();
        for name in names {
            assert!(found.contains(&name), "round {round}: {name}");
        }
        let url = process.url(&format!("/api/v1/projects/{}/backend", fixture.project));
        let detail = process
            .client()
            .get(url)
            .bearer_auth(&fixture.owner.credential);
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
    fixture.server.get("/room").answer().await.expect(200);
}

/// Publishes shares, makes and ends frontends, and adds and removes rows, until told to stop.
async fn write(
    writer: u32,
    fixture: &ProjectFixture,
    stop: &AtomicBool,
    answered: &std::sync::Mutex<WriterAnswers>,
) {
    let frontends = format!("/{}/frontends", fixture.project);
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let name = format!("w{writer}-{number}");
        fixture.call_ok("add", &json!({ "name": name })).await;
        answered.lock().unwrap().names.push(name.clone());
        let passing = json!({ "name": format!("passing-{name}") });
        fixture.call_ok("add", &passing).await;
        fixture.call_ok("drop", &passing).await;
        if number % 3 == 0 {
            let share = json!({ "content": name, "name": name });
            let slug = fixture.server.publish_slug(&share).await;
            answered.lock().unwrap().shares.push(slug);
        }
        if writer == 0 {
            // The action is there before the row that it writes.
            let (action, mark) = (format!("mark_{number}"), format!("mark_{number}"));
            let sql = format!("INSERT INTO guests (name) VALUES ('{mark}')");
            fixture
                .put(&json!([{ "name": action, "sql": sql }]))
                .await
                .expect(200);
            fixture.call_ok(&action, &json!({})).await;
            let table = format!("CREATE TABLE more_{number} (a)");
            fixture.migrate(&table).await.expect(200);
        }
        if number % 5 == 0 {
            let slug = format!("f{name}");
            fixture.publish(&slug).await;
            let path = format!("{frontends}/{slug}");
            let body = json!({ "content": format!("# {name}") });
            fixture
                .owner
                .send(&fixture.server, Method::PUT, &path, &body)
                .await
                .expect(200);
            fixture
                .owner
                .delete(&fixture.server, &path)
                .await
                .expect(204);
        }
    }
}
