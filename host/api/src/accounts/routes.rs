//! The routes of workspaces, their members and their keys.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::Response;
use http::StatusCode;
use serde::{Deserialize, Serialize};

use super::requests::{
    AddMember, CreateKey, CreateWorkspace, ListWorkspacesQuery, SetRole, UpdateWorkspace,
};
use super::scope::{AuthorizedWorkspace, UserCaller};
use super::views::{
    KeyList, Me, MemberList, MemberView, NewKeyView, WorkspaceDetail, WorkspaceList, WorkspaceView,
};
use super::{Accounts, operations};
use crate::access::idempotency::{IdempotencyScope, IdempotentRequest};
use crate::access::{Admin, CallerChoosingWorkspace, Owner, Viewer};
use crate::http::extract::{ApiQuery, CheckedBodyLength, NoQueryParams, UnparsedQuery, UnreadBody};
use crate::http::problem::Problem;
use crate::workspaces::Caller;

/// Tell who calls
///
/// The caller with its workspaces: a user, or a machine with its one.
#[utoipa::path(
    operation_id = "get_me",
    get, path = "/api/v1/me", tag = "workspaces",
    responses((status = 200, description = "The caller.", body = Me)),
    extensions(("x-problems" = json!("owner"))),
    security(("bearer" = []))
)]
pub async fn me(
    State(accounts): State<Accounts>,
    by: CallerChoosingWorkspace<Viewer>,
    _: CheckedBodyLength,
    _: NoQueryParams,
) -> Result<Json<Me>, Problem> {
    operations::me(accounts, by).await.map(Json)
}

/// List workspaces
///
/// Those that the caller is in, and no others.
#[utoipa::path(
    operation_id = "list_workspaces",
    get, path = "/api/v1/workspaces", tag = "workspaces",
    responses((status = 200, description = "The caller's workspaces, oldest first.", body = WorkspaceList)),
    extensions(("x-problems" = json!("owner"))),
    security(("bearer" = []))
)]
pub async fn list(
    State(accounts): State<Accounts>,
    by: CallerChoosingWorkspace<Viewer>,
    _: CheckedBodyLength,
    ApiQuery(ListWorkspacesQuery {}): ApiQuery<ListWorkspacesQuery>,
) -> Result<Json<WorkspaceList>, Problem> {
    operations::list(accounts, by).await.map(Json)
}

/// Make a workspace
///
/// For users: the caller becomes its owner. A key cannot.
#[utoipa::path(
    operation_id = "create_workspace",
    post, path = "/api/v1/workspaces", tag = "workspaces",
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repeated request answer what the first did, for 24 hours.")),
    request_body = CreateWorkspace,
    responses((status = 201, description = "Made.", body = WorkspaceView)),
    extensions(("x-problems" = json!("owner body idempotency_conflict forbidden plan_limit slug_conflict"))),
    security(("bearer" = []))
)]
pub async fn create(
    State(accounts): State<Accounts>,
    request: IdempotentRequest,
    by: UserCaller,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let body = body.json::<CreateWorkspace>().await?;
    let caller = Caller::User(by.user.clone());
    let route = IdempotencyScope {
        name: "workspaces",
        parent: "",
    };
    let work = |keep| operations::create(accounts, by, body.value, keep);
    request
        .run_once(Some(&caller), route, &body.raw, StatusCode::CREATED, work)
        .await
}

/// Get a workspace
///
/// With its members.
#[utoipa::path(
    operation_id = "get_workspace",
    get, path = "/api/v1/workspaces/{id}", tag = "workspaces",
    params(("id" = String, Path, description = "The workspace: its id or its slug.")),
    responses((status = 200, description = "The workspace.", body = WorkspaceDetail)),
    extensions(("x-problems" = json!("owner forbidden not_found"))),
    security(("bearer" = []))
)]
pub async fn get(
    State(accounts): State<Accounts>,
    at: AuthorizedWorkspace<Viewer>,
    _: NoQueryParams,
) -> Result<Json<WorkspaceDetail>, Problem> {
    operations::get(accounts, at).await.map(Json)
}

