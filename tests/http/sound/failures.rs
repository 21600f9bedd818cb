//! Failures as they are told: the place, and how to go on.

use super::*;

/// Statements that SQLite takes, with values that make them fail as they run.
fn failing() -> [(&'static str, Value, &'static str); 8] {
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
    let house = House::new(&format!(
        "{GUESTS} INSERT INTO guests (name) VALUES ('Ada')"
    ))
    .await;
    for (sql, value, says) in failing() {
        house.define(&[("it", sql)]).await;
        let params = json!({ "v": value });
        let batch = json!({ "ops": [{ "action": "it", "params": params }] });
        let answers = [
            house.op("it", &params).await,
            house.query(sql, &params).await,
            house.call("room", &batch).await,
        ];
        for answer in answers {
            let problem = answer.problem(400, "statement_failed");
            assert!(text(&problem["reason"]).contains(says), "{sql}: {problem}");
            assert_eq!(problem.get("position"), None, "{problem}");
            assert_eq!(problem.get("statement"), None, "{problem}");
        }
    }
    assert_eq!(house.count("guests").await, 1);
    // The statement is to blame where a migration took its meaning.
    house.migrate("CREATE TABLE notes (text)").await.expect(200);
    house
        .define(&[("both", "SELECT name, text FROM guests, notes")])
        .await;
    house.done("both", &json!({})).await;
    house
        .migrate("ALTER TABLE notes ADD COLUMN name")
        .await
        .expect(200);
    house
        .op("both", &json!({}))
        .await
        .problem(400, "statement_refused");
}

#[tokio::test]
async fn two_columns_of_one_name_are_refused_rows_or_not() {
    let house = House::new("CREATE TABLE a (id); CREATE TABLE b (id)").await;
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
        for answer in [house.put(&batch).await, house.query(sql, &json!({})).await] {
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
    house
        .migrate("CREATE TABLE c (n); CREATE TABLE d (m)")
        .await
        .expect(200);
    house.define(&[("all", "SELECT * FROM c, d")]).await;
    house.done("all", &json!({})).await;
    house
        .migrate("ALTER TABLE d ADD COLUMN n")
        .await
        .expect(200);
    house
        .op("all", &json!({}))
        .await
        .problem(400, "statement_refused");
}

#[tokio::test]
async fn a_place_is_where_the_name_is_or_is_not_said() {
    let house = House::new(GUESTS).await;
    for (sql, offset) in [
        ("SELECT count(*) AS n FROM nots", Some(26)),
        ("SELECT name\n FROM main.\"Nots\"", Some(23)),
        ("SELECT 1 AS nots FROM nots WHERE nots > 1", Some(22)),
        ("INSERT INTO guests (name, nom) VALUES ('a', 'b')", Some(26)),
        ("SELECT shoe FROM guests", Some(7)),
        ("SELECT name FROM guests ORDER BY 7", None),
    ] {
        for answer in [
            house.query(sql, &json!({})).await,
            house.put(&json!([{ "name": "it", "sql": sql }])).await,
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
