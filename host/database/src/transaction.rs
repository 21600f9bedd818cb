//! Transactions of the platform on a tenant's database.

use super::connection::TenantConnection;
use super::error::{RunError, internal};

/// Begins a transaction that writes.
pub(super) fn begin(handle: &TenantConnection) -> Result<(), RunError> {
    handle
        .execute_as_platform("BEGIN IMMEDIATE")
        .map_err(internal)
}

/// Commits; a key that is checked only now can still fail.
pub(super) fn commit(handle: &TenantConnection) -> Result<(), RunError> {
    handle
        .execute_as_platform("COMMIT")
        .map_err(|error| RunError::from_sqlite(error, None))
}

/// Ends a transaction without its changes, if it has not ended by itself.
pub(super) fn roll_back(handle: &TenantConnection) {
    if !handle.is_idle()
        && let Err(error) = handle.execute_as_platform("ROLLBACK")
    {
        tracing::error!(%error, "a tenant's transaction cannot be rolled back");
    }
}
