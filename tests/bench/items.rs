//! The table that all databases are measured with, and the operations on it.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::client;

/// The table.
pub(crate) const SCHEMA: &str =
    "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT NOT NULL, note TEXT);";
/// Initial number of rows: about 1 MB.
pub(crate) const ROWS: i64 = 10_000;
/// Number of rows in a range.
pub(crate) const RANGE: i64 = 100;
/// SQL that makes the rows.
pub(crate) const SEED: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
INSERT INTO items (id, name, note)
SELECT i, 'Item ' || i, 'What is to be said of item ' || i || ' is no longer than of any other one.' FROM n;";

/// One row by its key.
pub(crate) const SELECT_ROW: &str = "SELECT id, name, note FROM items WHERE id = :id";
/// A range of rows.
pub(crate) const SELECT_RANGE: &str =
    "SELECT id, name, note FROM items WHERE id >= :first AND id < :first + 100 ORDER BY id";
/// A new row.
pub(crate) const INSERT: &str = "INSERT INTO items (name, note) VALUES (:name, :note) RETURNING id";
/// Deletes the new rows.
pub(crate) const DELETE_NEW_ROWS: &str = "DELETE FROM items WHERE id > 10000";

/// Number of keys that are requested in turn.
const KEYS: i64 = 1_000;

/// Operation on a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Row,
    Range,
    Insert,
}

impl Operation {
    pub(crate) const ALL: [Self; 3] = [Self::Row, Self::Range, Self::Insert];

    /// Name in the report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Row => "row by key",
            Self::Range => "100 rows",
            Self::Insert => "insert",
        }
    }

    /// Calls of actions below a page: of keys all over the table, or of one new row.
    pub(crate) fn calls(self, address: SocketAddr, slug: &str) -> Vec<Vec<u8>> {
        let call = |action, params: Value| call(address, slug, action, &params);
        match self {
            Self::Row => keys()
                .map(|key| call("row", json!({ "id": key })))
                .collect(),
            Self::Range => keys()
                .map(|key| call("range", json!({ "first": first_key_of_range(key) })))
                .collect(),
            Self::Insert => vec![call("insert", new_row())],
        }
    }
}

/// Keys all over the table, none twice.
pub(crate) fn keys() -> impl Iterator<Item = i64> + Clone {
    (0..KEYS).map(|number| 1 + number * 7_919 % ROWS)
}

/// Returns the start of the last complete range that begins at or before `key`.
pub(crate) fn first_key_of_range(key: i64) -> i64 {
    key.min(ROWS - RANGE + 1)
}

/// A new row as JSON.
pub(crate) fn new_row() -> Value {
    json!({
        "name": "Another item",
        "note": "What is to be said of this one is no longer than of any other one."
    })
}

/// A call of an action.
pub(crate) fn call(address: SocketAddr, slug: &str, action: &str, params: &Value) -> Vec<u8> {
    let body = json!({ "action": action, "params": params });
    client::post(address, &format!("/{slug}/api/op"), &body)
}

/// Makes the call that deletes the new rows.
pub(crate) fn undo_request(address: SocketAddr, slug: &str) -> Vec<u8> {
    call(address, slug, "undo", &json!({}))
}