/// Change a workspace
///
/// The display name takes an admin, the plan an owner. Only `free` can be set: `pro` is bought.
#[utoipa::path(
    operation_id = "update_workspace",
    patch, path = "/api/v1/workspaces/{id}", tag = "workspaces",
    params(("id" = String, Path, description = "The workspace: its id or its slug.")),
    request_body = UpdateWorkspace,
    responses((status = 200, description = "The workspace as it is now.", body = WorkspaceView)),
    extensions(("x-problems" = json!("owner body forbidden plan_limit not_found nothing_to_update"))),
    security(("bearer" = []))
)]
pub async fn update(
    State(accounts): State<Accounts>,
    at: AuthorizedWorkspace<Admin>,
    body: UnreadBody,
) -> Result<Json<WorkspaceView>, Problem> {
    let input = body.json().await?.value;
    operations::update(accounts, at, input).await.map(Json)
}

/// Delete a workspace
///
/// With all of its projects, for good. Its subscription ends at the close of the period that is paid for; where that cannot be
/// told to the payment provider, nothing is destroyed. Addresses stop resolving before this is answered.
#[utoipa::path(
    operation_id = "delete_workspace",
    delete, path = "/api/v1/workspaces/{id}", tag = "workspaces",
    params(("id" = String, Path, description = "The workspace: its id or its slug.")),
    responses((status = 204, description = "Gone.")),
    extensions(("x-problems" = json!("owner forbidden plan_limit not_found provider_unavailable"))),
    security(("bearer" = []))
)]
pub async fn delete(
    State(accounts): State<Accounts>,
    at: AuthorizedWorkspace<Owner>,
    _: NoQueryParams,
) -> Result<StatusCode, Problem> {
    operations::delete(accounts, at).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// List members
#[utoipa::path(
    operation_id = "list_members",
    get, path = "/api/v1/workspaces/{id}/members", tag = "workspaces",
    params(("id" = String, Path, description = "The workspace: its id or its slug.")),
    responses((status = 200, description = "Its members, oldest first.", body = MemberList)),
    extensions(("x-problems" = json!("owner forbidden not_found"))),
    security(("bearer" = []))
)]
pub async fn members(
    State(accounts): State<Accounts>,
    at: AuthorizedWorkspace<Viewer>,
    _: NoQueryParams,
) -> Result<Json<MemberList>, Problem> {
    operations::members(accounts, at).await.map(Json)
}

/// Add a member
///
/// A user who has called the service once, by the id that `GET /api/v1/me` shows to the user. One who is a member already gets
/// the role. Nobody gives a role above their own.
#[utoipa::path(
    operation_id = "add_member",
    post, path = "/api/v1/workspaces/{id}/members", tag = "workspaces",
    params(
        ("id" = String, Path, description = "The workspace: its id or its slug."),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes a repeated request answer what the first did, for 24 hours.")
    ),
    request_body = AddMember,
    responses((status = 201, description = "The member.", body = MemberView)),
    extensions(("x-problems" = json!("owner body idempotency_conflict forbidden not_found last_owner"))),
    security(("bearer" = []))
)]
pub async fn add_member(
    State(accounts): State<Accounts>,
    request: IdempotentRequest,
    at: AuthorizedWorkspace<Admin>,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let body = body.json::<AddMember>().await?;
    let caller = at.authority.caller.clone();
    let workspace = at.authority.workspace.to_string();
    let route = IdempotencyScope {
        name: "members",
        parent: &workspace,
    };
    let work = |keep| operations::add_member(accounts, at, body.value, keep);
    request
        .run_once(Some(&caller), route, &body.raw, StatusCode::CREATED, work)
        .await
}

/// Last segment of the path of a member or a key.
#[derive(Debug, Deserialize)]
pub struct MemberOrKeyPath {
    #[serde(alias = "user_id", alias = "key_id")]
    name: String,
}

