//! Events of the provider, reduced to the facts that decisions need.

use serde::{Deserialize, Serialize};

use svc_base::clock::Timestamp;

/// Verified event of the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedEvent {
    /// The provider's id of the event; a repeated event has the same id.
    pub id: String,
    /// Type of the event, such as `checkout.session.completed`.
    pub kind: String,
    /// When it happened, by the provider's clock, in whole seconds.
    pub at: Timestamp,
    /// Fact that the event states.
    pub fact: EventFact,
}

/// Object of ours that the provider's metadata names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventSubject {
    /// A checkout session, by its id.
    Session(String),
    /// A workspace, by its id.
    Workspace(String),
}

/// Key by which related events find each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventReference(pub(super) String);

impl EventReference {
    /// Creates a reference to an object of the provider.
    pub fn object(id: &str) -> Self {
        Self(format!("id:{id}"))
    }

    /// Creates a reference to an object of ours.
    pub fn subject(subject: &EventSubject) -> Self {
        Self(match subject {
            EventSubject::Session(id) => format!("session:{id}"),
            EventSubject::Workspace(id) => format!("workspace:{id}"),
        })
    }

    /// Returns the provider's object that is referenced.
    pub fn as_object(&self) -> Option<&str> {
        self.0.strip_prefix("id:")
    }

    /// Returns the session that is referenced.
    pub fn as_session(&self) -> Option<&str> {
        self.0.strip_prefix("session:")
    }

    /// Returns the workspace that is referenced.
    pub fn as_workspace(&self) -> Option<&str> {
        self.0.strip_prefix("workspace:")
    }
}

/// Fact of an event, in our terms and our minor units.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum EventFact {
    /// About a hosted checkout.
    Checkout(CheckoutFact),
    /// About a subscription.
    Subscription(SubscriptionFact),
    /// About an invoice of a subscription.
    Invoice(InvoiceFact),
    /// A payment has paid an invoice.
    InvoicePayment(InvoicePaymentFact),
    /// About a charge of which money was refunded.
    Charge(ChargeFact),
    /// About one refund.
    Refund(RefundFact),
    /// A dispute of a charge begins, changes or ends.
    Dispute {
        /// Charge that is disputed.
        charge: Option<String>,
        /// Payment that the charge belongs to.
        payment: Option<String>,
    },
}

/// State of a hosted checkout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckoutFact {
    /// The provider's id of the checkout.
    pub id: String,
    /// Subject of the checkout, by metadata that only we write.
    pub subject: Option<EventSubject>,
    /// Session that the client reference names; absent for a payment link, whose visitors choose the reference.
    pub reference: Option<String>,
    pub outcome: CheckoutOutcome,
    /// Total in minor units.
    pub amount: Option<i64>,
    /// Currency code in lower case.
    pub currency: Option<String>,
    /// Payment that the checkout created.
    pub payment: Option<String>,
    /// Subscription that the checkout created.
    pub subscription: Option<String>,
    /// Invoice that the checkout paid.
    pub invoice: Option<String>,
    /// The provider's id of the paying customer.
    pub customer: Option<String>,
    /// E-mail address that the provider collected.
    pub email: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckoutOutcome {
    /// Completed, and paid.
    Paid,
    /// Completed, and the payment is under way.
    Pending,
    /// A payment that was under way has failed.
    Failed,
    /// The checkout was not completed in time.
    Expired,
}

/// State of a subscription.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscriptionFact {
    /// The provider's id of the subscription.
    pub id: String,
    pub subject: Option<EventSubject>,
    /// Status by the provider's name.
    pub status: String,
    /// Whether the subscription was deleted.
    pub deleted: bool,
    /// The provider's id of the paying customer.
    pub customer: Option<String>,
}

/// Invoice of a subscription.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvoiceFact {
    /// The provider's id of the invoice.
    pub id: String,
    pub subscription: Option<String>,
    /// Subject of the subscription.
    pub subject: Option<EventSubject>,
    /// Whether the invoice was paid; otherwise an attempt has failed.
    pub paid: bool,
    /// Stated totals in minor units: with added taxes, and without. `None` if none is stated, as in events that were stored
    /// before totals were.
    #[serde(default)]
    pub totals: Option<Vec<i64>>,
    /// Currency code in lower case.
    #[serde(default)]
    pub currency: Option<String>,
    /// Payments and charges that the invoice names.
    pub payments: Vec<String>,
}

/// Payment of an invoice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvoicePaymentFact {
    pub invoice: String,
    /// Payment or charge that paid the invoice.
    pub payment: String,
}

/// Charge of a payment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChargeFact {
    /// The provider's id of the charge.
    pub id: String,
    pub subject: Option<EventSubject>,
    /// Payment that the charge belongs to.
    pub payment: Option<String>,
    /// Invoice that the charge paid, if the provider names it.
    pub invoice: Option<String>,
    /// Whether the whole charge was refunded.
    pub returned: bool,
}

/// Refund of a charge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefundFact {
    /// The provider's id of the refund.
    pub id: String,
    /// Charge that was refunded.
    pub charge: Option<String>,
    /// Payment that the charge belongs to.
    pub payment: Option<String>,
    /// Whether the refund failed, so that the owner has the money again.
    pub failed: bool,
}

impl VerifiedEvent {
    /// Returns all references by which the event is found.
    pub fn references(&self) -> Vec<EventReference> {
        let mut names = EventReferenceSet::default();
        match &self.fact {
            EventFact::Checkout(checkout) => {
                names.object(Some(&checkout.id));
                names.object(checkout.payment.as_ref());
                names.object(checkout.subscription.as_ref());
                names.object(checkout.invoice.as_ref());
                names.subject(checkout.subject.as_ref());
                let reference = checkout.reference.clone().map(EventSubject::Session);
                names.subject(reference.as_ref());
            }
            EventFact::Subscription(subscription) => {
                names.object(Some(&subscription.id));
                names.subject(subscription.subject.as_ref());
            }
            EventFact::Invoice(invoice) => {
                names.object(Some(&invoice.id));
                names.object(invoice.subscription.as_ref());
                names.subject(invoice.subject.as_ref());
                let payments = invoice.payments.iter();
                payments.for_each(|payment| names.object(Some(payment)));
            }
            EventFact::InvoicePayment(paid) => {
                names.object(Some(&paid.invoice));
                names.object(Some(&paid.payment));
            }
            EventFact::Charge(charge) => {
                names.object(Some(&charge.id));
                names.object(charge.payment.as_ref());
                names.object(charge.invoice.as_ref());
                names.subject(charge.subject.as_ref());
            }
            EventFact::Refund(refund) => {
                names.object(Some(&refund.id));
                names.object(refund.charge.as_ref());
                names.object(refund.payment.as_ref());
            }
            EventFact::Dispute { charge, payment } => {
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
struct EventReferenceSet(Vec<EventReference>);

impl EventReferenceSet {
    fn object(&mut self, id: Option<&String>) {
        self.0.extend(id.map(|id| EventReference::object(id)));
    }

    fn subject(&mut self, subject: Option<&EventSubject>) {
        self.0.extend(subject.map(EventReference::subject));
    }
}
