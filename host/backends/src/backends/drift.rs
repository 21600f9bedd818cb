//! Finds parts of a schema that no migration created: another program has changed the file.

use std::collections::HashSet;

use super::model::LedgerEntry;
use super::service::Backends;
use crate::content::Digest;
use svc_base::ids::BackendId;
use svc_database::{DatabaseInventory, Schema};

/// Number of backends whose schema is remembered to match the ledger.
pub(super) const MAX_REMEMBERED_MATCHES: usize = 1024;

impl Backends {
    /// Lists the parts of a schema that the ledger's scripts do not create. Empty if the scripts no longer run.
    pub(super) async fn list_unrecorded_schema(
        &self,
        id: BackendId,
        inventory: &DatabaseInventory,
        ledger: &[LedgerEntry],
    ) -> Vec<String> {
        let recorded = |version| ledger.iter().any(|entry| entry.version == version);
        if !inventory.markers.iter().all(|m| recorded(m.version)) {
            // The backend's detail has another warning for a migration that is not recorded yet.
            return Vec::new();
        }
        let state = schema_digest(&inventory.schema, ledger);
        if self.compared_schemas.get(&id) == Some(state) {
            return Vec::new();
        }
        let scripts = ledger.iter().map(|entry| entry.sql.clone()).collect();
        match self.databases.schema_of_scripts(id, scripts).await {
            Ok(made) => {
                let more = names_missing_from(&inventory.schema, &made);
                if more.is_empty() {
                    self.compared_schemas.insert(id, state);
                }
                more
            }
            Err(error) => {
                tracing::debug!(%error, backend = %id, "schema and ledger cannot be compared");
                Vec::new()
            }
        }
    }
}

/// Returns a digest of the names of a schema and of the scripts of a ledger.
fn schema_digest(schema: &Schema, ledger: &[LedgerEntry]) -> Digest {
    let mut text = schema_names(schema).join("\n");
    for entry in ledger {
        text.push('\n');
        text.push_str(&entry.checksum);
    }
    Digest::of(text.as_bytes())
}

/// Lists the names in a schema that another schema lacks. For a missing table, its columns are not listed.
fn names_missing_from(schema: &Schema, other: &Schema) -> Vec<String> {
    let known: HashSet<String> = schema_names(other).into_iter().collect();
    let mut more = Vec::new();
    for table in &schema.tables {
        let name = table_name(&table.name);
        if !known.contains(&name) {
            more.push(name);
            continue;
        }
        let columns = table.columns.iter();
        more.extend(
            columns
                .map(|column| column_name(&table.name, &column.name))
                .filter(|name| !known.contains(name)),
        );
    }
    let rest = indexes_and_views(schema);
    more.extend(rest.filter(|name| !known.contains(name)));
    more
}

fn schema_names(schema: &Schema) -> Vec<String> {
    let mut names = Vec::new();
    for table in &schema.tables {
        names.push(table_name(&table.name));
        let columns = table.columns.iter();
        names.extend(columns.map(|column| column_name(&table.name, &column.name)));
    }
    names.extend(indexes_and_views(schema));
    names
}

fn table_name(table: &str) -> String {
    format!("table `{table}`")
}

fn column_name(table: &str, column: &str) -> String {
    format!("column `{column}` of `{table}`")
}

fn indexes_and_views(schema: &Schema) -> impl Iterator<Item = String> {
    let indexes = schema.indexes.iter();
    let indexes = indexes.map(|index| format!("index `{}` on `{}`", index.name, index.table));
    indexes.chain(
        schema
            .views
            .iter()
            .map(|view| format!("view `{}`", view.name)),
    )
}
