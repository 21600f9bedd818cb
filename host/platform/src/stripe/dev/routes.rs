//! The routes of the provider `dev`: the used calls of the real API, the payment page, and the actions of `svc dev payment`.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Form, Path, State};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use ring::digest::{SHA256, digest};
use serde::Deserialize;
use serde_json::{Value, json};

use super::objects::SimulatedPurchase;
use super::{
    API_PATH, DevPaymentProvider, DevProviderError, PaymentChoice, SimulatedPaymentEvent, pages,
};
use crate::http::extract::invalid_request;
use crate::http::problem::{Problem, ProblemCode};
use crate::stripe::{BillingInterval, SESSION_METADATA, WORKSPACE_METADATA};

/// Header that `svc dev payment` sends. A page of another origin cannot send it.
pub const DEV_HEADER: &str = "svc-dev";
/// Largest amount.
const MAX_AMOUNT: i64 = 99_999_999;

pub fn routes<S: Clone + Send + Sync + 'static>(provider: Arc<DevPaymentProvider>) -> Router<S> {
    use axum::routing::{get, post};
    Router::new()
        .route(&format!("{API_PATH}/v1/checkout/sessions"), post(checkout))
        .route(
            &format!("{API_PATH}/v1/billing_portal/sessions"),
            post(portal),
        )
        .route(
            &format!("{API_PATH}/v1/subscriptions/{{id}}"),
            post(subscription),
        )
        .route(
            &format!("{API_PATH}/v1/checkout/sessions/{{id}}/expire"),
            post(expire),
        )
        .route("/_svc/dev/pay/{id}", get(page).post(pay))
        .route(
            "/_svc/dev/payments/{session}/{action}",
            post(simulate_payment_event),
        )
        .with_state(provider)
}

/// Returns an error as the real API does.
fn api_error(status: StatusCode, message: &str, param: &str) -> Response {
    let error = json!({ "type": "invalid_request_error", "message": message, "param": param });
    (status, Json(json!({ "error": error }))).into_response()
}

impl DevPaymentProvider {
    fn is_authorized(&self, headers: &HeaderMap) -> bool {
        let key = headers
            .get(header::AUTHORIZATION)
            .map(HeaderValue::as_bytes);
        key == Some(format!("Bearer {}", self.settings.secret_key).as_bytes())
    }
}

async fn checkout(
    State(provider): State<Arc<DevPaymentProvider>>,
    headers: HeaderMap,
    Form(form): Form<HashMap<String, String>>,
) -> Response {
    if !provider.is_authorized(&headers) {
        return api_error(StatusCode::UNAUTHORIZED, "Invalid API Key provided", "");
    }
    let field = |name: &str| form.get(name).cloned();
    let price = |name: &str| field(&format!("line_items[0][price_data]{name}"));
    let plan = field("line_items[0][price]");
    let amount = match (&plan, price("[unit_amount]")) {
        // The simulated catalog has no prices, so a plan costs a fixed amount.
        (Some(_), _) => Some(900),
        (None, amount) => amount.and_then(|amount| amount.parse().ok()),
    };
    let Some(amount) = amount.filter(|amount| (1..=MAX_AMOUNT).contains(amount)) else {
        let param = "line_items[0][price_data][unit_amount]";
        let message = format!("The amount must be from 1 to {MAX_AMOUNT}.");
        return api_error(StatusCode::BAD_REQUEST, &message, param);
    };
    let subject = |name: &'static str| Some((name, field(&format!("metadata[{name}]"))?));
    let subject = subject(SESSION_METADATA).or_else(|| subject(WORKSPACE_METADATA));
    let (Some(subject), Some(success_url)) = (subject, field("success_url")) else {
        return api_error(
            StatusCode::BAD_REQUEST,
            "Missing required param",
            "success_url",
        );
    };
    let key = headers.get("idempotency-key").map(HeaderValue::as_bytes);
    let id = digest(&SHA256, key.unwrap_or_default());
    let id: String = id
        .as_ref()
        .iter()
        .take(12)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let recurring = field("mode").as_deref() == Some("subscription");
    // A plan names no interval, and is paid every month.
    let interval =
        price("[recurring][interval]").and_then(|name| BillingInterval::from_name(&name));
    let bought = SimulatedPurchase {
        id: format!("cs_dev_{id}"),
        subject,
        name: price("[product_data][name]").or(plan).unwrap_or_default(),
        amount,
        currency: price("[currency]").unwrap_or_else(|| "eur".to_owned()),
        recurring,
        interval: recurring.then(|| interval.unwrap_or_default()),
        month: 1,
        email: field("customer_email"),
        cancel_url: field("cancel_url").unwrap_or_else(|| success_url.clone()),
        success_url,
        made_at: provider.clock.now(),
    };
    let mut answer = bought.checkout("open", "unpaid");
    answer["url"] = provider.store_checkout(bought).into();
    Json(answer).into_response()
}

