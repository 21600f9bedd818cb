//! Calls the provider: each call has the pinned version and an idempotency key, and is bounded in time and bytes.

use std::time::Duration;

use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use serde_json::Value;
use url::Url;

use super::{BillingInterval, SESSION_METADATA, amounts};
use crate::config;
use crate::outbound::{OutboundClient, OutboundError};

/// Version of the provider's API.
pub const API_VERSION: &str = "2026-10-28.endive";
/// Time limit of a call, until its answer is complete.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of a provider's message that clients see, in characters.
const MAX_MESSAGE_CHARS: usize = 300;
/// Maximum lengths of an id and of a URL in an answer, in bytes.
const MAX_ID_BYTES: usize = 255;
const MAX_URL_BYTES: usize = 8_192;

/// Client of the payment provider.
#[derive(Clone, Debug)]
pub struct StripeClient {
    outbound: OutboundClient,
    base: String,
    authorization: HeaderValue,
    /// Whether its pages may use http, as those of a local stand-in do.
    allows_http: bool,
}

/// Error of a call.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StripeError {
    /// The amount was refused, with the provider's message: nothing was created.
    #[error("the provider refused the amount: {0}")]
    AmountRefused(String),
    /// The call was refused: nothing was created.
    #[error("the provider refused the call: {0}")]
    Refused(StripeRefusal),
    /// The provider failed: whether something was created is unknown, and a retry with the same key gets the same answer.
    #[error("the provider failed: {0}")]
    Failed(String),
    /// There is no answer: whether something was created is unknown, and a retry with the same key will tell.
    #[error("the provider did not answer: {0}")]
    NoAnswer(String),
}

/// The provider's refusal of a call.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{status}, {kind} {code} {param}")]
pub struct StripeRefusal {
    pub status: StatusCode,
    kind: String,
    /// The provider's error code, if any.
    pub code: String,
    param: String,
}

impl StripeError {
    /// Whether it is certain that nothing was created.
    pub fn created_nothing(&self) -> bool {
        matches!(self, Self::AmountRefused(_) | Self::Refused(_))
    }
}

#[derive(Clone, Debug)]
pub struct CheckoutPurchase {
    /// Name of the product.
    pub product: String,
    pub description: String,
    /// Amount in minor units of ISO 4217.
    pub amount: i64,
    /// Currency code in lower case.
    pub currency: String,
    /// How often it is paid; once, if none.
    pub interval: Option<BillingInterval>,
}

/// Hosted checkout to create.
#[derive(Clone, Debug)]
pub struct NewCheckout {
    /// Identifier of our session.
    pub session: String,
    pub purchase: CheckoutPurchase,
    /// The visitor's verified e-mail address, if it is known.
    pub email: Option<String>,
    /// URL for a visitor who has paid.
    pub success_url: String,
    /// URL for a visitor who has not paid.
    pub cancel_url: String,
}

/// Hosted checkout, as the provider created it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostedCheckout {
    /// The provider's id of the checkout.
    pub id: String,
    /// URL where the visitor pays.
    pub url: String,
}

impl StripeClient {
    /// Creates a client for the configured provider.
    ///
    /// # Errors
    /// When the key is not a valid header value.
    pub fn new(
        outbound: OutboundClient,
        settings: &config::StripeSettings,
    ) -> anyhow::Result<Self> {
        let base = settings.api_base.as_str().trim_end_matches('/');
        let base = base.strip_suffix("/v1").unwrap_or(base).to_owned();
        let mut authorization = HeaderValue::try_from(format!("Bearer {}", settings.secret_key))
            .map_err(|_| anyhow::anyhow!("stripe.secret_key has characters that no key has"))?;
        authorization.set_sensitive(true);
        Ok(Self {
            outbound,
            base,
            authorization,
            allows_http: settings.api_base.scheme() == "http",
        })
    }

