//! The SQL that a gate has allowed and that is kept: what another gate is tried on.

use super::store;
use crate::control::{Control, Error};
use svc_base::ids::BackendId;
use svc_sandbox::Purpose;

/// A piece of SQL that is kept.
#[derive(Clone, Debug)]
pub struct StoredSql {
    /// Name within its backend.
    pub name: String,
    /// Why it was judged.
    pub purpose: Purpose,
    /// The SQL.
    pub sql: String,
}

/// All backends.
pub async fn backends(control: &Control) -> Result<Vec<BackendId>, Error> {
    control.read(store::ids).await
}

/// The SQL of a backend: its actions as they are called now, and the scripts of its ledger.
pub async fn of_backend(control: &Control, id: BackendId) -> Result<Vec<StoredSql>, Error> {
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
