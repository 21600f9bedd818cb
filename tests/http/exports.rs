//! The export of a backend: one plain SQLite file, which every SQLite opens.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::Method;
use rusqlite::{Connection, OpenFlags};
use serde_json::json;
use svc_tests::{Answer, ReadAnswer, TestServer};
use tempfile::TempDir;

use crate::owner::Owner;
use crate::project_fixture::{GUESTS, ProjectFixture};

const SHOP: &str =
    "CREATE TABLE things (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, price INTEGER);
    CREATE INDEX things_by_name ON things (trim(lower(name)));
    CREATE VIEW cheap AS SELECT name FROM things WHERE price < 10;
    INSERT INTO things (name, price) VALUES ('  Cup', 3), ('Bowl ', 12), (x'20ff20', 20);";

async fn export(fixture: &ProjectFixture) -> Answer {
    let path = format!("/{}/backend/export", fixture.project);
    fixture.owner.get(&fixture.server, &path).await
}

/// Opens a file that is alone in its directory, without anything of the service's.
fn open_export(directory: &Path, file: &[u8]) -> Connection {
    let path = directory.join("export.db");
    std::fs::write(&path, file).unwrap();
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap()
}

fn query_texts(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

#[tokio::test]
async fn it_is_one_plain_file_of_what_is_the_owners() {
    let fixture = ProjectFixture::new(SHOP).await;
    let secret = "what-was-deleted-must-not-be-in-it";
    let insert = "INSERT INTO things (name, price) VALUES (:name, 1)";
    let name = json!({ "name": secret.repeat(200) });
    fixture.query(insert, &name).await.expect(200);
    let delete = "DELETE FROM things WHERE price = 1";
    fixture.query(delete, &json!({})).await.expect(200);
    let answer = export(&fixture).await.expect(200);
    assert_eq!(
        answer.header("content-type"),
        Some("application/vnd.sqlite3")
    );
    assert_eq!(
        answer.header("content-disposition"),
        Some("attachment; filename=\"house-acme.db\"")
    );
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    assert!(answer.body.starts_with(b"SQLite format 3\0"));
    assert_eq!(answer.body[18..20], [1, 1], "it needs a write-ahead log");
    let holds = |needle: &[u8]| answer.body.windows(needle.len()).any(|part| part == needle);
    assert!(!holds(secret.as_bytes()) && !holds(b"svc_migrations"));

    let directory = TempDir::new().unwrap();
    let file = open_export(directory.path(), &answer.body);
    let names = "SELECT type || ' ' || name FROM sqlite_schema WHERE name NOT LIKE '%autoindex%' ORDER BY 1";
    let shown = [
        "index things_by_name",
        "table sqlite_sequence",
        "table svc_files",
        "table svc_payments",
        "table things",
        "view cheap",
    ];
    assert_eq!(query_texts(&file, names), shown);
    assert_eq!(query_texts(&file, "PRAGMA integrity_check"), ["ok"]);
    assert_eq!(query_texts(&file, "SELECT name FROM cheap"), ["  Cup"]);
    let indexed =
        "SELECT name FROM things INDEXED BY things_by_name WHERE trim(lower(name)) = 'bowl'";
    assert_eq!(query_texts(&file, indexed), ["Bowl "]);
    assert_eq!(
        query_texts(&file, "SELECT CAST(seq AS TEXT) FROM sqlite_sequence"),
        ["4"]
    );
    drop(file);
    // The stock command where it is installed, which is not of our making.
    let sql =
        "PRAGMA integrity_check; SELECT count(*) FROM things; SELECT count(*) FROM svc_payments;";
    let stock = Command::new("sqlite3")
        .arg(directory.path().join("export.db"))
        .arg(sql)
        .output();
    if let Ok(stock) = stock {
        assert_eq!(
            String::from_utf8_lossy(&stock.stdout),
            "ok\n3\n0\n",
            "{stock:?}"
        );
    }
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "opening it leaves files beside it");
    // Nothing of it stays on the disk, and the database is as it was.
    assert_eq!(
        svc_tests::disk::names(&fixture.server.data().join("tmp")),
        Vec::<String>::new()
    );
    assert_eq!(fixture.detail().await["warnings"], json!([]));
}

#[tokio::test]
async fn it_is_of_one_moment_while_others_write() {
    let fixture =
        ProjectFixture::new("CREATE TABLE halves (n INTEGER NOT NULL, half INTEGER NOT NULL)")
            .await;
    fixture
        .define(&[("add", "INSERT INTO halves VALUES (:n, 1), (:n, 2)")])
        .await;
    let (fixture, stop) = (Arc::new(fixture), Arc::new(AtomicBool::new(false)));
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let (fixture, stop) = (Arc::clone(&fixture), Arc::clone(&stop));
            tokio::spawn(async move {
                let mut written = 0;
                while !stop.load(Ordering::Relaxed) {
                    fixture.call_ok("add", &json!({ "n": writer })).await;
                    written += 1;
                }
                written
            })
        })
        .collect();
    let (directory, mut before) = (TempDir::new().unwrap(), 0);
    for _ in 0..10 {
        fixture.call_ok("add", &json!({ "n": 9 })).await;
        let answer = export(&fixture).await.expect(200);
        let file = open_export(directory.path(), &answer.body);
        let count = |sql: &str| {
            file.query_row::<i64, _, _>(sql, [], |row| row.get(0))
                .unwrap()
        };
        let all = count("SELECT count(*) FROM halves");
        let halves =
            [1, 2].map(|half| count(&format!("SELECT count(*) FROM halves WHERE half = {half}")));
        assert_eq!(halves[0], halves[1], "half a statement");
        assert!(all > before, "what was answered is not in it");
        before = all;
    }
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        assert!(writer.await.unwrap() > 0);
    }
}

#[tokio::test]
async fn it_is_for_the_owner_of_a_backend() {
    let server = TestServer::start().await;
    let other = Owner::new(&server, "zeta").await;
    let fixture = ProjectFixture::without_backend(server).await;
    let path = format!("/{}/backend/export", fixture.project);
    export(&fixture).await.problem(404, "not_found");
    fixture.create(GUESTS).await.expect(201);
    let query = fixture
        .owner
        .get(&fixture.server, &format!("{path}?full=1"))
        .await;
    assert!(
        query.problem(400, "invalid_request")["detail"]
            .as_str()
            .unwrap()
            .contains("full")
    );
    other
        .get(&fixture.server, &path)
        .await
        .problem(403, "forbidden");
    let anonymous = fixture
        .server
        .get(&format!("/api/v1/projects{path}"))
        .answer()
        .await;
    anonymous.problem(401, "unauthorized");
    let posted = fixture
        .owner
        .send(&fixture.server, Method::POST, &path, &json!({}))
        .await;
    posted.problem(405, "method_not_allowed");
    fixture.delete().await.expect(204);
    export(&fixture).await.problem(404, "not_found");
}
