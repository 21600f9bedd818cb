//! The routes of backends for their owners.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Deserialize;

use super::calls::requests::{CallBatch, QueryBackend};
use super::calls::routes::CallServices;
use super::calls::views::{BatchResult, QueryResult};
use super::requests::{
    CreateBackend, DefineActions, DeleteAction, ListActionVersions, RollbackAction, UpdateBackend,
};
use super::scope::AuthorizedBackend;
use super::views::{
    ActionVersionList, ActionView, BackendView, Defined, DescribedActionList, Updated,
};
use super::{ActionDefinitions, Backends, MigrationService, operations};
use crate::access::idempotency::{IdempotencyScope, IdempotentRequest};
use crate::access::{Editor, Viewer};
use crate::http::extract::{NoQueryParams, UnparsedQuery, UnreadBody};
use crate::http::problem::Problem;
use crate::projects::scope::AuthorizedProject;

/// The action that a path names.
#[derive(Debug, Deserialize)]
pub struct ActionPath {
    name: String,
}

/// Make a backend
///
/// One SQLite database, which starts with this script. The project's frontends that never had a backend are bound to it.
#[utoipa::path(
    operation_id = "create_backend",
    post, path = "/api/v1/projects/{id}/backend", tag = "backend",
    params(
        ("id" = String, Path, description = "The project."),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes a repeated request answer what the first did, for 24 hours.")
    ),
    request_body = CreateBackend,
    responses((status = 201, description = "Made, and durable.", body = BackendView)),
    extensions(("x-problems" = json!("owner body idempotency_conflict forbidden not_found ddl_refused query_timeout constraint_violation backend_exists database_full database_busy capacity_reached"))),
    security(("bearer" = []))
)]
pub async fn create(
    State(backends): State<Arc<Backends>>,
    request: IdempotentRequest,
    at: AuthorizedProject<Editor>,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let body = body.json::<CreateBackend>().await?;
    let (caller, parent) = (at.authority.caller.clone(), at.project.id.to_string());
    let route = IdempotencyScope {
        name: "backend",
        parent: &parent,
    };
    let work = |keep| operations::create(backends, at, body.value, keep);
    request
        .run_once(Some(&caller), route, &body.raw, StatusCode::CREATED, work)
        .await
}

/// Get the backend
///
/// With its schema as it is in the file, its ledger, its actions, and how much is in it.
#[utoipa::path(
    operation_id = "get_backend",
    get, path = "/api/v1/projects/{id}/backend", tag = "backend",
    params(("id" = String, Path, description = "The project.")),
    responses((status = 200, description = "The backend.", body = BackendView)),
    extensions(("x-problems" = json!("owner forbidden not_found database_busy"))),
    security(("bearer" = []))
)]
pub async fn get(
    State(backends): State<Arc<Backends>>,
    at: AuthorizedProject<Viewer>,
    query: UnparsedQuery,
) -> Result<Json<BackendView>, Problem> {
    let backend = operations::get(backends, at).await?;
    query.none()?;
    Ok(Json(backend))
}

/// Migrate the backend, or switch its rooms or its agents' tools
///
/// Either one additive migration, or `realtime` or `agents` alone. A migration that was applied before changes nothing, so that a
/// request whose answer was lost can be sent again.
#[utoipa::path(
    operation_id = "update_backend",
    patch, path = "/api/v1/projects/{id}/backend", tag = "backend",
    params(
        ("id" = String, Path, description = "The project."),
        ("dry_run" = Option<bool>, Query, description = "An extension. Whether the migration is only tried, on a copy that is thrown away.")
    ),
    request_body = UpdateBackend,
    responses(
        (status = 200, description = "What became of the migration, or would have; after a switch, the backend.", body = Updated)
    ),
    extensions(("x-problems" = json!("owner body forbidden not_found nothing_to_update ddl_refused query_timeout constraint_violation migration_not_recorded database_full database_busy capacity_reached"))),
    security(("bearer" = []))
)]
pub async fn update(
    State(migrations): State<Arc<MigrationService>>,
    at: AuthorizedBackend<Editor>,
    body: UnreadBody,
) -> Result<Json<Updated>, Problem> {
    let (body, how) = body.json_and_query().await?;
    operations::update(migrations, at, (body.value, how))
        .await
        .map(Json)
}

