//! Failures as they are told: the place, and how to go on.

use super::*;

/// Statements that SQLite takes, with values that make them fail as they run.
fn failing_statements() -> [(&'static str, Value, &'static str); 8] {
    [
        (
            "SELECT json_extract(:v, '$.a') AS x",
            json!("{no"),
            "malformed JSON",
        ),
        ("SELECT abs(:v) AS x", json!(i64::MIN), "integer overflow"),
        ("SELECT zeroblob(:v) AS x", json!(300_000), "too big"),
        (
            "SELECT name FROM guests LIMIT :v",
            json!("abc"),
            "datatype mismatch",
        ),
        (
            "SELECT json_extract('{}', :v) AS x",
            json!("no path"),
            "path",
        ),
        (
            "SELECT name FROM guests WHERE name LIKE :v",
            json!("%a".repeat(1000)),
            "too complex",
        ),
        (
            "INSERT INTO guests (id, name) VALUES (:v, 'x')",
            json!("abc"),
            "datatype mismatch",
        ),
        (
            "INSERT INTO guests (name) VALUES (json(:v))",
            json!("[1,"),
            "malformed JSON",
        ),
    ]
}

#[tokio::test]
async fn a_visitors_data_that_fails_is_told_from_a_statement_that_does() {
    let fixture = ProjectFixture::new(&format!(
        "{GUESTS} INSERT INTO guests (name) VALUES ('Ada')"
    ))
    .await;
    for (sql, value, says) in failing_statements() {
        fixture.define(&[("it", sql)]).await;
        let params = json!({ "v": value });
        let batch = json!({ "ops": [{ "action": "it", "params": params }] });
        let answers = [
            fixture.call_action("it", &params).await,
            fixture.query(sql, &params).await,
            fixture.call("room", &batch).await,
        ];
        for answer in answers {
            let problem = answer.problem(400, "statement_failed");
            assert!(text(&problem["reason"]).contains(says), "{sql}: {problem}");
            assert_eq!(problem.get("position"), None, "{problem}");
            assert_eq!(problem.get("statement"), None, "{problem}");
        }
    }
    assert_eq!(fixture.count("guests").await, 1);
    // The statement is to blame where a migration took its meaning.
    fixture
        .migrate("CREATE TABLE notes (text)")
        .await
        .expect(200);
    fixture
        .define(&[("both", "SELECT name, text FROM guests, notes")])
        .await;
    fixture.call_ok("both", &json!({})).await;
    fixture
        .migrate("ALTER TABLE notes ADD COLUMN name")
        .await
        .expect(200);
    fixture
        .call_action("both", &json!({}))
        .await
        .problem(400, "statement_refused");
}

#[tokio::test]
async fn two_columns_of_one_name_are_refused_rows_or_not() {
    let fixture = ProjectFixture::new("CREATE TABLE a (id); CREATE TABLE b (id)").await;
    for (sql, offset) in [
        ("SELECT a.id, b.id FROM a, b", Some(15)),
        ("SELECT * FROM a, b", Some(7)),
        ("SELECT 1 AS x, 2 AS x FROM a", Some(20)),
        (
            "INSERT INTO a (id) SELECT id FROM b RETURNING id AS i, id AS i",
            Some(61),
        ),
        (
            "WITH c AS (SELECT 1 AS x) SELECT x, x FROM c WHERE x > 1",
            None,
        ),
    ] {
        let batch = json!([{ "name": "twice", "sql": sql }]);
        for answer in [
            fixture.put(&batch).await,
            fixture.query(sql, &json!({})).await,
        ] {
            let problem = answer.problem(400, "statement_refused");
            assert!(
                text(&problem["reason"]).contains("two columns"),
                "{problem}"
            );
            let place = problem.get("position").map(|place| place["offset"].clone());
            assert_eq!(
                place,
                offset.map(|offset: u64| json!(offset)),
                "{sql}: {problem}"
            );
        }
    }
    // An action that answered one of each name, until a migration.
    fixture
        .migrate("CREATE TABLE c (n); CREATE TABLE d (m)")
        .await
        .expect(200);
    fixture.define(&[("all", "SELECT * FROM c, d")]).await;
    fixture.call_ok("all", &json!({})).await;
    fixture
        .migrate("ALTER TABLE d ADD COLUMN n")
        .await
        .expect(200);
    fixture
        .call_action("all", &json!({}))
        .await
        .problem(400, "statement_refused");
}

#[tokio::test]
async fn a_place_is_where_the_name_is_or_is_not_said() {
    let fixture = ProjectFixture::new(GUESTS).await;
    for (sql, offset) in [
        ("SELECT count(*) AS n FROM nots", Some(26)),
        ("SELECT name\n FROM main.\"Nots\"", Some(23)),
        ("SELECT 1 AS nots FROM nots WHERE nots > 1", Some(22)),
        ("INSERT INTO guests (name, nom) VALUES ('a', 'b')", Some(26)),
        ("SELECT shoe FROM guests", Some(7)),
        ("SELECT name FROM guests ORDER BY 7", None),
    ] {
        for answer in [
            fixture.query(sql, &json!({})).await,
            fixture.put(&json!([{ "name": "it", "sql": sql }])).await,
        ] {
            let problem = answer.problem(400, "statement_refused");
            let place = problem.get("position").map(|place| place["offset"].clone());
            assert_eq!(
                place,
                offset.map(|offset: u64| json!(offset)),
                "{sql}: {problem}"
            );
        }
    }
}
