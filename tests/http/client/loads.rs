//! `svc backend load`: rows of CSV and JSON, with their types, in transactions, and what is said of a row that is refused.

use serde_json::{Value, json};

use super::{ClientFixture, run_with_input};

/// Tables with what rows can break.
const TABLES: &str = "
CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, age INTEGER CHECK (age >= 0), joined TEXT DEFAULT 'today', photo BLOB);
CREATE TABLE pets (name TEXT NOT NULL, owner INTEGER REFERENCES people (id));
CREATE TABLE \"odd \"\"names\" (\"a b\" ANY, \"select\" REAL, c INTEGER) STRICT;
CREATE TABLE measures (r REAL, n NUMERIC, t TEXT, plain);
CREATE VIEW adults AS SELECT * FROM people WHERE age > 17;
";

/// Creates a project with the tables; no page is needed.
async fn start() -> ClientFixture {
    let fixture = ClientFixture::without_owner_rate_limit().await;
    fixture.run_for_stdout(&["project", "create", "Town"]).await;
    fixture.write("town.sql", TABLES);
    fixture
        .run_for_stdout(&["backend", "create", "town.sql"])
        .await;
    fixture.write("town.html", "<!doctype html><title>Town</title>");
    fixture
        .run_for_stdout(&["publish", "town.html", "--project", "Town"])
        .await;
    fixture
}

async fn rows(fixture: &ClientFixture, sql: &str) -> Value {
    fixture.json(&["backend", "query", sql]).await["rows"].clone()
}

async fn count(fixture: &ClientFixture, table: &str) -> Value {
    let sql = format!("SELECT count(*) AS n FROM {table}");
    rows(fixture, &sql).await[0]["n"].clone()
}

#[tokio::test]
async fn cells_of_csv_become_what_their_columns_make_of_them() {
    let fixture = start().await;
    fixture.write(
        "people.csv",
        "\u{feff}Name,age,photo\r\n\"Ada, \"\"Countess\"\"\",36,\r\nGrace,,\"\"\r\n'; DROP TABLE people; --,007,x\r\n",
    );
    let done = fixture
        .run_for_stdout(&["backend", "load", "people", "people.csv"])
        .await;
    assert_eq!(done, "loaded 3 rows into people\n");
    let sql = "SELECT name, age, typeof(age) AS kind, joined, photo FROM people ORDER BY id";
    assert_eq!(
        rows(&fixture, sql).await,
        json!([
            { "name": "Ada, \"Countess\"", "age": 36, "kind": "integer", "joined": "today", "photo": null },
            { "name": "Grace", "age": null, "kind": "null", "joined": "today", "photo": "" },
            { "name": "'; DROP TABLE people; --", "age": 7, "kind": "integer", "joined": "today", "photo": "x" },
        ])
    );
    // Standard input has no name: its first byte says the form.
    let load = ["backend", "load", "people", "-", "--json"];
    let as_csv = [&load[..], &["--format", "csv"]].concat();
    for (load, input) in [
        (&load[..], "name\nAlan\n"),
        (&load, "\n[{\"name\": \"Barbara\"}]"),
        (&load, "\u{feff} {\"name\": \"Edsger\"}"),
        (&as_csv, "name\nDonald\n"),
    ] {
        let done = run_with_input(fixture.command(load), input).await;
        assert_eq!(
            done.json(),
            json!({ "table": "people", "rows": 1, "transactions": 1 }),
            "{input}"
        );
    }
    fixture.write("rows.txt", "name\nAlan\n");
    let refused = fixture
        .run_for_failure(1, &["backend", "load", "people", "rows.txt"])
        .await;
    assert!(refused.contains("--format csv"), "{refused}");
    fixture.write("none.csv", "name\n");
    let done = fixture
        .json(&["backend", "load", "people", "none.csv"])
        .await;
    assert_eq!(done["rows"], 0);
}

