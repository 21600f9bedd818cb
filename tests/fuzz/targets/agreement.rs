//! The gate natively beside SQLite: what the gate allows is what the gate says it is, and a read changes nothing.

use std::cell::RefCell;

use rusqlite::Connection;

use super::gate::BETWEEN;
use watched::{PURPOSES, Watched};

#[path = "../../../guest-gate/tests/support/agreement.rs"]
mod watched;

const SCHEMA: &str = include_str!("../../corpus/sql/schema.sql");

thread_local! {
    static WATCHED: RefCell<Watched> = RefCell::new({
        let database = Connection::open_in_memory().expect("memory is there");
        database.execute_batch(SCHEMA).expect("the schema is right");
        Watched::new(database)
    });
}

/// Has both judge each statement of a text for each purpose.
pub(crate) fn compare(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    WATCHED.with_borrow_mut(|watched| {
        for sql in text.split(BETWEEN) {
            for purpose in PURPOSES {
                if let Err(difference) = watched.agree(sql, purpose) {
                    panic!("{difference}");
                }
            }
        }
    });
}
