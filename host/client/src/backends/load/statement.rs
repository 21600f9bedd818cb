//! The statement that inserts many rows: their values are one JSON array, which it takes apart.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::reals::{RealParts, makes_numbers};
use super::{Cell, FileRow};
use crate::output::escape_line;

/// Place of a value that a row does not have, in the JSON of its values: the column's default counts.
const MISSING: &str = "[]";

/// A table with its columns.
#[derive(Debug)]
pub(super) struct TableColumns {
    table: String,
    columns: Vec<TableColumn>,
    /// Places of the columns, by their names in lower case.
    places: HashMap<String, usize>,
}

#[derive(Debug)]
struct TableColumn {
    name: String,
    /// Expression of the default, if there is one.
    default: Option<String>,
    /// Whether it makes numbers of texts.
    makes_numbers: bool,
}

impl TableColumns {
    /// Reads a table of a schema.
    pub(super) fn read(table: &Value) -> Option<Self> {
        let columns = table["columns"].as_array()?.iter().map(|column| {
            Some(TableColumn {
                name: column["name"].as_str()?.to_owned(),
                default: column["default"].as_str().map(str::to_owned),
                makes_numbers: makes_numbers(column["type"].as_str().unwrap_or_default()),
            })
        });
        Some(Self::new(
            table["name"].as_str()?,
            columns.collect::<Option<_>>()?,
        ))
    }

    #[cfg(test)]
    pub(super) fn of_names(names: &[&str]) -> Self {
        let columns = names.iter().map(|name| TableColumn {
            name: (*name).to_owned(),
            default: None,
            makes_numbers: false,
        });
        Self::new("t", columns.collect())
    }

    fn new(table: &str, columns: Vec<TableColumn>) -> Self {
        let places = columns.iter().enumerate();
        Self {
            table: table.to_owned(),
            places: places
                .map(|(place, column)| (column.name.to_ascii_lowercase(), place))
                .collect(),
            columns,
        }
    }

    /// Returns the place of a column. Names of columns differ by more than the case of ASCII letters.
    ///
    /// # Errors
    /// A sentence that names the columns that there are.
    pub(super) fn find(&self, name: &str) -> Result<usize, String> {
        let place = self.places.get(&name.to_ascii_lowercase()).copied();
        place.ok_or_else(|| {
            let known = self
                .columns
                .iter()
                .map(|column| format!("`{}`", escape_line(&column.name)));
            format!(
                "The table `{}` has no column `{}`. It has {}.",
                escape_line(&self.table),
                escape_line(name),
                known.collect::<Vec<_>>().join(", ")
            )
        })
    }

    pub(super) fn name(&self, place: usize) -> &str {
        &self.columns[place].name
    }

    /// Whether a column makes numbers of texts.
    pub(super) fn makes_numbers(&self, place: usize) -> bool {
        self.columns[place].makes_numbers
    }
}

/// A row as the statement takes it.
#[derive(Debug)]
pub(super) struct EncodedRow {
    /// Line of the file at which it begins.
    pub(super) line: u64,
    /// Number of the file's bytes up to its end.
    pub(super) end: u64,
    /// Bytes that it takes in the body of a request.
    pub(super) body_bytes: usize,
    /// JSON array of its values.
    text: String,
}

/// The statement, for the columns that the rows have had so far.
#[derive(Debug)]
pub(super) struct InsertStatement {
    columns: Arc<TableColumns>,
    used: Vec<UsedColumn>,
    /// Indexes of used columns, by their places in the table.
    indexes: BTreeMap<usize, usize>,
}

/// A column that rows have values for.
#[derive(Clone, Copy, Debug)]
struct UsedColumn {
    place: usize,
    /// Whether some value is a blob.
    has_blob: bool,
    /// Whether some value is a real number.
    has_real: bool,
    /// Whether some row has no value for it, and it has a default.
    needs_default: bool,
}

impl InsertStatement {
    pub(super) fn new(columns: Arc<TableColumns>) -> Self {
        Self {
            columns,
            used: Vec::new(),
            indexes: BTreeMap::new(),
        }
    }

    /// Name of the table.
    pub(super) fn table(&self) -> &str {
        &self.columns.table
    }