#[tokio::test]
async fn values_of_json_keep_their_types() {
    let fixture = start().await;
    fixture.write(
        "people.json",
        r#"[
  {"name": "Ada", "age": 9223372036854775807, "joined": null, "photo": {"base64": "AAH/"}},
  {"age": 1, "name": "Grace"},
  {"name": "a\u0000b \ud83d\ude00", "joined": {"on": [1, "2"]}, "photo": null}
]"#,
    );
    let done = fixture
        .json(&["backend", "load", "PEOPLE", "people.json"])
        .await;
    assert_eq!(
        done,
        json!({ "table": "people", "rows": 3, "transactions": 1 })
    );
    // A member that a row does not have is the column's default.
    assert_eq!(
        rows(
            &fixture,
            "SELECT name, age, joined, photo FROM people ORDER BY id"
        )
        .await,
        json!([
            { "name": "Ada", "age": 9_223_372_036_854_775_807_i64, "joined": null, "photo": { "base64": "AAH/" } },
            { "name": "Grace", "age": 1, "joined": "today", "photo": null },
            { "name": "a\u{0}b \u{1f600}", "age": null, "joined": "{\"on\": [1, \"2\"]}", "photo": null },
        ])
    );
    fixture.write(
        "odd.ndjson",
        "{\"a b\": true, \"select\": 0.1}\n{\"a b\": -9223372036854775808, \"select\": 5e-324}\n\n\
         {\"a b\": 2.0, \"select\": 1.7976931348623157e308}\n{\"a b\": \"5\", \"select\": 0.30000000000000004, \"c\": 5.0}\n",
    );
    fixture
        .run_for_stdout(&["backend", "load", "odd \"names", "odd.ndjson"])
        .await;
    let sql = "SELECT \"a b\" AS a, typeof(\"a b\") AS kind, \"select\" AS r, c FROM \"odd \"\"names\" ORDER BY rowid";
    assert_eq!(
        rows(&fixture, sql).await,
        json!([
            { "a": 1, "kind": "integer", "r": 0.1, "c": null },
            { "a": i64::MIN, "kind": "integer", "r": 5e-324, "c": null },
            { "a": 2.0, "kind": "real", "r": f64::MAX, "c": null },
            { "a": "5", "kind": "text", "r": 0.300_000_000_000_000_04, "c": 5 },
        ])
    );
}

/// Every real number that JSON can say arrives as it was.
#[tokio::test]
async fn real_numbers_arrive_exactly() {
    let fixture = start().await;
    let mut bits = 0x9E37_79B9_7F4A_7C15_u64;
    let mut numbers = Vec::new();
    while numbers.len() < 1500 {
        bits = bits
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let number = f64::from_bits(bits ^ (bits >> 29));
        if number.is_finite() {
            numbers.push(number);
        }
    }
    let lines: String = numbers
        .iter()
        .map(|number| format!("{}\n", json!({ "select": number })))
        .collect();
    fixture.write("reals.jsonl", &lines);
    fixture
        .run_for_stdout(&["backend", "load", "odd \"names", "reals.jsonl"])
        .await;
    // Cells of CSV are texts, of which columns of numbers make numbers.
    let lines: String = numbers
        .iter()
        .map(|number| format!("{number:?},{number:e}\n"))
        .collect();
    fixture.write("reals.csv", &format!("r,n\n{lines}"));
    fixture
        .run_for_stdout(&["backend", "load", "measures", "reals.csv"])
        .await;
    fixture
        .run_for_stdout(&["backend", "export", "-o", "copy.db"])
        .await;
    let copy = rusqlite::Connection::open(fixture.path_of("copy.db")).unwrap();
    for query in [
        "SELECT \"select\" FROM \"odd \"\"names\" ORDER BY rowid",
        "SELECT r FROM measures ORDER BY rowid",
        "SELECT CAST(n AS REAL) FROM measures ORDER BY rowid",
    ] {
        let mut read = copy.prepare(query).unwrap();
        let stored: Vec<f64> = read
            .query_map([], |row| row.get(0))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        let differ: Vec<_> = numbers
            .iter()
            .zip(&stored)
            .filter(|(sent, got)| sent.to_bits() != got.to_bits())
            .collect();
        assert!(
            stored.len() == numbers.len() && differ.is_empty(),
            "{query}: {differ:?}"
        );
    }
}

