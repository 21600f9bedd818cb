//! The gate never panics, and its places lie in the text.
#![no_main]

use guest_gate::statement::{Purpose, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    for sql in text.split("\n-- ----\n") {
        for purpose in [
            Purpose::Action,
            Purpose::Query,
            Purpose::Schema,
            Purpose::Migration,
        ] {
            match check(sql, purpose) {
                Ok(statements) => {
                    let mut free_from = 0;
                    for statement in statements {
                        let (start, end) = (statement.start as usize, statement.end as usize);
                        assert!(start >= free_from && sql.get(start..end).is_some());
                        free_from = end;
                    }
                }
                Err(refusal) => assert!(sql.is_char_boundary(refusal.place.offset as usize)),
            }
        }
    }
});