    /// Creates a hosted checkout.
    ///
    /// # Errors
    /// [`StripeError`].
    pub async fn create_checkout(
        &self,
        new: &NewCheckout,
        key: &str,
    ) -> Result<HostedCheckout, StripeError> {
        const PATH: &str = "/v1/checkout/sessions";
        let form = checkout_form(new)?;
        let made = match self.post(PATH, &form, key).await {
            // The visitor enters an e-mail address on the page if the provider refuses the known one.
            Err(StripeError::Refused(refusal))
                if new.email.is_some() && refusal.param == "customer_email" =>
            {
                let form: Vec<_> = form
                    .into_iter()
                    .filter(|(name, _)| name != "customer_email")
                    .collect();
                self.post(PATH, &form, &format!("{key}-unaddressed"))
                    .await?
            }
            made => made?,
        };
        let id = made["id"].as_str().filter(|id| {
            let visible = id.bytes().all(|byte| byte.is_ascii_graphic());
            (1..=MAX_ID_BYTES).contains(&id.len()) && visible
        });
        let url = made["url"].as_str().filter(|url| self.is_web_url(url));
        match (id, url) {
            (Some(id), Some(url)) => Ok(HostedCheckout {
                id: id.to_owned(),
                url: url.to_owned(),
            }),
            _ => Err(StripeError::Failed(
                "its answer has no id or no address that a visitor can be sent to".into(),
            )),
        }
    }

    /// Posts a form to a path of the provider, `/v1` included; returns the answer.
    ///
    /// # Errors
    /// [`StripeError`].
    pub async fn post(
        &self,
        path: &str,
        form: &[(String, String)],
        key: &str,
    ) -> Result<Value, StripeError> {
        let body = form_encode(form);
        let url = format!("{}{path}", self.base);
        let call = self.outbound.call(CALL_TIMEOUT, |client| {
            client
                .post(&url)
                .header(AUTHORIZATION, self.authorization.clone())
                .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                .header("Stripe-Version", API_VERSION)
                .header("Idempotency-Key", key)
                .body(body)
        });
        let answer = call.await.map_err(|error| match error {
            OutboundError::TooLarge => StripeError::Failed(error.to_string()),
            OutboundError::Timeout | OutboundError::Unconnected(_) | OutboundError::Failed(_) => {
                StripeError::NoAnswer(error.to_string())
            }
        })?;
        let document: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        if answer.status.is_success() {
            return Ok(document);
        }
        Err(parse_refusal(answer.status, &document["error"]))
    }

    /// Whether a visitor can be sent to a URL: it must be a web address, not a script.
    pub(super) fn is_web_url(&self, url: &str) -> bool {
        let plain = self.allows_http;
        url.len() <= MAX_URL_BYTES
            && Url::parse(url).is_ok_and(|url| {
                url.has_host() && (url.scheme() == "https" || plain && url.scheme() == "http")
            })
    }
}

/// Returns the form fields of a new hosted checkout. The price is sent inline, so that the provider's own catalog stays empty.
fn checkout_form(new: &NewCheckout) -> Result<Vec<(String, String)>, StripeError> {
    let purchase = &new.purchase;
    let currency = purchase.currency.as_str();
    let amount = amounts::amount_to_provider(purchase.amount, currency).ok_or_else(|| {
        let currency = currency.to_ascii_uppercase();
        StripeError::AmountRefused(format!("it takes no such amount of {currency}"))
    })?;
    // The resulting payment or subscription carries our metadata, too.
    let (mode, made) = match purchase.interval {
        Some(_) => ("subscription", "subscription_data"),
        None => ("payment", "payment_intent_data"),
    };
    let made = format!("{made}[metadata][{SESSION_METADATA}]");
    let metadata = format!("metadata[{SESSION_METADATA}]");
    let amount = amount.to_string();
    let mut form = vec![
        ("mode", mode),
        ("success_url", &new.success_url),
        ("cancel_url", &new.cancel_url),
        ("client_reference_id", &new.session),
        (&metadata, &new.session),
        (&made, &new.session),
        ("line_items[0][quantity]", "1"),
        ("line_items[0][price_data][currency]", currency),
        ("line_items[0][price_data][unit_amount]", &amount),
        (
            "line_items[0][price_data][product_data][name]",
            &purchase.product,
        ),
        (
            "line_items[0][price_data][product_data][description]",
            &purchase.description,
        ),
        // The provider must not convert the currency: the paid amount is compared with the price.
        ("adaptive_pricing[enabled]", "false"),
    ];
    if let Some(interval) = purchase.interval {
        let name = "line_items[0][price_data][recurring][interval]";
        form.push((name, interval.as_str()));
    }
    if let Some(email) = &new.email {
        form.push(("customer_email", email));
    }
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    Ok(form.into_iter().map(owned).collect())
}