    /// Encodes a row, and takes its columns into the statement.
    pub(super) fn encode(&mut self, row: &FileRow) -> EncodedRow {
        let is_first = self.used.is_empty();
        for (place, _) in &row.cells {
            if !self.indexes.contains_key(place) {
                self.indexes.insert(*place, self.used.len());
                self.used.push(UsedColumn {
                    place: *place,
                    has_blob: false,
                    has_real: false,
                    needs_default: !is_first && self.columns.columns[*place].default.is_some(),
                });
            }
        }
        let mut values = vec![None; self.used.len()];
        for (place, cell) in &row.cells {
            let index = self.indexes[place];
            self.used[index].has_blob |= matches!(cell, Cell::Blob(_));
            self.used[index].has_real |= matches!(cell, Cell::Real(_));
            values[index] = Some(cell);
        }
        let mut text = String::from("[");
        for (index, value) in values.into_iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            match value {
                Some(Cell::Json(json)) => text.push_str(json),
                Some(Cell::Real(number)) => {
                    let RealParts { whole, power } = RealParts::of(*number);
                    text.push_str(&format!("[{whole},{power}]"));
                }
                Some(Cell::Blob(hex)) => text.push_str(&format!("{{\"x\":\"{hex}\"}}")),
                None => text.push_str(self.encode_missing(index)),
            }
        }
        text.push(']');
        EncodedRow {
            line: row.line,
            end: row.end,
            // A comma follows it.
            body_bytes: escaped_bytes(&text) + 1,
            text,
        }
    }

    fn encode_missing(&mut self, index: usize) -> &'static str {
        let column = &mut self.used[index];
        match self.columns.columns[column.place].default {
            Some(_) => {
                column.needs_default = true;
                MISSING
            }
            None => "null",
        }
    }

    /// Body of the request that inserts rows.
    pub(super) fn body(&self, rows: &[&EncodedRow]) -> Value {
        json!({ "sql": self.sql(":rows"), "params": { "rows": array_text(rows) } })
    }

    /// Number of bytes of that body.
    pub(super) fn body_bytes(&self, rows: &[&EncodedRow]) -> usize {
        let rows: usize = rows.iter().map(|row| row.body_bytes).sum();
        self.body(&[]).to_string().len() + rows
    }

    /// Body of the request that inserts one row by a statement without functions. It has columns and values of any number and length
    /// that a table may have, where the cost of a statement for many rows is bounded.
    pub(super) fn single_body(&self, row: &EncodedRow) -> Value {
        let values: Vec<Value> = serde_json::from_str(&row.text).unwrap_or_default();
        let (mut names, mut places, mut params) = (Vec::new(), Vec::new(), Map::new());
        for (index, (column, value)) in self.used.iter().zip(values).enumerate() {
            let place = match &value {
                Value::Array(parts) => match real_of(parts) {
                    Some(number) => {
                        params.insert(format!("v{index}"), number.into());
                        format!(":v{index}")
                    }
                    // The default of the column.
                    None => continue,
                },
                Value::Object(blob) => {
                    format!("x'{}'", blob["x"].as_str().unwrap_or_default())
                }
                _ => {
                    params.insert(format!("v{index}"), value);
                    format!(":v{index}")
                }
            };
            names.push(quote_identifier(&self.columns.columns[column.place].name));
            places.push(place);
        }
        let table = quote_identifier(&self.columns.table);
        let sql = match names.is_empty() {
            true => format!("INSERT INTO {table} DEFAULT VALUES"),
            false => format!(
                "INSERT INTO {table} ({}) VALUES ({})",
                names.join(", "),
                places.join(", ")
            ),
        };
        json!({ "sql": sql, "params": params })
    }

    /// Script that inserts the rows.
    pub(super) fn script(&self, rows: &[&EncodedRow]) -> String {
        self.sql(&format!("'{}'", array_text(rows).replace('\'', "''")))
    }

    fn sql(&self, rows: &str) -> String {
        let used = || {
            self.used
                .iter()
                .map(|column| &self.columns.columns[column.place])
        };
        let names: Vec<_> = used()
            .map(|column| quote_identifier(&column.name))
            .collect();
        let values: Vec<_> = self
            .used
            .iter()
            .enumerate()
            .map(|(index, column)| self.value(index, *column))
            .collect();
        format!(
            "INSERT INTO {} ({}) SELECT {} FROM json_each({rows})",
            quote_identifier(&self.columns.table),
            names.join(", "),
            values.join(", ")
        )
    }

    /// Expression for the value of a column.
    fn value(&self, index: usize, column: UsedColumn) -> String {
        let value = format!("json_extract(value, '$[{index}]')");
        let mut cases = String::new();
        if column.has_blob {
            cases.push_str(&format!(
                " WHEN 'object' THEN unhex(json_extract(value, '$[{index}].x'))"
            ));
        }
        let default = self.columns.columns[column.place].default.as_deref();
        let default = default.filter(|_| column.needs_default);
        let real = format!(
            "json_extract(value, '$[{index}][0]') * pow(2.0, json_extract(value, '$[{index}][1]'))"
        );
        match (column.has_real, default) {
            (false, None) => {}
            (false, Some(default)) => cases.push_str(&format!(" WHEN 'array' THEN ({default})")),
            // Of a value that is missing there are no parts, and NULL comes out.
            (true, None) => cases.push_str(&format!(" WHEN 'array' THEN {real}")),
            (true, Some(default)) => {
                cases.push_str(&format!(" WHEN 'array' THEN coalesce({real}, ({default}))"));
            }
        }
        match cases.is_empty() {
            true => value,
            // Rows that were read before the column was have no value at its place.
            false => format!(
                "CASE coalesce(json_type(value, '$[{index}]'), 'array'){cases} ELSE {value} END"
            ),
        }
    }
}

