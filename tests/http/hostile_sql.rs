//! Hostile SQL: statements that were quick, and then are not, within one row. Whatever they call and wherever the calls hide, they end with
//! their time, and everybody else is answered meanwhile.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use svc_tests::{Answer, ReadAnswer, TestServer};

use crate::owner::Owner;
use crate::project_fixture::ProjectFixture;

/// Far beyond what a statement may run, on a machine that is busy, and far below what these ran before they ended by themselves.
const SOON: Duration = Duration::from_secs(8);

/// Statements that were once quick with their argument `n` of 1: how often a part stands in a row, and the part.
const CHAINS: [(&str, usize, &str); 9] = [
    (
        "unhex",
        1,
        "length(unhex(printf('%.*c', :n, '!'), printf('%.*c', :n, 'z') || '!'))",
    ),
    ("instr", 300, "instr(b.a, b.b)"),
    ("replace", 300, "length(replace(b.a, b.b, 'x'))"),
    ("patch", 30, "length(json_patch(b.o, b.o))"),
    ("trim", 300, "length(trim(b.a, b.b))"),
    ("like", 300, "(b.a LIKE b.p)"),
    ("glob", 300, "(b.a GLOB b.g)"),
    ("numbers", 900, "(b.d + b.d)"),
    ("json", 300, "json_valid(b.o)"),
];

/// Rows that are short, and long ones, by `n`; and what hides a chain of calls.
fn schema() -> String {
    let chain = vec!["instr(a, substr(a, 2) || 'c')"; 120].join(" + ");
    format!(
        "CREATE TABLE bait (n INTEGER PRIMARY KEY, a TEXT, b TEXT, o TEXT, p TEXT, g TEXT, d TEXT);
        INSERT INTO bait SELECT value,
            printf('%.*c', value, 'a'), printf('%.*c', value / 2, 'a') || 'b',
            (WITH RECURSIVE m(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM m WHERE i < value / 16)
                SELECT json_group_object('k' || i, i) FROM m),
            '%a' || replace(printf('%.*c', min(value, 490), 'x'), 'x', '_a') || 'b',
            '*a' || replace(printf('%.*c', min(value, 490), 'x'), 'x', '?a') || 'b',
            '0.' || printf('%.*c', value, '7')
        FROM json_each('[1,50000]');
        CREATE TABLE trap (a TEXT, n INTEGER AS ({chain}) STORED, CHECK ({chain} >= 0));
        CREATE TABLE shelf (a TEXT);
        CREATE INDEX ends ON shelf ({chain});
        CREATE VIEW glass AS SELECT n AS size, {chain} AS n FROM bait;"
    )
}

fn actions() -> Vec<(String, String)> {
    let mut actions: Vec<(String, String)> = CHAINS
        .iter()
        .map(|(name, times, part)| {
            let chain = vec![*part; *times].join(" + ");
            (
                (*name).to_owned(),
                format!("SELECT {chain} AS x FROM bait AS b WHERE b.n = :n"),
            )
        })
        .collect();
    for (name, sql) in [
        ("view", "SELECT n FROM glass WHERE size = :n"),
        (
            "check",
            "INSERT INTO trap (a) SELECT a FROM bait WHERE n = :n",
        ),
        ("index", "INSERT INTO shelf SELECT a FROM bait WHERE n = :n"),
    ] {
        actions.push((name.to_owned(), sql.to_owned()));
    }
    // Eight of one kind, each trained on its own: as many as there are threads.
    let (_, _, unhex) = CHAINS[0];
    for number in 0..8 {
        actions.push((
            format!("unhex{number}"),
            format!("SELECT {unhex} + {number} AS x"),
        ));
    }
    actions
}

