//! Bounds of a call: rows, bytes, time, the size of the database, and how often a client and a page may call.

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Answer, ReadAnswer, TestServer};
use tokio::task::JoinSet;

use crate::owner::{Owner, text};
use crate::project_fixture::{GUESTS, ProjectFixture};

const NUMBERS: &str = "CREATE TABLE numbers (n INTEGER PRIMARY KEY, v TEXT)";
const COUNTING: &str =
    "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < :most)";
/// Writes a row, and then never finds another.
const ENDLESS: &str = "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)
    INSERT INTO numbers (v) SELECT 'endless' FROM c WHERE x = 1 OR x < 0";

#[tokio::test]
async fn five_hundred_rows_are_read_and_all_are_written() {
    let fixture = ProjectFixture::new(NUMBERS).await;
    let fill = format!("{COUNTING} INSERT INTO numbers (n) SELECT x FROM c");
    let renew = "UPDATE numbers SET v = 'new' RETURNING n";
    let some = "SELECT n FROM numbers WHERE n <= :most";
    fixture
        .define(&[("fill", &fill), ("renew", renew), ("some", some)])
        .await;
    let filled = fixture.call_ok("fill", &json!({ "most": 620 })).await;
    assert_eq!(filled["rows_affected"], 620);
    for (most, rows, truncated) in [
        (499, 499, false),
        (500, 500, false),
        (501, 500, true),
        (620, 500, true),
    ] {
        let read = fixture.call_ok("some", &json!({ "most": most })).await;
        assert_eq!(read["rows"].as_array().unwrap().len(), rows, "{most}");
        assert_eq!(read["truncated"], truncated, "{most}");
        assert_eq!(read["rows_affected"], 0);
        let sql = "SELECT n FROM numbers WHERE n <= :most";
        let queried = fixture
            .query(sql, &json!({ "most": most }))
            .await
            .expect(200);
        assert_eq!(queried.json(), read, "the owner's are bounded alike");
    }
    let renewed = fixture.call_ok("renew", &json!({})).await;
    assert_eq!(renewed["rows"].as_array().unwrap().len(), 500);
    assert_eq!(
        (&renewed["truncated"], &renewed["rows_affected"]),
        (&json!(true), &json!(620))
    );
    let old = fixture
        .rows("SELECT count(*) AS n FROM numbers WHERE v IS NULL")
        .await;
    assert_eq!(old, json!([{ "n": 0 }]));
}

#[tokio::test]
async fn a_result_that_is_too_large_is_refused_and_its_write_undone() {
    let limits = TestServer::builder().limits(|limits| limits.result_bytes = 5_000);
    let fixture = ProjectFixture::on_server(limits.start().await, NUMBERS).await;
    let put = "INSERT INTO numbers (v) VALUES (:v), (:v) RETURNING v";
    let add = "INSERT INTO numbers (v) VALUES (:v)";
    fixture
        .define(&[("put", put), ("add", add), ("all", "SELECT v FROM numbers")])
        .await;
    fixture
        .call_ok("put", &json!({ "v": "x".repeat(1_000) }))
        .await;
    let answer = fixture
        .call_action("put", &json!({ "v": "x".repeat(4_000) }))
        .await;
    answer.problem(413, "payload_too_large");
    let sql = "INSERT INTO numbers (v) VALUES (:v), (:v) RETURNING v";
    let answer = fixture.query(sql, &json!({ "v": "x".repeat(4_000) })).await;
    answer.problem(413, "payload_too_large");
    assert_eq!(fixture.count("numbers").await, 2);
    fixture
        .call_ok("add", &json!({ "v": "x".repeat(6_000) }))
        .await;
    fixture
        .call_action("all", &json!({}))
        .await
        .problem(413, "payload_too_large");
}