/// Number of a value that was taken apart; `None` for a missing value.
fn real_of(parts: &[Value]) -> Option<f64> {
    let [whole, power] = parts else {
        return None;
    };
    let parts = RealParts {
        whole: whole.as_i64()?,
        power: power.as_i64()?,
    };
    Some(parts.number())
}

/// JSON array of rows.
fn array_text(rows: &[&EncodedRow]) -> String {
    let rows: Vec<_> = rows.iter().map(|row| row.text.as_str()).collect();
    format!("[{}]", rows.join(","))
}

/// Number of bytes of a JSON text within a JSON string. JSON that is compact has no other characters to escape.
fn escaped_bytes(text: &str) -> usize {
    let escaped = text.bytes().filter(|byte| matches!(byte, b'"' | b'\\'));
    text.len() + escaped.count()
}

/// Quotes a name for use in SQL.
fn quote_identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> TableColumns {
        TableColumns::read(&json!({ "name": "a\"b", "columns": [
            { "name": "id", "default": null }, { "name": "from", "default": "'x'" }, { "name": "c", "default": null },
        ] }))
        .unwrap()
    }

    fn row(cells: &[(usize, Cell)]) -> FileRow {
        FileRow {
            line: 1,
            end: 1,
            cells: cells.to_vec(),
        }
    }

    fn json_cell(text: &str) -> Cell {
        Cell::Json(text.to_owned())
    }

    #[test]
    fn the_statement_has_the_columns_that_rows_have() {
        let mut insert = InsertStatement::new(Arc::new(table()));
        let first = insert.encode(&row(&[(0, json_cell("1")), (2, json_cell("\"it's\""))]));
        assert_eq!(
            insert.sql(":rows"),
            "INSERT INTO \"a\"\"b\" (\"id\", \"c\") SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(:rows)"
        );
        let second = insert.encode(&row(&[
            (1, json_cell("null")),
            (2, Cell::Blob("00ff".to_owned())),
        ]));
        assert_eq!(
            [first.text.as_str(), second.text.as_str()],
            ["[1,\"it's\"]", "[null,{\"x\":\"00ff\"},null]"]
        );
        let rows = [&first, &second];
        let script = insert.script(&rows);
        assert!(script.contains("CASE coalesce(json_type(value, '$[1]'), 'array') WHEN 'object' THEN unhex(json_extract(value, '$[1].x')) ELSE"), "{script}");
        assert!(
            script.contains("WHEN 'array' THEN ('x') ELSE json_extract(value, '$[2]') END"),
            "{script}"
        );
        assert!(
            script.ends_with("json_each('[[1,\"it''s\"],[null,{\"x\":\"00ff\"},null]]')"),
            "{script}"
        );
    }

    #[test]
    fn real_numbers_go_in_two_exact_parts() {
        let mut insert = InsertStatement::new(Arc::new(table()));
        let first = insert.encode(&row(&[(2, Cell::Real(-1.5))]));
        let second = insert.encode(&row(&[(1, Cell::Real(0.1))]));
        let third = insert.encode(&row(&[(2, json_cell("7"))]));
        assert_eq!(
            [&*first.text, &*second.text, &*third.text],
            ["[[-3,-1]]", "[null,[3602879701896397,-55]]", "[7,[]]"]
        );
        let sql = insert.sql(":rows");
        assert!(
            sql.contains("CASE coalesce(json_type(value, '$[0]'), 'array') WHEN 'array' THEN json_extract(value, '$[0][0]') * pow(2.0, json_extract(value, '$[0][1]')) ELSE json_extract(value, '$[0]') END"),
            "{sql}"
        );
        assert!(sql.contains("'$[1][1]')), ('x')) ELSE"), "{sql}");
        // A row by itself has its numbers as params, and the defaults of what it does not have.
        let single = insert.single_body(&second);
        assert_eq!(single["params"], json!({ "v0": null, "v1": 0.1 }));
        assert_eq!(insert.single_body(&third)["params"], json!({ "v0": 7 }));
    }

    #[test]
    fn the_size_of_a_body_is_known() {
        let mut insert = InsertStatement::new(Arc::new(table()));
        let rows = ["1", "\"a\\\"b\\\\ä\"", "null", "\"\\u0000\""]
            .map(|text| insert.encode(&row(&[(2, json_cell(text))])));
        let rows: Vec<_> = rows.iter().collect();
        // The last row has no comma.
        assert_eq!(
            insert.body_bytes(&rows),
            insert.body(&rows).to_string().len() + 1
        );
    }

    #[test]
    fn an_unknown_column_is_told_with_those_that_there_are() {
        assert_eq!(table().find("ID"), Ok(0));
        assert_eq!(
            table().find("x").unwrap_err(),
            "The table `a\"b` has no column `x`. It has `id`, `from`, `c`."
        );
    }
}
