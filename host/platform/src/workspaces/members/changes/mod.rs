//! Changes of memberships. Each reads the roles inside its own transaction.

use crate::control::audit::AuditAction;
use crate::control::kept_answers::AnswerRecorder;
use crate::control::{Error, Tx};
use crate::workspaces::error::WorkspaceError;
use crate::workspaces::members::store;
use crate::workspaces::model::{Caller, Role, UserId, WorkspaceMember};
use crate::workspaces::service::Workspaces;
use svc_base::clock::Timestamp;
use svc_base::ids::WorkspaceId;

/// Maximum number of members of a workspace.
const MAX_MEMBERS: u64 = 1_000;

impl Workspaces {
    /// Adds a user to a workspace; an existing member gets the new role. For an operator, `by` is `None`.
    ///
    /// # Errors
    /// [`WorkspaceError`].
    pub async fn add_member(
        &self,
        workspace: WorkspaceId,
        by: Option<Caller>,
        (user, role): (UserId, Role),
        keep: AnswerRecorder<WorkspaceMember>,
    ) -> Result<WorkspaceMember, WorkspaceError> {
        let now = self.clock.now();
        self.control
            .write(move |tx| {
                let own = max_assignable_role(tx, by.as_ref(), &workspace)?;
                if store::find_email(tx, &user).map_err(Error::from)?.is_none() {
                    return Err(WorkspaceError::UnknownUser(user));
                }
                let has = store::role_of(tx, &workspace, &user).map_err(Error::from)?;
                let (members, _) = store::count_members(tx, &workspace).map_err(Error::from)?;
                if has.is_none() && members >= MAX_MEMBERS {
                    return Err(WorkspaceError::TooManyMembers(MAX_MEMBERS));
                }
                let member = assign_role(tx, &workspace, (own, has), (&user, role), now)?;
                tx.record_audit(AuditAction::MemberAdd, Some(&workspace), &user, now)?;
                keep.store(tx, &member)?;
                Ok(member)
            })
            .await
    }

    /// Gives a member another role.
    ///
    /// # Errors
    /// [`WorkspaceError`].
    pub async fn set_role(
        &self,
        workspace: WorkspaceId,
        by: Caller,
        (user, role): (UserId, Role),
    ) -> Result<WorkspaceMember, WorkspaceError> {
        let now = self.clock.now();
        self.control
            .write(move |tx| {
                let own = require_role(tx, &by, &workspace, Role::Admin)?;
                let has = store::role_of(tx, &workspace, &user).map_err(Error::from)?;
                if has.is_none() {
                    return Err(WorkspaceError::NoMember(user));
                }
                let member = assign_role(tx, &workspace, (own, has), (&user, role), now)?;
                tx.record_audit(AuditAction::MemberUpdate, Some(&workspace), &user, now)?;
                Ok(member)
            })
            .await
    }

    /// Removes a member: the user's next request is refused. For an operator, `by` is `None`.
    ///
    /// # Errors
    /// [`WorkspaceError`].
    pub async fn remove_member(
        &self,
        workspace: WorkspaceId,
        by: Option<Caller>,
        user: UserId,
    ) -> Result<(), WorkspaceError> {
        let now = self.clock.now();
        self.control
            .write(move |tx| {
                let own = max_assignable_role(tx, by.as_ref(), &workspace)?;
                let has = store::role_of(tx, &workspace, &user).map_err(Error::from)?;
                let Some(has) = has else {
                    return Err(WorkspaceError::NoMember(user));
                };
                let (_, owners) = store::count_members(tx, &workspace).map_err(Error::from)?;
                check_change(own, Some(has), None, owners)?;
                store::remove(tx, &workspace, &user)?;
                tx.record_audit(AuditAction::MemberRemove, Some(&workspace), &user, now)?;
                Ok(())
            })
            .await
    }
}
/// Returns the role of a caller, read in this transaction, if it is at least `needs`.
///
/// # Errors
/// `Foreign`, `Role`.
pub(in crate::workspaces) fn require_role(
    tx: &Tx<'_>,
    by: &Caller,
    workspace: &WorkspaceId,
    needs: Role,
) -> Result<Role, WorkspaceError> {
    let role = match by {
        Caller::Key {
            workspace: own,
            role,
            ..
        } => (own == workspace).then_some(*role),
        Caller::User(user) => store::role_of(tx, workspace, user).map_err(Error::from)?,
    };
    match role {
        None => Err(WorkspaceError::Foreign(workspace.to_string())),
        Some(role) if role < needs => Err(WorkspaceError::Role {
            has: by.role_name(role),
            needs,
        }),
        Some(role) => Ok(role),
    }
}

/// Returns the highest role that a caller may give or take: the caller's own, and `Owner` for an operator.
///
/// # Errors
/// Like [`require_role`].
pub(in crate::workspaces) fn max_assignable_role(
    tx: &Tx<'_>,
    by: Option<&Caller>,
    workspace: &WorkspaceId,
) -> Result<Role, WorkspaceError> {
    by.map_or(Ok(Role::Owner), |by| {
        require_role(tx, by, workspace, Role::Admin)
    })
}

/// Makes a user the owner of a workspace that is being created.
///
/// # Errors
/// `TooManyOwned` beyond `most`.
pub(in crate::workspaces) fn insert_first_owner(
    tx: &Tx<'_>,
    workspace: &WorkspaceId,
    user: &UserId,
    most: u64,
    now: Timestamp,
) -> Result<(), WorkspaceError> {
    if store::count_owned(tx, user).map_err(Error::from)? >= most {
        return Err(WorkspaceError::TooManyOwned(most));
    }
    store::set_role(tx, workspace, user, Role::Owner, now)?;
    Ok(())
}

/// Gives a user a role. `own` is the caller's role, `has` is the role that the user has.
fn assign_role(
    tx: &Tx<'_>,
    workspace: &WorkspaceId,
    (own, has): (Role, Option<Role>),
    (user, role): (&UserId, Role),
    now: Timestamp,
) -> Result<WorkspaceMember, WorkspaceError> {
    let (_, owners) = store::count_members(tx, workspace).map_err(Error::from)?;
    check_change(own, has, Some(role), owners)?;
    store::set_role(tx, workspace, user, role, now)?;
    let member = store::find_by_id(tx, workspace, user).map_err(Error::from)?;
    member.ok_or_else(|| WorkspaceError::NoMember(user.clone()))
}

/// Refuses a change of roles that is above the caller's role `own`, or that leaves the workspace without an owner.
fn check_change(
    own: Role,
    from: Option<Role>,
    to: Option<Role>,
    owners: u64,
) -> Result<(), WorkspaceError> {
    if from.max(to) > Some(own) {
        return Err(WorkspaceError::AboveOwn(own));
    }
    let leaves = from == Some(Role::Owner) && to != Some(Role::Owner);
    if leaves && owners <= 1 {
        return Err(WorkspaceError::LastOwner);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
