//! Transactions of the platform on a tenant's database.

use super::connection::TenantConnection;
use super::error::{StatementRunError, internal_error};

/// Begins a write transaction.
pub(super) fn begin(handle: &TenantConnection) -> Result<(), StatementRunError> {
    handle
        .execute_as_platform("BEGIN IMMEDIATE")
        .map_err(internal_error)
}

/// Commits. A deferred foreign key can still fail here.
pub(super) fn commit(handle: &TenantConnection) -> Result<(), StatementRunError> {
    handle
        .execute_as_platform("COMMIT")
        .map_err(|error| StatementRunError::from_sqlite(error, None))
}

/// Rolls back, unless the transaction has ended already.
pub(super) fn roll_back(handle: &TenantConnection) {
    if !handle.is_idle()
        && let Err(error) = handle.execute_as_platform("ROLLBACK")
    {
        tracing::error!(%error, "a tenant's transaction cannot be rolled back");
    }
}
