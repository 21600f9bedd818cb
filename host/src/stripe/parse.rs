//! From a webhook's document to the event that it is: the provider's words, of today's version and of older ones.

use serde_json::Value;

use super::event::{
    Charge, Checkout, CheckoutOutcome, Event, Fact, Invoice, InvoicePayment, Refund, Subject,
    Subscription,
};
use super::{SESSION_METADATA, WORKSPACE_METADATA, amounts};
use svc_base::clock::Timestamp;

/// The longest id of the provider's, in bytes.
const MAX_ID_BYTES: usize = 255;
/// The longest address that is kept, in bytes.
const MAX_EMAIL_BYTES: usize = 512;

/// Why a signed document is no event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the webhook is no event of the provider: {0}")]
pub struct InvalidEvent(pub(super) String);

/// Reads an event; `None` if it is of a type that nothing depends on.
///
/// # Errors
/// [`InvalidEvent`].
pub(super) fn parse_event(body: &[u8]) -> Result<Option<Event>, InvalidEvent> {
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
    Ok(Some(Event {
        id,
        kind: kind.to_owned(),
        at,
        fact: fact?,
    }))
}

/// Whether an event is of the provider's test mode, where no money moves.
pub(super) fn is_test_mode(body: &[u8]) -> bool {
    /// The one field.
    #[derive(serde::Deserialize)]
    struct Mode {
        livemode: Option<bool>,
    }
    let mode = serde_json::from_slice(body).ok();
    mode.and_then(|Mode { livemode }| livemode) == Some(false)
}

fn missing_field(what: &str) -> InvalidEvent {
    InvalidEvent(format!("`{what}` is missing or not what it should be"))
}

fn parse_fact(kind: &str, object: &Value) -> Option<Result<Fact, InvalidEvent>> {
    let paid = object["payment_status"] == "paid";
    Some(match kind {
        "checkout.session.completed" if paid => checkout(object, CheckoutOutcome::Paid),
        "checkout.session.completed" => checkout(object, CheckoutOutcome::Pending),
        "checkout.session.async_payment_succeeded" => checkout(object, CheckoutOutcome::Paid),
        "checkout.session.async_payment_failed" => checkout(object, CheckoutOutcome::Failed),
        "checkout.session.expired" => checkout(object, CheckoutOutcome::Expired),
        "customer.subscription.created"
        | "customer.subscription.updated"
        | "customer.subscription.paused"
        | "customer.subscription.resumed" => subscription(object, false),
        "customer.subscription.deleted" => subscription(object, true),
        "invoice.paid" | "invoice.payment_succeeded" => invoice(object, true),
        "invoice.payment_failed" => invoice(object, false),
        "invoice_payment.paid" => return invoice_payment(object).transpose(),
        "charge.refunded" => charge(object),
        "refund.created" | "refund.updated" | "refund.failed" | "charge.refund.updated" => {
            refund(object)
        }
        "charge.dispute.created"
        | "charge.dispute.updated"
        | "charge.dispute.closed"
        | "charge.dispute.funds_withdrawn"
        | "charge.dispute.funds_reinstated" => Ok(Fact::Dispute {
            charge: id_field(object, "charge"),
            payment: id_field(object, "payment_intent"),
        }),
        _ => return None,
    })
}

fn object_id(object: &Value) -> Result<String, InvalidEvent> {
    id_field(object, "id").ok_or_else(|| missing_field("data.object.id"))
}

/// An id, be it there as such or as the object itself.
fn id_field(object: &Value, field: &str) -> Option<String> {
    id_value(&object[field])
}

fn id_value(value: &Value) -> Option<String> {
    let id = value.as_str().or_else(|| value["id"].as_str())?;
    ((1..=MAX_ID_BYTES).contains(&id.len())).then(|| id.to_owned())
}

fn subject(metadata: &Value) -> Option<Subject> {
    let session = id_value(&metadata[SESSION_METADATA]).map(Subject::Session);
    session.or_else(|| id_value(&metadata[WORKSPACE_METADATA]).map(Subject::Workspace))
}

