//! Operations on workspaces, members and keys, and on the caller's own account.

use super::Accounts;
use super::requests::{
    AddMember, BillingRequest, CreateKey, CreateWorkspace, SetRole, UpdateWorkspace, parse_user_id,
};
use super::scope::{AuthorizedWorkspace, UserCaller};
use super::views::{
    BillingView, KeyList, Me, MemberList, MemberView, NewKeyView, WorkspaceDetail, WorkspaceList,
    WorkspaceView,
};
use crate::access::{Admin, CallerChoosingWorkspace, Owner, Viewer};
use crate::control::kept_answers::AnswerRecorder;
use crate::http::problem::Problem;
use crate::workspaces::{Caller, Plan, WorkspaceOwnershipLimits};

/// Returns the caller, with its workspaces.
pub async fn me(accounts: Accounts, by: CallerChoosingWorkspace<Viewer>) -> Result<Me, Problem> {
    let caller = by.caller();
    let workspaces = accounts.workspaces();
    let email = match caller {
        Caller::Key { .. } => None,
        Caller::User(user) => workspaces.email(user).await?,
    };
    let all = workspaces.list_accessible(caller).await?;
    Ok(Me::new(caller, email, &all))
}

/// Lists the caller's workspaces.
pub async fn list(
    accounts: Accounts,
    by: CallerChoosingWorkspace<Viewer>,
) -> Result<WorkspaceList, Problem> {
    let all = accounts.workspaces().list_accessible(by.caller()).await?;
    Ok(WorkspaceList::new(&all, by.caller()))
}

/// Creates a workspace that is owned by the caller, who must be a user.
///
/// # Errors
/// `forbidden` if the user owns too many, `plan_limit`, `invalid_request`, `slug_conflict`.
pub async fn create(
    accounts: Accounts,
    by: UserCaller,
    input: CreateWorkspace,
    keep: AnswerRecorder<WorkspaceView>,
) -> Result<WorkspaceView, Problem> {
    let caller = Caller::User(by.user.clone());
    let (display_name, slug) = input.checked()?;
    let limits = &accounts.config().limits;
    let most = WorkspaceOwnershipLimits {
        all: limits.workspaces_per_user,
        free: limits.free_workspaces_per_user,
    };
    let as_seen = caller.clone();
    let keep = keep.map_view(move |seen| WorkspaceView::new(seen, &as_seen));
    let workspaces = accounts.workspaces();
    let seen = workspaces
        .create_for_user(by.user, display_name, slug, most, keep)
        .await?;
    Ok(WorkspaceView::new(&seen, &caller))
}

/// Returns a workspace with its members.
pub async fn get(
    accounts: Accounts,
    at: AuthorizedWorkspace<Viewer>,
) -> Result<WorkspaceDetail, Problem> {
    let (workspaces, at) = (accounts.workspaces(), at.authority);
    let seen = workspaces.get_with_role(at.workspace, at.role).await?;
    let members = workspaces.members(at.workspace).await?;
    Ok(WorkspaceDetail::new(&seen, members, &at.caller))
}

/// Changes a workspace. Changing the plan requires an owner.
///
/// # Errors
/// `invalid_request`, `nothing_to_update`, `forbidden`, `plan_limit`.
pub async fn update(
    accounts: Accounts,
    at: AuthorizedWorkspace<Admin>,
    input: UpdateWorkspace,
) -> Result<WorkspaceView, Problem> {
    let (changes, at) = (input.checked()?, at.authority);
    let most = Plan::Free.max_projects(&accounts.config().limits);
    let changing = accounts
        .workspaces()
        .change(at.workspace, at.caller.clone(), changes, most);
    Ok(WorkspaceView::new(&changing.await?, &at.caller))
}

/// Deletes a workspace with all that it owns.
///
/// # Errors
/// `provider_unavailable` if its subscription cannot be ended.
pub async fn delete(accounts: Accounts, at: AuthorizedWorkspace<Owner>) -> Result<(), Problem> {
    let (workspace, caller) = (at.authority.workspace, at.authority.caller);
    Ok(accounts.delete(workspace, caller).await?)
}

