//! Backups of a server that goes on: what it collects, and what it answers meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::Method;
use serde_json::json;
use svc::content::ContentLock;
use svc_tests::{Ask, TestServer, disk};

use super::{Vault, page};
use crate::account::text;
use crate::house::{GUESTS, House, names as names_of};
use crate::svc;

#[tokio::test]
async fn what_a_backup_copies_is_not_collected() {
    let server = TestServer::start().await;
    let slug = server.slug(&json!({ "content": "x" })).await;
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