async fn portal(
    State(provider): State<Arc<DevPaymentProvider>>,
    headers: HeaderMap,
    Form(form): Form<HashMap<String, String>>,
) -> Response {
    match form.get("return_url") {
        Some(url) if provider.is_authorized(&headers) => {
            let session =
                json!({ "id": "bps_dev", "object": "billing_portal.session", "url": url });
            Json(session).into_response()
        }
        _ => api_error(
            StatusCode::BAD_REQUEST,
            "Missing required param",
            "return_url",
        ),
    }
}

async fn subscription(
    State(provider): State<Arc<DevPaymentProvider>>,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Response {
    if !provider.is_authorized(&headers) {
        return api_error(StatusCode::UNAUTHORIZED, "Invalid API Key provided", "");
    }
    Json(json!({ "id": id, "object": "subscription", "status": "active", "cancel_at_period_end": true }))
        .into_response()
}

async fn expire(
    State(provider): State<Arc<DevPaymentProvider>>,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Response {
    if !provider.is_authorized(&headers) {
        return api_error(StatusCode::UNAUTHORIZED, "Invalid API Key provided", "");
    }
    match provider.open().remove(&id) {
        Some(bought) => Json(bought.checkout("expired", "unpaid")).into_response(),
        None => api_error(
            StatusCode::BAD_REQUEST,
            "Only Checkout Sessions with a status of open can be expired.",
            "",
        ),
    }
}

async fn page(
    State(provider): State<Arc<DevPaymentProvider>>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let bought = provider.open().get(&id).cloned();
    let bought = bought.ok_or(DevProviderError::NothingToDo(super::CHECKOUT_GONE_MESSAGE))?;
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        ),
        (
            header::CONTENT_SECURITY_POLICY,
            pages::CONTENT_SECURITY_POLICY,
        ),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((headers, pages::payment_page(&bought).into_string()).into_response())
}

/// Form of the payment page.
#[derive(Debug, Deserialize)]
struct PaymentForm {
    outcome: PaymentChoice,
    #[serde(default)]
    email: String,
}

async fn pay(
    State(provider): State<Arc<DevPaymentProvider>>,
    Path(id): Path<String>,
    Form(chosen): Form<PaymentForm>,
) -> Result<Response, Problem> {
    let next = provider
        .complete(&id, chosen.outcome, &chosen.email)
        .await?;
    Ok((StatusCode::SEE_OTHER, [(header::LOCATION, next)]).into_response())
}

async fn simulate_payment_event(
    State(provider): State<Arc<DevPaymentProvider>>,
    Path((session, action)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Json<Value>, Problem> {
    if !headers.contains_key(DEV_HEADER) {
        return Err(invalid_request("Only `svc dev payment` may ask for this."));
    }
    let action = SimulatedPaymentEvent::ALL
        .iter()
        .find(|(name, _)| *name == action);
    let (_, action) = action.ok_or_else(Problem::not_found)?;
    let events = provider.simulate(&session, *action).await?;
    Ok(Json(json!({ "session": session, "events": events })))
}

impl From<DevProviderError> for Problem {
    fn from(error: DevProviderError) -> Self {
        match error {
            DevProviderError::NothingToDo(why) => Self::new(
                ProblemCode::NotFound,
                format!("There is nothing to do: {why}."),
            ),
            DevProviderError::Webhook { .. } => {
                Self::new(ProblemCode::ProviderUnavailable, format!("{error}."))
            }
            DevProviderError::Store(error) => error.into(),
            DevProviderError::Random(error) => Self::internal(&error),
        }
    }
}