fn checkout(object: &Value, outcome: CheckoutOutcome) -> Result<Fact, InvalidEvent> {
    let currency = currency_field(object);
    let amount = object["amount_total"].as_i64().zip(currency.as_deref());
    let amount = amount.and_then(|(amount, currency)| amounts::from_provider(amount, currency));
    let email = object["customer_details"]["email"].as_str();
    let email = email.or_else(|| object["customer_email"].as_str());
    let by_link = !object["payment_link"].is_null();
    Ok(Fact::Checkout(Checkout {
        id: object_id(object)?,
        subject: subject(&object["metadata"]),
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

fn subscription(object: &Value, deleted: bool) -> Result<Fact, InvalidEvent> {
    let status = id_field(object, "status");
    Ok(Fact::Subscription(Subscription {
        id: object_id(object)?,
        subject: subject(&object["metadata"]),
        status: status.ok_or_else(|| missing_field("data.object.status"))?,
        deleted,
        customer: id_field(object, "customer"),
    }))
}

/// A currency, as it is compared.
fn currency_field(object: &Value) -> Option<String> {
    object["currency"].as_str().map(str::to_ascii_lowercase)
}

/// An invoice. Since 2025 it names its subscription as its parent, and its payments apart.
fn invoice(object: &Value, paid: bool) -> Result<Fact, InvalidEvent> {
    let parent = &object["parent"]["subscription_details"];
    let before = &object["subscription_details"];
    let listed = object["payments"]["data"].as_array().into_iter().flatten();
    let listed = listed
        .filter(|one| one["status"] == "paid")
        .filter_map(|one| paid_by(&one["payment"]));
    let named = ["payment_intent", "charge"].map(|field| id_field(object, field));
    Ok(Fact::Invoice(Invoice {
        id: object_id(object)?,
        subscription: id_field(parent, "subscription").or_else(|| id_field(object, "subscription")),
        subject: subject(&parent["metadata"]).or_else(|| subject(&before["metadata"])),
        paid,
        totals: invoice_totals(object),
        currency: currency_field(object),
        payments: named.into_iter().flatten().chain(listed).collect(),
    }))
}

/// The totals of an invoice: that with taxes, and that without those that were added to the price. What is due may be less than
/// the total, where the customer had credit left; less than what is due was not all of it.
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
    let ours = stated.filter_map(|amount| amounts::from_provider(amount, &currency));
    Some(ours.collect())
}

fn paid_by(payment: &Value) -> Option<String> {
    id_field(payment, "payment_intent").or_else(|| id_field(payment, "charge"))
}

/// Which payment has paid an invoice; `None` if it was paid otherwise, as by a payment record.
fn invoice_payment(object: &Value) -> Result<Option<Fact>, InvalidEvent> {
    let invoice =
        id_field(object, "invoice").ok_or_else(|| missing_field("data.object.invoice"))?;
    let payment = paid_by(&object["payment"]);
    Ok(payment.map(|payment| Fact::InvoicePayment(InvoicePayment { invoice, payment })))
}

fn charge(object: &Value) -> Result<Fact, InvalidEvent> {
    let amount = object["amount"].as_i64();
    let refunded = object["amount_refunded"].as_i64();
    let wholly = amount.zip(refunded);
    let wholly = wholly.is_some_and(|(amount, refunded)| amount > 0 && refunded >= amount);
    Ok(Fact::Charge(Charge {
        id: object_id(object)?,
        subject: subject(&object["metadata"]),
        payment: id_field(object, "payment_intent"),
        invoice: id_field(object, "invoice"),
        returned: wholly || object["refunded"] == true,
    }))
}

fn refund(object: &Value) -> Result<Fact, InvalidEvent> {
    let status = object["status"].as_str();
    Ok(Fact::Refund(Refund {
        id: object_id(object)?,
        charge: id_field(object, "charge"),
        payment: id_field(object, "payment_intent"),
        failed: matches!(status, Some("failed" | "canceled")),
    }))
}
