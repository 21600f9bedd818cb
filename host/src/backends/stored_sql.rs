//! The stored SQL of all backends, which a new gate is tried on.

use super::store;
use crate::control::{Control, Error};
use svc_base::ids::BackendId;
use svc_sandbox::Purpose;

/// Stored SQL that a gate has allowed.
#[derive(Clone, Debug)]
pub struct StoredSql {
    /// Name within the backend.
    pub name: String,
    /// Purpose that the gate judged it for.
    pub purpose: Purpose,
    pub sql: String,
}

/// Lists all backends.
pub async fn backends(control: &Control) -> Result<Vec<BackendId>, Error> {
    control.read(store::ids).await
}

/// Lists the SQL of a backend: the newest versions of its actions, and the scripts of its ledger.
pub async fn list_backend_sql(control: &Control, id: BackendId) -> Result<Vec<StoredSql>, Error> {
    let (actions, ledger) = control
        .read(move |c| Ok((store::actions(c, &id)?, store::ledger(c, &id)?)))
        .await?;
    let actions = actions.into_iter().map(|action| StoredSql {
        name: format!("action-{}-{}", action.name, action.version),
        purpose: Purpose::Action,
        sql: action.sql,
    });
    let scripts = ledger.into_iter().map(|entry| StoredSql {
        name: format!("migration-{}", entry.version),
        purpose: match entry.version {
            1 => Purpose::Schema,
            _ => Purpose::Migration,
        },
        sql: entry.sql,
    });
    Ok(actions.chain(scripts).collect())
}
