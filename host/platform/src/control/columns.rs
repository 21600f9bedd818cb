//! Rows whose columns are read by name.

use std::cell::Cell;

use rusqlite::Row;
use rusqlite::types::FromSql;

/// A row whose columns are read by name. Reading them in the order of the query costs one comparison each, while `Row::get` with a
/// name compares all columns before it.
pub struct NamedColumnReader<'r, 's> {
    row: &'r Row<'s>,
    next: Cell<usize>,
}

impl<'r, 's> NamedColumnReader<'r, 's> {
    /// Wraps a row, to be read from its first column.
    pub fn new(row: &'r Row<'s>) -> Self {
        let next = Cell::new(0);
        Self { row, next }
    }

    /// Returns the value of a column.
    ///
    /// # Errors
    /// No column has the name, or its value has another type.
    pub fn get<T: FromSql>(&self, name: &str) -> rusqlite::Result<T> {
        let statement = self.row.as_ref();
        let next = self.next.get();
        let column = match statement.column_name(next) {
            Ok(known) if known == name => next,
            _ => statement.column_index(name)?,
        };
        self.next.set(column + 1);
        self.row.get(column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::Connection;

    #[test]
    fn columns_are_found_in_any_order() {
        let c = Connection::open_in_memory().unwrap();
        let sql = "SELECT 1 AS one, 2 AS two, 3 AS three";
        let read = |names: [&str; 3]| {
            c.query_row(sql, [], |row| {
                let row = NamedColumnReader::new(row);
                let [first, second, third] = names;
                let read = [row.get(first)?, row.get(second)?, row.get(third)?];
                Ok::<[i64; 3], rusqlite::Error>(read)
            })
        };
        assert_eq!(read(["one", "two", "three"]), Ok([1, 2, 3]));
        assert_eq!(read(["three", "one", "two"]), Ok([3, 1, 2]));
        assert_eq!(read(["two", "two", "three"]), Ok([2, 2, 3]));
        assert!(matches!(
            read(["one", "two", "four"]),
            Err(rusqlite::Error::InvalidColumnName(name)) if name == "four"
        ));
    }
}
