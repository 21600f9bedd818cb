//! A schema, and actions on it, made at random.

use serde_json::{Value, json};
use svc_tests::SeededRng;

/// Columns in which a query names the state that it was answered from.
const LABEL: &str = "(SELECT n FROM ticks) AS tick, (SELECT epoch FROM ticks) AS epoch";

/// Tables that refer to each other, views of them, and what pages do with them.
pub(super) struct RandomSchema {
    pub(super) schema: String,
    /// Calls that read, by name and params.
    pub(super) queries: Vec<(String, Value)>,
    actions: Vec<(String, String)>,
}

impl RandomSchema {
    /// How many tables there are beside the ticks.
    pub(super) const TABLES: u64 = 4;

    pub(super) fn new(seed: u64) -> Self {
        let mut numbers = SeededRng::new(seed);
        let schema = schema(&mut numbers);
        let mut random_schema = Self {
            schema,
            queries: Vec::new(),
            actions: Vec::new(),
        };
        random_schema.add_write(
            "tick",
            "UPDATE ticks SET n = n + 1 RETURNING n AS tick, epoch",
        );
        random_schema.add_write("age", "UPDATE ticks SET epoch = :epoch");
        random_schema.add_read("label", "SELECT n AS tick, epoch FROM ticks", json!({}));
        for table in 0..Self::TABLES {
            random_schema.add_table_actions(table, &mut numbers);
        }
        random_schema
    }

    /// The actions as a batch.
    pub(super) fn actions(&self) -> Value {
        let actions = self.actions.iter();
        actions
            .map(|(name, sql)| json!({ "name": name, "sql": sql }))
            .collect()
    }

    /// Something that a visitor writes.
    pub(super) fn random_write(&self, numbers: &mut SeededRng) -> Value {
        let table = numbers.draw() % Self::TABLES;
        let (id, a) = (numbers.draw() % 6, numbers.draw() % 9);
        let (name, params) = match numbers.draw() % 12 {
            0..5 => ("put", json!({ "id": id, "a": a })),
            5..7 => ("link", json!({ "id": id, "up": a })),
            7..9 => ("drop", json!({ "id": id })),
            9 => ("copy", json!({ "a": a })),
            10 => ("move", json!({ "a": a })),
            _ => ("clear", json!({})),
        };
        json!({ "action": format!("{name}{table}"), "params": params })
    }

    fn add_write(&mut self, name: &str, sql: &str) {
        self.actions.push((name.to_owned(), sql.to_owned()));
    }

    fn add_read(&mut self, name: &str, sql: &str, params: Value) {
        self.add_write(name, sql);
        self.queries.push((name.to_owned(), params));
    }

    /// Adds reads of a table, and writes to it.
    fn add_table_actions(&mut self, n: u64, numbers: &mut SeededRng) {
        let mut some = || numbers.draw() % Self::TABLES;
        let (other, third) = (some(), some());
        let a = numbers.draw() % 9;
        let none = || json!({});
        self.add_read(
            &format!("all{n}"),
            &format!("SELECT id, a, up, {LABEL} FROM t{n} ORDER BY id"),
            none(),
        );
        self.add_read(
            &format!("view{n}"),
            &format!("SELECT v.*, {LABEL} FROM v{n} v WHERE a >= :least ORDER BY id"),
            json!({ "least": 3 }),
        );
        self.add_read(
            &format!("plain{n}"),
            &format!("SELECT count(*) AS n, total(a) AS sum FROM v{n}"),
            none(),
        );
        let (sql, params) = match numbers.draw() % 4 {
            0 => (
                format!(
                    "SELECT x.id, y.a, {LABEL} FROM t{n} x LEFT JOIN t{other} y ON y.id = x.up ORDER BY x.id"
                ),
                none(),
            ),
            1 => (
                format!(
                    "WITH RECURSIVE over (id) AS (SELECT id FROM t{n} WHERE a = :a UNION SELECT t.up FROM t{n} t JOIN over ON t.id = over.id WHERE t.up IS NOT NULL) SELECT id, {LABEL} FROM over ORDER BY id"
                ),
                json!({ "a": a }),
            ),
            2 => (
                format!("SELECT EXISTS (SELECT 1 FROM v{other} WHERE a = :a) AS there"),
                json!({ "a": a }),
            ),
            _ => (
                format!(
                    "SELECT a, count(*) AS n FROM (SELECT a FROM t{n} UNION ALL SELECT a FROM v{third}) GROUP BY a ORDER BY a"
                ),
                none(),
            ),
        };
        self.add_read(&format!("some{n}"), &sql, params);
        for (name, sql) in [
            (
                "put",
                format!("INSERT OR REPLACE INTO t{n} (id, a) VALUES (:id, :a)"),
            ),
            ("link", format!("UPDATE t{n} SET up = :up WHERE id = :id")),
            ("drop", format!("DELETE FROM t{n} WHERE id = :id")),
            ("clear", format!("DELETE FROM t{n}")),
            (
                "copy",
                format!(
                    "INSERT INTO t{n} (id, a) SELECT id, a + 1 FROM t{other} WHERE a < :a ON CONFLICT (id) DO UPDATE SET a = excluded.a"
                ),
            ),
            (
                "move",
                format!(
                    "UPDATE t{n} SET a = a + 1 WHERE up IN (SELECT id FROM t{third} WHERE a > :a)"
                ),
            ),
        ] {
            self.add_write(&format!("{name}{n}"), &sql);
        }
    }
}

/// Tables that refer to each other, some without rowids, views of them, and a counter.
fn schema(numbers: &mut SeededRng) -> String {
    let mut ddl = "CREATE TABLE ticks (id INTEGER PRIMARY KEY, n INTEGER NOT NULL, epoch INTEGER NOT NULL); INSERT INTO ticks VALUES (1, 0, 0);".to_owned();
    for table in 0..RandomSchema::TABLES {
        let up = if table == 0 {
            String::new()
        } else {
            let deletes = if numbers.draw().is_multiple_of(2) {
                "CASCADE"
            } else {
                "SET NULL"
            };
            format!(
                " REFERENCES t{} ON DELETE {deletes}",
                numbers.draw() % table
            )
        };
        let (key, tail) = if numbers.draw().is_multiple_of(2) {
            ("id INTEGER PRIMARY KEY", "")
        } else {
            ("id INTEGER NOT NULL PRIMARY KEY", " WITHOUT ROWID")
        };
        ddl += &format!("CREATE TABLE t{table} ({key}, a INTEGER, up INTEGER{up}){tail};");
    }
    for view in 0..RandomSchema::TABLES {
        let (one, two) = (
            numbers.draw() % RandomSchema::TABLES,
            numbers.draw() % RandomSchema::TABLES,
        );
        ddl += &format!(
            "CREATE VIEW v{view} AS SELECT x.id, x.a, (SELECT count(*) FROM t{two} y WHERE y.up = x.id) AS m FROM t{one} x;"
        );
    }
    ddl
}
