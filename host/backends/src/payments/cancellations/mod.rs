//! Cancellations: when a project is deleted, the provider ends the subscriptions of its visitors and closes its open checkouts.
//!
//! A cancellation is queued in the transaction that removes the sessions, so that a crash loses none. It is sent later, so that a
//! provider that is unreachable does not delay the deletion. A checkout may be paid before it is closed: then its subscription ends, too.

mod store;

use self::store::{CancellationKind, PendingCancellation};
use super::Payments;
use super::model::{CheckoutSession, Status};
use super::verdict::active_subscriptions;
use crate::control::{self, Tx};
use crate::stripe::{CheckoutOutcome, EventFact, RelatedEvents, StripeClient, StripeError};
use svc_base::clock::Timestamp;

/// Maximum number of cancellations that one run sends.
const BATCH_SIZE: u32 = 20;
/// Longest delay between two attempts, in seconds.
const MAX_RETRY_DELAY_SECONDS: i64 = 24 * 3600;
/// Number of failures, about two weeks' worth, after which a cancellation is left to the operator.
const MAX_ATTEMPTS: u32 = 30;
/// Time for which the provider keeps a checkout open, plus an hour, in seconds.
const CHECKOUT_OPEN_SECONDS: i64 = 25 * 3600;

/// Queues the subscription or the open checkout of a session that is being removed.
pub(super) fn enqueue(
    tx: &Tx<'_>,
    session: &CheckoutSession,
    found: &RelatedEvents,
    now: Timestamp,
) -> Result<(), control::Error> {
    for subscription in active_subscriptions(&session.terms(), found.events()) {
        store::insert(tx, CancellationKind::Subscription, &subscription, now)?;
    }
    let open = session.status == Status::Open
        && session.created_at > now.plus_seconds(-CHECKOUT_OPEN_SECONDS);
    if let Some(checkout) = session.provider_id.as_deref().filter(|_| open) {
        store::insert(tx, CancellationKind::Checkout, checkout, now)?;
    }
    Ok(())
}

/// Queues an open checkout whose session was removed before the provider had answered.
pub(super) fn enqueue_checkout(
    tx: &Tx<'_>,
    checkout: &str,
    now: Timestamp,
) -> Result<(), control::Error> {
    store::insert(tx, CancellationKind::Checkout, checkout, now)
}

/// Looks for events without a session that complete a checkout of a removed project, and queues their subscriptions.
pub(super) fn consume(
    tx: &Tx<'_>,
    found: &RelatedEvents,
    now: Timestamp,
) -> Result<(), control::Error> {
    for event in found.events() {
        let EventFact::Checkout(checkout) = &event.fact else {
            continue;
        };
        let paid = checkout.outcome == CheckoutOutcome::Paid;
        let completed = paid || checkout.outcome == CheckoutOutcome::Pending;
        if !completed || !store::was_ever_queued(tx, &checkout.id)? {
            continue;
        }
        match &checkout.subscription {
            Some(subscription) => {
                store::insert(tx, CancellationKind::Subscription, subscription, now)?;
            }
            None if paid => tracing::warn!(
                checkout = checkout.id,
                "a purchase of a project that is gone was paid: refund it in the payment provider's dashboard"
            ),
            None => {}
        }
    }
    Ok(())
}

/// Deletes cancellations that were finished long ago.
pub(super) fn delete_finished(tx: &Tx<'_>, before: Timestamp) -> Result<(), control::Error> {
    store::delete_finished(tx, before)
}

impl Payments {
    /// Sends due cancellations to the provider; a failed one is retried later.
    ///
    /// # Errors
    /// Errors of the database.
    pub async fn send_cancellations(&self) -> anyhow::Result<()> {
        let Some(stripe) = &self.stripe else {
            return Ok(());
        };
        let now = self.infra.clock.now();
        let due = self
            .infra
            .control
            .read(move |c| store::list_due(c, now, BATCH_SIZE));
        for cancellation in due.await? {
            let told = send(stripe, &cancellation).await;
            let failed = told.is_err();
            self.record_result(cancellation, told).await?;
            if failed {
                // The provider may be unreachable, so the others wait for the next run.
                return Ok(());
            }
        }
        Ok(())
    }

    async fn record_result(
        &self,
        cancellation: PendingCancellation,
        told: Result<(), StripeError>,
    ) -> Result<(), control::Error> {
        let object = cancellation.object.as_str();
        let again = match told {
            Ok(()) => None,
            Err(error) if cancellation.attempts < MAX_ATTEMPTS => {
                tracing::warn!(%error, object, "what a removed project sold has not ended at the payment provider yet: it is told again");
                let wait = 2_i64
                    .saturating_pow(cancellation.attempts)
                    .min(MAX_RETRY_DELAY_SECONDS);
                Some(self.infra.clock.now().plus_seconds(wait))
            }
            Err(error) => {
                tracing::error!(%error, object, "what a removed project sold has not ended at the payment provider: end it in the provider's dashboard");
                None
            }
        };
        self.infra
            .control
            .write(move |tx| match again {
                Some(again) => store::reschedule(tx, &cancellation, again),
                None => store::mark_finished(tx, &cancellation),
            })
            .await
    }
}

/// Sends one cancellation. Each attempt has its own idempotency key, because the provider repeats its answer for a known key.
async fn send(
    stripe: &StripeClient,
    cancellation: &PendingCancellation,
) -> Result<(), StripeError> {
    let object = cancellation.object.as_str();
    let key = format!("svc-end-{object}-{}", cancellation.attempts);
    match cancellation.kind {
        CancellationKind::Subscription => stripe.cancel_at_period_end(object, &key).await,
        CancellationKind::Checkout => stripe.expire_checkout(object, &key).await,
    }
}
