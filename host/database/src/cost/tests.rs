//! Costs of programs: ordinary ones, and such as hide what they call.

use super::*;

fn cost(connection: &Connection, sql: &str) -> StatementCost {
    StatementCost::of(connection, sql).unwrap()
}

fn database() -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    let calls = vec!["json(a)"; 200].join("||");
    connection
        .execute_batch(&format!(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a, b, c, d, e, f, g, h);
            CREATE TABLE u (a CHECK (length({calls}) > 0));
            CREATE TABLE w (a, n GENERATED ALWAYS AS (length({calls})));
            CREATE TABLE x (a);
            CREATE INDEX i ON x (length({calls}));
            CREATE VIEW v AS SELECT length({calls}) AS n FROM t;
            CREATE TABLE p (id INTEGER PRIMARY KEY);
            CREATE TABLE q (id INTEGER PRIMARY KEY, p REFERENCES p ON DELETE CASCADE, a);
            CREATE INDEX j ON q (length(json(a)));
            CREATE TABLE r (id PRIMARY KEY REFERENCES r ON DELETE CASCADE, a);
            CREATE INDEX k ON r (length(json(a)));"
        ))
        .unwrap();
    connection
}

#[test]
fn an_ordinary_statement_has_the_full_length() {
    let connection = database();
    for sql in [
        "SELECT * FROM t WHERE id = :id",
        "SELECT id, a FROM t WHERE b = :b ORDER BY c LIMIT 100",
        "SELECT b, count(*), max(c), group_concat(d) FROM t GROUP BY b HAVING count(*) > 1",
        "INSERT INTO t (a, b, c) VALUES (:a, lower(:b), json(:c)) RETURNING id",
        "UPDATE t SET a = replace(a, 'x', :b), c = json_set(c, '$.a', :b) WHERE id = :id",
        "SELECT a LIKE '%x%' AND trim(b) <> '' FROM t",
        "DELETE FROM t WHERE id = :id",
    ] {
        assert_eq!(
            cost(&connection, sql).lane_value_limit,
            VALUE_BYTES,
            "{sql}"
        );
    }
    let by_key = cost(&connection, "SELECT * FROM t WHERE id = :id");
    assert!(by_key.inline_value_limit > Some(50_000), "{by_key:?}");
}

#[test]
fn what_hides_calls_weighs_what_they_weigh() {
    let connection = database();
    let bare = vec!["json(a)"; 200].join("||");
    let bare = cost(&connection, &format!("SELECT length({bare}) FROM t"));
    assert!(
        bare.lane_value_limit < VALUE_BYTES && bare.inline_value_limit.is_none(),
        "{bare:?}"
    );
    for sql in [
        "INSERT INTO u VALUES (:a)",
        "UPDATE u SET a = 1",
        "SELECT n FROM w",
        "SELECT * FROM w WHERE n > 1",
        "INSERT INTO x VALUES (:a)",
        "DELETE FROM x WHERE a = 1",
        "SELECT n FROM v",
    ] {
        let hidden = cost(&connection, sql);
        assert!(
            hidden.lane_value_limit < bare.lane_value_limit * 11 / 10,
            "{sql}: {hidden:?}, {bare:?}"
        );
        assert_eq!(hidden.inline_value_limit, None, "{sql}");
    }
}

#[test]
fn a_cascade_that_sqlite_does_not_look_at_weighs_for_every_row_that_may_fall() {
    let connection = database();
    let looked_at = cost(&connection, "DELETE FROM p WHERE id = 1");
    assert_eq!(looked_at.lane_value_limit, VALUE_BYTES);
    let chain = cost(&connection, "DELETE FROM r WHERE id = 1");
    assert!(chain.lane_value_limit < 20_000, "{chain:?}");
}

#[test]
fn every_argument_of_a_call_weighs() {
    let connection = database();
    let lane = |arguments: usize| {
        let list = vec!["a"; arguments].join(",");
        cost(
            &connection,
            &format!("SELECT length(jsonb_array({list})) FROM t"),
        )
        .lane_value_limit
    };
    assert_eq!(lane(3), VALUE_BYTES);
    assert!(lane(400) * 3 < lane(100), "{} {}", lane(400), lane(100));
}
