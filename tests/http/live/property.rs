//! Whatever several writers do: every subscriber ends with what a call answers, and never hears of something older.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Heard, Numbers, Socket, TestServer};

use super::subscribe;
use crate::house::House;

const TABLES: usize = 4;
const WRITERS: u64 = 3;
const STEPS: u64 = 25;

/// A schema whose tables refer to each other, some without rowids, with a counter that only grows.
fn schema(numbers: &mut Numbers) -> String {
    let mut ddl = "CREATE TABLE ticks (id INTEGER PRIMARY KEY, n INTEGER NOT NULL); INSERT INTO ticks VALUES (1, 0);".to_owned();
    for table in 0..TABLES {
        let parent = if table == 0 {
            String::new()
        } else {
            let deletes = ["CASCADE", "SET NULL"][numbers.draw() as usize % 2];
            format!(
                ", up INTEGER REFERENCES t{} ON DELETE {deletes}",
                numbers.draw() as usize % table
            )
        };
        let parent = if parent.is_empty() {
            ", up INTEGER".to_owned()
        } else {
            parent
        };
        let (key, tail) = if numbers.draw().is_multiple_of(2) {
            ("id INTEGER PRIMARY KEY", "")
        } else {
            ("id INTEGER NOT NULL PRIMARY KEY", " WITHOUT ROWID")
        };
        ddl += &format!("CREATE TABLE t{table} ({key}, a INTEGER{parent}){tail};");
    }
    for view in 0..TABLES {
        let (one, two) = (
            numbers.draw() as usize % TABLES,
            numbers.draw() as usize % TABLES,
        );
        ddl += &format!(
            "CREATE VIEW v{view} AS SELECT x.id, x.a, (SELECT count(*) FROM t{two} y WHERE y.up = x.id) AS m FROM t{one} x;"
        );
    }
    ddl
}

/// Actions by name and SQL, and calls that read by name and params.
type Actions = (Vec<(String, String)>, Vec<(String, Value)>);

/// Reads and writes on it.
fn actions() -> Actions {
    let (mut actions, mut queries) = (Vec::new(), Vec::new());
    let mut read = |name: String, sql: String, params: Value| {
        actions.push((name.clone(), sql));
        queries.push((name, params));
    };
    for n in 0..TABLES {
        read(
            format!("all{n}"),
            format!("SELECT id, a, up, (SELECT n FROM ticks) AS tick FROM t{n} ORDER BY id"),
            json!({}),
        );
        read(
            format!("view{n}"),
            format!(
                "SELECT v.*, (SELECT n FROM ticks) AS tick FROM v{n} v WHERE a >= :least ORDER BY id"
            ),
            json!({ "least": 3 }),
        );
        read(
            format!("plain{n}"),
            format!("SELECT count(*) AS n, total(a) AS sum FROM v{n}"),
            json!({}),
        );
    }
    for n in 0..TABLES {
        actions.push((
            format!("put{n}"),
            format!("INSERT OR REPLACE INTO t{n} (id, a) VALUES (:id, :a)"),
        ));
        actions.push((
            format!("link{n}"),
            format!("UPDATE t{n} SET up = :up WHERE id = :id"),
        ));
        actions.push((
            format!("drop{n}"),
            format!("DELETE FROM t{n} WHERE id = :id"),
        ));
        actions.push((format!("clear{n}"), format!("DELETE FROM t{n}")));
    }
    actions.push(("tick".to_owned(), "UPDATE ticks SET n = n + 1".to_owned()));
    (actions, queries)
}

/// Something that a visitor writes.
fn write(numbers: &mut Numbers) -> Value {
    let table = numbers.draw() as usize % TABLES;
    let (id, a) = (numbers.draw() % 6, numbers.draw() % 9);
    match numbers.draw() % 10 {
        0..5 => json!({ "action": format!("put{table}"), "params": { "id": id, "a": a } }),
        5..7 => json!({ "action": format!("link{table}"), "params": { "id": id, "up": a } }),
        7..9 => json!({ "action": format!("drop{table}"), "params": { "id": id } }),
        _ => json!({ "action": format!("clear{table}") }),
    }
}

