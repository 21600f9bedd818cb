//! Rows of files as text, for tests of the forms.

use super::{Cell, FileRow, RowFault};

/// Rows as `line: place=cell …`, and the fault that ends them.
#[derive(Default)]
pub(super) struct PrintedRows {
    pub(super) rows: Vec<String>,
    pub(super) fault: Option<String>,
}

impl PrintedRows {
    /// Adds what a file has next, and asks for more.
    pub(super) fn add(&mut self, row: Result<FileRow, RowFault>) -> bool {
        match row {
            Ok(row) => {
                let cells = row.cells.iter().map(|(place, cell)| match cell {
                    Cell::Json(json) => format!("{place}={json}"),
                    Cell::Real(number) => format!("{place}={number:?}"),
                    Cell::Blob(hex) => format!("{place}=x{hex}"),
                });
                let cells: Vec<_> = cells.collect();
                self.rows.push(format!("{}: {}", row.line, cells.join(" ")));
            }
            Err(fault) => self.fault = Some(format!("{}: {}", fault.line, fault.detail)),
        }
        true
    }
}
