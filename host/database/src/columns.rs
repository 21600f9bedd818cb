//! Column names of a result, as JSON keys. No two columns may have the same name.

use rusqlite::Statement;
use rusqlite::types::ValueRef;

use super::error::StatementRunError;
use super::{sql_tokens, values};

/// Column names of a result, ready to be written into each row.
pub(super) struct EncodedColumnNames {
    /// Text of all keys, one after another: `{"id":,"name":`.
    keys: Vec<u8>,
    ends: Vec<usize>,
}

impl EncodedColumnNames {
    /// Reads the columns of a statement. One that was prepared before a migration must have run.
    ///
    /// # Errors
    /// `Refused`, if two columns have the same name.
    pub(super) fn of(sql: &str, statement: &Statement<'_>) -> Result<Self, StatementRunError> {
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
                Err(StatementRunError::Refused {
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

    /// Names of the columns, in quotes.
    fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.keys().map(|key| &key[1..key.len() - 1])
    }

    /// Returns the index of a column that has the name of an earlier one.
    fn find_duplicate(&self) -> Option<usize> {
        let mut sorted: Vec<_> = self.names().zip(0..).collect();
        sorted.sort_unstable();
        let twice = sorted.windows(2).find(|pair| pair[0].0 == pair[1].0);
        twice.map(|pair| pair[1].1)
    }
}
