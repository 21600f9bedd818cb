//! Receives webhooks: verifies each, appends it to the ledger and passes it to the consumers, in one transaction.

use std::sync::Arc;

use ring::hmac;

use super::event::VerifiedEvent;
use super::parse::{self, InvalidEvent};
use super::signature::{self, PresentedSignature, SignatureError};
use super::{RelatedEvents, ledger};
use crate::activity::Activity;
use crate::config;
use crate::control::{self, ControlDatabase, Tx};
use crate::infra::Infra;
use svc_base::clock::{Clock, Timestamp};
use svc_base::fault;
use svc_base::ids::ProjectId;

/// Consumer of the provider's events.
pub trait EventConsumer: std::fmt::Debug + Send + Sync {
    /// Handles a new event, in the transaction that appends it. `found` has all events of the ledger about the same objects,
    /// including the new one. An event that does not concern this consumer is left alone.
    ///
    /// # Errors
    /// Errors of the database: then nothing is stored, and the provider sends the event again.
    fn consume(
        &self,
        tx: &Tx<'_>,
        found: &RelatedEvents,
        now: Timestamp,
    ) -> Result<EventConsumption, control::Error>;
}

/// Effect of an event on a consumer.
#[derive(Debug, Default)]
pub struct EventConsumption {
    /// Whether the event concerns the consumer.
    pub claimed: bool,
    /// Projects in which a checkout was paid by it.
    pub paid: Vec<ProjectId>,
}

/// Error of a webhook that was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// The signature is missing, wrong or too old.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// The document is not a valid event.
    #[error(transparent)]
    InvalidEvent(#[from] InvalidEvent),
    /// The control database failed.
    #[error(transparent)]
    Store(#[from] control::Error),
}

/// Receiver of webhooks.
#[derive(Debug)]
pub struct WebhookReceiver {
    control: ControlDatabase,
    clock: Clock,
    keys: Vec<hmac::Key>,
    /// Whether the provider moves real money here.
    live: bool,
    consumers: Vec<Arc<dyn EventConsumer>>,
    /// Counts payments for the owners of projects.
    activity: Arc<Activity>,
}

impl WebhookReceiver {
    /// Creates the receiver for a configured provider.
    pub fn new(
        infra: Infra,
        settings: &config::StripeSettings,
        consumers: Vec<Arc<dyn EventConsumer>>,
        activity: Arc<Activity>,
    ) -> Self {
        let secrets = settings.webhook_secret.0.iter();
        Self {
            control: infra.control,
            clock: infra.clock,
            keys: secrets.map(|secret| signature::hmac_key(secret)).collect(),
            live: settings.is_live(),
            consumers,
            activity,
        }
    }

    /// Parses the header `Stripe-Signature` and checks its time, before the body is read.
    ///
    /// # Errors
    /// [`WebhookError::Signature`].
    pub fn check_header(&self, header: Option<&str>) -> Result<PresentedSignature, WebhookError> {
        let signature = PresentedSignature::parse(header)?;
        signature.check_age(self.clock.now())?;
        Ok(signature)
    }

    /// Receives a webhook. A repeated event, an unused type, or a test event on a live installation changes
    /// nothing.
    ///
    /// # Errors
    /// [`WebhookError`].
    pub async fn receive(
        &self,
        signature: &PresentedSignature,
        body: &[u8],
    ) -> Result<(), WebhookError> {
        let now = self.clock.now();
        signature.verify(&self.keys, body)?;
        // The body may have taken a while.
        signature.check_age(now)?;
        let Some(event) = parse::parse_event(body)? else {
            return Ok(());
        };
        if self.live && parse::is_test_mode(body) {
            tracing::warn!(
                event = event.id,
                "a webhook of the provider's test mode counts for nothing beside a live key: take the secret of its endpoint out of `webhook_secret`"
            );
            return Ok(());
        }
        let consumers = self.consumers.clone();
        fault::point("webhook.verified");
        let paid = self
            .control
            .write(move |tx| append(tx, &event, &consumers, now))
            .await?;
        fault::point("webhook.committed");
        for project in paid {
            self.activity.project(project).count_payment(now);
        }
        Ok(())
    }
}

fn append(
    tx: &Tx<'_>,
    event: &VerifiedEvent,
    consumers: &[Arc<dyn EventConsumer>],
    now: Timestamp,
) -> Result<Vec<ProjectId>, control::Error> {
    if !ledger::append(tx, event, now)? {
        return Ok(Vec::new());
    }
    fault::point("webhook.appended");
    let found = ledger::find_related(tx, event.references()).map_err(control::Error::from)?;
    let (mut claimed, mut paid) = (false, Vec::new());
    for consumer in consumers {
        let consumed = consumer.consume(tx, &found, now)?;
        claimed |= consumed.claimed;
        paid.extend(consumed.paid);
    }
    if claimed {
        ledger::mark_claimed(tx, &found)?;
    }
    fault::point("webhook.applied");
    Ok(paid)
}
