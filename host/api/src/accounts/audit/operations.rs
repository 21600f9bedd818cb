//! Operations on the audit log of a workspace.

use super::requests::AuditQuery;
use super::views::EntryList;
use crate::access::Admin;
use crate::accounts::Accounts;
use crate::accounts::scope::AuthorizedWorkspace;
use crate::http::problem::Problem;

/// Lists a page of the audit log of a workspace, newest first.
///
/// # Errors
/// `invalid_request`.
pub async fn list(
    accounts: Accounts,
    at: AuthorizedWorkspace<Admin>,
    input: AuditQuery,
) -> Result<EntryList, Problem> {
    let (before, limit) = input.checked()?;
    let workspaces = accounts.workspaces();
    let found = workspaces.audit(at.authority.workspace, before, limit);
    Ok(found.await?.into())
}