fn form_encode(form: &[(String, String)]) -> String {
    let mut body = form_urlencoded::Serializer::new(String::new());
    body.extend_pairs(form).finish()
}

/// Parses an error answer. Its message goes to the person who set the price, and only if it is about the amount. The log gets
/// only the provider's codes, because a message may repeat what was sent.
fn parse_refusal(status: StatusCode, error: &Value) -> StripeError {
    let field = |name: &str| error[name].as_str().unwrap_or_default();
    let word = |name: &str| -> String {
        let characters = field(name).chars().filter(|c| !c.is_control());
        characters.take(100).collect()
    };
    let refusal = StripeRefusal {
        status,
        kind: word("type"),
        code: word("code"),
        param: word("param"),
    };
    // The key was used for another call, which may have created something.
    if status.is_server_error() || field("type") == "idempotency_error" {
        return StripeError::Failed(refusal.to_string());
    }
    // A call with the same key is running.
    if status == StatusCode::CONFLICT {
        return StripeError::NoAnswer(refusal.to_string());
    }
    let about_amount = field("code").starts_with("amount_") || field("param").contains("amount");
    let words = field("message").chars().filter(|c| !c.is_control());
    let words: String = words.take(MAX_MESSAGE_CHARS).collect();
    match status {
        StatusCode::BAD_REQUEST | StatusCode::PAYMENT_REQUIRED
            if about_amount || words.to_ascii_lowercase().contains("amount") =>
        {
            StripeError::AmountRefused(words)
        }
        _ => StripeError::Refused(refusal),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_refusals_of_the_amount_are_told_in_words() {
        let small = json!({
            "type": "invalid_request_error", "code": "amount_too_small",
            "message": "The Checkout Session's total amount must convert to at least 50 cents."
        });
        let param = json!({ "param": "line_items[0][price_data][unit_amount]", "message": "Invalid integer" });
        let words = json!({ "message": "Amount must be no more than $999,999.99" });
        let key = json!({ "type": "invalid_request_error", "message": "Invalid API Key provided: sk_live_secret" });
        let another = json!({ "type": "idempotency_error", "message": "Keys for idempotent requests can only be used with the same parameters" });
        let under_way =
            json!({ "type": "invalid_request_error", "code": "idempotency_key_in_use" });
        for (status, error, amount, nothing) in [
            (400, &small, true, true),
            (402, &small, true, true),
            (400, &param, true, true),
            (400, &words, true, true),
            (400, &key, false, true),
            (401, &key, false, true),
            (404, &small, false, true),
            (429, &small, false, true),
            (500, &small, false, false),
            (400, &another, false, false),
            (409, &under_way, false, false),
            (400, &Value::Null, false, true),
        ] {
            let refused = parse_refusal(StatusCode::from_u16(status).unwrap(), error);
            let text = refused.to_string();
            assert_eq!(
                matches!(refused, StripeError::AmountRefused(_)),
                amount,
                "{text}"
            );
            assert_eq!(refused.created_nothing(), nothing, "{text}");
            assert!(!text.contains("sk_live"), "{text}");
        }
    }
}