#[tokio::test]
async fn a_real_number_is_one_and_the_rest_stays_as_it_is_written() {
    let fixture = start().await;
    fixture.write(
        "measures.csv",
        "r,n,t,plain\n-941989.5434327705,-941989.5434327705,-941989.50,1.50\n1.5e2,9007199254740993,1e5,\n.5,5.0,x,x\n",
    );
    let done = fixture
        .json(&["backend", "load", "measures", "measures.csv"])
        .await;
    assert_eq!(
        done,
        json!({ "table": "measures", "rows": 3, "transactions": 1 })
    );
    let sql = "SELECT r, typeof(r) AS kind, n, t, plain FROM measures ORDER BY rowid";
    let n = -941_989.543_432_770_5;
    assert_eq!(
        rows(&fixture, sql).await,
        json!([
            { "r": n, "kind": "real", "n": n, "t": "-941989.50", "plain": "1.50" },
            { "r": 150.0, "kind": "real", "n": 9_007_199_254_740_993_i64, "t": "1e5", "plain": null },
            { "r": 0.5, "kind": "real", "n": 5, "t": "x", "plain": "x" },
        ])
    );
    // Rows of JSON have them beside defaults, blobs and whatever else a column has.
    fixture.write(
        "people.json",
        r#"[{"name": "Ada", "joined": "x", "photo": {"base64": "AAH/"}}, {"name": "Grace", "photo": 0.30000000000000004}, {"name": "Alan", "joined": null, "photo": 7}]"#,
    );
    fixture
        .run_for_stdout(&["backend", "load", "people", "people.json"])
        .await;
    assert_eq!(
        rows(&fixture, "SELECT joined, photo FROM people ORDER BY id").await,
        json!([
            { "joined": "x", "photo": { "base64": "AAH/" } },
            { "joined": "today", "photo": 0.300_000_000_000_000_04 },
            { "joined": null, "photo": 7 },
        ])
    );
}

/// A row that is too wide for a statement of many has its numbers as params of their own.
#[tokio::test]
async fn a_wide_table_keeps_real_numbers() {
    let fixture = start().await;
    let names: Vec<_> = (0..120).map(|n| format!("c{n}")).collect();
    fixture.write(
        "wide.sql",
        &format!("CREATE TABLE wide ({})", names.join(" REAL, ")),
    );
    fixture
        .run_for_stdout(&["backend", "migrate", "wide.sql"])
        .await;
    let row = vec!["-941989.5434327705"; 120].join(",");
    let csv = format!("{}\n{}", names.join(","), format!("{row}\n").repeat(40));
    fixture.write("wide.csv", &csv);
    let done = fixture.json(&["backend", "load", "wide", "wide.csv"]).await;
    assert_eq!(done["rows"], 40);
    let sql = "SELECT c0, c118, count(*) AS n FROM wide GROUP BY c0, c118";
    let n = -941_989.543_432_770_5;
    assert_eq!(
        rows(&fixture, sql).await,
        json!([{ "c0": n, "c118": n, "n": 40 }])
    );
}

