//! Difference between two versions of a schema, which only ever grows.

use serde::Serialize;
use utoipa::ToSchema;

use svc_database::{Column, Index, Schema, Table, View};

/// Parts of a schema that a change adds.
#[derive(Debug, Serialize, ToSchema)]
pub struct SchemaDifference {
    /// Tables that are new or have new columns.
    pub tables: Vec<TableDifference>,
    /// New indexes.
    pub indexes: Vec<Index>,
    /// New views.
    pub views: Vec<View>,
}

/// A table that is new or has new columns.
#[derive(Debug, Serialize, ToSchema)]
pub struct TableDifference {
    /// Name of the table, as it was written.
    pub name: String,
    /// Whether the table itself is new.
    pub new: bool,
    /// New columns of the table.
    pub columns: Vec<Column>,
}

impl SchemaDifference {
    /// Computes the difference between the schemas before and after a change.
    pub fn between(before: &Schema, after: &Schema) -> Self {
        let tables = after.tables.iter().filter_map(|table| {
            let old = before.tables.iter().find(|old| old.name == table.name);
            TableDifference::between(old, table)
        });
        let is_new = |name: &str, old: &[&str]| !old.contains(&name);
        let indexes: Vec<&str> = before.indexes.iter().map(|one| &*one.name).collect();
        let views: Vec<&str> = before.views.iter().map(|one| &*one.name).collect();
        Self {
            tables: tables.collect(),
            indexes: filter_cloned(&after.indexes, |index| is_new(&index.name, &indexes)),
            views: filter_cloned(&after.views, |view| is_new(&view.name, &views)),
        }
    }
}

impl TableDifference {
    fn between(before: Option<&Table>, after: &Table) -> Option<Self> {
        let had = |column: &Column| {
            let old = before.iter().flat_map(|table| &table.columns);
            old.into_iter().any(|old| old.name == column.name)
        };
        let columns = filter_cloned(&after.columns, |column| !had(column));
        (before.is_none() || !columns.is_empty()).then(|| Self {
            name: after.name.clone(),
            new: before.is_none(),
            columns,
        })
    }
}

fn filter_cloned<T: Clone>(all: &[T], wanted: impl Fn(&T) -> bool) -> Vec<T> {
    all.iter().filter(|one| wanted(one)).cloned().collect()
}
