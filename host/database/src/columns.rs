//! Columns of a result: its keys in JSON, and the rule that no two have one name.

use rusqlite::Statement;
use rusqlite::types::ValueRef;

use super::error::RunError;
use super::{sql_tokens, values};

/// Names of a result's columns, as each row has them.
pub(super) struct ResultColumns {
    /// `{"id":,"name":`, which is all keys one after the other.
    keys: Vec<u8>,
    ends: Vec<usize>,
}

impl ResultColumns {
    /// The columns of a statement, which has run if it was prepared before a migration.
    ///
    /// # Errors
    /// Two of one name.
    pub(super) fn of(sql: &str, statement: &Statement<'_>) -> Result<Self, RunError> {
        let count = statement.column_count();
        let mut columns = Self {
            keys: Vec::with_capacity(16 * count),
            ends: Vec::with_capacity(count),
        };
        let Self { keys, ends } = &mut columns;
        for name in statement.column_names() {
            keys.push(if ends.is_empty() { b'{' } else { b',' });
            values::write_value(keys, ValueRef::Text(name.as_bytes()));
            keys.push(b':');
            ends.push(keys.len());
        }
        match columns.find_duplicate() {
            Some(column) => {
                let name = statement.column_name(column).unwrap_or_default();
                Err(RunError::Refused {
                    reason: format!(
                        "two columns of the result are named {name}: give one another name with AS"
                    ),
                    offset: sql_tokens::second_column_offset(sql, name),
                })
            }
            None => Ok(columns),
        }
    }

    /// Text before each value of a row: `{"id":`, then `,"name":`.
    pub(super) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        let each = starts.zip(&self.ends);
        each.map(|(start, end)| &self.keys[*start..*end])
    }

    /// Writes the names as an array.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        for (number, name) in self.names().enumerate() {
            out.push(if number == 0 { b'[' } else { b',' });
            out.extend_from_slice(name);
        }
        out.extend_from_slice(if self.ends.is_empty() { b"[]" } else { b"]" });
    }

    /// The names, in quotes.
    fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.keys().map(|key| &key[1..key.len() - 1])
    }

    /// Returns the index of a column whose name another has, too.
    fn find_duplicate(&self) -> Option<usize> {
        let mut sorted: Vec<_> = self.names().zip(0..).collect();
        sorted.sort_unstable();
        let twice = sorted.windows(2).find(|pair| pair[0].0 == pair[1].0);
        twice.map(|pair| pair[1].1)
    }
}
