//! What the gate allows is for SQLite what the gate says it is, and a read changes nothing.
#![no_main]

use std::cell::RefCell;

use agreement::{PURPOSES, Watched};
use libfuzzer_sys::fuzz_target;
use rusqlite::Connection;

#[path = "../../tests/support/agreement.rs"]
mod agreement;

const SCHEMA: &str = include_str!("../../../tests/corpus/sql/schema.sql");

thread_local! {
    static WATCHED: RefCell<Watched> = RefCell::new({
        let database = Connection::open_in_memory().expect("memory is there");
        database.execute_batch(SCHEMA).expect("the schema is right");
        Watched::new(database)
    });
}

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    WATCHED.with_borrow_mut(|watched| {
        for sql in text.split("\n-- ----\n") {
            for purpose in PURPOSES {
                if let Err(difference) = watched.agree(sql, purpose) {
                    panic!("{difference}");
                }
            }
        }
    });
});
