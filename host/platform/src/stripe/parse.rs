//! Parses webhooks into events, from the provider's current version and from older ones.

use serde_json::Value;

use super::event::{
    ChargeFact, CheckoutFact, CheckoutOutcome, EventFact, EventSubject, InvoiceFact,
    InvoicePaymentFact, RefundFact, SubscriptionFact, VerifiedEvent,
};
use super::{SESSION_METADATA, WORKSPACE_METADATA, amounts};
use svc_base::clock::Timestamp;

/// Maximum length of a provider's id, in bytes.
const MAX_ID_BYTES: usize = 255;
/// Maximum length of a stored e-mail address, in bytes.
const MAX_EMAIL_BYTES: usize = 512;

/// A signed document is not a valid event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the webhook is no event of the provider: {0}")]
pub struct InvalidEvent(pub(super) String);

/// Parses an event; `None` for a type of event that is not used.
///
/// # Errors
/// [`InvalidEvent`].
pub(super) fn parse_event(body: &[u8]) -> Result<Option<VerifiedEvent>, InvalidEvent> {
    let document: Value = serde_json::from_slice(body).map_err(|e| InvalidEvent(e.to_string()))?;
    let kind = document["type"].as_str();
    let kind = kind.ok_or_else(|| missing_field("type"))?;
    let object = &document["data"]["object"];
    let Some(fact) = parse_fact(kind, object) else {
        return Ok(None);
    };
    let id = id_field(&document, "id").ok_or_else(|| missing_field("id"))?;
    let at = document["created"].as_i64();
    let at = at.ok_or_else(|| missing_field("created"))?;
    let at = Timestamp(
        at.checked_mul(1000)
            .ok_or_else(|| missing_field("created"))?,
    );
    Ok(Some(VerifiedEvent {
        id,
        kind: kind.to_owned(),
        at,
        fact: fact?,
    }))
}

/// Whether an event comes from the provider's test mode, where no money moves.
pub(super) fn is_test_mode(body: &[u8]) -> bool {
    /// The only field that is read.
    #[derive(serde::Deserialize)]
    struct LivemodeField {
        livemode: Option<bool>,
    }
    let mode = serde_json::from_slice(body).ok();
    mode.and_then(|LivemodeField { livemode }| livemode) == Some(false)
}

fn missing_field(what: &str) -> InvalidEvent {
    InvalidEvent(format!("`{what}` is missing or not what it should be"))
}

fn parse_fact(kind: &str, object: &Value) -> Option<Result<EventFact, InvalidEvent>> {
    let paid = object["payment_status"] == "paid";
    Some(match kind {
        "checkout.session.completed" if paid => parse_checkout(object, CheckoutOutcome::Paid),
        "checkout.session.completed" => parse_checkout(object, CheckoutOutcome::Pending),
        "checkout.session.async_payment_succeeded" => parse_checkout(object, CheckoutOutcome::Paid),
        "checkout.session.async_payment_failed" => parse_checkout(object, CheckoutOutcome::Failed),
        "checkout.session.expired" => parse_checkout(object, CheckoutOutcome::Expired),
        "customer.subscription.created"
        | "customer.subscription.updated"
        | "customer.subscription.paused"
        | "customer.subscription.resumed" => parse_subscription(object, false),
        "customer.subscription.deleted" => parse_subscription(object, true),
        "invoice.paid" | "invoice.payment_succeeded" => parse_invoice(object, true),
        "invoice.payment_failed" => parse_invoice(object, false),
        "invoice_payment.paid" => return parse_invoice_payment(object).transpose(),
        "charge.refunded" => parse_charge(object),
        "refund.created" | "refund.updated" | "refund.failed" | "charge.refund.updated" => {
            parse_refund(object)
        }
        "charge.dispute.created"
        | "charge.dispute.updated"
        | "charge.dispute.closed"
        | "charge.dispute.funds_withdrawn"
        | "charge.dispute.funds_reinstated" => Ok(EventFact::Dispute {
            charge: id_field(object, "charge"),
            payment: id_field(object, "payment_intent"),
        }),
        _ => return None,
    })
}

fn object_id(object: &Value) -> Result<String, InvalidEvent> {
    id_field(object, "id").ok_or_else(|| missing_field("data.object.id"))
}

/// Returns an id, given as such or inside the expanded object.
fn id_field(object: &Value, field: &str) -> Option<String> {
    id_value(&object[field])
}

fn id_value(value: &Value) -> Option<String> {
    let id = value.as_str().or_else(|| value["id"].as_str())?;
    ((1..=MAX_ID_BYTES).contains(&id.len())).then(|| id.to_owned())
}

fn parse_subject(metadata: &Value) -> Option<EventSubject> {
    let session = id_value(&metadata[SESSION_METADATA]).map(EventSubject::Session);
    session.or_else(|| id_value(&metadata[WORKSPACE_METADATA]).map(EventSubject::Workspace))
}