/// Lists the members of a workspace.
pub async fn members(
    accounts: Accounts,
    at: AuthorizedWorkspace<Viewer>,
) -> Result<MemberList, Problem> {
    let members = accounts.workspaces().members(at.authority.workspace);
    Ok(members.await?.into())
}

/// Adds a user to a workspace.
///
/// # Errors
/// `invalid_request`, `not_found` for an unknown user, `forbidden` for a role above the caller's.
pub async fn add_member(
    accounts: Accounts,
    at: AuthorizedWorkspace<Admin>,
    input: AddMember,
    keep: AnswerRecorder<MemberView>,
) -> Result<MemberView, Problem> {
    let (given, at) = (input.checked()?, at.authority);
    let keep = keep
        .map_view(|member: &crate::workspaces::WorkspaceMember| MemberView::from(member.clone()));
    let workspaces = accounts.workspaces();
    let member = workspaces.add_member(at.workspace, Some(at.caller), given, keep);
    Ok(member.await?.into())
}

/// Gives a member another role.
///
/// # Errors
/// Like [`add_member`]; `last_owner`.
pub async fn set_role(
    accounts: Accounts,
    at: AuthorizedWorkspace<Admin>,
    (member, input): (String, SetRole),
) -> Result<MemberView, Problem> {
    let (given, at) = ((parse_user_id(&member)?, input.checked()?), at.authority);
    let workspaces = accounts.workspaces();
    let member = workspaces.set_role(at.workspace, at.caller, given).await?;
    Ok(member.into())
}

/// Removes a member.
///
/// # Errors
/// `not_found`, `forbidden` for a role above the caller's, `last_owner`.
pub async fn remove_member(
    accounts: Accounts,
    at: AuthorizedWorkspace<Admin>,
    member: String,
) -> Result<(), Problem> {
    let (member, at) = (parse_user_id(&member)?, at.authority);
    let workspaces = accounts.workspaces();
    Ok(workspaces
        .remove_member(at.workspace, Some(at.caller), member)
        .await?)
}

/// Lists the keys of a workspace.
pub async fn keys(accounts: Accounts, at: AuthorizedWorkspace<Admin>) -> Result<KeyList, Problem> {
    let keys = accounts.workspaces().keys_of(at.authority.workspace);
    Ok(keys.await?.into())
}

/// Creates a key.
///
/// # Errors
/// `invalid_request`.
pub async fn create_key(
    accounts: Accounts,
    at: AuthorizedWorkspace<Admin>,
    input: CreateKey,
) -> Result<NewKeyView, Problem> {
    let (wanted, at) = (input.checked()?, at.authority);
    let workspaces = accounts.workspaces();
    let (key, credential) = workspaces.add_key(at.workspace, at.caller, wanted).await?;
    Ok(NewKeyView::new(key, credential))
}

/// Revokes a key.
///
/// # Errors
/// `not_found`, `forbidden` for a key whose role is above the caller's.
pub async fn revoke_key(
    accounts: Accounts,
    at: AuthorizedWorkspace<Admin>,
    key_id: String,
) -> Result<(), Problem> {
    let at = at.authority;
    let workspaces = accounts.workspaces();
    Ok(workspaces
        .revoke(at.workspace, Some(at.caller), &key_id)
        .await?)
}

/// Returns the address where the plan `pro` is bought.
///
/// # Errors
/// `payments_unconfigured`, `provider_unavailable`, `plan_limit` if the workspace has a subscription.
pub async fn checkout(
    accounts: Accounts,
    at: AuthorizedWorkspace<Owner>,
    _: BillingRequest,
) -> Result<BillingView, Problem> {
    let url = accounts.checkout(at.authority.workspace).await?;
    Ok(BillingView { url })
}

/// Returns the address where the subscription is managed.
///
/// # Errors
/// `payments_unconfigured`, `provider_unavailable`, `no_subscription`.
pub async fn portal(
    accounts: Accounts,
    at: AuthorizedWorkspace<Owner>,
    _: BillingRequest,
) -> Result<BillingView, Problem> {
    let url = accounts.portal(at.authority.workspace).await?;
    Ok(BillingView { url })
}
