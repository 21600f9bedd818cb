//! A data directory of an earlier version, as that version left it: what there is of it is there, where it belongs now.
//!
//! The files in `before/` were written by a server of schema 4: a project with a page, a backend and three guests who came a
//! second apart, and five views.

use std::path::Path;

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Ask, TestServer};
use tempfile::TempDir;

use crate::account::{Owner, text};
use crate::crashes::{deed_of, points};
use crate::house::House;
use crate::svc;

/// Deeds that lead to the points of death that are tried here.
pub(crate) const DEEDS: [&str; 1] = ["takeover"];
const PROJECT: &str = "01a202a7-9826-78ef-bbf5-fb43de89aaab";
const BACKEND: &str = "01a202a7-98a3-7b81-af02-450466d1263e";

fn make(path: &Path, sql: &str) {
    let database = rusqlite::Connection::open(path).unwrap();
    database.execute_batch(sql).unwrap();
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy(&path, &to),
            false => drop(std::fs::copy(&path, &to).unwrap()),
        }
    }
}

/// Puts the old installation in the place of what is in a data directory.
fn put_before(data: &Path) {
    for file in ["control.db", "counters.db"] {
        // A directory that nobody has used has none.
        let _ = std::fs::remove_file(data.join(file));
    }
    make(&data.join("control.db"), include_str!("before/control.sql"));
    let backend = data.join("backends").join(BACKEND);
    std::fs::create_dir_all(&backend).unwrap();
    make(
        &backend.join("default.db"),
        include_str!("before/default.sql"),
    );
    let before = Path::new(env!("CARGO_MANIFEST_DIR")).join("http/before");
    let history = "0000000001.history";
    std::fs::copy(before.join(history), backend.join(history)).unwrap();
    copy(&before.join("content"), &data.join("content"));
}

/// The old installation under a server of today, three days later than every test's day.
async fn taken_over() -> House {
    let server = TestServer::start().await;
    server.advance(3 * 24 * 3600);
    let server = server.restart_after(async |data| put_before(data)).await;
    let made = server.command(&svc(), &["key", "create", "before"]).await;
    let credential = made.stdout.trim().to_owned();
    House {
        server,
        owner: Owner::with(&credential),
        project: PROJECT.to_owned(),
    }
}

impl House {
    async fn project(&self) -> Value {
        let path = format!("/{}", self.project);
        self.owner.get(&self.server, &path).await.expect(200).json()
    }

    fn rows_of(&self, table: &str) -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        let control = &self.server.server().app().control;
        let count = control.read_blocking(|c| c.query_row(&sql, [], |row| row.get(0)));
        count.unwrap()
    }
}

#[tokio::test]
async fn everything_is_there_and_views_are_counted_on() {
    let mut house = taken_over().await;
    let project = house.project().await;
    assert_eq!(project["visits"], json!({ "total": 5 }));
    let member = &project["members"][0];
    assert_eq!(
        (&member["slug"], &member["visits"]),
        (&json!("room"), &json!(5))
    );
    let page = house.server.get("/room").answer().await.expect(200);
    assert!(page.text().contains("Hello before"));
    house.server = house.server.restart().await;
    assert_eq!(house.server.visits("room").await, 6);
    assert_eq!(house.project().await["visits"], json!({ "total": 6 }));
    let path = format!("/{PROJECT}/frontends/room");
    for (below, list) in [("revisions", "revisions"), ("releases", "releases")] {
        let path = format!("{path}/{below}");
        let listed = house
            .owner
            .get(&house.server, &path)
            .await
            .expect(200)
            .json();
        assert_eq!(listed[list].as_array().unwrap().len(), 1, "{below}");
    }
    let detail = house.detail().await;
    assert_eq!(detail["migrations"].as_array().unwrap().len(), 2);
    assert_eq!(detail["actions"][0]["name"], "add");
    assert_eq!(house.count("guests").await, 3);
    // Numbers that were given are not given again.
    let sequence = "SELECT seq FROM sqlite_sequence WHERE name = 'revisions'";
    let control = &house.server.server().app().control;
    let last = control.read_blocking(|c| c.query_row(sequence, [], |row| row.get::<_, i64>(0)));
    assert_eq!(last.unwrap(), 1);
    // What is gone takes along what was kept with it by a reference once.
    house.owner.delete(&house.server, &path).await.expect(204);
    house.delete().await.expect(204);
    for table in [
        "deployments",
        "revisions",
        "releases",
        "backends",
        "ledger",
        "actions",
    ] {
        assert_eq!(house.rows_of(table), 0, "{table}");
    }
    house
        .server
        .server()
        .app()
        .serving
        .forget_visits()
        .await
        .unwrap();
    assert_eq!(control_counted(&house.server), 0);
}

fn control_counted(server: &TestServer) -> usize {
    server.server().app().control.counters().counted_deployments().len()
}

#[tokio::test]
async fn its_history_begins_anew_and_its_moments_can_be_restored() {
    let house = taken_over().await;
    let path = format!("/{PROJECT}/backend/history");
    let listed = async || {
        let history = house
            .owner
            .get(&house.server, &path)
            .await
            .expect(200)
            .json();
        let moments = history["moments"].as_array().unwrap().clone();
        moments
            .iter()
            .map(|moment| text(&moment["at"]))
            .collect::<Vec<_>>()
    };
    let before = listed().await;
    assert!(before.len() > 3, "{before:?}");
    house.server.advance(1);
    house.done("add", &json!({ "name": "Mary" })).await;
    assert_eq!(listed().await[1..], before);
    // The newest is where it began anew, with what was there.
    let (two, at) = (2, &before[2]);
    let body = json!({ "at": at });
    let restored = house.send(Method::POST, "/restore", &body).await;
    let restored = restored.expect(200).json();
    assert_eq!(house.count("guests").await, two, "{before:?}");
    let undo = json!({ "at": restored["previous"] });
    house
        .send(Method::POST, "/restore", &undo)
        .await
        .expect(200);
    assert_eq!(house.count("guests").await, 4);
    let checked = house.server.command(&svc(), &["check", "--json"]).await;
    let found: Value = serde_json::from_str(&checked.stdout).unwrap();
    assert_eq!(found["errors"], json!([]), "{found}");
    let notes = found["notes"].to_string();
    assert!(
        notes.contains(BACKEND) && notes.contains("earlier format"),
        "{notes}"
    );
}

#[tokio::test]
async fn whatever_the_point_of_its_death_it_is_taken_over_once() {
    let points = points().into_iter();
    let points: Vec<_> = points.filter(|p| DEEDS.contains(&deed_of(p))).collect();
    assert!(points.len() >= 3, "{points:?}");
    for point in points {
        let data = TempDir::new().unwrap();
        put_before(data.path());
        let command = ["project", "list", "--json"];
        let died = svc().run_until(&point, data.path(), &command).await;
        assert!(!died.success && died.stdout.is_empty(), "{point}: {died:?}");
        for _ in 0..2 {
            let listed = svc().run(data.path(), &command).await.json();
            assert_eq!(listed["projects"][0]["visits"], 5, "{point}");
        }
        let found = svc().run(data.path(), &["check", "--json"]).await.json();
        assert_eq!(found["errors"], json!([]), "{point}");
    }
}