/// Give a member another role
///
/// It counts from the member's next request on. The last owner stays one.
#[utoipa::path(
    operation_id = "set_role",
    patch, path = "/api/v1/workspaces/{id}/members/{user_id}", tag = "workspaces",
    params(
        ("id" = String, Path, description = "The workspace: its id or its slug."),
        ("user_id" = String, Path, description = "The member.")
    ),
    request_body = SetRole,
    responses((status = 200, description = "The member as it is now.", body = MemberView)),
    extensions(("x-problems" = json!("owner body forbidden not_found last_owner"))),
    security(("bearer" = []))
)]
pub async fn set_role(
    State(accounts): State<Accounts>,
    at: AuthorizedWorkspace<Admin>,
    Path(member): Path<MemberOrKeyPath>,
    body: UnreadBody,
) -> Result<Json<MemberView>, Problem> {
    let input = body.json().await?.value;
    operations::set_role(accounts, at, (member.name, input))
        .await
        .map(Json)
}

/// Remove a member
///
/// The member's next request is refused. The last owner stays.
#[utoipa::path(
    operation_id = "remove_member",
    delete, path = "/api/v1/workspaces/{id}/members/{user_id}", tag = "workspaces",
    params(
        ("id" = String, Path, description = "The workspace: its id or its slug."),
        ("user_id" = String, Path, description = "The member.")
    ),
    responses((status = 204, description = "Removed.")),
    extensions(("x-problems" = json!("owner forbidden not_found last_owner"))),
    security(("bearer" = []))
)]
pub async fn remove_member(
    State(accounts): State<Accounts>,
    at: AuthorizedWorkspace<Admin>,
    Path(member): Path<MemberOrKeyPath>,
    query: UnparsedQuery,
) -> Result<StatusCode, Problem> {
    query.none()?;
    operations::remove_member(accounts, at, member.name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// List keys
///
/// Those that are not revoked, without their secrets.
#[utoipa::path(
    operation_id = "list_keys",
    get, path = "/api/v1/workspaces/{id}/keys", tag = "workspaces",
    params(("id" = String, Path, description = "The workspace: its id or its slug.")),
    responses((status = 200, description = "The keys, oldest first.", body = KeyList)),
    extensions(("x-problems" = json!("owner forbidden not_found"))),
    security(("bearer" = []))
)]
pub async fn keys(
    State(accounts): State<Accounts>,
    at: AuthorizedWorkspace<Admin>,
    _: NoQueryParams,
) -> Result<Json<KeyList>, Problem> {
    operations::keys(accounts, at).await.map(Json)
}

/// Make a key
///
/// A machine's credential for this workspace, shown this once. A viewer's only reads; `expires_in` ends it by itself. Without a body it is an
/// editor's, for good.
#[utoipa::path(
    operation_id = "create_key",
    post, path = "/api/v1/workspaces/{id}/keys", tag = "workspaces",
    params(("id" = String, Path, description = "The workspace: its id or its slug.")),
    request_body = Option<CreateKey>,
    responses((status = 201, description = "Made.", body = NewKeyView)),
    extensions(("x-problems" = json!("owner body forbidden not_found"))),
    security(("bearer" = []))
)]
pub async fn create_key(
    State(accounts): State<Accounts>,
    at: AuthorizedWorkspace<Admin>,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let input = body.json_or_nothing().await?;
    let made = operations::create_key(accounts, at, input).await?;
    Ok(no_store(StatusCode::CREATED, made))
}

/// Response with a secret, which no cache may store.
fn no_store(status: StatusCode, made: impl Serialize) -> Response {
    use axum::response::IntoResponse as _;
    let never = (http::header::CACHE_CONTROL, "no-store");
    (status, [never], Json(made)).into_response()
}

/// Revoke a key
///
/// The next request with it is refused.
#[utoipa::path(
    operation_id = "revoke_key",
    delete, path = "/api/v1/workspaces/{id}/keys/{key_id}", tag = "workspaces",
    params(
        ("id" = String, Path, description = "The workspace: its id or its slug."),
        ("key_id" = String, Path, description = "The key.")
    ),
    responses((status = 204, description = "Revoked.")),
    extensions(("x-problems" = json!("owner forbidden not_found"))),
    security(("bearer" = []))
)]
pub async fn revoke_key(
    State(accounts): State<Accounts>,
    at: AuthorizedWorkspace<Admin>,
    Path(key): Path<MemberOrKeyPath>,
    query: UnparsedQuery,
) -> Result<StatusCode, Problem> {
    query.none()?;
    operations::revoke_key(accounts, at, key.name).await?;
    Ok(StatusCode::NO_CONTENT)
}