#[tokio::test]
async fn a_transaction_has_500_rows_or_what_a_request_takes() {
    let fixture = start().await;
    let csv: String = (0..1200).map(|n| format!("p{n},{n}\n")).collect();
    fixture.write("people.csv", &format!("name,age\n{csv}"));
    let done = fixture
        .json(&["backend", "load", "people", "people.csv"])
        .await;
    assert_eq!(
        done,
        json!({ "table": "people", "rows": 1200, "transactions": 3 })
    );
    assert_eq!(
        rows(
            &fixture,
            "SELECT count(*) AS n, sum(age) AS sum, max(id) AS last FROM people"
        )
        .await,
        json!([{ "n": 1200, "sum": 719_400, "last": 1200 }])
    );
    // A quotation mark takes four bytes of a request, so that each row takes 60,000: one of the 64 KB.
    let long = "\"".repeat(15_000);
    let rows: Vec<Value> = (0..5)
        .map(|n| json!({ "name": format!("{n}{long}") }))
        .collect();
    fixture.write("long.json", &Value::from(rows).to_string());
    let done = fixture
        .json(&["backend", "load", "people", "long.json"])
        .await;
    assert_eq!(
        done,
        json!({ "table": "people", "rows": 5, "transactions": 5 })
    );
    fixture.write(
        "huge.csv",
        &format!("name\nsmall\n{}\n", "x".repeat(70_000)),
    );
    let refused = fixture
        .run_for_failure(1, &["backend", "load", "people", "huge.csv"])
        .await;
    assert!(
        refused.starts_with("error: huge.csv:3: ") && refused.contains("too large"),
        "{refused}"
    );
    assert_eq!(count(&fixture, "people").await, 1206);
}

/// A statement for a wide table may have less long values than a request takes.
#[tokio::test]
async fn a_wide_table_is_loaded_in_smaller_parts() {
    let fixture = start().await;
    let names: Vec<_> = (0..120).map(|n| format!("c{n}")).collect();
    fixture.write(
        "wide.sql",
        &format!("CREATE TABLE wide ({})", names.join(" TEXT, ")),
    );
    fixture
        .run_for_stdout(&["backend", "migrate", "wide.sql"])
        .await;
    let row = vec!["0123456789"; 120].join(",");
    let csv = format!("{}\n{}", names.join(","), format!("{row}\n").repeat(200));
    fixture.write("wide.csv", &csv);
    let done = fixture.json(&["backend", "load", "wide", "wide.csv"]).await;
    assert_eq!(done["rows"], 200);
    assert_eq!(count(&fixture, "wide").await, 200);
}

#[tokio::test]
async fn a_row_that_is_refused_is_told_with_its_line() {
    let fixture = start().await;
    let people = |bad: &[(usize, &str)]| {
        let lines = (1..=1100).map(|n| match bad.iter().find(|(at, _)| *at == n) {
            Some((_, line)) => format!("{line}\n"),
            None => format!("{n},p{n},5\n"),
        });
        format!("id,name,age\n{}", lines.collect::<String>())
    };
    // The second row that is wrong is never come to.
    for (bad, said) in [
        (
            &[(777, "777,p3,5"), (800, "800,x,-1")][..],
            "UNIQUE constraint failed: people.name",
        ),
        (
            &[(777, "777,x,-1")],
            "CHECK constraint failed: age >= 0. 500 rows",
        ),
        (
            &[(777, "777,,1")],
            "NOT NULL constraint failed: people.name",
        ),
        (&[(777, "seven,x,1")], "datatype mismatch"),
        (&[(777, "777,x")], "2 of the 3 cells"),
        (&[(777, "777,x,1,2")], "more than the 3 cells"),
    ] {
        fixture.write("people.csv", &people(bad));
        let output = fixture
            .run(&["backend", "load", "people", "people.csv"])
            .await;
        assert!(!output.success && output.stdout.is_empty(), "{output:?}");
        let told = output.stderr.starts_with("error: people.csv:778: ")
            && output.stderr.contains(said)
            && output
                .stderr
                .contains("500 rows before it, to line 501, were loaded; none after that was.");
        assert!(told, "{said}: {output:?}");
        assert_eq!(count(&fixture, "people").await, 500, "{said}");
        fixture
            .run_for_stdout(&["backend", "query", "DELETE FROM people"])
            .await;
    }
    let output = fixture
        .run(&["backend", "load", "people", "people.csv", "--json"])
        .await;
    let error: Value = serde_json::from_str(&output.stderr).unwrap();
    assert_eq!(
        [&error["error"]["file"], &error["error"]["line"]],
        [&json!("people.csv"), &json!(778)]
    );
}

