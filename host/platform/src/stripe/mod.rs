//! The payment provider: its client, its webhooks, and the ledger of its events. Only this module knows the provider's API.
//!
//! A webhook is verified, reduced to the [`EventFact`] that it states, and appended to the ledger once. In the
//! same transaction each [`EventConsumer`] looks whether the event concerns it: purchases of visitors are one consumer, the
//! plans of workspaces another. What a consumer decides is a function of the ledger alone, so that neither order nor repetition
//! matters.
//!
//! # What is sent
//!
//! Every call is a form with `Authorization`, `Stripe-Version` ([`API_VERSION`]) and `Idempotency-Key`. This list is complete, with
//! all parameters. `tests/http/payments/recorded.rs` records the calls, and `tests/stripe` compares the record with the types of the
//! provider's Node library of that version, which are generated from its published OpenAPI description (`stripe/openapi`, release 2596):
//! an unknown parameter fails.
//!
//! `POST /v1/checkout/sessions`, of a visitor's purchase:
//!
//! | parameter | type there | what is sent |
//! |---|---|---|
//! | `mode` | `payment`, `setup` or `subscription` | `subscription` for a recurring price, else `payment` |
//! | `success_url`, `cancel_url` | string | the page, with `?checkout=success` or `canceled` |
//! | `client_reference_id` | string, at most 200 characters | the session's id |
//! | `metadata[svc_session]` | string, at most 500 characters | the same |
//! | `payment_intent_data[metadata][svc_session]` | string | the same, where it is paid once |
//! | `subscription_data[metadata][svc_session]` | string | the same, of a subscription |
//! | `customer_email` | string | the visitor's verified address, if there is one |
//! | `line_items[0][quantity]` | integer | 1 |
//! | `line_items[0][price_data][currency]` | string, three letters | the price's, in lower case |
//! | `line_items[0][price_data][unit_amount]` | integer | the price's, in the provider's minor units (`amounts.rs`) |
//! | `line_items[0][price_data][product_data][name]` | string, at most 5,000 characters | the product's name, at most 200 |
//! | `line_items[0][price_data][product_data][description]` | string, at most 40,000 characters | label and description, at most 2,203 |
//! | `line_items[0][price_data][recurring][interval]` | `day`, `week`, `month` or `year` | `month` or `year`, for a recurring price |
//! | `adaptive_pricing[enabled]` | boolean | `false`: what is paid is what is compared |
//!
//! For a workspace's plan: `mode`, `success_url`, `cancel_url`, `client_reference_id`, `metadata[svc_workspace]`,
//! `subscription_data[metadata][svc_workspace]`, `line_items[0][price]` (the id of a price), `line_items[0][quantity]`, and `customer`
//! (the id of one, if the provider knows who pays).
//!
//! | call | parameters |
//! |---|---|
//! | `POST /v1/checkout/sessions/{id}/expire` | none |
//! | `POST /v1/billing_portal/sessions` | `customer` (string), `return_url` (string) |
//! | `POST /v1/subscriptions/{id}` | `cancel_at_period_end` (boolean): `true` |

mod amounts;
mod client;
pub mod currencies;
pub mod dev;
mod event;
mod interval;
pub mod ledger;
mod parse;
mod plans;
mod receiver;
pub mod routes;
mod signature;
mod store;

pub use client::{
    API_VERSION, CheckoutPurchase, HostedCheckout, NewCheckout, StripeClient, StripeError,
};
pub use event::{
    ChargeFact, CheckoutFact, CheckoutOutcome, EventFact, EventReference, EventSubject,
    InvoiceFact, InvoicePaymentFact, RefundFact, SubscriptionFact, VerifiedEvent,
};
pub use interval::BillingInterval;
pub use ledger::{EventLedgerEntry, RelatedEvents};
pub use plans::NewPlanCheckout;
pub use receiver::{EventConsumer, EventConsumption, WebhookError, WebhookReceiver};
pub use signature::sign;

/// Metadata key under which an object of the provider names the session that it belongs to.
pub const SESSION_METADATA: &str = "svc_session";
/// Metadata key under which it names a workspace.
pub const WORKSPACE_METADATA: &str = "svc_workspace";