#[tokio::test]
async fn a_body_is_64_kilobytes_at_most() {
    const BODY: usize = 65_536;
    let fixture = ProjectFixture::new(NUMBERS).await;
    fixture
        .define(&[("add", "INSERT INTO numbers (v) VALUES (:v)")])
        .await;
    let sized = |empty: &Value, bytes: usize| {
        let empty = empty.to_string();
        empty.replace('~', &"x".repeat(bytes + 1 - empty.len()))
    };
    let call = json!({ "action": "add", "params": { "v": "~" } });
    let query = json!({ "sql": "SELECT :v AS v", "params": { "v": "~" } });
    for (path, empty) in [("/room/api/op", &call), ("/room/api/query", &query)] {
        for (bytes, status) in [(BODY, 200), (BODY + 1, 413)] {
            let request = fixture.owner.request(&fixture.server, Method::POST, path);
            let answer = request
                .body(sized(empty, bytes))
                .answer()
                .await
                .expect(status);
            if status == 413 {
                answer.problem(413, "payload_too_large");
            }
        }
    }
    assert_eq!(fixture.count("numbers").await, 1);
    let request = format!(
        "POST /room/api/op HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        fixture.server.address(),
        BODY + 1
    );
    // Not one byte of the body is ever sent.
    fixture
        .server
        .raw(request)
        .await
        .problem(413, "payload_too_large");
}

#[tokio::test]
async fn a_statement_that_takes_too_long_is_ended_and_undone() {
    let limits = TestServer::builder().limits(|limits| limits.statement_ms = 100);
    let fixture = ProjectFixture::on_server(limits.start().await, NUMBERS).await;
    let count = "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) AS n FROM c";
    fixture
        .define(&[
            ("count", count),
            ("write", ENDLESS),
            ("add", "INSERT INTO numbers (v) VALUES (:v)"),
        ])
        .await;
    for action in ["count", "write"] {
        fixture
            .call_action(action, &json!({}))
            .await
            .problem(400, "query_timeout");
    }
    for sql in [count, ENDLESS] {
        fixture
            .query(sql, &json!({}))
            .await
            .problem(400, "query_timeout");
    }
    assert_eq!(fixture.count("numbers").await, 0);
    fixture.call_ok("add", &json!({ "v": "x" })).await;
    assert_eq!(fixture.count("numbers").await, 1);
}

#[tokio::test]
async fn a_neighbour_is_not_held_by_an_endless_statement() {
    let limits = TestServer::builder().limits(|limits| limits.statement_ms = 4_000);
    let fixture = ProjectFixture::on_server(limits.start().await, NUMBERS).await;
    let read = "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) AS n FROM c";
    fixture.define(&[("read", read), ("write", ENDLESS)]).await;
    let neighbour = Owner::new(&fixture.server, "neighbour").await;
    let project = neighbour.project(&fixture.server, "Shop").await;
    let backend = format!("/{project}/backend");
    let made = neighbour
        .post(&fixture.server, &backend, &json!({ "ddl": NUMBERS }))
        .await;
    made.expect(201);
    neighbour.frontend(&fixture.server, &project, "till").await;
    let add =
        json!({ "actions": [{ "name": "add", "sql": "INSERT INTO numbers (v) VALUES (:v)" }] });
    let path = format!("{backend}/actions");
    neighbour
        .send(&fixture.server, Method::PUT, &path, &add)
        .await
        .expect(200);
    let mut endless = JoinSet::new();
    for number in 0..4 {
        let action = if number % 2 == 0 { "read" } else { "write" };
        let request = fixture
            .server
            .json("/room/api/op", &json!({ "action": action }));
        endless.spawn(request.answer());
    }
    for _ in 0..3 {
        let body = json!({ "action": "add", "params": { "v": "x" } });
        fixture.call("till", &body).await.expect(200);
    }
    assert!(endless.try_join_next().is_none(), "they are still at it");
    for answer in endless.join_all().await {
        // A request that waited in the queue for too long has not begun.
        let busy = answer.status == 503;
        let (status, code) = if busy {
            (503, "database_busy")
        } else {
            (400, "query_timeout")
        };
        answer.problem(status, code);
    }
}

