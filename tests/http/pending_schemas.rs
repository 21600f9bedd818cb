//! Actions are judged against a schema that migrations only lead to, and changed in a transaction together with other things.

use rusqlite::OptionalExtension as _;
use serde_json::json;
use svc::backends::model::{ActionRemoval, NewAction};
use svc::backends::{
    ActionChanges, BackendError, PendingSchema, PreparationError, apply_action_changes,
};
use svc_base::ids::{BackendId, ProjectId};

use crate::owner::text;
use crate::project_fixture::{GUESTS, ProjectFixture, names};

fn new(name: &str, sql: &str) -> NewAction {
    NewAction {
        name: name.to_owned(),
        sql: sql.to_owned(),
        ..NewAction::default()
    }
}

/// Prepares two actions against a backend after these scripts; returns what is wrong.
async fn prepare(fixture: &ProjectFixture, is_new: bool, scripts: &[&str]) -> String {
    let app = fixture.server.server().app();
    let backend: BackendId = text(&fixture.detail().await["id"]).parse().unwrap();
    let mut judged = Vec::new();
    for (number, script) in scripts.iter().enumerate() {
        let of = (!is_new || number > 0).then_some(backend);
        let script = app.backends.judge_script((*script).to_owned(), of).await;
        judged.push(script.unwrap());
    }
    let batch = vec![
        new("read", "SELECT a FROM later"),
        new("write", "INSERT INTO later (b) VALUES (:b)"),
    ];
    let batch = app.definitions.gate_batch(batch).await.unwrap();
    let schema = PendingSchema {
        backend,
        is_new,
        scripts: judged,
        tells_each: false,
    };
    match app
        .definitions
        .prepare_batch(schema, batch, Vec::new())
        .await
    {
        Ok((actions, outcome)) => {
            let actions: Vec<_> = actions.iter().map(|one| one.name().to_owned()).collect();
            format!("{} after {}", actions.join(" "), outcome.migrated.len())
        }
        Err(PreparationError::Script { index, error }) => format!("script {index}: {error}"),
        Err(PreparationError::Actions(BackendError::Batch(refused))) => {
            let refused = refused.iter();
            let told = refused.map(|one| format!("{}: {}", one.name, one.error));
            told.collect::<Vec<_>>().join("; ")
        }
        Err(PreparationError::Actions(error)) => panic!("{error}"),
    }
}

#[tokio::test]
async fn actions_are_prepared_against_a_schema_that_is_still_to_come() {
    let fixture = ProjectFixture::new(GUESTS).await;
    let before = fixture.detail().await["schema"].clone();
    let (table, column) = (
        "CREATE TABLE later (a)",
        "ALTER TABLE later ADD COLUMN b; INSERT INTO later VALUES (1, 2)",
    );
    for (is_new, scripts, found) in [
        (
            false,
            &[][..],
            "read: no such table: later; write: no such table: later",
        ),
        (false, &[table], "write: table later has no column named b"),
        (false, &[table, column], "read write after 2"),
        (true, &[table, column], "read write after 2"),
        // What is applied already changes nothing.
        (
            false,
            &[table, table],
            "write: table later has no column named b",
        ),
        (
            false,
            &[table, "ALTER TABLE guests ADD COLUMN name", column],
            "script 1: duplicate column name: name",
        ),
        // A new database has no guests.
        (
            true,
            &[table, "ALTER TABLE guests ADD COLUMN more", column],
            "script 1: no such table: guests",
        ),
    ] {
        let told = prepare(&fixture, is_new, scripts).await;
        assert!(told.contains(found), "{scripts:?}: {told}");
    }
    assert_eq!(fixture.detail().await["schema"], before, "nothing is kept");
}

#[tokio::test]
async fn changes_of_actions_are_part_of_a_transaction() {
    let fixture = ProjectFixture::new(GUESTS).await;
    fixture
        .define(&[("old", "SELECT 1 AS n"), ("stays", "SELECT 2 AS n")])
        .await;
    let app = fixture.server.server().app();
    let backend: BackendId = text(&fixture.detail().await["id"]).parse().unwrap();
    let project: ProjectId = fixture.project.parse().unwrap();
    let change = async |expected: u64, fails: bool| {
        let batch = vec![new("fresh", "SELECT 3 AS n")];
        let changes = ActionChanges {
            define: app.definitions.judge_batch(backend, batch).await.unwrap(),
            remove: vec![ActionRemoval {
                name: "old".to_owned(),
                expected_version: Some(expected),
            }],
            ..ActionChanges::default()
        };
        let target = app.definitions.change_target(project, backend);
        let changed = app.control.write(move |tx| {
            tx.execute("CREATE TABLE IF NOT EXISTS beside (n)", [])
                .map_err(svc::control::Error::from)?;
            let changed = apply_action_changes(tx, &target, &changes)?;
            match fails {
                true => Err(BackendError::NoProject),
                false => Ok((changed.defined[0].version, changed.ended)),
            }
        });
        changed.await
    };
    let Err(BackendError::ActionConflict(conflicts)) = change(7, false).await else {
        panic!("the action has version 1");
    };
    assert_eq!((&*conflicts[0].name, conflicts[0].found), ("old", 1));
    assert!(change(1, true).await.is_err());
    let beside = |c: &rusqlite::Connection| {
        let sql = "SELECT 1 FROM sqlite_schema WHERE name = 'beside'";
        c.query_row(sql, [], |_| Ok(())).optional()
    };
    assert_eq!(app.control.read(beside).await.unwrap(), None);
    let actions = fixture.detail().await["actions"].clone();
    assert_eq!(names(&actions), ["old", "stays"]);
    fixture.call_ok("old", &json!({})).await;
    let done = change(1, false).await.unwrap();
    assert_eq!(done, (1, vec!["old".to_owned()]));
    let actions = fixture.detail().await["actions"].clone();
    assert_eq!(names(&actions), ["fresh", "stays"]);
    fixture
        .call_action("old", &json!({}))
        .await
        .problem(404, "not_found");
    fixture.call_ok("fresh", &json!({})).await;
}
