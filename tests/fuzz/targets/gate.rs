//! The gate natively: it never panics, and its places lie in the text.

use guest_gate::statement::{SqlPurpose, check};

/// Separator of statements in a file of the corpus.
pub(crate) const BETWEEN: &str = "\n-- ----\n";

pub(crate) const PURPOSES: [SqlPurpose; 4] = [
    SqlPurpose::Action,
    SqlPurpose::Query,
    SqlPurpose::Schema,
    SqlPurpose::Migration,
];

/// Judges each statement of a text for each purpose.
pub(crate) fn judge(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for sql in text.split(BETWEEN) {
        for purpose in PURPOSES {
            match check(sql, purpose) {
                Ok(statements) => {
                    let mut free_from = 0;
                    for statement in statements {
                        let (start, end) = (statement.start as usize, statement.end as usize);
                        assert!(start >= free_from && sql.get(start..end).is_some());
                        free_from = end;
                    }
                }
                Err(refusal) => {
                    assert!(sql.is_char_boundary(refusal.position.offset as usize));
                    assert!(refusal.position.line >= 1 && refusal.position.column >= 1);
                    assert!(!refusal.reason.is_empty());
                }
            }
        }
    }
}
