//! The tables that are found of statements, and what a commit concerns.

use std::time::Duration;

use super::*;
use crate::authorizer::AuthorizerRole;
use crate::connection::{DatabaseOpenSettings, TenantConnection};

const SCHEMA: &str = "
CREATE TABLE people (id INTEGER PRIMARY KEY, Name TEXT UNIQUE, town REFERENCES towns ON DELETE CASCADE);
CREATE TABLE towns (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE notes (person REFERENCES people ON DELETE CASCADE, text, PRIMARY KEY (person, text)) WITHOUT ROWID;
CREATE TABLE keys (k TEXT PRIMARY KEY, v) WITHOUT ROWID;
CREATE TABLE counted (id INTEGER PRIMARY KEY AUTOINCREMENT, a);
CREATE INDEX named ON people (lower(Name));
CREATE VIEW inner_view AS SELECT name, count(*) AS n FROM people GROUP BY name;
CREATE VIEW outer_view AS SELECT name FROM inner_view WHERE n > (SELECT count(*) FROM keys);
";

/// The tables of a statement on a database with that schema.
fn tables(sql: &str, writes: bool) -> StatementTables {
    let directory = tempfile::tempdir().unwrap();
    let settings = DatabaseOpenSettings::standalone(directory.path().join("t.db"), 8 << 20);
    let handle = TenantConnection::create(&settings).unwrap();
    handle.execute_as_platform(SCHEMA).unwrap();
    let role = if writes {
        AuthorizerRole::Write
    } else {
        AuthorizerRole::Read
    };
    let found = handle.run_as_tenant(role, Duration::from_secs(5), |_| {
        handle.cost(sql)?;
        Ok(handle.known_tables(sql))
    });
    let found = found.unwrap_or_else(|error| panic!("{sql}: {error}"));
    StatementTables::clone(&found.unwrap())
}

fn names(set: &BTreeSet<Box<str>>) -> Vec<&str> {
    set.iter().map(AsRef::as_ref).collect()
}

#[test]
fn every_table_that_a_read_looks_at_is_named() {
    for (sql, expected) in [
        ("SELECT 1", vec![]),
        ("SELECT name FROM people", vec!["people"]),
        ("SELECT count(*) FROM PEOPLE", vec!["people"]),
        ("SELECT EXISTS (SELECT 1 FROM keys)", vec!["keys"]),
        (
            "SELECT (SELECT v FROM keys WHERE k = p.name) FROM people p",
            vec!["keys", "people"],
        ),
        (
            "SELECT p.id FROM people p LEFT JOIN towns t ON t.id = p.town",
            vec!["people", "towns"],
        ),
        ("SELECT 1 FROM towns WHERE 0", vec!["towns"]),
        ("SELECT max(id) FROM counted", vec!["counted"]),
        (
            "SELECT 1 FROM people WHERE lower(name) = 'a'",
            vec!["people"],
        ),
        (
            "SELECT name FROM outer_view",
            vec!["inner_view", "keys", "outer_view", "people"],
        ),
        (
            "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c, towns LIMIT 3) SELECT x FROM c",
            vec!["towns"],
        ),
        (
            "SELECT text FROM notes UNION SELECT v FROM keys",
            vec!["keys", "notes"],
        ),
        (
            "SELECT value FROM keys, json_each(keys.v)",
            vec!["json_each", "keys"],
        ),
    ] {
        let tables = tables(sql, false);
        // A table that cannot change the result need not be named, and does no harm if it is.
        let read: Vec<_> = names(&tables.reads);
        let wanted = expected.iter().filter(|name| !name.ends_with("_view"));
        for name in wanted {
            assert!(
                read.contains(name) || sql.ends_with("WHERE 0"),
                "{sql}: {read:?}"
            );
        }
        assert!(
            read.iter().all(|name| expected.contains(name)),
            "{sql}: {read:?}"
        );
        assert!(
            tables.writes.is_empty() && !tables.unknown,
            "{sql}: {tables:?}"
        );
    }
}

#[test]
fn every_table_that_a_write_may_change_is_named() {
    for (sql, expected) in [
        ("INSERT INTO towns (name) VALUES ('a')", vec!["towns"]),
        ("INSERT INTO keys SELECT name, id FROM people", vec!["keys"]),
        ("REPLACE INTO keys VALUES ('a', 1)", vec!["keys"]),
        (
            "INSERT INTO keys VALUES ('a', 1) ON CONFLICT (k) DO UPDATE SET v = 2",
            vec!["keys"],
        ),
        ("UPDATE people SET name = 'b'", vec!["people"]),
        ("DELETE FROM keys", vec!["keys"]),
        ("DELETE FROM notes", vec!["notes"]),
        ("DELETE FROM people", vec!["notes", "people"]),
        (
            "DELETE FROM towns WHERE id = 1",
            vec!["notes", "people", "towns"],
        ),
        (
            "REPLACE INTO towns VALUES (1, 'a')",
            vec!["notes", "people", "towns"],
        ),
        (
            "INSERT OR REPLACE INTO people VALUES (1, 'a', NULL)",
            vec!["notes", "people"],
        ),
        (
            "INSERT INTO counted (a) VALUES (1) RETURNING id",
            vec!["counted"],
        ),
    ] {
        let tables = tables(sql, true);
        let mut written = names(&tables.writes);
        written.retain(|name| *name != "sqlite_sequence");
        assert_eq!(written, expected, "{sql}");
        assert!(!tables.unknown, "{sql}");
    }
}

#[test]
fn a_commit_concerns_who_reads_what_it_wrote() {
    let read = tables("SELECT name FROM outer_view", false);
    let by = |sql: &str| ChangedTables::Statements(vec![Arc::new(tables(sql, true))]);
    assert!(by("DELETE FROM towns").affects(Some(&read)));
    assert!(by("UPDATE keys SET v = 1").affects(Some(&read)));
    assert!(!by("INSERT INTO counted (a) VALUES (1)").affects(Some(&read)));
    assert!(by("INSERT INTO counted (a) VALUES (1)").affects(None));
    assert!(!ChangedTables::default().affects(None));
    assert!(ChangedTables::All.affects(Some(&read)));
    let mut unknown = StatementTables::default();
    unknown.mark_unknown();
    assert!(ChangedTables::Statements(vec![Arc::new(unknown.clone())]).affects(Some(&read)));
    assert!(by("INSERT INTO counted (a) VALUES (1)").affects(Some(&unknown)));
    let mut sum = by("INSERT INTO counted (a) VALUES (1)");
    sum.merge(by("DELETE FROM keys"));
    assert!(sum.affects(Some(&read)));
    sum.add(None);
    assert_eq!(sum, ChangedTables::All);
}
