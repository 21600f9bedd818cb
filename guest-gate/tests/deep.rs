//! Depth and length: what is sane is accepted, what is hostile ends in a refusal.

mod support;

use guest_gate::statement::{SqlPurpose, check};

/// `open` and `close` around `middle`, many times.
fn nested(times: usize, before: &str, open: &str, middle: &str, close: &str) -> String {
    format!(
        "{before}{}{middle}{}",
        open.repeat(times),
        close.repeat(times)
    )
}

fn joined(times: usize, before: &str, separator: &str, item: impl Fn(usize) -> String) -> String {
    let items: Vec<String> = (0..times).map(item).collect();
    before.to_owned() + &items.join(separator)
}

#[test]
fn sane_depth_is_accepted() {
    let one = |_| "1".to_owned();
    let database = support::example();
    for sql in [
        nested(60, "SELECT ", "(", "1", ")"),
        nested(200, "SELECT ", "(", "1", ")"),
        nested(40, "SELECT * FROM ", "(SELECT * FROM ", "users", ")"),
        nested(
            40,
            "SELECT * FROM users WHERE id IN ",
            "(SELECT id FROM users WHERE id IN ",
            "(1)",
            ")",
        ),
        nested(60, "SELECT ", "abs(", "1", ")"),
        nested(50, "SELECT ", "CASE WHEN 1 THEN ", "1", " ELSE 0 END"),
        nested(100, "SELECT ", "- ", "1", ""),
        nested(100, "SELECT ", "NOT ", "1", ""),
        joined(501, "SELECT 1 WHERE ", " AND ", one),
        joined(500, "SELECT 1 WHERE ", " OR ", |i| format!("{i} = {i}")),
        joined(900, "SELECT ", " + ", |i| i.to_string()),
        joined(400, "SELECT ", " || ", |_| "'x'".to_owned()),
        joined(3000, "SELECT 1 WHERE 5 IN (", ", ", |i| i.to_string()) + ")",
        joined(2000, "INSERT INTO nodes (id) VALUES ", ", ", |i| {
            format!("({i})")
        }),
        joined(200, "", " UNION ALL ", |i| format!("SELECT {i}")),
        joined(300, "SELECT CASE ", " ", |i| format!("WHEN {i} THEN name"))
            + " ELSE bio END FROM users",
        joined(300, "SELECT ", ", ", |i| format!(":p{i}")),
        joined(60, "SELECT 1 FROM nodes", "", |i| {
            format!(" NATURAL JOIN nodes n{i}")
        }),
        joined(60, "WITH ", ", ", |i| format!("c{i} AS (SELECT {i} AS x)"))
            + " SELECT * FROM c1, c59",
    ] {
        let shown: String = sql.chars().take(60).collect();
        let verdict = check(&sql, SqlPurpose::Action);
        assert!(verdict.is_ok(), "{shown}: {verdict:?}");
        let prepared = database.prepare(&sql);
        assert!(prepared.is_ok(), "{shown}: {:?}", prepared.err());
    }
}

#[test]
fn hostile_depth_is_refused() {
    let one = |_| "1".to_owned();
    for sql in [
        nested(1_000, "SELECT ", "(", "1", ")"),
        nested(30_000, "SELECT ", "(", "1", ")"),
        nested(100_000, "SELECT ", "(", "1", ")"),
        nested(60_000, "SELECT ", "(", "", ""),
        nested(5_000, "SELECT * FROM ", "(SELECT * FROM ", "users", ")"),
        nested(3_000, "SELECT * FROM ", "(", "users", ")"),
        nested(2_000, "SELECT ", "EXISTS (SELECT ", "1", ")"),
        nested(2_000, "", "WITH a AS (", "SELECT 1", ") SELECT 1"),
        nested(1_000, "SELECT ", "abs(", "1", ")"),
        nested(1_000, "SELECT ", "CASE WHEN 1 THEN ", "1", " END"),
        nested(10_000, "SELECT ", "CASE ", "", ""),
        nested(20_000, "SELECT ", "- ", "1", ""),
        nested(60_000, "SELECT ", "~", "1", ""),
        nested(15_000, "SELECT ", "NOT ", "1", ""),
        nested(2_000, "SELECT ", "CAST(", "1", ""),
        nested(4_000, "SELECT 1", " COLLATE NOCASE", "", ""),
        nested(5_000, "SELECT 1", " ISNULL", "", ""),
        nested(20_000, "SELECT CAST(1 AS", " a", ")", ""),
        nested(15_000, "SELECT CAST(1 AS", " KEY", ")", ""),
        joined(1_001, "SELECT 1 WHERE ", " AND ", one),
        joined(12_000, "SELECT 1 WHERE ", " OR ", one),
        joined(100_000, "SELECT 1 WHERE ", " OR ", one),
        joined(20_000, "SELECT ", "||", one),
        joined(3_000, "SELECT ", " -> ", |_| "'a'".to_owned()),
        joined(5_000, "INSERT INTO t (", ", ", |i| format!("c{i}")) + ") VALUES (1)",
    ] {
        let verdict = check(&sql, SqlPurpose::Action);
        let shown: String = sql.chars().take(60).collect();
        assert!(verdict.is_err(), "{shown}");
    }
    for sql in [
        nested(30_000, "CREATE TABLE t (a", " b", ")", ""),
        joined(5_000, "CREATE TABLE t (", ", ", |i| format!("c{i}")) + ")",
        nested(5_000, "CREATE VIEW v AS SELECT ", "(", "1", ")"),
    ] {
        let verdict = check(&sql, SqlPurpose::Migration);
        let shown: String = sql.chars().take(60).collect();
        assert!(verdict.is_err(), "{shown}");
    }
}
