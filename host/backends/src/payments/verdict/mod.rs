//! The verdict on a session: a pure function of the ledger, so that neither the order of events nor their repetition matters.
//!
//! The first match wins: fully refunded, subscription ended, paid, failed, expired; otherwise open.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use crate::stripe::{
    ChargeFact, CheckoutFact, CheckoutOutcome, EventFact, EventSubject, InvoiceFact, VerifiedEvent,
};
use svc_base::clock::Timestamp;

use super::model::Status;

/// Terms of a session, which events are compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionTerms {
    /// Our id of the session.
    pub id: String,
    /// The provider's id of the hosted checkout, once it is known.
    pub provider_id: Option<String>,
    /// Amount in minor units.
    pub amount: i64,
    /// Currency code in lower case.
    pub currency: String,
}

/// Verdict of the ledger about a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionVerdict {
    pub status: Status,
    /// E-mail address that the provider collected from the payer.
    pub email: Option<String>,
}

/// Computes the verdict. Events about other objects are ignored.
pub fn verdict<'e>(
    terms: &SessionTerms,
    ledger: impl IntoIterator<Item = &'e VerifiedEvent>,
) -> SessionVerdict {
    let ledger: Vec<&VerifiedEvent> = ledger.into_iter().collect();
    let checkouts = checkouts(terms, &ledger);
    // The paid amount and currency are compared: others grant nothing.
    let said = |outcome| {
        let checkouts = checkouts.iter();
        checkouts.filter(move |(_, one)| one.outcome == outcome)
    };
    let paid = || said(CheckoutOutcome::Paid).filter(|(_, one)| terms.matches_price(one));
    let purchase = SessionProviderObjects::collect(terms, &ledger, &checkouts);
    let status = if purchase.is_refunded(&ledger) {
        Status::Refunded
    } else if purchase.has_ended(&ledger) {
        Status::Canceled
    } else if paid().next().is_some() {
        Status::Paid
    } else if said(CheckoutOutcome::Failed).next().is_some() {
        Status::Failed
    } else if said(CheckoutOutcome::Expired).next().is_some() {
        Status::Canceled
    } else {
        Status::Open
    };
    // Of several addresses the latest counts; of one moment the last in alphabetical order, so that the result is the same in any order.
    let emails = paid().filter_map(|(event, one)| Some((event.at, one.email.as_ref()?)));
    SessionVerdict {
        status,
        email: emails.max().map(|(_, email)| email.clone()),
    }
}

/// Returns the provider's ids of a session's subscriptions that have not ended.
pub fn active_subscriptions<'e>(
    terms: &SessionTerms,
    ledger: impl IntoIterator<Item = &'e VerifiedEvent>,
) -> Vec<String> {
    let ledger: Vec<&VerifiedEvent> = ledger.into_iter().collect();
    let checkouts = checkouts(terms, &ledger);
    let mut living = SessionProviderObjects::collect(terms, &ledger, &checkouts).subscriptions;
    for event in &ledger {
        if let EventFact::Subscription(one) = &event.fact
            && one.deleted
        {
            living.remove(one.id.as_str());
        }
    }
    living.into_iter().map(str::to_owned).collect()
}

/// Returns the events about the hosted checkouts of a session.
fn checkouts<'e>(
    terms: &SessionTerms,
    ledger: &[&'e VerifiedEvent],
) -> Vec<(&'e VerifiedEvent, &'e CheckoutFact)> {
    let checkouts = ledger.iter().filter_map(|event| match &event.fact {
        EventFact::Checkout(checkout) if terms.is_own(checkout) => Some((*event, checkout)),
        _ => None,
    });
    checkouts.collect()
}

impl SessionTerms {
    /// Whether a hosted checkout belongs to this session: by its id, by metadata that only we write, or, while the id is unknown, by
    /// its client reference.
    fn is_own(&self, checkout: &CheckoutFact) -> bool {
        let named = matches!(&checkout.subject, Some(EventSubject::Session(id)) if *id == self.id);
        let another = !named && matches!(checkout.subject, Some(EventSubject::Session(_)));
        match &self.provider_id {
            Some(id) => named || (*id == checkout.id && !another),
            None => named || checkout.reference.as_ref() == Some(&self.id),
        }
    }

    fn matches_price(&self, checkout: &CheckoutFact) -> bool {
        checkout.amount == Some(self.amount) && checkout.currency.as_ref() == Some(&self.currency)
    }

    /// Whether an invoice is for one month at the price, with taxes added or included. An invoice that states no amount is.
    fn matches_invoice(&self, invoice: &InvoiceFact) -> bool {
        let amount = invoice.totals.as_ref();
        let currency = invoice.currency.as_ref();
        amount.is_none_or(|totals| totals.contains(&self.amount))
            && currency.is_none_or(|currency| *currency == self.currency)
    }
}