/// Delete the backend
///
/// With all its rows. The project's frontends go on serving; their calls answer 404 until there is a new backend and
/// they are published again.
#[utoipa::path(
    operation_id = "delete_backend",
    delete, path = "/api/v1/projects/{id}/backend", tag = "backend",
    params(("id" = String, Path, description = "The project.")),
    responses((status = 204, description = "Gone.")),
    extensions(("x-problems" = json!("owner forbidden not_found"))),
    security(("bearer" = []))
)]
pub async fn delete(
    State(backends): State<Arc<Backends>>,
    at: AuthorizedProject<Editor>,
    _: NoQueryParams,
) -> Result<StatusCode, Problem> {
    operations::delete(backends, at).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// List the actions
///
/// An extension. Each with the columns of its rows, by the types that their tables declare: for programs that make types of them.
#[utoipa::path(
    operation_id = "list_actions",
    get, path = "/api/v1/projects/{id}/backend/actions", tag = "backend",
    params(("id" = String, Path, description = "The project.")),
    responses((status = 200, description = "The actions, by name.", body = DescribedActionList)),
    extensions(("x-problems" = json!("owner forbidden not_found query_timeout database_busy"))),
    security(("bearer" = []))
)]
pub async fn list_actions(
    State(definitions): State<Arc<ActionDefinitions>>,
    at: AuthorizedBackend<Viewer>,
    query: UnparsedQuery,
) -> Result<Json<DescribedActionList>, Problem> {
    query.none()?;
    operations::list_actions(definitions, at).await.map(Json)
}

/// Define actions
///
/// All or none. An unchanged body is a no-op, changed SQL or defaults are the action's next version; an action that is left out stays, or
/// ends with `replace`. With `expected_version` nothing is kept if somebody else has changed the action meanwhile.
#[utoipa::path(
    operation_id = "define_actions",
    put, path = "/api/v1/projects/{id}/backend/actions", tag = "backend",
    params(
        ("id" = String, Path, description = "The project."),
        ("dry_run" = Option<bool>, Query, description = "An extension. Whether the batch is only tried.")
    ),
    request_body = DefineActions,
    responses((status = 200, description = "The newest version of every action; of a trial, what would become of them.", body = Defined)),
    extensions(("x-problems" = json!("owner body forbidden not_found statement_refused action_conflict database_busy capacity_reached"))),
    security(("bearer" = []))
)]
pub async fn define(
    State(definitions): State<Arc<ActionDefinitions>>,
    at: AuthorizedBackend<Editor>,
    body: UnreadBody,
) -> Result<Json<Defined>, Problem> {
    let (body, how) = body.json_and_query().await?;
    operations::define(definitions, at, (body.value, how))
        .await
        .map(Json)
}

/// List the versions of an action
///
/// An extension. Newest first, with their SQL. They end with the action.
#[utoipa::path(
    operation_id = "list_action_versions",
    get, path = "/api/v1/projects/{id}/backend/actions/{name}/versions", tag = "backend",
    params(
        ("id" = String, Path, description = "The project."),
        ("name" = String, Path, description = "The action."),
        ListActionVersions
    ),
    responses((status = 200, description = "Versions.", body = ActionVersionList)),
    extensions(("x-problems" = json!("owner forbidden not_found"))),
    security(("bearer" = []))
)]
pub async fn action_versions(
    State(definitions): State<Arc<ActionDefinitions>>,
    at: AuthorizedBackend<Viewer>,
    Path(path): Path<ActionPath>,
    query: UnparsedQuery,
) -> Result<Json<ActionVersionList>, Problem> {
    let input = (path.name, query.read()?);
    operations::action_versions(definitions, at, input)
        .await
        .map(Json)
}