#[tokio::test]
async fn a_reference_that_leads_nowhere_is_told_with_its_line() {
    let fixture = start().await;
    fixture.write("people.csv", "id,name\n1,Ada\n");
    fixture
        .run_for_stdout(&["backend", "load", "people", "people.csv"])
        .await;
    let pets: String = (2..=40)
        .map(|line| format!("pet {line},{}\n", if line == 23 { 7 } else { 1 }))
        .collect();
    fixture.write("pets.csv", &format!("name,owner\n{pets}"));
    let refused = fixture
        .run_for_failure(5, &["backend", "load", "pets", "pets.csv"])
        .await;
    let told = refused.starts_with("error: pets.csv:23: ")
        && refused.contains("FOREIGN KEY constraint failed")
        && refused.contains("Nothing was loaded.");
    assert!(told, "{refused}");
    assert_eq!(count(&fixture, "pets").await, 0);
}

#[tokio::test]
async fn what_does_not_fit_the_table_is_told_before_anything_is_sent() {
    let fixture = start().await;
    for (table, file, text, code, said) in [
        (
            "persons",
            "a.csv",
            "name\nA\n",
            4,
            "no table `persons`. It has `people`, `pets`",
        ),
        ("adults", "a.csv", "name\nA\n", 4, "no table `adults`"),
        ("people", "a.csv", "name,mail\nA,B\n", 1, "a.csv:1: "),
        (
            "people",
            "b.csv",
            "mail\nA\n",
            1,
            "has no column `mail`. It has `id`, `name`, `age`, `joined`, `photo`.",
        ),
        (
            "people",
            "c.json",
            "[{\"name\":\"A\"},\n{\"mail\":1}]",
            1,
            "c.json:2: ",
        ),
        (
            "people",
            "d.json",
            "{\"name\":\"A\"}\n{\"name\":9223372036854775808}",
            1,
            "d.json:2: ",
        ),
        ("people", "e.csv", "", 1, "no header"),
    ] {
        fixture.write(file, text);
        let refused = fixture
            .run_for_failure(code, &["backend", "load", table, file])
            .await;
        assert!(refused.contains(said), "{table} {file}: {refused}");
    }
    fixture
        .run_for_failure(4, &["backend", "load", "people", "missing.csv"])
        .await;
    assert_eq!(count(&fixture, "people").await, 0);
    // The table of payments is the platform's.
    fixture.write("pay.csv", "session_id\n1\n");
    fixture
        .run_for_failure(1, &["backend", "load", "svc_payments", "pay.csv"])
        .await;
}

/// The owner's bucket is small; the command waits.
#[tokio::test]
async fn a_long_load_waits_for_its_rate() {
    let settings = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(
        settings.path(),
        "[limits]\nowner_burst = 8\nowner_per_minute = 120\n",
    )
    .unwrap();
    let fixture =
        ClientFixture::with_server_options(&["--config", settings.path().to_str().unwrap()]).await;
    fixture.run_for_stdout(&["project", "create", "Town"]).await;
    fixture.write("town.sql", TABLES);
    fixture
        .run_for_stdout(&["backend", "create", "town.sql"])
        .await;
    let csv: String = (0..4000).map(|n| format!("p{n}\n")).collect();
    fixture.write("people.csv", &format!("name\n{csv}"));
    let output = fixture
        .run(&["backend", "load", "people", "people.csv"])
        .await;
    assert_eq!(
        output.stdout, "loaded 4000 rows into people\n",
        "{output:?}"
    );
    assert!(output.stderr.contains("waiting for"), "{output:?}");
}