/// The provider's objects that belong to a session.
#[derive(Debug, Default)]
struct SessionProviderObjects<'e> {
    session: &'e str,
    payments: BTreeSet<&'e str>,
    /// Whether the paid checkout began a subscription.
    subscribed: bool,
    subscriptions: BTreeSet<&'e str>,
    /// Paid invoices of the subscriptions, each with its times.
    invoices: BTreeSet<(Timestamp, &'e str)>,
    /// Paid invoices for a month at the price.
    months: BTreeSet<(Timestamp, &'e str)>,
}

impl<'e> SessionProviderObjects<'e> {
    fn collect(
        terms: &'e SessionTerms,
        ledger: &[&'e VerifiedEvent],
        checkouts: &[(&'e VerifiedEvent, &'e CheckoutFact)],
    ) -> Self {
        let mut purchase = Self {
            session: &terms.id,
            ..Self::default()
        };
        for (event, checkout) in checkouts {
            purchase.payments.extend(checkout.payment.as_deref());
            let subscription = checkout.subscription.as_deref();
            if terms.matches_price(checkout) {
                purchase.subscriptions.extend(subscription);
            }
            if checkout.outcome == CheckoutOutcome::Paid {
                let invoice = checkout.invoice.as_deref().map(|id| (event.at, id));
                purchase.invoices.extend(invoice);
                if terms.matches_price(checkout) {
                    purchase.subscribed |= subscription.is_some();
                    purchase.months.extend(invoice);
                }
            }
        }
        for event in ledger {
            match &event.fact {
                EventFact::Subscription(one) if purchase.names_session(one.subject.as_ref()) => {
                    purchase.subscriptions.insert(&one.id);
                }
                EventFact::Invoice(one) if purchase.names_session(one.subject.as_ref()) => {
                    purchase.subscriptions.extend(one.subscription.as_deref());
                }
                _ => {}
            }
        }
        for event in ledger {
            if let EventFact::Invoice(one) = &event.fact {
                let subscription = one.subscription.as_deref();
                let own = subscription.is_some_and(|id| purchase.subscriptions.contains(id));
                if one.paid && own {
                    purchase.invoices.insert((event.at, &one.id));
                    if terms.matches_invoice(one) {
                        purchase.months.insert((event.at, &one.id));
                    }
                }
            }
        }
        purchase
    }

    fn names_session(&self, subject: Option<&EventSubject>) -> bool {
        matches!(subject, Some(EventSubject::Session(id)) if id == self.session)
    }

    /// Whether a subscription was deleted, or its latest status is an ending one.
    fn has_ended(&self, ledger: &[&VerifiedEvent]) -> bool {
        let mut latest: Option<(Timestamp, bool)> = None;
        for event in ledger {
            let EventFact::Subscription(one) = &event.fact else {
                continue;
            };
            if !self.subscriptions.contains(one.id.as_str()) {
                continue;
            }
            if one.deleted {
                return true;
            }
            let over = matches!(one.status.as_str(), "canceled" | "unpaid");
            // Of two in one second the ending one wins, because `true` is the greater.
            latest = latest.max(Some((event.at, over)));
        }
        latest.is_some_and(|(_, over)| over)
    }

    /// Whether all money was refunded: for a subscription, that of its latest month, or of an invoice of another amount since
    /// then. Such an invoice does not restore access that a refund has ended.
    fn is_refunded(&self, ledger: &[&VerifiedEvent]) -> bool {
        if !self.subscribed {
            let named = |charge: &ChargeFact| self.names_session(charge.subject.as_ref());
            if any_charge_refunded(ledger, &self.payments, named) {
                return true;
            }
        }
        let month = self.months.last();
        let since = month.map(|(at, _)| *at);
        let others = self.invoices.difference(&self.months);
        let others = others.filter(|(at, _)| since.is_none_or(|since| *at >= since));
        let mut latest = month.into_iter().chain(others);
        latest.any(|(_, invoice)| is_invoice_refunded(ledger, invoice))
    }
}

/// Whether all payments of an invoice were refunded.
fn is_invoice_refunded(ledger: &[&VerifiedEvent], invoice: &str) -> bool {
    let mut payments = BTreeSet::new();
    for event in ledger {
        match &event.fact {
            EventFact::InvoicePayment(one) if one.invoice == *invoice => {
                payments.insert(one.payment.as_str());
            }
            EventFact::Invoice(one) if one.id == *invoice => {
                payments.extend(one.payments.iter().map(String::as_str));
            }
            _ => {}
        }
    }
    any_charge_refunded(ledger, &payments, |charge| {
        charge.invoice.as_deref() == Some(invoice)
    })
}

/// Whether a charge of these payments was fully refunded, and the refund has not failed later: after a failed refund the owner has the
/// money again.
fn any_charge_refunded(
    ledger: &[&VerifiedEvent],
    payments: &BTreeSet<&str>,
    own: impl Fn(&ChargeFact) -> bool,
) -> bool {
    let is_one = |id: Option<&str>| id.is_some_and(|id| payments.contains(id));
    ledger.iter().any(|event| {
        let EventFact::Charge(charge) = &event.fact else {
            return false;
        };
        let ours = is_one(charge.payment.as_deref()) || is_one(Some(&charge.id)) || own(charge);
        charge.returned && ours && !refund_failed_since(ledger, charge, event.at)
    })
}

/// Whether a refund of a charge has failed, at `since` or later.
fn refund_failed_since(ledger: &[&VerifiedEvent], charge: &ChargeFact, since: Timestamp) -> bool {
    ledger.iter().any(|event| {
        let EventFact::Refund(refund) = &event.fact else {
            return false;
        };
        let of_charge = refund.charge.as_ref() == Some(&charge.id);
        let of_payment = refund.payment.is_some() && refund.payment == charge.payment;
        refund.failed && (of_charge || of_payment) && event.at >= since
    })
}
