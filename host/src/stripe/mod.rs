//! The payment provider: its client, its webhooks, and the ledger of what it has told us. Nothing else knows how it speaks.
//!
//! A webhook is verified, reduced to the [`Fact`] that it states, and appended to the ledger once, whatever it is about. In the
//! same transaction each [`Consumer`] looks whether it is about something of its own: purchases of visitors are one consumer, the
//! plans of workspaces another. What a consumer decides is a function of the ledger alone, so that neither order nor repetition
//! matters.

mod amounts;
mod client;
pub mod currencies;
pub mod dev;
mod event;
pub mod ledger;
mod parse;
mod plans;
mod receiver;
pub mod routes;
mod signature;
mod store;

pub use client::{Hosted, NewCheckout, Purchase, Stripe, StripeError, VERSION};
pub use event::{
    Charge, Checkout, CheckoutOutcome, Event, Fact, Invoice, InvoicePayment, Reference, Refund,
    Subject, Subscription,
};
pub use ledger::{Entry, Found};
pub use plans::PlanCheckout;
pub use receiver::{Consumer, ReceiveError, Receiver};
pub use signature::sign;

/// The metadata by which an object of the provider's names the session that it belongs to.
pub const SESSION: &str = "svc_session";
/// The metadata by which it names a workspace.
pub const WORKSPACE: &str = "svc_workspace";
