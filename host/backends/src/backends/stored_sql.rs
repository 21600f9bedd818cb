//! The stored SQL of all backends, which a new gate is tried on.

use super::store;
use crate::control::{ControlDatabase, Error};
use svc_base::ids::BackendId;
use svc_sandbox::SqlPurpose;

/// Stored SQL that a gate has allowed.
#[derive(Clone, Debug)]
pub struct AllowedStoredSql {
    /// Name within the backend.
    pub name: String,
    /// Purpose that the gate judged it for.
    pub purpose: SqlPurpose,
    pub sql: String,
}

/// Lists all backends.
pub async fn list_backend_ids(control: &ControlDatabase) -> Result<Vec<BackendId>, Error> {
    control.read(store::ids).await
}

/// Lists the SQL of a backend: the newest versions of its actions, and the scripts of its ledger.
pub async fn list_backend_sql(
    control: &ControlDatabase,
    id: BackendId,
) -> Result<Vec<AllowedStoredSql>, Error> {
    let (actions, ledger) = control
        .read(move |c| Ok((store::actions(c, &id)?, store::ledger(c, &id)?)))
        .await?;
    let actions = actions.into_iter().map(|action| AllowedStoredSql {
        name: format!("action-{}-{}", action.name, action.version),
        purpose: SqlPurpose::Action,
        sql: action.sql,
    });
    let scripts = ledger.into_iter().map(|entry| AllowedStoredSql {
        name: format!("migration-{}", entry.version),
        purpose: match entry.version {
            1 => SqlPurpose::Schema,
            _ => SqlPurpose::Migration,
        },
        sql: entry.sql,
    });
    Ok(actions.chain(scripts).collect())
}