fn parse_checkout(object: &Value, outcome: CheckoutOutcome) -> Result<EventFact, InvalidEvent> {
    let currency = currency_field(object);
    let amount = object["amount_total"].as_i64().zip(currency.as_deref());
    let amount =
        amount.and_then(|(amount, currency)| amounts::amount_from_provider(amount, currency));
    let email = object["customer_details"]["email"].as_str();
    let email = email.or_else(|| object["customer_email"].as_str());
    let by_link = !object["payment_link"].is_null();
    Ok(EventFact::Checkout(CheckoutFact {
        id: object_id(object)?,
        subject: parse_subject(&object["metadata"]),
        reference: id_field(object, "client_reference_id").filter(|_| !by_link),
        outcome,
        amount,
        currency,
        payment: id_field(object, "payment_intent"),
        subscription: id_field(object, "subscription"),
        invoice: id_field(object, "invoice"),
        customer: id_field(object, "customer"),
        email: email
            .filter(|text| text.len() <= MAX_EMAIL_BYTES)
            .map(str::to_owned),
    }))
}

fn parse_subscription(object: &Value, deleted: bool) -> Result<EventFact, InvalidEvent> {
    let status = id_field(object, "status");
    Ok(EventFact::Subscription(SubscriptionFact {
        id: object_id(object)?,
        subject: parse_subject(&object["metadata"]),
        status: status.ok_or_else(|| missing_field("data.object.status"))?,
        deleted,
        customer: id_field(object, "customer"),
    }))
}

/// Returns a currency code in lower case.
fn currency_field(object: &Value) -> Option<String> {
    object["currency"].as_str().map(str::to_ascii_lowercase)
}

/// Parses an invoice. Since 2025 it names its subscription as its parent, and lists its payments separately.
fn parse_invoice(object: &Value, paid: bool) -> Result<EventFact, InvalidEvent> {
    let parent = &object["parent"]["subscription_details"];
    let before = &object["subscription_details"];
    let listed = object["payments"]["data"].as_array().into_iter().flatten();
    let listed = listed
        .filter(|one| one["status"] == "paid")
        .filter_map(|one| payment_object_id(&one["payment"]));
    let named = ["payment_intent", "charge"].map(|field| id_field(object, field));
    Ok(EventFact::Invoice(InvoiceFact {
        id: object_id(object)?,
        subscription: id_field(parent, "subscription").or_else(|| id_field(object, "subscription")),
        subject: parse_subject(&parent["metadata"]).or_else(|| parse_subject(&before["metadata"])),
        paid,
        totals: invoice_totals(object),
        currency: currency_field(object),
        payments: named.into_iter().flatten().chain(listed).collect(),
    }))
}

/// Returns the totals of an invoice: with taxes, and without added taxes. The amount due may be less than
/// the total if the customer had credit. If less than the amount due was paid, only the paid amount counts.
fn invoice_totals(object: &Value) -> Option<Vec<i64>> {
    let field = |name: &str| object[name].as_i64();
    let (due, got) = (field("amount_due"), field("amount_paid"));
    let short = due.zip(got).is_some_and(|(due, got)| got < due);
    let total = if short {
        got
    } else {
        field("total").or(got).or(due)
    };
    let net = field("total_excluding_tax").filter(|_| !short);
    total?;
    let currency = currency_field(object).unwrap_or_default();
    let stated = [total, net].into_iter().flatten();
    let ours = stated.filter_map(|amount| amounts::amount_from_provider(amount, &currency));
    Some(ours.collect())
}

fn payment_object_id(payment: &Value) -> Option<String> {
    id_field(payment, "payment_intent").or_else(|| id_field(payment, "charge"))
}

/// Parses which payment has paid an invoice; `None` if it was paid otherwise, for example by a payment record.
fn parse_invoice_payment(object: &Value) -> Result<Option<EventFact>, InvalidEvent> {
    let invoice =
        id_field(object, "invoice").ok_or_else(|| missing_field("data.object.invoice"))?;
    let payment = payment_object_id(&object["payment"]);
    Ok(payment.map(|payment| EventFact::InvoicePayment(InvoicePaymentFact { invoice, payment })))
}

fn parse_charge(object: &Value) -> Result<EventFact, InvalidEvent> {
    let amount = object["amount"].as_i64();
    let refunded = object["amount_refunded"].as_i64();
    let wholly = amount.zip(refunded);
    let wholly = wholly.is_some_and(|(amount, refunded)| amount > 0 && refunded >= amount);
    Ok(EventFact::Charge(ChargeFact {
        id: object_id(object)?,
        subject: parse_subject(&object["metadata"]),
        payment: id_field(object, "payment_intent"),
        invoice: id_field(object, "invoice"),
        returned: wholly || object["refunded"] == true,
    }))
}

fn parse_refund(object: &Value) -> Result<EventFact, InvalidEvent> {
    let status = object["status"].as_str();
    Ok(EventFact::Refund(RefundFact {
        id: object_id(object)?,
        charge: id_field(object, "charge"),
        payment: id_field(object, "payment_intent"),
        failed: matches!(status, Some("failed" | "canceled")),
    }))
}
