//! The routes to the payment provider's pages.

use axum::Json;
use axum::extract::State;

use crate::access::Owner;
use crate::accounts::requests::BillingRequest;
use crate::accounts::scope::AuthorizedWorkspace;
use crate::accounts::views::BillingView;
use crate::accounts::{Accounts, operations};
use crate::http::extract::UnreadBody;
use crate::http::problem::Problem;

/// Buy the plan
///
/// Answers where the plan `pro` is bought. The workspace has it once the payment provider says that it was paid.
#[utoipa::path(
    operation_id = "buy_plan",
    post, path = "/api/v1/workspaces/{id}/billing/checkout", tag = "workspaces",
    params(("id" = String, Path, description = "The workspace: its id or its slug.")),
    request_body = Option<BillingRequest>,
    responses((status = 200, description = "The page where it is bought.", body = BillingView)),
    extensions(("x-problems" = json!("owner body forbidden plan_limit not_found payments_unconfigured provider_unavailable"))),
    security(("bearer" = []))
)]
pub async fn checkout(
    State(accounts): State<Accounts>,
    at: AuthorizedWorkspace<Owner>,
    body: UnreadBody,
) -> Result<Json<BillingView>, Problem> {
    let input = body.json_or_nothing().await?;
    operations::checkout(accounts, at, input).await.map(Json)
}

/// Manage the subscription
///
/// Answers where the subscription is looked at, changed and ended.
#[utoipa::path(
    operation_id = "manage_plan",
    post, path = "/api/v1/workspaces/{id}/billing/portal", tag = "workspaces",
    params(("id" = String, Path, description = "The workspace: its id or its slug.")),
    request_body = Option<BillingRequest>,
    responses((status = 200, description = "The page where it is managed.", body = BillingView)),
    extensions(("x-problems" = json!("owner body forbidden not_found no_subscription payments_unconfigured provider_unavailable"))),
    security(("bearer" = []))
)]
pub async fn portal(
    State(accounts): State<Accounts>,
    at: AuthorizedWorkspace<Owner>,
    body: UnreadBody,
) -> Result<Json<BillingView>, Problem> {
    let input = body.json_or_nothing().await?;
    operations::portal(accounts, at, input).await.map(Json)
}