/// Put an earlier version of an action back
///
/// An extension. Its SQL and defaults become the action's next version, if they are allowed and work still; if they are those of the newest
/// version already, nothing changes.
#[utoipa::path(
    operation_id = "rollback_action",
    post, path = "/api/v1/projects/{id}/backend/actions/{name}/rollback", tag = "backend",
    params(
        ("id" = String, Path, description = "The project."),
        ("name" = String, Path, description = "The action.")
    ),
    request_body = RollbackAction,
    responses((status = 200, description = "The action as it is now.", body = ActionView)),
    extensions(("x-problems" = json!("owner body forbidden not_found statement_refused action_conflict database_busy capacity_reached"))),
    security(("bearer" = []))
)]
pub async fn rollback_action(
    State(definitions): State<Arc<ActionDefinitions>>,
    at: AuthorizedBackend<Editor>,
    Path(path): Path<ActionPath>,
    body: UnreadBody,
) -> Result<Json<ActionView>, Problem> {
    let input = body.json::<RollbackAction>().await?.value;
    operations::rollback_action(definitions, at, (path.name, input))
        .await
        .map(Json)
}

/// Delete an action
///
/// An extension. Calls answer at once as if it had never been defined, live queries on it end, and its versions are gone; a name that comes
/// again goes on counting. One that is not there is answered alike.
#[utoipa::path(
    operation_id = "delete_action",
    delete, path = "/api/v1/projects/{id}/backend/actions/{name}", tag = "backend",
    params(
        ("id" = String, Path, description = "The project."),
        ("name" = String, Path, description = "The action."),
        DeleteAction
    ),
    responses((status = 204, description = "Gone.")),
    extensions(("x-problems" = json!("owner forbidden not_found action_conflict database_busy capacity_reached"))),
    security(("bearer" = []))
)]
pub async fn delete_action(
    State(definitions): State<Arc<ActionDefinitions>>,
    at: AuthorizedBackend<Editor>,
    Path(path): Path<ActionPath>,
    query: UnparsedQuery,
) -> Result<StatusCode, Problem> {
    let input = (path.name, query.read()?);
    operations::delete_action(definitions, at, input).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Run a query without a page
///
/// An extension. The owner's own SQL, one statement, as at a page's `/api/query`: it reads and changes rows, never the schema. A viewer's
/// only reads, and so does one with `read_only`.
#[utoipa::path(
    operation_id = "query_backend",
    post, path = "/api/v1/projects/{id}/backend/query", tag = "backend",
    params(("id" = String, Path, description = "The project.")),
    request_body = QueryBackend,
    responses((status = 200, description = "What the statement answers.", body = QueryResult)),
    extensions(("x-problems" = json!("owner body forbidden not_found params_mismatch reserved_param statement_refused statement_failed query_timeout constraint_violation database_full database_busy capacity_reached"))),
    security(("bearer" = []))
)]
pub async fn query(
    State(calls): State<CallServices>,
    at: AuthorizedBackend<Viewer>,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let body = body.with_limit(calls.config.limits.op_body_bytes)?;
    let input = body.json::<QueryBackend>().await?.value;
    let json = operations::query(calls.actions, at, input).await?;
    Ok(json_response(json))
}

/// Call actions without a page
///
/// An extension. Several calls as one, as visitors make them: all of them or none, in order. With `as` they run as that visitor.
#[utoipa::path(
    operation_id = "call_actions",
    post, path = "/api/v1/projects/{id}/backend/batch", tag = "backend",
    params(("id" = String, Path, description = "The project.")),
    request_body = CallBatch,
    responses((status = 200, description = "What each call does, in order.", body = BatchResult)),
    extensions(("x-problems" = json!("owner body forbidden not_found params_mismatch reserved_param identity_required statement_refused statement_failed query_timeout constraint_violation database_full database_busy capacity_reached"))),
    security(("bearer" = []))
)]
pub async fn batch(
    State(calls): State<CallServices>,
    at: AuthorizedBackend<Editor>,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let body = body.with_limit(calls.config.limits.op_body_bytes)?;
    let input = body.json::<CallBatch>().await?.value;
    let json = operations::batch(calls.actions, at, input).await?;
    Ok(json_response(json))
}

/// Answers a result that is JSON already.
fn json_response(json: Vec<u8>) -> Response {
    let label = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, label)], json).into_response()
}
