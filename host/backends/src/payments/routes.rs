//! The routes of payments: catalog and sessions for owners, checkout and status for visitors.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;

use super::buyer::{self, Buyer};
use super::checkout::{CheckoutRequest, return_address};
use super::requests::{AddPrice, BeginCheckout, ListSessions};
use super::views::{CatalogView, CheckoutView, OfferList, PaymentList, PricedView, SessionList};
use super::{Payments, operations};
use crate::access::idempotency::{IdempotencyScope, IdempotentRequest};
use crate::access::{Editor, Viewer};
use crate::config::Config;
use crate::deployments::serving::PageService;
use crate::deployments::serving::pages::{self, ServedPage};
use crate::deployments::serving::request_log::LogNote;
use crate::http::context::HttpRequestContext;
use crate::http::extract::{UnparsedQuery, UnreadBody, invalid_request};
use crate::http::held_answers::HeldAnswerBudget;
use crate::http::problem::{Problem, ProblemCode};
use crate::http::{negotiate, origin};
use crate::projects::scope::AuthorizedProject;
use crate::visitors::Visitors;
use svc_sandbox::CallerFlow;

/// Services that visitors' payments need.
#[derive(Clone, Debug)]
pub struct CheckoutServices {
    pub payments: Arc<Payments>,
    /// Pages that they are begun on.
    pub serving: Arc<PageService>,
    /// Service of visitors.
    pub visitors: Arc<Visitors>,
    /// Large answers that wait for their readers.
    pub answers: HeldAnswerBudget,
    pub config: Arc<Config>,
}

/// Price that a path names.
#[derive(Debug, Deserialize)]
pub struct PricePath {
    pid: String,
}

/// List what is sold
///
/// Products with their prices, inactive ones included. Needs no backend, and no payment provider.
#[utoipa::path(
    operation_id = "list_catalog",
    get, path = "/api/v1/projects/{id}/payments/catalog", tag = "payments",
    params(("id" = String, Path, description = "The project.")),
    responses((status = 200, description = "The catalog.", body = CatalogView)),
    extensions(("x-problems" = json!("owner forbidden not_found"))),
    security(("bearer" = []))
)]
pub async fn catalog(
    State(payments): State<Arc<Payments>>,
    at: AuthorizedProject<Viewer>,
    query: UnparsedQuery,
) -> Result<Json<CatalogView>, Problem> {
    query.none()?;
    operations::catalog(payments, at).await.map(Json)
}

/// Put a price into the catalog
///
/// Prices with one `product_name` share a product, which is made with the first. A price never changes: add another that `replaces` it.
/// A `key` that another active price of the project has is a 409 `price_key_taken`. A currency that is not one of ISO 4217 with a minor unit, and
/// a `key` that begins with `price_`, are a 400 `invalid_request`.
#[utoipa::path(
    operation_id = "add_price",
    post, path = "/api/v1/projects/{id}/payments/catalog", tag = "payments",
    params(
        ("id" = String, Path, description = "The project."),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes a repeated request answer what the first did, for 24 hours.")
    ),
    request_body = AddPrice,
    responses((status = 201, description = "The price, which can be bought from now on.", body = PricedView)),
    extensions(("x-problems" = json!("owner body idempotency_conflict price_key_taken price_inactive forbidden not_found"))),
    security(("bearer" = []))
)]
pub async fn add_price(
    State(payments): State<Arc<Payments>>,
    request: IdempotentRequest,
    at: AuthorizedProject<Editor>,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let body = body.json::<AddPrice>().await?;
    let (caller, parent) = (at.authority.caller.clone(), at.project.id.to_string());
    let route = IdempotencyScope {
        name: "catalog",
        parent: &parent,
    };
    let work = |keep| operations::add_price(payments, at, body.value, keep);
    request
        .run_once(Some(&caller), route, &body.raw, StatusCode::CREATED, work)
        .await
}

/// Take a price off the catalog
///
/// Ends its sale, and frees its key for another price. It stays listed, and what was bought stays bought.
#[utoipa::path(
    operation_id = "deactivate_price",
    delete, path = "/api/v1/projects/{id}/payments/catalog/{pid}", tag = "payments",
    params(
        ("id" = String, Path, description = "The project."),
        ("pid" = String, Path, description = "The price.")
    ),
    responses((status = 200, description = "The price, inactive.", body = PricedView)),
    extensions(("x-problems" = json!("owner forbidden not_found"))),
    security(("bearer" = []))
)]
pub async fn deactivate_price(
    State(payments): State<Arc<Payments>>,
    at: AuthorizedProject<Editor>,
    Path(path): Path<PricePath>,
    query: UnparsedQuery,
) -> Result<Json<PricedView>, Problem> {
    query.none()?;
    operations::deactivate_price(payments, at, path.pid)
        .await
        .map(Json)
}

/// List the latest sessions
///
/// A session is a visitor who went to pay. Its `status` is what the payment provider's webhooks say: `open`, `paid`, `canceled`, `failed` or
/// `refunded`.
#[utoipa::path(
    operation_id = "list_sessions",
    get, path = "/api/v1/projects/{id}/payments/sessions", tag = "payments",
    params(("id" = String, Path, description = "The project."), ListSessions),
    responses((status = 200, description = "The sessions, newest first.", body = SessionList)),
    extensions(("x-problems" = json!("owner forbidden not_found"))),
    security(("bearer" = []))
)]
pub async fn sessions(
    State(payments): State<Arc<Payments>>,
    at: AuthorizedProject<Viewer>,
    query: UnparsedQuery,
) -> Result<Json<SessionList>, Problem> {
    let input = query.read()?;
    operations::sessions(payments, at, input).await.map(Json)
}

