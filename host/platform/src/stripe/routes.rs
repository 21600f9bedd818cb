//! The route of webhooks.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::{WebhookError, WebhookReceiver};
use crate::http::extract::{UnreadBody, invalid_request};
use crate::http::problem::{Problem, ProblemCode};

/// Maximum size of a webhook, in bytes: no event of the provider comes near it.
const MAX_WEBHOOK_BYTES: u64 = 256 << 10;

/// A webhook that was taken in.
#[derive(Debug, Serialize, ToSchema)]
pub struct Received {
    /// Always true.
    received: bool,
}

/// Take in a webhook of the payment provider
///
/// For the provider alone: `Stripe-Signature` is compared over the body as it was sent. An event that came before, or of a type that
/// nothing depends on, is answered like any other.
#[utoipa::path(
    operation_id = "receive_webhook",
    post, path = "/_svc/webhooks/stripe", tag = "operation",
    params(("Stripe-Signature" = String, Header, description = "`t=<seconds>,v1=<HMAC-SHA256 in hexadecimal>`; at most 300 seconds old.")),
    request_body(content((serde_json::Value = "application/json"))),
    responses((status = 200, description = "Taken in, and durable.", body = Received)),
    extensions(("x-problems" = json!("invalid_request payload_too_large unsupported_media_type timeout payments_unconfigured capacity_reached")))
)]
pub async fn receive(
    State(receiver): State<Option<Arc<WebhookReceiver>>>,
    body: UnreadBody,
) -> Result<Json<Received>, Problem> {
    let receiver = receiver.ok_or_else(unconfigured)?;
    let body = body.with_limit(MAX_WEBHOOK_BYTES)?;
    // Anybody may send here, so the body of a stranger who has no signature is not read.
    let mut signatures = body.headers().get_all("stripe-signature").iter();
    let header = match (signatures.next(), signatures.next()) {
        (one, None) => one.map(|value| value.to_str().unwrap_or_default()),
        (_, Some(_)) => return Err(invalid_request("The webhook has `Stripe-Signature` twice.")),
    };
    let signature = receiver.check_header(header)?;
    // A head may take more memory than the body, and anybody may have many of them wait here.
    let body = body.bytes_alone().await?;
    receiver.receive(&signature, &body).await?;
    Ok(Json(Received { received: true }))
}

/// Returns the problem of a request that needs a payment provider where none is configured.
pub fn unconfigured() -> Problem {
    Problem::new(
        ProblemCode::PaymentsUnconfigured,
        "The operator of this server has not configured payments.",
    )
}

impl From<WebhookError> for Problem {
    fn from(error: WebhookError) -> Self {
        match error {
            WebhookError::Signature(_) | WebhookError::InvalidEvent(_) => {
                invalid_request(format!("{error}."))
            }
            WebhookError::Store(error) => error.into(),
        }
    }
}
