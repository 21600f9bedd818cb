//! The route of the audit.

use axum::Json;
use axum::extract::State;

use super::operations;
use super::requests::AuditQuery;
use super::views::EntryList;
use crate::access::Admin;
use crate::accounts::Accounts;
use crate::accounts::scope::AuthorizedWorkspace;
use crate::http::extract::UnparsedQuery;
use crate::http::problem::Problem;

/// List the audit
///
/// An extension: who changed what in the workspace, and when, newest first; for its admins. Entries name things by their ids
/// and never hold what they contain. They are kept for 90 days, and of a workspace with very many changes the newest alone.
#[utoipa::path(
    operation_id = "list_audit",
    get, path = "/api/v1/workspaces/{id}/audit", tag = "workspaces",
    params(("id" = String, Path, description = "The workspace, by its id or slug."), AuditQuery),
    responses((status = 200, description = "A page of entries.", body = EntryList)),
    extensions(("x-problems" = json!("owner forbidden not_found"))),
    security(("bearer" = []))
)]
pub async fn list(
    State(accounts): State<Accounts>,
    at: AuthorizedWorkspace<Admin>,
    query: UnparsedQuery,
) -> Result<Json<EntryList>, Problem> {
    operations::list(accounts, at, query.read()?)
        .await
        .map(Json)
}
