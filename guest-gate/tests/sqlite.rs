//! Lists of ours that must be those of the SQLite that runs the statements.

#![allow(clippy::unwrap_used, reason = "this is a test")]

mod support;

use guest_gate::functions::{
    ADDED_FUNCTIONS, ALLOWED_FUNCTIONS, IMPLICIT_FUNCTIONS, TABLE_VALUED_FUNCTIONS,
};
use guest_gate::names::SQLITE_MODULES;
use guest_gate::statement::{SqlPurpose, check};
use rusqlite::Connection;

fn strings(database: &Connection, sql: &str) -> Vec<String> {
    let mut statement = database.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

#[test]
fn every_allowed_function_is_in_the_build_or_added_to_it() {
    let functions = strings(
        &support::empty(),
        "SELECT DISTINCT name FROM pragma_function_list",
    );
    for name in ALLOWED_FUNCTIONS.iter().chain(IMPLICIT_FUNCTIONS) {
        let is_built_in = functions.iter().any(|known| known == name);
        assert!(is_built_in != ADDED_FUNCTIONS.contains(name), "{name}");
    }
}

#[test]
fn every_function_that_is_not_allowed_is_refused_in_any_quoting() {
    let functions = strings(
        &support::empty(),
        "SELECT DISTINCT name FROM pragma_function_list",
    );
    let mut refused = 0;
    for name in &functions {
        let is_allowed = ALLOWED_FUNCTIONS.contains(&name.as_str());
        for call in [
            format!("\"{name}\"(1)"),
            format!("[{name}] (1)"),
            format!("`{}`(1)", name.to_uppercase()),
        ] {
            let verdict = check(&format!("SELECT {call}"), SqlPurpose::Action);
            assert_eq!(verdict.is_ok(), is_allowed, "{call}");
        }
        refused += usize::from(!is_allowed);
    }
    assert!(refused > 10, "{functions:?}");
}

#[test]
fn every_module_but_those_of_json_is_refused_as_a_table() {
    let modules = strings(
        &support::empty(),
        "SELECT DISTINCT name FROM pragma_module_list",
    );
    for name in modules
        .iter()
        .map(String::as_str)
        .chain(SQLITE_MODULES.iter().copied())
    {
        let is_json = TABLE_VALUED_FUNCTIONS.contains(&name);
        for sql in [
            format!("SELECT * FROM {name}"),
            format!("SELECT * FROM [{name}]('x')"),
            format!("SELECT 1 WHERE 1 IN {name}"),
        ] {
            assert_eq!(check(&sql, SqlPurpose::Query).is_ok(), is_json, "{sql}");
        }
    }
}

/// SQLite's list of keywords, which an identifier of the gate's must not be one of.
const KEYWORDS: &str = "ABORT ACTION ADD AFTER ALL ALTER ALWAYS ANALYZE AND AS ASC ATTACH AUTOINCREMENT BEFORE BEGIN BETWEEN BY \
    CASCADE CASE CAST CHECK COLLATE COLUMN COMMIT CONFLICT CONSTRAINT CREATE CROSS CURRENT CURRENT_DATE CURRENT_TIME \
    CURRENT_TIMESTAMP DATABASE DEFAULT DEFERRABLE DEFERRED DELETE DESC DETACH DISTINCT DO DROP EACH ELSE END ESCAPE EXCEPT EXCLUDE \
    EXCLUSIVE EXISTS EXPLAIN FAIL FILTER FIRST FOLLOWING FOR FOREIGN FROM FULL GENERATED GLOB GROUP GROUPS HAVING IF IGNORE \
    IMMEDIATE IN INDEX INDEXED INITIALLY INNER INSERT INSTEAD INTERSECT INTO IS ISNULL JOIN KEY LAST LEFT LIKE LIMIT MATCH \
    MATERIALIZED NATURAL NO NOT NOTHING NOTNULL NULL NULLS OF OFFSET ON OR ORDER OTHERS OUTER OVER PARTITION PLAN PRAGMA PRECEDING \
    PRIMARY QUERY RAISE RANGE RECURSIVE REFERENCES REGEXP REINDEX RELEASE RENAME REPLACE RESTRICT RETURNING RIGHT ROLLBACK ROW ROWS \
    SAVEPOINT SELECT SET TABLE TEMP TEMPORARY THEN TIES TO TRANSACTION TRIGGER UNBOUNDED UNION UNIQUE UPDATE USING VACUUM VALUES \
    VIEW VIRTUAL WHEN WHERE WINDOW WITH WITHOUT";

#[test]
fn the_parser_knows_the_keywords_of_the_build() {
    for word in KEYWORDS.split_ascii_whitespace() {
        let known = sqlite3_parser::dialect::keyword_token(word.as_bytes());
        assert!(known.is_some(), "{word}");
    }
    for word in ["abs", "rowid", "strict", "stored", "json_each", "within"] {
        let known = sqlite3_parser::dialect::keyword_token(word.as_bytes());
        assert!(known.is_none(), "{word}");
    }
}
