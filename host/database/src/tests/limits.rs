//! Bounds of statements: time, temporary space, the log, and neighbours in a commit.

use std::pin::pin;

use super::*;

const ENDLESS: &str =
    "WITH RECURSIVE c(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c";

#[tokio::test]
async fn endless_statements_end() {
    let fixture = Fixture::with(SCHEMA, |limits| limits.statement_ms = 200).await;
    let read = fixture.run(ENDLESS, false).await;
    assert!(matches!(read, Err(StatementRunError::Timeout)), "{read:?}");
    let write = "INSERT INTO notes (n) WITH RECURSIVE c(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c) SELECT n FROM c";
    let written = fixture.run(write, true).await;
    assert!(
        matches!(
            written,
            Err(StatementRunError::Timeout | StatementRunError::DatabaseFull)
        ),
        "{written:?}"
    );
    assert_eq!(fixture.number("SELECT count(*) FROM notes").await, 1);
}

#[tokio::test]
async fn rows_that_take_long_end_with_the_deadline() {
    let fixture = Fixture::with(SCHEMA, |limits| limits.statement_ms = 300).await;
    let text = "replace(hex(zeroblob(65000)), '00', 'ab')";
    let rows = format!(
        "WITH RECURSIVE c(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c WHERE n < 400)
         SELECT count(*) FROM c WHERE {text} || n GLOB
         '*' || replace(hex(zeroblob(190)), '00', '[a-b]') || 'c'"
    );
    let watch = Stopwatch::start();
    let read = fixture.run(&rows, false).await;
    assert!(matches!(read, Err(StatementRunError::Timeout)), "{read:?}");
    // All of them take minutes.
    assert!(watch.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn temporary_space_has_a_bound() {
    let fixture = Fixture::with(SCHEMA, |limits| limits.statement_ms = 30_000).await;
    let sorted = "WITH RECURSIVE c(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c)
        SELECT n FROM c ORDER BY hex(randomblob(50)) || n";
    let read = fixture.run(sorted, false).await;
    assert!(
        matches!(read, Err(StatementRunError::TooMuchSpace)),
        "{read:?}"
    );
}

/// Runs valid writes beside one that fails: all valid writes succeed, and only the offender gets an error.
async fn check_neighbours_of(
    fixture: &Fixture,
    offender: &str,
    expected: fn(&StatementRunError) -> bool,
) {
    let innocent = |n: i64| {
        let params = vec![("n".to_owned(), Value::Integer(n))];
        fixture.call("INSERT INTO notes (n) VALUES (:n)", true, params)
    };
    let before = fixture.number("SELECT count(*) FROM notes").await;
    let innocents = futures_util::future::join_all((0..20).map(innocent));
    let (kept, offence) = tokio::join!(innocents, fixture.run(offender, true));
    assert!(
        offence.as_ref().is_err_and(expected),
        "{offender}: {offence:?}"
    );
    for result in kept {
        result.unwrap_or_else(|e| panic!("beside {offender}: {e}"));
    }
    let after = fixture.number("SELECT count(*) FROM notes").await;
    assert_eq!(after, before + 20, "{offender}");
}

#[tokio::test]
async fn nobody_is_harmed_by_who_shares_a_commit() {
    let fixture = Fixture::with(SCHEMA, |limits| limits.statement_ms = 300).await;
    let constraint = |error: &StatementRunError| matches!(error, StatementRunError::Constraint(_));
    // Tenants cannot run the platform's statements, however often the platform has run them.
    for own in [
        "COMMIT",
        "ROLLBACK",
        "BEGIN IMMEDIATE",
        "RELEASE caller",
        "ROLLBACK TO caller",
    ] {
        check_neighbours_of(
            &fixture,
            own,
            |e| matches!(e, StatementRunError::Refused { reason, .. } if reason == "not authorized"),
        )
        .await;
    }
    for _ in 0..5 {
        let duplicate = "INSERT INTO notes (text) VALUES ('one')";
        check_neighbours_of(&fixture, duplicate, constraint).await;
        let rollback = "INSERT OR ROLLBACK INTO notes (text) VALUES ('one')";
        check_neighbours_of(&fixture, rollback, constraint).await;
        let endless = "UPDATE notes SET n = (WITH RECURSIVE c(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c) SELECT max(n) FROM c)";
        check_neighbours_of(&fixture, endless, |e| {
            matches!(e, StatementRunError::Timeout)
        })
        .await;
        let huge = "INSERT INTO notes (text) SELECT hex(zeroblob(100000)) || a.value || b.value FROM json_each('[1,2,3,4,5,6]') a, json_each('[1,2,3,4,5,6]') b";
        check_neighbours_of(&fixture, huge, |e| {
            matches!(e, StatementRunError::DatabaseFull)
        })
        .await;
    }
}

#[tokio::test]
async fn a_key_that_is_checked_at_the_commit_fails_its_own_alone() {
    let schema = "CREATE TABLE notes (id INTEGER PRIMARY KEY, n INTEGER,
        parent INTEGER REFERENCES notes (id) DEFERRABLE INITIALLY DEFERRED);";
    let fixture = Fixture::with(schema, |_| {}).await;
    let constraint = |error: &StatementRunError| matches!(error, StatementRunError::Constraint(_));
    for _ in 0..5 {
        check_neighbours_of(
            &fixture,
            "INSERT INTO notes (parent) VALUES (-1)",
            constraint,
        )
        .await;
    }
}

#[tokio::test]
async fn every_function_ends_soon_with_its_largest_arguments() {
    let fixture = Fixture::new().await;
    // As long as a value may be, but for what is put around it.
    let long = "CAST(zeroblob(260000) AS TEXT)";
    let text = "replace(hex(zeroblob(65000)), '00', 'ab')";
    for call in [
        format!("length(trim({text}, 'ba'))"),
        format!("length(rtrim({text}, {text}))"),
        format!("instr({text}, 'abababababababababababac')"),
        format!("length(replace({text}, 'aba', 'ab'))"),
        format!("{text} LIKE '%a%b%a%b%a%b%a%b%c'"),
        format!("{text} GLOB '*a*b*a*b*a*b*a*b*c'"),
        format!("length(hex({text}))"),
        format!("length(upper({long}))"),
        format!("json_valid({text})"),
        format!("length(quote({text}))"),
        "length(printf('%-200000s', 'x'))".to_owned(),
    ] {
        let watch = Stopwatch::start();
        let result = fixture.run(&format!("SELECT {call} AS x"), false).await;
        assert!(
            matches!(
                result,
                Ok(_) | Err(StatementRunError::Refused { .. } | StatementRunError::Timeout)
            ),
            "{call}: {result:?}"
        );
        // Far beyond what any takes on a busy machine, and far below what the unbounded ones took.
        assert!(watch.elapsed() < Duration::from_secs(20), "{call}");
    }
}

#[tokio::test]
async fn the_log_stays_short() {
    let fixture = Fixture::with(SCHEMA, |_| {}).await;
    let log = fixture
        .databases
        .files()
        .path(&fixture.id)
        .with_extension("db-wal");
    let text = "x".repeat(20_000);
    let mut longest = 0;
    for _ in 0..1000 {
        let params = vec![("text".to_owned(), Value::Text(text.clone()))];
        let insert = "REPLACE INTO notes (id, text) VALUES (2, :text)";
        fixture.call(insert, true, params).await.unwrap();
        longest = longest.max(std::fs::metadata(&log).map_or(0, |file| file.len()));
    }
    // 20 MB were written; the log is begun anew from 4 MB on, and cut from 16.
    assert!(longest > 0 && longest < 20 << 20, "{longest}");
}

#[tokio::test]
async fn idle_databases_make_room() {
    let fixture = Fixture::with(SCHEMA, |limits| limits.open_databases = 8).await;
    let clock = Clock::manual(Timestamp(1_795_262_400_000));
    for _ in 0..40 {
        let id = BackendId::new(&clock, &Random::system()).unwrap();
        fixture.databases.create(id, script(SCHEMA)).await.unwrap();
        drop(fixture.databases.get(id).unwrap());
        assert!(fixture.databases.open_count() <= 8);
    }
    fixture.run("SELECT 1", false).await.unwrap();
}

#[tokio::test]
async fn databases_in_use_are_not_closed_and_have_a_bound() {
    let fixture = Fixture::with(SCHEMA, |limits| limits.open_databases = 8).await;
    let clock = Clock::manual(Timestamp(1_795_262_400_000));
    let (mut used, mut refused) = (Vec::new(), None);
    while refused.is_none() {
        let id = BackendId::new(&clock, &Random::system()).unwrap();
        fixture.databases.create(id, script(SCHEMA)).await.unwrap();
        match fixture.databases.get(id) {
            Ok(database) => used.push(database),
            Err(error) => refused = Some((id, error)),
        }
    }
    let (refused, error) = refused.unwrap();
    assert!(matches!(error, StatementRunError::Busy), "{error:?}");
    assert_eq!(used.len(), 24, "a quarter more, and sixteen at least");
    drop(used);
    fixture.databases.close_all();
    drop(fixture.databases.get(refused).unwrap());
}

#[tokio::test]
async fn a_call_waits_until_there_is_room_for_its_database() {
    let fixture = Fixture::with(SCHEMA, |limits| limits.open_databases = 8).await;
    let mut ids = fixture.create_more(25).await;
    let last = ids.pop().unwrap();
    let get = |id: &BackendId| fixture.databases.get(*id).unwrap();
    let mut used: Vec<_> = ids.iter().map(get).collect();
    let mut call = pin!(fixture.databases.load(last));
    assert!(waits(&mut call).await, "all are in use");
    drop(used.pop());
    drop(call.await.unwrap());
}

async fn insert_more(databases: &Databases, id: BackendId) {
    let call = StatementCall {
        sql: "INSERT INTO notes (n) VALUES (7)".into(),
        writes: true,
        params: Vec::new(),
    };
    let database = databases.load(id).await.unwrap();
    database.call(call, &Arc::default()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn databases_are_opened_and_closed_in_turns() {
    let fixture = Fixture::with(SCHEMA, |limits| limits.open_databases = 2).await;
    let ids = fixture.create_more(30).await;
    let tasks = (0..8).map(|task| {
        let (databases, ids) = (Arc::clone(&fixture.databases), ids.clone());
        tokio::spawn(async move {
            for call in 0..60 {
                insert_more(&databases, ids[(call * 7 + task * 11) % ids.len()]).await;
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let mut rows = 0;
    for id in ids {
        let database = fixture.databases.load(id).await.unwrap();
        let count = "SELECT count(*) FROM notes WHERE n = 7";
        let counted = database.inspect(move |c| c.query_row(count, [], |row| row.get::<_, i64>(0)));
        rows += counted.await.unwrap();
    }
    assert_eq!(rows, 480);
}
