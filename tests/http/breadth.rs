//! How much SQL may stand for once it is written out, and how much of it a backend keeps.

use serde_json::json;
use svc_tests::TestServer;

use crate::owner::text;
use crate::project_fixture::{GUESTS, ProjectFixture, assert_sql_refused, names, padded};

/// Views, or common table expressions, in which each names the one before twice.
fn doubling_definitions(
    levels: usize,
    start: &str,
    form: impl Fn(&str, &str) -> String,
) -> Vec<String> {
    let mut pieces = vec![form("l0", start)];
    for level in 1..=levels {
        let before = level - 1;
        let twice = format!("SELECT * FROM l{before} UNION ALL SELECT * FROM l{before}");
        pieces.push(form(&format!("l{level}"), &twice));
    }
    pieces
}

fn doubling_views(levels: usize) -> Vec<String> {
    doubling_definitions(levels, "SELECT id FROM guests", |name, select| {
        format!("CREATE VIEW {name} AS {select}")
    })
}

#[tokio::test]
async fn views_that_double_are_refused_in_one_script_and_in_many() {
    let fixture = ProjectFixture::without_backend(TestServer::start().await).await;
    let script = format!("{GUESTS}\n{}", doubling_views(20).join(";\n"));
    let problem = assert_sql_refused(&fixture.create(&script).await, "ddl_refused", &script);
    assert!(
        text(&problem["reason"]).contains("more than 32"),
        "{problem}"
    );
    fixture.get().await.problem(404, "not_found");

    fixture.create(GUESTS).await.expect(201);
    fixture.publish("room").await;
    let mut taken = 0;
    let last = loop {
        let sql = &doubling_views(20)[taken];
        let answer = fixture.migrate(sql).await;
        if answer.status != 200 {
            break assert_sql_refused(&answer, "ddl_refused", sql);
        }
        taken += 1;
    };
    assert_eq!(last["statement"], 1);
    // 1, 4, 10 and 22 tables and views.
    assert_eq!(taken, 4);
    let detail = fixture.detail().await;
    assert_eq!(names(&detail["schema"]["views"]), ["l0", "l1", "l2", "l3"]);
    // A view that is made before what it names counts as if it had been made after.
    let both = "CREATE VIEW early AS SELECT * FROM late, l3; CREATE VIEW late AS SELECT * FROM l2";
    let problem = assert_sql_refused(&fixture.migrate(both).await, "ddl_refused", both);
    assert!(text(&problem["reason"]).contains("`early`"), "{problem}");
    assert_eq!(fixture.rows("SELECT * FROM l3").await, json!([]));
}

#[tokio::test]
async fn views_of_much_text_and_many_views_are_refused() {
    let fixture = ProjectFixture::new(GUESTS).await;
    let list = |length: usize| vec!["1"; length].join(",");
    let long = format!("CREATE VIEW long AS SELECT 1 IN ({}) AS x", list(20_000));
    assert_sql_refused(&fixture.migrate(&long).await, "ddl_refused", &long);
    let some = format!("CREATE VIEW some AS SELECT 1 IN ({}) AS x", list(4_000));
    fixture.migrate(&some).await.expect(200);
    let thrice = "CREATE VIEW thrice AS SELECT x FROM some UNION ALL SELECT x FROM some UNION ALL SELECT x FROM some";
    assert_sql_refused(&fixture.migrate(thrice).await, "ddl_refused", thrice);
    let views = |from: usize, to: usize| {
        let views = (from..to).map(|view| format!("CREATE VIEW v{view} AS SELECT 1 AS one;"));
        views.collect::<String>()
    };
    fixture.migrate(&views(0, 199)).await.expect(200);
    let one_more = views(199, 200);
    assert_sql_refused(&fixture.migrate(&one_more).await, "ddl_refused", &one_more);
}

#[tokio::test]
async fn common_table_expressions_that_double_are_refused() {
    let fixture = ProjectFixture::new(GUESTS).await;
    let expressions = |levels: usize| {
        let with = doubling_definitions(levels, "SELECT id FROM guests", |name, select| {
            format!("{name} AS ({select})")
        });
        format!("WITH {} SELECT * FROM l{levels}", with.join(", "))
    };
    let few = expressions(4);
    fixture.define(&[("few", &few)]).await;
    fixture.call_ok("few", &json!({})).await;
    let many = expressions(18);
    let answer = fixture.query(&many, &json!({})).await;
    let problem = assert_sql_refused(&answer, "statement_refused", &many);
    assert!(text(&problem["reason"]).contains("100 tables"), "{problem}");
    let batch = json!([{ "name": "many", "sql": many }]);
    fixture.put(&batch).await.problem(400, "statement_refused");
}

#[tokio::test]
async fn a_table_is_so_wide_at_most() {
    let fixture = ProjectFixture::without_backend(TestServer::start().await).await;
    let wide = |columns: usize| {
        let columns: Vec<_> = (1..=columns).map(|column| format!("c{column}")).collect();
        format!("CREATE TABLE wide ({})", columns.join(", "))
    };
    let script = wide(501);
    assert_sql_refused(&fixture.create(&script).await, "ddl_refused", &script);
    fixture.create(&wide(500)).await.expect(201);
}

#[tokio::test]
async fn definitions_take_so_many_bytes_at_most() {
    let builder = TestServer::builder().limits(|limits| limits.definition_bytes = 20_000);
    let fixture = ProjectFixture::on_server(builder.start().await, GUESTS).await;
    let script = |table: &str| padded(&format!("CREATE TABLE {table} (a)"), 8_000);
    fixture.migrate(&script("one")).await.expect(200);
    let version = |number: usize| {
        let sql = padded(&format!("SELECT {number} AS n"), 4_000);
        json!([{ "name": "number", "sql": sql }])
    };
    fixture.put(&version(1)).await.expect(200);
    fixture.put(&version(2)).await.expect(200);
    // What is the same takes no more.
    fixture.put(&version(2)).await.expect(200);
    fixture.migrate(&script("one")).await.expect(200);

    let full = fixture.put(&version(3)).await;
    let detail = text(&full.problem(400, "invalid_request")["detail"]).to_owned();
    assert!(detail.contains("20000 bytes"), "{detail}");
    fixture
        .migrate(&script("two"))
        .await
        .problem(400, "invalid_request");
    let called = fixture.call_ok("number", &json!({})).await;
    assert_eq!(called["rows"], json!([{ "n": 2 }]));
    let detail = fixture.detail().await;
    assert_eq!(detail["migrations"].as_array().unwrap().len(), 2);
    assert!(!names(&detail["schema"]["tables"]).contains(&"two".to_owned()));
}