/// Say what is on sale
///
/// Lists the prices of the page's project that can be bought now, for everybody. A checkout takes the `id` or the `key` of one.
#[utoipa::path(
    operation_id = "list_offers",
    get, path = "/{slug}/payments/catalog", tag = "visitors",
    params(("slug" = String, Path, description = "A project's frontend.")),
    responses((status = 200, description = "The prices.", body = OfferList)),
    extensions(("x-problems" = json!("disabled not_found capacity_reached")))
)]
pub async fn offers(
    State(state): State<CheckoutServices>,
    context: HttpRequestContext,
    Path(slug): Path<String>,
) -> Result<Response, Problem> {
    let flow = CallerFlow::stranger(context.client.0);
    state.answers.check(&flow)?;
    let page = frontend(&state, &context, &slug).await?;
    let prices = state.payments.active_prices(&page).await?;
    let list = Json(OfferList::new(prices));
    let response = ([(header::CACHE_CONTROL, pages::NO_STORE)], list).into_response();
    Ok(state.answers.hold(flow, response).await)
}

/// Begin a checkout
///
/// Sends the visitor to the payment provider's page, and gives the browser a cookie by which it is recognised for 30 days. A second
/// click within a minute leads to the same page. The visitor comes back to `return_to` with `?checkout=success` or `?checkout=canceled`, which
/// proves nothing: ask `payments/status`.
#[utoipa::path(
    operation_id = "begin_checkout",
    post, path = "/{slug}/payments/checkout", tag = "visitors",
    params(("slug" = String, Path, description = "A project's frontend.")),
    request_body(content(
        (BeginCheckout = "application/json"),
        (BeginCheckout = "application/x-www-form-urlencoded")
    )),
    responses(
        (status = 303, description = "On to the provider's page."),
        (status = 200, description = "The same for who accepts `application/json`.", body = CheckoutView)
    ),
    extensions(("x-problems" = json!("body origin_refused disabled not_found price_inactive rate_limited payments_unconfigured provider_unavailable")))
)]
pub async fn checkout(
    State(state): State<CheckoutServices>,
    context: HttpRequestContext,
    Path(slug): Path<String>,
    headers: HeaderMap,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let page = frontend(&state, &context, &slug).await?;
    // A page of another origin could replace the browser's cookie.
    if !origin::is_same_origin(&state.config.scheme, &context.authority, &headers) {
        return Err(Problem::new(
            ProblemCode::OriginRefused,
            "The checkout was begun on a page of another origin. Begin it on the page itself.",
        ));
    }
    state.payments.provider()?;
    let input = body.form_or_json::<BeginCheckout>().await?.value;
    let origin = format!("{}://{}", state.config.scheme, context.authority);
    let mounts = state
        .serving
        .mounts_on_host(&context.host, &page, &slug)
        .await?;
    let return_to = return_address(&origin, &mounts, input.return_to.as_deref());
    let request = CheckoutRequest {
        price: input.price,
        return_to: return_to.ok_or_else(|| {
            invalid_request(format!(
                "`return_to` must be a path at or below `/{slug}`, such as `/{slug}#thanks`."
            ))
        })?,
    };
    let buyer = Buyer::identify(&state.visitors, &context.host, &page, &headers).await?;
    let user_id = buyer.user.as_ref().map(|user| user.user_id.clone());
    let beginning = Arc::clone(&state.payments).begin_checkout(Arc::clone(&page), buyer, request);
    let begun = beginning.await?;
    let mut response = if negotiate::accepts_by_name(&headers, "application/json") {
        Json(begun.view).into_response()
    } else {
        (StatusCode::SEE_OTHER, [(header::LOCATION, begun.view.url)]).into_response()
    };
    response.extensions_mut().insert(LogNote {
        user_id,
        ..LogNote::default()
    });
    let headers = response.headers_mut();
    if let Some(token) = begun.token {
        let set = (&*token, state.config.secure);
        for cookie in buyer::checkout_cookies(&page.id, &mounts, set)? {
            headers.append(header::SET_COOKIE, cookie);
        }
    }
    headers.insert(header::CACHE_CONTROL, pages::NO_STORE);
    Ok(response)
}

/// Say what the visitor has paid for
///
/// Lists the payments that count now. The visitor is recognised in one of three ways: as the signed-in visitor who paid, by their verified address, or by the
/// checkout's cookie. What was refunded, or has ended, is not there.
#[utoipa::path(
    operation_id = "payment_status",
    get, path = "/{slug}/payments/status", tag = "visitors",
    params(("slug" = String, Path, description = "A project's frontend.")),
    responses((status = 200, description = "The payments.", body = PaymentList)),
    extensions(("x-problems" = json!("disabled not_found capacity_reached")))
)]
pub async fn status(
    State(state): State<CheckoutServices>,
    context: HttpRequestContext,
    Path(slug): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let page = frontend(&state, &context, &slug).await?;
    let buyer = Buyer::identify(&state.visitors, &context.host, &page, &headers).await?;
    let owned = state.payments.paid_sessions(&page, buyer).await?;
    let list = Json(PaymentList::new(owned));
    Ok(([(header::CACHE_CONTROL, pages::NO_STORE)], list).into_response())
}

/// Returns the frontend at a slug; a quick share sells nothing.
async fn frontend(
    state: &CheckoutServices,
    context: &HttpRequestContext,
    slug: &str,
) -> Result<Arc<ServedPage>, Problem> {
    let page = state.serving.page_on_host(&context.host, slug).await?;
    if page.is_frontend() {
        Ok(page)
    } else {
        Err(Problem::not_found())
    }
}
