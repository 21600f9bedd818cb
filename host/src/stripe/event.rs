//! Events of the provider, reduced to the facts that a decision may need.

use serde::{Deserialize, Serialize};

use svc_base::clock::Timestamp;

/// A verified event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The provider's name for it: the same event has the same.
    pub id: String,
    /// Type of the event, such as `checkout.session.completed`.
    pub kind: String,
    /// When it happened, by the provider's clock, which counts seconds.
    pub at: Timestamp,
    /// Fact that the event states.
    pub fact: Fact,
}

/// Something of ours that an object of the provider's says it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// A checkout session, by its id.
    Session(String),
    /// A workspace, by its id.
    Workspace(String),
}

/// A name by which events find each other, and what they are about.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reference(pub(super) String);

impl Reference {
    /// An object of the provider's.
    pub fn object(id: &str) -> Self {
        Self(format!("id:{id}"))
    }

    /// Something of ours.
    pub fn subject(subject: &Subject) -> Self {
        Self(match subject {
            Subject::Session(id) => format!("session:{id}"),
            Subject::Workspace(id) => format!("workspace:{id}"),
        })
    }

    /// The provider's object that it names.
    pub fn as_object(&self) -> Option<&str> {
        self.0.strip_prefix("id:")
    }

    /// The session that it names.
    pub fn as_session(&self) -> Option<&str> {
        self.0.strip_prefix("session:")
    }

    /// The workspace that it names.
    pub fn as_workspace(&self) -> Option<&str> {
        self.0.strip_prefix("workspace:")
    }
}

/// Fact of an event, in our words and our minor units.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum Fact {
    /// About a hosted checkout.
    Checkout(Checkout),
    /// About a subscription.
    Subscription(Subscription),
    /// About an invoice of a subscription.
    Invoice(Invoice),
    /// Which payment has paid an invoice.
    InvoicePayment(InvoicePayment),
    /// About a charge of which something was returned.
    Charge(Charge),
    /// About one return.
    Refund(Refund),
    /// A charge is disputed, or no longer is.
    Dispute {
        /// The charge.
        charge: Option<String>,
        /// The payment that it belongs to.
        payment: Option<String>,
    },
}

/// A hosted checkout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkout {
    /// The provider's id of it.
    pub id: String,
    /// Subject of the session, by metadata that only we write.
    pub subject: Option<Subject>,
    /// The session that it names as its client's reference, unless it came by a link, whose visitors choose that.
    pub reference: Option<String>,
    /// Outcome of the checkout.
    pub outcome: CheckoutOutcome,
    /// The total, in minor units.
    pub amount: Option<i64>,
    /// The currency, in lower case.
    pub currency: Option<String>,
    /// The payment that it made.
    pub payment: Option<String>,
    /// The subscription that it made.
    pub subscription: Option<String>,
    /// The invoice that was paid by it.
    pub invoice: Option<String>,
    /// Customer who pays, as the provider names them.
    pub customer: Option<String>,
    /// The address that was collected.
    pub email: Option<String>,
}

/// Outcome of a hosted checkout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckoutOutcome {
    /// Completed, and paid.
    Paid,
    /// Completed, and the payment is under way.
    Pending,
    /// A payment that was under way has failed.
    Failed,
    /// Nobody completed it in time.
    Expired,
}

/// A subscription.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscription {
    /// The provider's id of it.
    pub id: String,
    /// Subject of the subscription.
    pub subject: Option<Subject>,
    /// Status in the provider's words.
    pub status: String,
    /// Whether it is gone.
    pub deleted: bool,
    /// Customer who pays.
    pub customer: Option<String>,
}

/// An invoice of a subscription.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invoice {
    /// The provider's id of it.
    pub id: String,
    /// The subscription.
    pub subscription: Option<String>,
    /// Subject of the subscription.
    pub subject: Option<Subject>,
    /// Whether it was paid; otherwise an attempt has failed.
    pub paid: bool,
    /// The totals that it states, in minor units: with what taxes add, and without. `None` where it states none, as those that
    /// were kept before totals were.
    #[serde(default)]
    pub totals: Option<Vec<i64>>,
    /// The currency, in lower case.
    #[serde(default)]
    pub currency: Option<String>,
    /// The payments and charges that it names.
    pub payments: Vec<String>,
}

/// A payment of an invoice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvoicePayment {
    /// The invoice.
    pub invoice: String,
    /// The payment or charge.
    pub payment: String,
}

/// A charge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    /// The provider's id of it.
    pub id: String,
    /// Subject of the payment.
    pub subject: Option<Subject>,
    /// The payment that it belongs to.
    pub payment: Option<String>,
    /// The invoice that it paid, where the provider says so.
    pub invoice: Option<String>,
    /// Whether all of it was returned.
    pub returned: bool,
}

/// A return of money.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refund {
    /// The provider's id of it.
    pub id: String,
    /// The charge.
    pub charge: Option<String>,
    /// The payment that the charge belongs to.
    pub payment: Option<String>,
    /// Whether it came to nothing: the money is with us again.
    pub failed: bool,
}

impl Event {
    /// All names by which it is found.
    pub fn references(&self) -> Vec<Reference> {
        let mut names = ReferenceSet::default();
        match &self.fact {
            Fact::Checkout(checkout) => {
                names.object(Some(&checkout.id));
                names.object(checkout.payment.as_ref());
                names.object(checkout.subscription.as_ref());
                names.object(checkout.invoice.as_ref());
                names.subject(checkout.subject.as_ref());
                let reference = checkout.reference.clone().map(Subject::Session);
                names.subject(reference.as_ref());
            }
            Fact::Subscription(subscription) => {
                names.object(Some(&subscription.id));
                names.subject(subscription.subject.as_ref());
            }
            Fact::Invoice(invoice) => {
                names.object(Some(&invoice.id));
                names.object(invoice.subscription.as_ref());
                names.subject(invoice.subject.as_ref());
                let payments = invoice.payments.iter();
                payments.for_each(|payment| names.object(Some(payment)));
            }
            Fact::InvoicePayment(paid) => {
                names.object(Some(&paid.invoice));
                names.object(Some(&paid.payment));
            }
            Fact::Charge(charge) => {
                names.object(Some(&charge.id));
                names.object(charge.payment.as_ref());
                names.object(charge.invoice.as_ref());
                names.subject(charge.subject.as_ref());
            }
            Fact::Refund(refund) => {
                names.object(Some(&refund.id));
                names.object(refund.charge.as_ref());
                names.object(refund.payment.as_ref());
            }
            Fact::Dispute { charge, payment } => {
                names.object(charge.as_ref());
                names.object(payment.as_ref());
            }
        }
        names.0.sort_unstable();
        names.0.dedup();
        names.0
    }
}

#[derive(Default)]
struct ReferenceSet(Vec<Reference>);

impl ReferenceSet {
    fn object(&mut self, id: Option<&String>) {
        self.0.extend(id.map(|id| Reference::object(id)));
    }

    fn subject(&mut self, subject: Option<&Subject>) {
        self.0.extend(subject.map(Reference::subject));
    }
}
