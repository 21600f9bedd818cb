//! JSON objects of the provider `dev`: only those fields of the real ones that this server reads.

#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use crate::stripe::{API_VERSION, BillingInterval};
use svc_base::clock::Timestamp;

/// Purchase in the provider's terms.
#[derive(Clone, Debug)]
pub(super) struct SimulatedPurchase {
    /// Identifier of the checkout.
    pub(super) id: String,
    /// Metadata that names the session or workspace.
    pub(super) subject: (&'static str, String),
    /// Product name on the page.
    pub(super) name: String,
    /// Amount in the provider's minor units.
    pub(super) amount: i64,
    /// Currency code in lower case.
    pub(super) currency: String,
    /// Whether the purchase is a subscription.
    pub(super) recurring: bool,
    /// Time between two payments of it, where the payment page is to say so.
    pub(super) interval: Option<BillingInterval>,
    /// Number of the month, from 1.
    pub(super) month: u32,
    /// E-mail address of the payer.
    pub(super) email: Option<String>,
    /// URL for a visitor who has paid.
    pub(super) success_url: String,
    /// URL for a visitor who has not paid.
    pub(super) cancel_url: String,
    /// When the checkout began.
    pub(super) made_at: Timestamp,
}

/// Step of a payment, for which a webhook is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PaymentStep {
    Paid,
    Pending,
    Failed,
    Expired,
    Subscribed,
    Invoiced,
    InvoicePaid,
    Renewed,
    Ended,
    Refunded,
    Disputed,
}

/// Returns the event of a step, with its type.
pub(super) fn webhook_event(
    bought: &SimulatedPurchase,
    step: PaymentStep,
    id: &str,
    now: Timestamp,
) -> (&'static str, Value) {
    let now = now.0.div_euclid(1000);
    let (kind, object) = match step {
        PaymentStep::Paid => (
            "checkout.session.completed",
            bought.checkout("complete", "paid"),
        ),
        PaymentStep::Pending => (
            "checkout.session.completed",
            bought.checkout("complete", "unpaid"),
        ),
        PaymentStep::Failed => (
            "checkout.session.async_payment_failed",
            bought.checkout("complete", "unpaid"),
        ),
        PaymentStep::Expired => (
            "checkout.session.expired",
            bought.checkout("expired", "unpaid"),
        ),
        PaymentStep::Subscribed => (
            "customer.subscription.created",
            bought.subscription("active"),
        ),
        PaymentStep::Renewed => (
            "customer.subscription.updated",
            bought.subscription("active"),
        ),
        PaymentStep::Ended => (
            "customer.subscription.deleted",
            bought.subscription("canceled"),
        ),
        PaymentStep::Invoiced => ("invoice.paid", bought.invoice(now)),
        PaymentStep::InvoicePaid => ("invoice_payment.paid", bought.invoice_payment(now)),
        PaymentStep::Refunded => ("charge.refunded", bought.charge(now)),
        PaymentStep::Disputed => ("charge.dispute.created", bought.dispute(now)),
    };
    let event = json!({
        "id": id,
        "object": "event",
        "api_version": API_VERSION,
        "created": now,
        "livemode": false,
        "pending_webhooks": 1,
        "request": { "id": null, "idempotency_key": null },
        "type": kind,
        "data": { "object": object },
    });
    (kind, event)
}

impl SimulatedPurchase {
    /// Returns the id of an object of a kind, with the number of the month for a subscription.
    fn name(&self, kind: &str) -> String {
        let own = self.id.strip_prefix("cs_dev_").unwrap_or(&self.id);
        if self.recurring && matches!(kind, "in" | "inpay" | "pi" | "ch" | "dp") {
            format!("{kind}_dev_{own}_{:06}", self.month)
        } else {
            format!("{kind}_dev_{own}")
        }
    }

    fn metadata(&self) -> Value {
        let (name, value) = &self.subject;
        json!({ *name: value })
    }

    /// Returns the object of a hosted checkout.
    pub(super) fn checkout(&self, status: &str, payment_status: &str) -> Value {
        let complete = status == "complete";
        let once = (complete && !self.recurring).then(|| self.name("pi"));
        let monthly = |kind: &str| (complete && self.recurring).then(|| self.name(kind));
        let (_, subject) = &self.subject;
        json!({
            "id": self.id,
            "object": "checkout.session",
            "mode": if self.recurring { "subscription" } else { "payment" },
            "status": status,
            "payment_status": payment_status,
            "amount_subtotal": self.amount,
            "amount_total": self.amount,
            "currency": self.currency,
            "client_reference_id": subject,
            "created": self.made_at.0.div_euclid(1000),
            "customer": monthly("cus"),
            "customer_details": { "email": self.email },
            "customer_email": null,
            "invoice": monthly("in"),
            "livemode": false,
            "metadata": self.metadata(),
            "payment_intent": once,
            "payment_link": null,
            "subscription": monthly("sub"),
            "success_url": self.success_url,
            "cancel_url": self.cancel_url,
        })
    }

    fn subscription(&self, status: &str) -> Value {
        json!({
            "id": self.name("sub"),
            "object": "subscription",
            "status": status,
            "currency": self.currency,
            "customer": self.name("cus"),
            "cancel_at_period_end": false,
            "latest_invoice": self.name("in"),
            "livemode": false,
            "metadata": self.metadata(),
        })
    }

    fn invoice(&self, now: i64) -> Value {
        json!({
            "id": self.name("in"),
            "object": "invoice",
            "status": "paid",
            "amount_due": self.amount,
            "amount_paid": self.amount,
            "currency": self.currency,
            "created": now,
            "customer": self.name("cus"),
            "billing_reason": if self.month == 1 { "subscription_create" } else { "subscription_cycle" },
            "livemode": false,
            "metadata": {},
            "parent": {
                "type": "subscription_details",
                "subscription_details": {
                    "subscription": self.name("sub"),
                    "metadata": self.metadata(),
                },
            },
        })
    }

    fn invoice_payment(&self, now: i64) -> Value {
        json!({
            "id": self.name("inpay"),
            "object": "invoice_payment",
            "status": "paid",
            "amount_paid": self.amount,
            "amount_requested": self.amount,
            "currency": self.currency,
            "created": now,
            "invoice": self.name("in"),
            "is_default": true,
            "livemode": false,
            "payment": { "type": "payment_intent", "payment_intent": self.name("pi") },
        })
    }

    fn charge(&self, now: i64) -> Value {
        json!({
            "id": self.name("ch"),
            "object": "charge",
            "status": "succeeded",
            "paid": true,
            "amount": self.amount,
            "amount_refunded": self.amount,
            "refunded": true,
            "currency": self.currency,
            "created": now,
            "livemode": false,
            "metadata": if self.recurring { json!({}) } else { self.metadata() },
            "payment_intent": self.name("pi"),
        })
    }

    fn dispute(&self, now: i64) -> Value {
        json!({
            "id": self.name("dp"),
            "object": "dispute",
            "status": "needs_response",
            "reason": "general",
            "amount": self.amount,
            "currency": self.currency,
            "created": now,
            "charge": self.name("ch"),
            "livemode": false,
            "metadata": {},
            "payment_intent": self.name("pi"),
        })
    }
}