#[tokio::test]
async fn a_full_database_refuses_whole_writes_until_there_is_room() {
    let limits = TestServer::builder().limits(|limits| limits.database_bytes = 262_144);
    let fixture = ProjectFixture::on_server(limits.start().await, NUMBERS).await;
    let many = format!("{COUNTING} INSERT INTO numbers (v) SELECT :v FROM c");
    let remove = "DELETE FROM numbers WHERE n IN (SELECT n FROM numbers LIMIT 3)";
    fixture
        .define(&[
            ("add", "INSERT INTO numbers (v) VALUES (:v)"),
            ("many", &many),
            ("remove", remove),
            ("clear", "DELETE FROM numbers"),
        ])
        .await;
    let row = json!({ "v": "x".repeat(20_000) });
    let mut added = 0;
    let full = loop {
        let answer = fixture.call_action("add", &row).await;
        if answer.status != 200 {
            break answer;
        }
        added += 1;
        assert!(added < 20, "it is never full");
    };
    full.problem(413, "database_full");
    assert!(added > 3, "{added}");
    assert_eq!(fixture.count("numbers").await, added);
    fixture.call_ok("remove", &json!({})).await;
    // Some of these rows would fit.
    let rows = json!({ "v": "x".repeat(20_000), "most": 10 });
    fixture
        .call_action("many", &rows)
        .await
        .problem(413, "database_full");
    let sql = "UPDATE numbers SET v = v || v";
    fixture
        .query(sql, &json!({}))
        .await
        .problem(413, "database_full");
    assert_eq!(fixture.count("numbers").await, added - 3);
    let lengths = fixture
        .rows("SELECT DISTINCT length(v) AS n FROM numbers")
        .await;
    assert_eq!(lengths, json!([{ "n": 20_000 }]));
    fixture.call_ok("add", &row).await;
    fixture.call_ok("clear", &json!({})).await;
    fixture
        .call_ok("many", &json!({ "v": "small", "most": 10 }))
        .await;
    assert_eq!(fixture.count("numbers").await, 10);
}

/// Writers of one database share commits; a failing writer fails alone.
#[tokio::test]
async fn a_writer_that_fails_costs_the_others_nothing() {
    let limits = TestServer::builder().limits(|limits| {
        limits.statement_ms = 500;
        limits.database_bytes = 1_048_576;
    });
    let ddl = format!(
        "{NUMBERS}; CREATE TABLE late (a REFERENCES numbers (n) DEFERRABLE INITIALLY DEFERRED);
         INSERT INTO numbers (n) VALUES (1);"
    );
    let fixture = ProjectFixture::on_server(limits.start().await, &ddl).await;
    let fill = format!("{COUNTING} INSERT INTO numbers (v) SELECT :v FROM c");
    fixture
        .define(&[
            ("add", "INSERT INTO numbers (v) VALUES (:v) RETURNING n"),
            ("again", "INSERT INTO numbers (n) VALUES (:v)"),
            ("late", "INSERT INTO late VALUES (:v)"),
            ("fill", &fill),
            ("endless", ENDLESS),
        ])
        .await;
    let mut writers = JoinSet::new();
    for number in 0..120 {
        let (action, params) = match number % 12 {
            3 => ("again", json!({ "v": 1 })),
            5 => ("late", json!({ "v": -7 })),
            7 => ("fill", json!({ "v": "x".repeat(30_000), "most": 100 })),
            9 if number < 12 => ("endless", json!({})),
            _ => ("add", json!({ "v": number })),
        };
        let body = json!({ "action": action, "params": params });
        let request = fixture.server.json("/room/api/op", &body);
        writers.spawn(async move { (action, request.answer().await) });
    }
    let mut added = Vec::new();
    for (action, answer) in writers.join_all().await {
        match action {
            "again" | "late" => drop(answer.problem(409, "constraint_violation")),
            "fill" => drop(answer.problem(413, "database_full")),
            "endless" => drop(answer.problem(400, "query_timeout")),
            _ => added.push(answer.expect(200).json()["rows"][0]["n"].as_u64().unwrap()),
        }
    }
    added.push(1);
    added.sort_unstable();
    let there = fixture.rows("SELECT n FROM numbers ORDER BY n").await;
    let there: Vec<_> = there
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["n"].as_u64().unwrap())
        .collect();
    assert_eq!(there, added, "what was answered, and nothing else");
    assert_eq!(fixture.count("late").await, 0);
}

/// A header, all its lines together.
fn joined_header(answer: &Answer, name: &str) -> String {
    let lines = answer.headers.get_all(name).iter();
    lines
        .map(|line| line.to_str().unwrap())
        .collect::<Vec<_>>()
        .join(", ")
}

#[track_caller]
fn assert_rate_limited(answer: &Answer) {
    answer.problem(429, "rate_limited");
    assert_eq!(answer.header("retry-after"), Some("60"));
    assert!(!joined_header(answer, "ratelimit").is_empty());
}