/// One writer: calls, batches, and now and then a migration, an action's new version or a restore.
async fn write_on(house: Arc<House>, seed: u64) {
    let mut numbers = Numbers::new(seed);
    for step in 0..STEPS {
        match numbers.draw() % 12 {
            0 if seed.is_multiple_of(WRITERS) => {
                let ddl = format!(
                    "CREATE TABLE extra{step} (a); INSERT OR IGNORE INTO t0 (id, a) VALUES ({}, 7)",
                    step % 6
                );
                house.migrate(&ddl).await.expect(200);
            }
            1 if seed.is_multiple_of(WRITERS) => {
                let path = format!("/{}/backend/history", house.project);
                let history = house
                    .owner
                    .get(&house.server, &path)
                    .await
                    .expect(200)
                    .json();
                let moments = history["moments"].as_array().unwrap();
                let moment = &moments[numbers.draw() as usize % moments.len()];
                // One before a migration may not be compatible with what is there now; then nothing happens.
                house.send(Method::POST, "/restore", moment).await;
            }
            2 => {
                let n = numbers.draw() as usize % TABLES;
                let sql = format!("SELECT count(*) AS n, {step} AS sum FROM t{n}");
                house.define(&[(&format!("plain{n}"), &sql)]).await;
            }
            3..6 => {
                let ops: Vec<Value> = (0..=numbers.draw() % 4)
                    .map(|_| write(&mut numbers))
                    .collect();
                // A key that does not hold undoes all of it.
                house.call("room", &json!({ "ops": ops })).await;
            }
            _ => {
                house.call("room", &write(&mut numbers)).await;
                house.done("tick", &json!({})).await;
            }
        }
    }
}

/// Collects the last result that a listener has heard of each query.
async fn listen(mut socket: Socket, last: Arc<std::sync::Mutex<HashMap<String, Value>>>) {
    let mut seqs: HashMap<String, u64> = HashMap::new();
    while let Heard::Text(mut frame) = socket.next().await {
        assert_eq!(frame["type"], "result", "{frame}");
        let id = frame["id"].as_str().unwrap().to_owned();
        let seq = seqs.entry(id.clone()).or_default();
        *seq += 1;
        assert_eq!(frame["seq"], *seq, "{frame}");
        let before = last.lock().unwrap().insert(id, frame["result"].take());
        assert_ne!(
            before.as_ref(),
            last.lock().unwrap().get(frame["id"].as_str().unwrap()),
            "an equal answer was sent"
        );
    }
}

async fn holds(seed: u64) {
    let mut numbers = Numbers::new(seed);
    let builder = TestServer::builder().system_clock().limits(|limits| {
        limits.live_per_socket = 100;
        limits.messages_per_second = 1_000;
        limits.live_per_second = 20;
    });
    let house = Arc::new(House::on(builder.start().await, &schema(&mut numbers)).await);
    let (actions, queries) = actions();
    let named: Vec<_> = actions
        .iter()
        .map(|(name, sql)| (name.as_str(), sql.as_str()))
        .collect();
    house.define(&named).await;
    let mut heard = Vec::new();
    for _ in 0..3 {
        let mut socket = house.server.socket("/room/api/live", &[]).await.unwrap();
        for (name, params) in &queries {
            socket.send(subscribe(name, name, params)).await;
        }
        let last: Arc<std::sync::Mutex<HashMap<String, Value>>> = Arc::default();
        heard.push(Arc::clone(&last));
        tokio::spawn(listen(socket, last));
    }
    let writers =
        (0..WRITERS).map(|n| tokio::spawn(write_on(Arc::clone(&house), seed * WRITERS + n)));
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    // Every last change arrives, and soon.
    tokio::time::sleep(Duration::from_secs(1)).await;
    for (name, params) in &queries {
        let called = house.done(name, params).await;
        for last in &heard {
            let last = last.lock().unwrap();
            assert_eq!(last.get(name), Some(&called), "seed {seed}: {name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_ends_with_what_a_call_answers() {
    for seed in 1..=4 {
        holds(seed).await;
    }
}

/// Ticks only grow, so an older answer would show.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_hears_of_something_older_than_before() {
    let house = super::house_on(
        TestServer::builder()
            .system_clock()
            .limits(|limits| limits.live_per_second = 1_000),
    )
    .await;
    let mut socket = super::open(&house).await;
    super::first(&mut socket, "a", "total", &json!({})).await;
    let house = Arc::new(house);
    let writers: Vec<_> = (0..4)
        .map(|_| {
            let house = Arc::clone(&house);
            tokio::spawn(async move {
                for _ in 0..50 {
                    house
                        .done("vote", &json!({ "poll": 1, "choice": "x" }))
                        .await;
                }
            })
        })
        .collect();
    let mut last = 0;
    while last < 200 {
        let frame = socket.envelope().await;
        let n = frame["result"]["rows"][0]["n"].as_u64().unwrap();
        assert!(n > last, "{n} came after {last}");
        last = n;
    }
    for writer in writers {
        writer.await.unwrap();
    }
}