async fn start_fixture() -> ProjectFixture {
    let server = TestServer::builder()
        .limits(|limits| {
            limits.op_per_minute = 1_000_000;
            limits.op_burst = 1_000_000;
        })
        .start()
        .await;
    let fixture = ProjectFixture::on_server(server, &schema()).await;
    let actions = actions();
    let defined: Vec<(&str, &str)> = actions
        .iter()
        .map(|(n, s)| (n.as_str(), s.as_str()))
        .collect();
    fixture.define(&defined).await;
    for (name, _) in &actions {
        for _ in 0..3 {
            fixture.call_ok(name, &json!({ "n": 1 })).await;
        }
    }
    fixture
}

fn attack(fixture: &ProjectFixture, action: &str) -> impl Future<Output = Answer> + use<> {
    let body = json!({ "action": action, "params": { "n": 50_000 } });
    fixture.server.json("/room/api/op", &body).answer()
}

/// It was done, or told what was too much about it.
fn is_answered(answer: &Answer) -> bool {
    match answer.status {
        200 | 503 => true,
        400 => {
            let code = answer.json()["code"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            ["query_timeout", "statement_failed", "statement_refused"].contains(&code.as_str())
        }
        _ => false,
    }
}

#[tokio::test]
async fn what_was_quick_ends_with_its_time_when_it_is_not() {
    let fixture = start_fixture().await;
    for (name, _) in actions() {
        let begun = Instant::now();
        let answer = attack(&fixture, &name).await;
        let took = begun.elapsed();
        assert!(
            is_answered(&answer),
            "{name}: {} {}",
            answer.status,
            answer.text()
        );
        assert!(took < SOON, "{name} took {took:?}: {}", answer.text());
        println!("{name}: {} after {took:?}", answer.status);
    }
    // What stands in an action stands in a query as well.
    for (name, times, part) in &CHAINS[1..] {
        let chain = vec![*part; *times].join(" + ");
        let sql = format!("SELECT {chain} AS x FROM bait AS b WHERE b.n = 50000");
        let begun = Instant::now();
        let answer = fixture.query(&sql, &json!({})).await;
        let took = begun.elapsed();
        assert!(
            is_answered(&answer),
            "{name}: {} {}",
            answer.status,
            answer.text()
        );
        assert!(took < SOON, "{name} took {took:?}");
    }
}

#[tokio::test]
async fn everybody_else_is_answered_meanwhile() {
    let fixture = start_fixture().await;
    let server = &fixture.server;
    server
        .publish_slug(&json!({ "content": "calm", "name": "calm" }))
        .await;
    let other = Owner::new(server, "other").await;
    let project = other.project(server, "Other").await;
    let backend = format!("/{project}/backend");
    let ddl = json!({ "ddl": "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT)" });
    other.post(server, &backend, &ddl).await.expect(201);
    let defined = json!({ "actions": [
        { "name": "read", "sql": "SELECT count(*) AS n FROM t" },
        { "name": "write", "sql": "INSERT INTO t (a) VALUES ('x')" },
    ] });
    let path = format!("{backend}/actions");
    other
        .send(server, http::Method::PUT, &path, &defined)
        .await
        .expect(200);
    other.frontend(server, &project, "other").await;

    let mut flood = tokio::task::JoinSet::new();
    for _ in 0..2 {
        for (name, _) in actions() {
            flood.spawn(attack(&fixture, &name));
        }
    }
    let (mut rounds, mut longest) = (0, Duration::ZERO);
    while flood.try_join_next().is_none() || rounds < 5 {
        for path in ["/healthz", "/calm", "/room"] {
            let begun = Instant::now();
            server.get(path).answer().await.expect(200);
            longest = longest.max(begun.elapsed());
        }
        for action in ["read", "write"] {
            let begun = Instant::now();
            let call: Value = json!({ "action": action, "params": {} });
            server
                .json("/other/api/op", &call)
                .answer()
                .await
                .expect(200);
            longest = longest.max(begun.elapsed());
        }
        rounds += 1;
    }
    println!("{rounds} rounds of others' requests, the longest of them {longest:?}");
    assert!(longest < SOON, "somebody waited for {longest:?}");
    for answer in flood.join_all().await {
        assert!(is_answered(&answer), "{} {}", answer.status, answer.text());
    }
    server.get("/healthz").answer().await.expect(200);
}