#[tokio::test]
async fn calls_queries_and_schemas_draw_from_one_bucket_of_their_client() {
    let fixture =
        ProjectFixture::on_server(TestServer::builder().service_limits().start().await, GUESTS)
            .await;
    fixture.define(&[("one", "SELECT 1 AS one")]).await;
    let send_request = async |number: u32| match number % 4 {
        0 => fixture.call_action("one", &json!({})).await,
        1 => fixture.query("SELECT 1 AS one", &json!({})).await,
        2 => fixture.server.get("/room/api/schema").answer().await,
        _ => fixture.call("nothing", &json!({})).await,
    };
    for number in 0..30 {
        let answer = send_request(number).await;
        assert_eq!(answer.status, [200, 200, 401, 404][number as usize % 4]);
        let policy = joined_header(&answer, "ratelimit-policy");
        assert!(
            policy.contains(";q=120") && policy.contains(";w=60"),
            "{policy}"
        );
        let state = joined_header(&answer, "ratelimit");
        assert!(state.contains(&format!(";r={}", 29 - number)), "{state}");
    }
    for number in 0..4 {
        assert_rate_limited(&send_request(number).await);
    }
    fixture.server.advance(1);
    fixture.call_action("one", &json!({})).await.expect(200);
    fixture
        .query("SELECT 1 AS one", &json!({}))
        .await
        .expect(200);
    assert_rate_limited(&send_request(0).await);
    fixture.server.get("/room").answer().await.expect(200);
}

#[tokio::test]
async fn a_page_has_a_bucket_that_its_clients_share() {
    let builder = TestServer::builder()
        .limits(|limits| {
            limits.op_burst = 2;
            limits.op_deployment_burst = 4;
        })
        .settings(|settings| settings.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()]);
    let fixture = ProjectFixture::on_server(builder.start().await, GUESTS).await;
    fixture.define(&[("one", "SELECT 1 AS one")]).await;
    fixture.publish("hall").await;
    let from = async |client: &str, slug: &str| {
        let request = fixture
            .server
            .json(&format!("/{slug}/api/op"), &json!({ "action": "one" }));
        request.header("x-forwarded-for", client).answer().await
    };
    for _ in 0..2 {
        from("203.0.113.1", "room").await.expect(200);
    }
    // A request that the client's bucket refuses takes nothing from the page's bucket.
    for _ in 0..5 {
        assert_rate_limited(&from("203.0.113.1", "room").await);
    }
    for _ in 0..2 {
        from("203.0.113.2", "room").await.expect(200);
    }
    assert_rate_limited(&from("203.0.113.3", "room").await);
    from("203.0.113.4", "hall").await.expect(200);
    fixture.server.advance(60);
    from("203.0.113.3", "room").await.expect(200);
}

#[tokio::test]
async fn a_value_is_so_long_at_most() {
    let fixture = ProjectFixture::new(NUMBERS).await;
    // Either code is right: the mistake is the caller's, and nothing is kept.
    let sql = "INSERT INTO numbers (v) SELECT hex(zeroblob(200000))";
    let answer = fixture.query(sql, &json!({})).await;
    assert!(
        matches!(answer.status, 400 | 413),
        "{}",
        text(&answer.json()["detail"])
    );
    assert_eq!(fixture.count("numbers").await, 0);
}

#[tokio::test]
async fn answers_that_nobody_reads_take_bounded_memory() {
    let limits = |limits: &mut svc::config::Limits| limits.page_work_bytes = 200_000;
    let server = TestServer::builder().limits(limits).start().await;
    let fixture = ProjectFixture::on_server(server, NUMBERS).await;
    fixture.define(&[("echo", "SELECT :text AS text")]).await;
    let call = json!({ "action": "echo", "params": { "text": "x".repeat(40_000) } });
    // Its reader takes a byte of each answer, and no more.
    let reader = svc_tests::http_client()
        .http2_prior_knowledge()
        .http2_initial_stream_window_size(1)
        .no_proxy()
        .build()
        .unwrap();
    let mut unread = Vec::new();
    for _ in 0..2 {
        let request = reader.post(fixture.server.url("/room/api/op")).json(&call);
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200);
        unread.push(answer);
    }
    let small = json!({ "action": "echo", "params": { "text": "x" } });
    let refused = fixture.call("room", &small).await;
    refused.problem(503, "capacity_reached");
    assert!(refused.header("retry-after").is_some());
    // The owner has a part of its own.
    fixture
        .query("SELECT 1 AS one", &json!({}))
        .await
        .expect(200);
    drop(unread);
    let free = async || (fixture.call("room", &small).await.status == 200).then_some(());
    svc_tests::wait_until("the unread answers to be forgotten", free).await;
}
